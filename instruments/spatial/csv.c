/* csv.c - small tables of text: labels of cells, positions of spots.
 *
 * The text is read whole and cut where it stands: fields lose their quotes and end with \0.
 */
#include "loaders.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static fth_status read_text(sp_csv *c, int64_t *bytes, fth_err *err)
{
    FILE *f = fopen(c->path, "rb");
    if (!f)
        return FTH_FAIL(err, FTH_E_FILE_OPEN, "%s cannot be opened: %s", c->path, strerror(errno));
    fth_status s = FTH_OK;
    void *block = NULL;
    const long size = fseek(f, 0, SEEK_END) == 0 ? ftell(f) : -1;
    if (size < 0 || fseek(f, 0, SEEK_SET) != 0)
        s = FTH_FAIL(err, FTH_E_FILE_READ, "%s cannot be read: %s", c->path, strerror(errno));
    if (s == FTH_OK)
        s = fth_mem_take(c->mem, FTH_MEM_ANY, (uint64_t)size + 1, "text of a table", &block, err);
    c->text = block;
    if (s == FTH_OK && fread(block, 1, (size_t)size, f) != (size_t)size)
        s = FTH_FAIL(err, FTH_E_FILE_READ, "%s cannot be read", c->path);
    fclose(f);
    if (s == FTH_OK) c->text[size] = '\0';
    *bytes = size;
    return s;
}

/* One field from *at on: unquoted in place, its end cut off. What ended it: ',', '\n' or 0. */
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
    text[to] = '\0';
    return end;
}

/* Fields and rows, at most; quotes only make them fewer. */
static int64_t count_fields(const char *text, int64_t bytes)
{
    int64_t n = 1;
    for (int64_t i = 0; i < bytes; i++) n += text[i] == ',' || text[i] == '\n';
    return n;
}

static fth_status cut(sp_csv *c, int64_t bytes, fth_err *err)
{
    int64_t fields = 0, in_row = 0;
    /* Excel puts a mark before UTF-8: it is no part of the first name. */
    const bool marked = bytes >= 3 && memcmp(c->text, "\xef\xbb\xbf", 3) == 0;
    for (int64_t at = marked ? 3 : 0; at < bytes;) {
        const int64_t from = at;
        const char end = take_field(c->text, &at, bytes);
        if (end != ',' && in_row == 0 && c->text[from] == '\0') continue; /* an empty line */
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

fth_status sp_csv_read(sp_csv *c, fth_mem *mem, const char *path, fth_err *err)
{
    *c = (sp_csv){.mem = mem, .path = path};
    int64_t bytes = 0;
    void *block = NULL;
    fth_status s = read_text(c, &bytes, err);
    if (s == FTH_OK)
        s = fth_mem_take(mem, FTH_MEM_ANY, (uint64_t)count_fields(c->text, bytes) * 8,
                         "fields of a table", &block, err);
    c->field = block;
    if (s == FTH_OK) s = cut(c, bytes, err);
    if (s != FTH_OK) sp_csv_free(c);
    return s;
}

void sp_csv_free(sp_csv *c)
{
    if (c->mem) {
        (void)fth_mem_release(c->mem, c->field, NULL);
        (void)fth_mem_release(c->mem, c->text, NULL);
    }
    *c = (sp_csv){0};
}
