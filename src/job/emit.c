/* emit.c - JSON to a file, value after value. */
#include "job/emit.h"

#include "job/width.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* One character that cannot stand for itself; its bytes. */
static size_t put_special(FILE *f, const char *s, size_t left)
{
    const unsigned char c = (unsigned char)*s;
    char four[5] = {0}; /* the last character may end where the text does */
    uint32_t code = 0;
    if (c == '"' || c == '\\')
        fprintf(f, "\\%c", c);
    else if (c == '\n')
        fputs("\\n", f);
    else if (c < 0x80)
        fprintf(f, "\\u%04x", (unsigned)c);
    if (c < 0x80) return 1;
    memcpy(four, s, left < 4 ? left : 4);
    const int bytes = fth__utf8_read(four, &code);
    if (bytes)
        fwrite(s, 1, (size_t)bytes, f);
    else
        fputs("\\ufffd", f);
    return bytes ? (size_t)bytes : 1;
}

static bool is_plain(char c)
{
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\' && c != '<' && c != '>' && c != '&';
}

static void quoted(FILE *f, const char *s, size_t n)
{
    putc('"', f);
    for (size_t at = 0, end = 0; at < n; at = end) {
        while (end < n && is_plain(s[end])) end++;
        fwrite(s + at, 1, end - at, f);
        if (end < n) end += put_special(f, s + end, n - end);
    }
    putc('"', f);
}

static void begin(fth__emit *e, const char *key)
{
    if (e->comma) putc(',', e->file);
    e->comma = true;
    if (!key) return;
    quoted(e->file, key, strlen(key));
    putc(':', e->file);
}

void fth__emit_open(fth__emit *e, const char *key, char bracket)
{
    begin(e, key);
    if (!key) putc('\n', e->file); /* rows of lists on lines of their own */
    putc(bracket, e->file);
    e->comma = false;
}

void fth__emit_close(fth__emit *e, char bracket)
{
    putc(bracket, e->file);
    e->comma = true;
}

void fth__emit_bytes(fth__emit *e, const char *key, const char *text, size_t n)
{
    begin(e, key);
    quoted(e->file, text, n);
}

void fth__emit_text(fth__emit *e, const char *key, const char *text)
{
    fth__emit_bytes(e, key, text ? text : "", text ? strlen(text) : 0);
}

void fth__emit_int(fth__emit *e, const char *key, int64_t v)
{
    begin(e, key);
    fprintf(e->file, "%lld", (long long)v);
}

void fth__emit_size(fth__emit *e, const char *key, uint64_t v)
{
    begin(e, key);
    fprintf(e->file, "%llu", (unsigned long long)v);
}

void fth__emit_hex(fth__emit *e, const char *key, uint64_t v)
{
    begin(e, key);
    fprintf(e->file, "\"%016llx\"", (unsigned long long)v);
}

void fth__emit_real(fth__emit *e, const char *key, double v)
{
    char text[40] = "null";
    begin(e, key);
    if (isfinite(v)) snprintf(text, sizeof text, "%.9g", v);
    for (char *c = text; *c; c++)
        if (*c == ',') *c = '.';
    fputs(text, e->file);
}

void fth__emit_seconds(fth__emit *e, const char *key, double v)
{
    if (!(fabs(v) < 1e15)) {
        fth__emit_real(e, key, v);
        return;
    }
    begin(e, key);
    const long long ms = llround(fabs(v) * 1000);
    fprintf(e->file, "%s%lld", v < 0 && ms > 0 ? "-" : "", ms / 1000);
    if (ms % 1000) fprintf(e->file, ".%03lld", ms % 1000);
}

void fth__emit_bool(fth__emit *e, const char *key, bool v)
{
    begin(e, key);
    fputs(v ? "true" : "false", e->file);
}

fth_status fth__emit_end(FILE *file, const char *what, fth_err *err)
{
    errno = 0;
    if (fflush(file) == 0 && !ferror(file)) return FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_WRITE, "%s could not be written: %s", what,
                    errno ? strerror(errno) : "an earlier write failed");
}
