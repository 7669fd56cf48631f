/* json_write.c - the writer: a text in memory, in a buffer or in a file, that is always valid.
 *
 * Nothing is checked by the callers on the way: the first failure is kept, and nothing is added
 * after it.
 */
#include <fathom/json.h>

#include "base/assert.h"
#include "base/hash.h"
#include "mem/heap.h"
#include "text/number.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

static void put(fth_json_writer *w, const char *s, size_t n)
{
    if (w->status != FTH_OK) return;
    if (w->file) {
        const bool written = n == 1 ? putc(*s, w->file) != EOF : fwrite(s, 1, n, w->file) == n;
        if (!written) w->status = FTH_E_FILE_WRITE;
        return;
    }
    if (w->mem) {
        const int64_t need = w->used + (int64_t)n + 1;
        const fth_status grown =
            fth__grow(w->mem, &w->data, &w->bytes, need < 1024 ? 1024 : need, NULL);
        if (grown != FTH_OK) {
            w->status = grown;
            return;
        }
    } else if ((int64_t)n >= w->bytes - w->used) {
        w->status = FTH_E_INTERNAL;
        return;
    }
    FTH_ASSERT(w->used + (int64_t)n < w->bytes);
    memcpy(w->data + w->used, s, n);
    w->used += (int64_t)n;
    w->data[w->used] = '\0';
}

/* A character as it stands between quotes: `n` bytes of `text`, for `taken` bytes of the source. */
typedef struct escaped {
    char text[8];
    size_t n, taken;
} escaped;

static escaped made_of(const char *text, size_t n, size_t taken)
{
    escaped c = {.n = n, .taken = taken};
    FTH_ASSERT(n <= sizeof c.text && taken >= 1);
    memcpy(c.text, text, n);
    return c;
}

/* What is not UTF-8 becomes U+FFFD: a parser would refuse the whole text for one bad path. */
static escaped escape(const char *s, size_t left)
{
    static const char hex[] = "0123456789abcdef";
    const unsigned char c = (unsigned char)*s;
    const size_t n = fth__utf8_length(s, left);
    if (n == 0) return made_of("\xef\xbf\xbd", 3, 1);
    if (c == '"' || c == '\\') return made_of((const char[]){'\\', *s}, 2, 1);
    if (c == '\n') return made_of("\\n", 2, 1);
    if (c < 0x20 || c == 0x7f || c == '<')
        return made_of((const char[]){'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]}, 6, 1);
    return made_of(s, n, n);
}

static bool is_plain(char c)
{
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\' && c != '<';
}

static void put_text(fth_json_writer *w, const char *s, size_t n)
{
    put(w, "\"", 1);
    for (size_t at = 0, end = 0; at < n && w->status == FTH_OK; at = end) {
        while (end < n && is_plain(s[end])) end++;
        put(w, s + at, end - at);
        if (end == n) break;
        const escaped c = escape(s + end, n - end);
        put(w, c.text, c.n);
        end += c.taken;
    }
    put(w, "\"", 1);
}

static void new_line(fth_json_writer *w)
{
    if (!w->indent || w->row > 0) return;
    char blanks[2 * FTH_JSON_DEPTH + 2]; /* the line break, blanks, the terminator */
    const int n = snprintf(blanks, sizeof blanks, "\n%*s", 2 * w->depth, "");
    FTH_ASSERT(n >= 0 && n < (int)sizeof blanks);
    put(w, blanks, (size_t)n);
}

static void start_value(fth_json_writer *w, const char *key)
{
    const bool object = w->depth > 0 && w->bracket[w->depth - 1] == '}';
    if (object != (key != NULL) || (w->depth == 0 && w->comma)) {
        if (w->status == FTH_OK) w->status = FTH_E_INTERNAL;
        return;
    }
    const bool one_line = !w->indent || w->row > 0;
    if (w->comma) put(w, ", ", one_line && w->spaced ? 2 : 1);
    if (w->depth > 0) new_line(w);
    w->comma = true;
    if (!key) return;
    put_text(w, key, strlen(key));
    put(w, ": ", !one_line || w->spaced ? 2 : 1);
}

static void put_value(fth_json_writer *w, const char *key, const char *value)
{
    start_value(w, key);
    put(w, value, strlen(value));
}

void fth_json_begin(fth_json_writer *w, fth_mem *mem, bool indent)
{
    *w = (fth_json_writer){.mem = mem, .indent = indent};
}

void fth_json_begin_fixed(fth_json_writer *w, char *data, size_t bytes)
{
    *w = (fth_json_writer){.data = data, .bytes = (int64_t)bytes};
    if (bytes > 0) data[0] = '\0';
}

void fth_json_begin_file(fth_json_writer *w, FILE *file, const char *what, bool indent)
{
    *w = (fth_json_writer){.file = file, .what = what, .indent = indent};
}

void fth_json_open(fth_json_writer *w, const char *key, char bracket)
{
    put_value(w, key, bracket == '{' ? "{" : "[");
    if (w->depth == FTH_JSON_DEPTH && w->status == FTH_OK) w->status = FTH_E_INTERNAL;
    if (w->status != FTH_OK) return;
    const bool listed = w->depth > 0 && w->bracket[w->depth - 1] == ']';
    w->bracket[w->depth++] = bracket == '{' ? '}' : ']';
    if (listed && w->row == 0 && !w->tall) w->row = w->depth;
    w->comma = false;
}

void fth_json_open_row(fth_json_writer *w, const char *key, char bracket)
{
    fth_json_open(w, key, bracket);
    if (w->status == FTH_OK && w->row == 0) w->row = w->depth;
}

void fth_json_close(fth_json_writer *w)
{
    if (w->depth == 0 && w->status == FTH_OK) w->status = FTH_E_INTERNAL;
    if (w->status != FTH_OK) return;
    w->depth--;
    if (w->comma) new_line(w);
    put(w, &w->bracket[w->depth], 1);
    if (w->depth < w->row) w->row = 0;
    w->comma = true;
}

void fth_json_text(fth_json_writer *w, const char *key, const char *value)
{
    if (value)
        fth_json_bytes(w, key, value, strlen(value));
    else
        fth_json_null(w, key);
}

void fth_json_bytes(fth_json_writer *w, const char *key, const char *value, size_t n)
{
    start_value(w, key);
    put_text(w, value, n);
}

void fth_json_int(fth_json_writer *w, const char *key, int64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, value);
    put_value(w, key, text);
}

void fth_json_u64(fth_json_writer *w, const char *key, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, value > INT64_MAX ? "\"%" PRIu64 "\"" : "%" PRIu64, value);
    put_value(w, key, text);
}

