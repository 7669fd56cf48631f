/* text.c - a text file in pieces. */
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

fth_status br_text_open(br_text *t, fth_mem *mem, const char *path, fth_err *err)
{
    *t = (br_text){.mem = mem, .path = path, .fd = -1, .line = 1};
    t->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (t->fd < 0)
        return FTH_FAIL(err, FTH_E_FILE_OPEN, "%s cannot be opened: %s", path, strerror(errno));
    void *buffer = NULL;
    const fth_status s = fth_mem_take(mem, FTH_MEM_ANY, BR_TEXT_ROOM + 1, "text", &buffer, err);
    t->buffer = buffer;
    if (s != FTH_OK) br_text_close(t);
    return s;
}

void br_text_close(br_text *t)
{
    if (t->fd >= 0) close(t->fd);
    fth_mem_release(t->mem, t->buffer, NULL);
    t->fd = -1;
    t->buffer = NULL;
}

fth_status br_text_rewind(br_text *t, fth_err *err)
{
    if (lseek(t->fd, 0, SEEK_SET) != 0)
        return FTH_FAIL(err, FTH_E_FILE_READ, "%s is read twice, and cannot be: %s", t->path,
                        strerror(errno));
    t->at = t->n = 0;
    t->end = false;
    t->line = 1;
    return FTH_OK;
}

fth_status br_text_fill(br_text *t, size_t want, fth_err *err)
{
    if (t->end || t->n - t->at >= want) return FTH_OK;
    memmove(t->buffer, t->buffer + t->at, t->n - t->at);
    t->n -= t->at;
    t->at = 0;
    while (!t->end && t->n < BR_TEXT_ROOM) {
        const ssize_t got = read(t->fd, t->buffer + t->n, BR_TEXT_ROOM - t->n);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0)
            return FTH_FAIL(err, FTH_E_FILE_READ, "%s cannot be read: %s", t->path,
                            strerror(errno));
        t->end = got == 0;
        t->n += (size_t)got;
    }
    t->buffer[t->n] = 0;
    return FTH_OK;
}

double br_strtod(const char *text, const char **end)
{
    const char *point = localeconv()->decimal_point;
    char *stop;
    if (strcmp(point, ".") == 0) {
        const double v = strtod(text, &stop);
        *end = stop;
        return v;
    }
    /* the point of the text becomes that of the locale, which is one byte or is not understood */
    char copy[BR_TEXT_NUMBER];
    snprintf(copy, sizeof copy, "%s", text);
    char *dot = strpbrk(copy, ".,");
    if (dot) *dot = *dot == '.' ? point[0] : 0;
    const double v = strtod(copy, &stop);
    *end = text + (stop - copy);
    return v;
}

static bool space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* How far scanf reads where strtod stops at `end`: it does not step back over the e of "1e", and
 * the x of "0x" is one too many. NULL: it takes no number. */
static const char *scanned(const char *text, const char *end)
{
    const char *digits = text + (*text == '+' || *text == '-');
    const bool zero = end == digits + 1 && *digits == '0';
    const bool hex = digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X') && !zero;
    if (end == text || (zero && (*end == 'x' || *end == 'X'))) return NULL;
    const bool exponent = hex ? *end == 'p' || *end == 'P' : *end == 'e' || *end == 'E';
    if (!exponent || !strchr("0123456789.", end[-1])) return end; /* not after inf and nan */
    return end + 1 + (end[1] == '+' || end[1] == '-');
}

fth_status br_text_number(br_text *t, double *v, bool *found, bool *digits, fth_err *err)
{
    *found = *digits = false;
    for (;;) {
        FTH_TRY(br_text_fill(t, BR_TEXT_NUMBER, err));
        while (t->at < t->n && space(t->buffer[t->at])) t->line += t->buffer[t->at++] == '\n';
        if (t->n - t->at >= BR_TEXT_NUMBER || t->end) break;
    }
    const char *text = t->buffer + t->at, *end;
    *v = br_strtod(text, &end);
    end = scanned(text, end);
    const size_t length = end ? (size_t)(end - text) : 0;
    if (length >= BR_TEXT_NUMBER - 1)
        return FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s:%lld: a number has more than %d characters",
                        t->path, (long long)t->line, BR_TEXT_NUMBER - 2);
    *found = end != NULL;
    *digits = *found && strspn(text, "+-0123456789") >= length;
    if (*found) t->at += length;
    return FTH_OK;
}

fth_status br_text_line(br_text *t, char **line, bool *whole, fth_err *err)
{
    *line = NULL;
    char *stop = t->n > t->at ? memchr(t->buffer + t->at, '\n', t->n - t->at) : NULL;
    if (!stop) {
        FTH_TRY(br_text_fill(t, BR_TEXT_ROOM, err));
        if (t->at == t->n) return FTH_OK;
        stop = memchr(t->buffer + t->at, '\n', t->n - t->at);
    }
    if (!stop && !t->end)
        return FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s:%lld: a line has more than %d characters",
                        t->path, (long long)t->line, BR_TEXT_ROOM);
    char *text = t->buffer + t->at, *end = stop ? stop : t->buffer + t->n;
    t->at += (size_t)(end - text) + (stop != NULL);
    t->line++;
    if (whole) *whole = end == text || !memchr(text, 0, (size_t)(end - text));
    if (end > text && end[-1] == '\r') end--;
    *end = 0;
    *line = text;
    return FTH_OK;
}
