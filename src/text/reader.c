/* reader.c - a text file in pieces: the buffer, lines, words and the numbers of scanf. */
#include <fathom/reader.h>

#include "base/assert.h"
#include "base/str.h"
#include "text/unzip.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the buffer ---- */

fth_status fth_reader_open(fth_reader *r, fth_mem *mem, const char *path,
                           const fth_reader_options *options, fth_err *err)
{
    *r = (fth_reader){.mem = mem, .path = path, .fd = -1, .line = 1};
    if (options) r->options = *options;
    if (r->options.room == 0) r->options.room = FTH_READER_ROOM;
    if (r->options.room < FTH_READER_NUMBER) r->options.room = FTH_READER_NUMBER;
    r->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (r->fd < 0)
        return FTH_FAIL(err, FTH_E_FILE_OPEN, "%s cannot be opened: %s", path, strerror(errno));
    if (!r->options.unpack || !fth__unzip_is_packed(r->fd)) return FTH_OK;
    const fth_status s = fth__unzip_open(&r->unzip, mem, r->fd, path, err);
    if (s != FTH_OK) fth_reader_close(r);
    return s;
}

void fth_reader_close(fth_reader *r)
{
    if (r->fd >= 0) close(r->fd);
    if (r->mem) (void)fth_mem_release(r->mem, r->buffer, NULL);
    fth__unzip_close(r->unzip);
    r->unzip = NULL;
    r->fd = -1;
    r->buffer = NULL;
}

fth_status fth_reader_rewind(fth_reader *r, fth_err *err)
{
    if (lseek(r->fd, 0, SEEK_SET) != 0)
        return FTH_FAIL(err, FTH_E_FILE_READ, "%s is read twice, and cannot be: %s", r->path,
                        strerror(errno));
    if (r->unzip) fth__unzip_restart(r->unzip);
    r->at = r->n = 0;
    r->got = 0;
    r->end = r->skipping = false;
    r->line = 1;
    return FTH_OK;
}

/* Up to `bytes` more; 0 at the end of the file. */
static fth_status read_some(fth_reader *r, char *to, size_t bytes, size_t *n, fth_err *err)
{
    ssize_t got = 0;
    if (r->unzip)
        FTH_TRY(fth__unzip_read(r->unzip, to, bytes, n, err));
    else
        do got = read(r->fd, to, bytes);
        while (got < 0 && errno == EINTR);
    if (got < 0)
        return FTH_FAIL(err, FTH_E_FILE_READ, "%s cannot be read: %s", r->path, strerror(errno));
    if (!r->unzip) *n = (size_t)got;
    r->got += *n;
    if (r->options.max_bytes == 0 || r->got <= r->options.max_bytes) return FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: expected at most %" PRIu64 " bytes, found more",
                    r->path, r->options.max_bytes);
}

fth_status fth_reader_fill(fth_reader *r, size_t want, fth_err *err)
{
    FTH_ASSERT(r->at <= r->n && r->n <= r->options.room);
    if (r->end || r->n - r->at >= want) return FTH_OK;
    if (!r->buffer) {
        void *block = NULL;
        FTH_TRY(fth_mem_take(r->mem, FTH_MEM_ANY, r->options.room + 1, "text", &block, err));
        r->buffer = block;
    }
    if (r->at > 0) memmove(r->buffer, r->buffer + r->at, r->n - r->at);
    r->n -= r->at;
    r->at = 0;
    const bool first = r->got == 0;
    while (!r->end && r->n < r->options.room) {
        size_t got = 0;
        FTH_TRY(read_some(r, r->buffer + r->n, r->options.room - r->n, &got, err));
        r->end = got == 0;
        r->n += got;
    }
    FTH_ASSERT(r->n <= r->options.room);
    r->buffer[r->n] = '\0';
    if (first && !r->options.keep_bom) r->at = fth__utf8_bom(r->buffer, r->n);
    return FTH_OK;
}