void fth_json_hash(fth_json_writer *w, const char *key, uint64_t value)
{
    char hex[17];
    fth__hash_hex(value, hex);
    fth_json_text(w, key, hex);
}

void fth_json_real(fth_json_writer *w, const char *key, double value)
{
    if (!isfinite(value) && w->nan != FTH_JSON_NAN_ZERO) {
        const char *name = value != value ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
        put_value(w, key, w->nan == FTH_JSON_NAN_NAME ? name : "null");
        return;
    }
    char number[40];
    fth__text t;
    fth__text_init(&t, number, sizeof number);
    /* "-0" would be read as a whole number, without its sign */
    fth__number_print_digits(&t, isfinite(value) && value != 0 ? value : 0, w->digits);
    put_value(w, key, number);
}

void fth_json_scaled(fth_json_writer *w, const char *key, int64_t value, int decimals)
{
    char text[48];
    char *at = text + sizeof text - 1;
    uint64_t left = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    *at = '\0';
    for (int i = 0; i <= decimals || left > 0; i++, left /= 10) {
        if (i == decimals && i > 0) *--at = '.';
        *--at = (char)('0' + left % 10);
    }
    if (value < 0) *--at = '-';
    put_value(w, key, at);
}

void fth_json_seconds(fth_json_writer *w, const char *key, double value)
{
    if (!(fabs(value) < 1e15)) {
        fth_json_real(w, key, value);
        return;
    }
    char text[40];
    const long long ms = llround(fabs(value) * 1000);
    const int n = snprintf(text, sizeof text, "%s%lld.%03lld", value < 0 && ms > 0 ? "-" : "",
                           ms / 1000, ms % 1000);
    FTH_ASSERT(n >= 5 && n < (int)sizeof text); /* at least "0.000" */
    if (ms % 1000 == 0) text[n - 4] = '\0';
    put_value(w, key, text);
}

void fth_json_bool(fth_json_writer *w, const char *key, bool value)
{
    put_value(w, key, value ? "true" : "false");
}

void fth_json_null(fth_json_writer *w, const char *key)
{
    put_value(w, key, "null");
}

fth_status fth_json_end(fth_json_writer *w, fth_err *err)
{
    if (w->status == FTH_OK && (w->depth > 0 || !w->comma)) w->status = FTH_E_INTERNAL;
    if (w->indent) put(w, "\n", 1);
    if (w->status == FTH_E_INTERNAL)
        return FTH_FAIL(err, FTH_E_INTERNAL,
                        "JSON values and brackets do not match, or the buffer is too small");
    if (w->file) return fth_stream_end(w->file, w->what, err);
    return w->status == FTH_OK ? FTH_OK : FTH_FAIL(err, w->status, "no memory for a JSON text");
}

fth_status fth_stream_end(FILE *file, const char *what, fth_err *err)
{
    errno = 0;
    if (fflush(file) == 0 && !ferror(file)) return FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_WRITE, "%s could not be written: %s", what,
                    errno ? strerror(errno) : "an earlier write failed");
}

void fth_json_free(fth_json_writer *w)
{
    if (!w->mem) return;
    fth__heap_free(w->mem, w->data);
    w->data = NULL;
    w->used = w->bytes = 0;
}
