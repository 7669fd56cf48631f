/* csv.c - a table of text in memory: labels of cells, positions of spots. */
#include <fathom/reader.h>

#include "base/assert.h"

#include <inttypes.h>
#include <string.h>

/* One field from *at on: unquoted in place, its end cut off. What ended it: ',', '\n', 0, or '"'
 * where a quote is never closed. */
static char take_field(char *text, int64_t *at, int64_t bytes)
{
    int64_t to = *at;
    bool quoted = false;
    char end = '\0';
    while (*at < bytes) {
        const char c = text[(*at)++];
        if (c == '"' && quoted && *at < bytes && text[*at] == '"')
            text[to++] = text[(*at)++];
        else if (c == '"')
            quoted = !quoted;
        else if (!quoted && (c == ',' || c == '\n')) {
            end = c;
            break;
        } else
            text[to++] = c;
    }
    if (to > 0 && end != ',' && text[to - 1] == '\r') to--;
    FTH_ASSERT(to <= *at && *at <= bytes);
    text[to] = '\0';
    return quoted ? '"' : end;
}

/* Fields and rows, at most; quotes only make them fewer. */
static int64_t count_fields(const char *text, int64_t bytes)
{
    int64_t n = 1;
    for (int64_t i = 0; i < bytes; i++) n += text[i] == ',' || text[i] == '\n';
    return n;
}

static fth_status cut(fth_csv *c, int64_t bytes, fth_err *err)
{
    int64_t fields = 0, in_row = 0;
    for (int64_t at = 0; at < bytes;) {
        const int64_t from = at;
        const bool quoted = c->text[at] == '"';
        const char end = take_field(c->text, &at, bytes);
        if (end == '"')
            return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                            "%s: row %" PRId64 ": a quote is opened and never closed", c->path,
                            c->rows + 1);
        if (end != ',' && in_row == 0 && !quoted && c->text[from] == '\0')
            continue; /* an empty line */
        c->field[fields++] = from;
        in_row++;
        if (end == ',' && at < bytes) continue;
        if (end == ',') { /* the file ends with a comma: one more, empty */
            c->text[bytes] = '\0';
            c->field[fields++] = bytes;
            in_row++;
        }
        if (c->rows == 0) c->width = in_row;
        if (in_row != c->width)
            return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                            "%s: row %" PRId64 " has %" PRId64 " fields, the first has %" PRId64,
                            c->path, c->rows + 1, in_row, c->width);
        c->rows++;
        in_row = 0;
    }
    return c->rows > 0 ? FTH_OK
                       : FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: the table is empty", c->path);
}

/* A zero byte would end its field early: no text has one. */
static fth_status check_text(const fth_csv *c, int64_t bytes, fth_err *err)
{
    const char *zero = memchr(c->text, 0, (size_t)bytes);
    if (!zero) return FTH_OK;
    int64_t line = 1;
    const char *start = c->text;
    for (const char *p = c->text; p < zero; p++)
        if (*p == '\n') line++, start = p + 1;
    return FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s:%" PRId64 ":%td: expected text, found a zero byte",
                    c->path, line, zero - start + 1);
}

fth_status fth_csv_read(fth_csv *c, fth_mem *mem, const char *path, fth_err *err)
{
    *c = (fth_csv){.mem = mem, .path = path};
    fth_reader r;
    int64_t bytes = 0;
    void *block = NULL;
    fth_status s = fth_reader_open(&r, mem, path, NULL, err);
    if (s == FTH_OK) s = fth_reader_rest(&r, "text of a table", &c->text, &bytes, err);
    fth_reader_close(&r);
    if (s == FTH_OK) s = check_text(c, bytes, err);
    const int64_t most = s == FTH_OK ? count_fields(c->text, bytes) : 0;
    if (s == FTH_OK)
        s = fth_mem_take(mem, FTH_MEM_ANY, (uint64_t)most * sizeof(int64_t), "fields of a table",
                         &block, err);
    c->field = block;
    if (s == FTH_OK) s = cut(c, bytes, err);
    FTH_ASSERT(s != FTH_OK || c->rows * c->width <= most);
    if (s != FTH_OK) fth_csv_free(c);
    return s;
}

void fth_csv_free(fth_csv *c)
{
    if (c->mem) {
        (void)fth_mem_release(c->mem, c->field, NULL);
        (void)fth_mem_release(c->mem, c->text, NULL);
    }
    *c = (fth_csv){0};
}

const char *fth_csv_get(const fth_csv *c, int64_t row, int64_t column)
{
    return c->text + c->field[row * c->width + column];
}