/* What the file has left by its size; 0: that is not known. */
static uint64_t size_left(const fth_reader *r)
{
    struct stat st;
    if (r->unzip || fstat(r->fd, &st) != 0 || !S_ISREG(st.st_mode) || (uint64_t)st.st_size < r->got)
        return 0;
    return (uint64_t)st.st_size - r->got;
}

/* Read into a block that begins with `used` bytes until the file ends. */
static fth_status read_rest(fth_reader *r, const char *label, void **block, uint64_t *room,
                            uint64_t *used, fth_err *err)
{
    for (;;) {
        FTH_ASSERT(*used <= *room);
        if (*used == *room) { /* no size is known, or the file has grown */
            char probe[1];
            size_t got = 0;
            void *larger = NULL;
            FTH_TRY(read_some(r, probe, 1, &got, err));
            if (got == 0) return FTH_OK;
            const uint64_t bytes = *room < FTH_READER_ROOM ? FTH_READER_ROOM : 2 * *room;
            FTH_TRY(fth_mem_take(r->mem, FTH_MEM_ANY, bytes + 1, label, &larger, err));
            memcpy(larger, *block, *used);
            (void)fth_mem_release(r->mem, *block, NULL);
            ((char *)larger)[(*used)++] = probe[0];
            *block = larger;
            *room = bytes;
        }
        size_t got = 0;
        FTH_TRY(read_some(r, (char *)*block + *used, *room - *used, &got, err));
        if (got == 0) return FTH_OK;
        *used += got;
    }
}

fth_status fth_reader_rest(fth_reader *r, const char *label, char **text, int64_t *bytes,
                           fth_err *err)
{
    *text = NULL;
    *bytes = 0;
    const bool first = r->got == 0;
    void *block = NULL;
    uint64_t used = r->n - r->at, room = used + (r->end ? 0 : size_left(r));
    if (r->options.max_bytes > 0 && room > r->options.max_bytes)
        return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                        "%s: expected at most %" PRIu64 " bytes, found %" PRIu64, r->path,
                        r->options.max_bytes, room);
    FTH_TRY(fth_mem_take(r->mem, FTH_MEM_ANY, room + 1, label, &block, err));
    if (used > 0) memcpy(block, r->buffer + r->at, used);
    r->at = r->n = 0;
    const fth_status s = r->end ? FTH_OK : read_rest(r, label, &block, &room, &used, err);
    r->end = true;
    if (s != FTH_OK) {
        (void)fth_mem_release(r->mem, block, NULL);
        return s;
    }
    char *start = block;
    if (first && !r->options.keep_bom) {
        const size_t bom = fth__utf8_bom(start, used);
        used -= bom;
        memmove(start, start + bom, used);
    }
    start[used] = '\0';
    *text = start;
    *bytes = (int64_t)used;
    return FTH_OK;
}

/* ---- lines ---- */

fth_status fth_reader_next(fth_reader *r, fth_text_line *line, fth_err *err)
{
    *line = (fth_text_line){.number = r->line, .whole = true};
    char *stop = r->n > r->at ? memchr(r->buffer + r->at, '\n', r->n - r->at) : NULL;
    if (!stop) {
        FTH_TRY(fth_reader_fill(r, r->options.room, err));
        if (r->at == r->n) return FTH_OK;
        stop = memchr(r->buffer + r->at, '\n', r->n - r->at);
    }
    if (!stop && !r->end)
        return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                        "%s:%" PRId64 ": a line has more than %zu characters", r->path, r->line,
                        r->options.room);
    char *text = r->buffer + r->at, *end = stop ? stop : r->buffer + r->n;
    const char *zero = end > text ? memchr(text, 0, (size_t)(end - text)) : NULL;
    r->at += (size_t)(end - text) + (stop != NULL);
    FTH_ASSERT(r->at <= r->n);
    r->line++;
    if (zero && !r->options.allow_nul)
        return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                        "%s:%" PRId64 ":%td: expected text, found a zero byte", r->path,
                        line->number, zero - text + 1);
    if (end > text && end[-1] == '\r') end--;
    *end = '\0';
    line->text = line->at = text;
    line->n = zero ? (size_t)(zero - text) : (size_t)(end - text);
    line->whole = !zero;
    return FTH_OK;
}

