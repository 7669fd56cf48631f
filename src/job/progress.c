/* progress.c - lines out of bytes, and progress out of lines: see progress.h. */
#include "job/progress.h"

#include "base/str.h"
#include "config/number.h"

#include <string.h>

/* ---- lines ---- */

static const char *find_end(const char *data, size_t n)
{
    const char *newline = memchr(data, '\n', n);
    /* a bar that overwrites itself ends its lines with \r; look only as far as the \n */
    const char *back = memchr(data, '\r', newline ? (size_t)(newline - data) : n);
    return back ? back : newline;
}

/* Keep part of a line; a full buffer is handed on, and the line is no longer whole. */
static void keep(fth__lines *lines, const char *data, size_t n, fth__line_fn *each, void *user)
{
    while (n > 0) {
        const size_t room = sizeof lines->text - lines->used, take = n < room ? n : room;
        memcpy(lines->text + lines->used, data, take);
        lines->used += take;
        data += take;
        n -= take;
        if (lines->used < sizeof lines->text) return;
        lines->inside = true;
        lines->used = 0;
        each(user, lines->text, sizeof lines->text, 0, false);
    }
}

void fth__lines_feed(fth__lines *lines, const char *data, size_t n, fth__line_fn *each, void *user)
{
    while (n > 0) {
        const char *end = find_end(data, n);
        const size_t length = end ? (size_t)(end - data) : n;
        if (!end || lines->used > 0 || lines->inside || length >= sizeof lines->text) {
            keep(lines, data, length, each, user);
            if (!end) return;
            each(user, lines->text, lines->used, *end, !lines->inside);
        } else {
            each(user, data, length, *end, true); /* the usual case: no copy */
        }
        lines->used = 0;
        lines->inside = false;
        data = end + 1;
        n -= length + 1;
    }
}

void fth__lines_flush(fth__lines *lines, fth__line_fn *each, void *user)
{
    if (lines->used > 0 || lines->inside) each(user, lines->text, lines->used, 0, !lines->inside);
    lines->used = 0;
    lines->inside = false;
}

/* ---- text of other programs ---- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static const char *skip_blanks(const char *s)
{
    while (*s == ' ' || *s == '\t') s++;
    return s;
}

/* Digits at *s, which moves behind them; -1: none, or more than fit. */
static int64_t read_digits(const char **s)
{
    int64_t v = 0;
    if (!is_digit(**s)) return -1;
    for (; is_digit(**s); ++*s) {
        if (v > (INT64_MAX - 9) / 10) return -1;
        v = v * 10 + (**s - '0');
    }
    return v;
}

/* "ELBO=-5.475e+05", "ELBO = -12345.67". */
static bool read_elbo(const char *line, double *value)
{
    for (const char *at = line; (at = strstr(at, "ELBO")) != NULL; at += 4) {
        const char *s = skip_blanks(at + 4);
        if (*s != '=') continue;
        s = skip_blanks(s + 1);
        char number[40];
        const size_t n = strspn(s, "+-.0123456789eE");
        if (n == 0 || n >= sizeof number) continue;
        memcpy(number, s, n);
        number[n] = '\0';
        if (fth__number_real(number, value) == FTH__NUMBER_OK) return true;
    }
    return false;
}

/* "5000/10000 [". */
static bool read_count(const char *line, int64_t *done, int64_t *total)
{
    for (const char *slash = line; (slash = strchr(slash, '/')) != NULL; slash++) {
        const char *from = slash, *to = slash + 1;
        while (from > line && is_digit(from[-1])) from--;
        const int64_t a = read_digits(&from), b = read_digits(&to);
        if (a < 0 || b < 0 || *skip_blanks(to) != '[') continue;
        *done = a;
        *total = b;
        return true;
    }
    return false;
}

/* "<02:45", "<1:00:09". */
static bool read_remaining(const char *line, double *seconds)
{
    for (const char *at = line; (at = strchr(at, '<')) != NULL; at++) {
        const char *s = at + 1;
        int64_t part[3];
        int n = 0;
        while (n < 3 && (part[n] = read_digits(&s)) >= 0) {
            n++;
            if (*s != ':' || n == 3) break;
            s++;
        }
        if (n < 2) continue;
        *seconds = (double)part[0] * 60 + (double)part[1];
        if (n == 3) *seconds = *seconds * 60 + (double)part[2];
        return true;
    }
    return false;
}

static void read_iteration(const char *line, int64_t *done)
{
    const char *at = strstr(line, "Iteration ");
    if (!at) return;
    const char *s = skip_blanks(at + strlen("Iteration"));
    const int64_t n = read_digits(&s);
    if (n >= 0 && *s == ':') *done = n;
}

bool fth__progress_foreign(fth__progress *p, const char *line, size_t n)
{
    char text[512]; /* a bar is as wide as a terminal */
    if (n >= sizeof text) return false;
    memcpy(text, line, n);
    text[n] = '\0';
    const bool bar = strchr(text, '[') && read_count(text, &p->done, &p->total);
    const bool elbo = read_elbo(text, &p->value);
    if (elbo && !bar) read_iteration(text, &p->done);
    if (bar && !read_remaining(text, &p->remaining_s)) p->remaining_s = 0;
    return bar;
}
