/* progress.c - split bytes into lines, parse progress from lines: see progress.h. */
#include "job/run/progress.h"

#include "base/assert.h"
#include "base/str.h"
#include "text/number.h"
#include <fathom/json.h>

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
static void keep(fth__progress_lines *lines, const char *data, size_t n, fth__line_fn *each,
                 void *user)
{
    while (n > 0) {
        FTH_ASSERT(lines->used < sizeof lines->text);
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

void fth__lines_feed(fth__progress_lines *lines, const char *data, size_t n, fth__line_fn *each,
                     void *user)
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

void fth__lines_flush(fth__progress_lines *lines, fth__line_fn *each, void *user)
{
    if (lines->used > 0 || lines->inside) each(user, lines->text, lines->used, 0, !lines->inside);
    lines->used = 0;
    lines->inside = false;
}

/* ---- lines of our own stages ---- */

static void take_end(fth__progress *p, const fth_json_value *v)
{
    p->ledger_bytes = fth_json_get_u64(v, "ledger_bytes", p->ledger_bytes);
    p->peak_bytes = fth_json_get_u64(v, "growth_bytes", p->peak_bytes);
    p->read_bytes = fth_json_get_u64(v, "read_bytes", p->read_bytes);
    p->written_bytes = fth_json_get_u64(v, "written_bytes", p->written_bytes);
    p->io_seconds = fth_json_get_real(v, "io_seconds", p->io_seconds);
    p->compute_seconds = fth_json_get_real(v, "compute_seconds", p->compute_seconds);
    p->device_seconds = fth_json_get_real(v, "device_seconds", p->device_seconds);
    fth__str_copy(p->bound_by, sizeof p->bound_by, fth_json_get_text(v, "bound_by", ""));
}

bool fth__progress_json(fth__progress *p, fth_mem *mem, const char *line, size_t n,
                        const char *figure)
{
    fth_json *doc = NULL;
    if (fth_json_parse(&doc, mem, "progress", line, n, NULL) != FTH_OK) return false;
    const fth_json_value *v = fth_json_root(doc);
    const char *event = fth_json_get_text(v, "event", "");
    if (strcmp(event, "plan") == 0) {
        p->planned_bytes = fth_json_get_u64(v, "bytes", p->planned_bytes);
        p->device_planned_bytes = fth_json_get_u64(v, "device_bytes", p->device_planned_bytes);
        p->base_bytes = fth_json_get_u64(v, "base_bytes", 0);
    } else if (strcmp(event, "end") == 0) {
        take_end(p, v);
    } else {
        p->done = fth_json_get_int(v, "iter", p->done);
        p->total = fth_json_get_int(v, "total", p->total);
        p->remaining_s = fth_json_get_real(v, "eta_s", p->remaining_s);
        p->bytes = fth_json_get_u64(v, "bytes", p->bytes);
        if (figure[0]) p->value = fth_json_get_real(v, figure, p->value);
        const char *what = fth_json_get_text(v, "what", NULL);
        if (what) fth__str_copy(p->what, sizeof p->what, what);
    }
    const bool object = fth_json_is_object(v);
    fth_json_destroy(doc);
    return object;
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