bool fth_text_field_next(fth_text_line *line, const char *separators, fth_text_field *f)
{
    if (!line->at) return false;
    line->at += strspn(line->at, separators);
    const size_t n = strcspn(line->at, separators);
    *f = (fth_text_field){line->at, n, line->number, line->at - line->text + 1};
    line->at = n > 0 ? line->at + n : NULL;
    return n > 0;
}

bool fth_text_column_next(fth_text_line *line, char separator, fth_text_field *f)
{
    char *at = line->at, *to = at;
    if (!at) return false;
    *f = (fth_text_field){at, 0, line->number, at - line->text + 1};
    bool quoted = false;
    for (; *at && (quoted || *at != separator); at++)
        if (*at != '"')
            *to++ = *at;
        else if (quoted && at[1] == '"')
            *to++ = *at++;
        else
            quoted = !quoted;
    f->n = (size_t)(to - f->text);
    line->at = *at ? at + 1 : NULL;
    return true;
}

/* ---- words ---- */

/* Past separators and comments; false at the end of what is in the buffer. */
static bool skip_to_word(fth_reader *r, const char *separators, char comment)
{
    for (; r->at < r->n; r->at++) {
        const char c = r->buffer[r->at];
        if (c == '\n') {
            r->line++;
            r->skipping = false;
        } else if (!r->skipping) {
            r->skipping = comment && c == comment;
            if (!r->skipping && (c == '\0' || !strchr(separators, c))) return true;
        }
    }
    return false;
}

fth_status fth_reader_word(fth_reader *r, const char *separators, char comment, fth_text_field *f,
                           fth_err *err)
{
    *f = (fth_text_field){.line = r->line};
    do FTH_TRY(fth_reader_fill(r, FTH_READER_NUMBER, err));
    while (!skip_to_word(r, separators, comment) && !r->end);
    FTH_TRY(fth_reader_fill(r, FTH_READER_NUMBER, err));
    const char *text = r->buffer + r->at;
    const size_t left = r->n - r->at;
    size_t n = 0;
    while (n < left && text[n] != '\n' && !(comment && text[n] == comment) &&
           (text[n] == '\0' || !strchr(separators, text[n])))
        n++;
    if (n >= FTH_READER_NUMBER)
        return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                        "%s:%" PRId64 ": a word has more than %d characters", r->path, r->line,
                        FTH_READER_NUMBER - 1);
    if (n > 0) *f = (fth_text_field){text, n, r->line, 0};
    r->at += n;
    FTH_ASSERT(r->at <= r->n);
    return FTH_OK;
}

/* ---- numbers of scanf ---- */

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

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

fth_status fth_reader_scan(fth_reader *r, double *v, bool *found, bool *digits, fth_err *err)
{
    *found = *digits = false;
    for (;;) {
        FTH_TRY(fth_reader_fill(r, FTH_READER_NUMBER, err));
        while (r->at < r->n && is_space(r->buffer[r->at])) r->line += r->buffer[r->at++] == '\n';
        if (r->n - r->at >= FTH_READER_NUMBER || r->end) break;
    }
    const char *text = r->buffer + r->at, *end;
    *v = fth_strtod(text, &end);
    end = scanned(text, end);
    const size_t length = end ? (size_t)(end - text) : 0;
    if (length >= FTH_READER_NUMBER - 1)
        return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                        "%s:%" PRId64 ": a number has more than %d characters", r->path, r->line,
                        FTH_READER_NUMBER - 2);
    *found = end != NULL;
    *digits = *found && strspn(text, "+-0123456789") >= length;
    if (*found) r->at += length;
    FTH_ASSERT(r->at <= r->n);
    return FTH_OK;
}
