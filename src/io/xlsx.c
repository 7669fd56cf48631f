/* xlsx.c - reading workbooks: a zip of XML documents, of which four kinds are looked at.
 *
 * Cells are kept as a list in the order of rows and columns, however thin a sheet is filled; a cell
 * far out costs no more than any other.
 */
#include <fathom/xlsx.h>

#include "base/assert.h"
#include "base/str.h"
#include "io/zip.h"
#include "mem/heap.h"
#include "text/xml.h"

#include <fathom/number.h>

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_ENTRY = 64 << 20, /* bytes of a document, unpacked; arbitrary, it bounds our memory */
    MOST_ROWS = 1048576,   /* of the format */
    MOST_COLUMNS = 16384,  /* of the format */
    MOST_CELLS = 1 << 22,  /* of a sheet: 128 MiB of our own; templates have some thousands */
    MOST_SHEETS = 1000,    /* arbitrary, it bounds our memory */
    PATH = 300             /* bytes of a name in the zip; Excel's have 30 */
};

typedef struct cell {
    int32_t row, column;
    fth_cell_kind kind;
    int64_t text; /* in book->texts */
    double number;
} cell;

typedef struct sheet {
    char *name;
    cell *cells;
    int64_t n, capacity, rows, columns;
} sheet;

struct fth_xlsx {
    fth_mem *mem;
    sheet *sheets;
    int64_t n;
    fth_texts *texts; /* the shared ones first */
    int64_t n_shared;
};

typedef struct reader {
    fth_xlsx *book;
    fth__zip zip;
    const char *path;
    fth_err *err;
} reader;

/* ---- entries of the zip ---- */

static fth_status load(reader *r, const fth__zip_entry *e, const char *label, char **out)
{
    fth__bytes bytes = {0};
    void *block = NULL;
    *out = NULL;
    if (e->bytes > MOST_ENTRY)
        return FTH_FAIL(r->err, FTH_E_FILE_FEATURE, "%s has %" PRIu64 " bytes, at most %d are read",
                        label, e->bytes, (int)MOST_ENTRY);
    FTH_TRY(fth__zip_member(&r->zip, e, label, &bytes, r->err));
    fth_status s =
        fth_mem_take(r->book->mem, FTH_MEM_ANY, e->bytes + 1, "workbook", &block, r->err);
    if (s == FTH_OK) s = bytes.read(bytes.self, 0, e->bytes, block, r->err);
    bytes.close(bytes.self);
    if (s != FTH_OK) {
        if (block) (void)fth_mem_release(r->book->mem, block, NULL);
        return s;
    }
    *out = block;
    return FTH_OK;
}

/* An entry as XML; FTH_OK and NULL where there is none and that is allowed. */
static fth_status parse(reader *r, const char *name, bool needed, fth__xml **out)
{
    char label[PATH + FTH_PATH], *text = NULL;
    const fth__zip_entry *e = fth__zip_find(&r->zip, name);
    *out = NULL;
    snprintf(label, sizeof label, "%s: %s", r->path, name);
    if (!e && !needed) return FTH_OK;
    if (!e)
        return FTH_FAIL(r->err, FTH_E_FILE_FORMAT, "%s is not there: this is no workbook of XLSX",
                        label);
    FTH_TRY(load(r, e, label, &text));
    const fth_status s = fth__xml_parse(out, r->book->mem, label, text, e->bytes, r->err);
    (void)fth_mem_release(r->book->mem, text, NULL);
    return s;
}

/* ---- texts ---- */

/* All <t> of a string, those in runs of rich text too; how it is pronounced is left out. */
static fth_status add_string(reader *r, const fth__xml_node *si, char **room, int64_t *capacity)
{
    fth_mem *mem = r->book->mem;
    int64_t n = 0;
    for (const fth__xml_node *c = fth__xml_child(si, NULL); c; c = fth__xml_next(c, NULL)) {
        const bool run = strcmp(fth__xml_name(c), "r") == 0;
        if (!run && strcmp(fth__xml_name(c), "t") != 0) continue;
        const char *text = fth__xml_text(run ? fth__xml_child(c, "t") : c);
        const int64_t more = (int64_t)strlen(text);
        FTH_TRY(fth__grow(mem, room, capacity, n + more + 1, r->err));
        memcpy(*room + n, text, (size_t)more);
        n += more;
    }
    return fth_texts_add(r->book->texts, *room ? *room : "", (uint64_t)n, r->err);
}

static fth_status take_shared(reader *r, const char *name)
{
    fth__xml *xml = NULL;
    char *room = NULL;
    int64_t capacity = 0;
    FTH_TRY(parse(r, name, false, &xml));
    if (!xml) return FTH_OK;
    fth_status s = FTH_OK;
    for (const fth__xml_node *si = fth__xml_child(fth__xml_root(xml), "si"); si && s == FTH_OK;
         si = fth__xml_next(si, "si"))
        s = add_string(r, si, &room, &capacity);
    fth__heap_free(r->book->mem, room);
    fth__xml_free(xml);
    r->book->n_shared = fth_texts_count(r->book->texts);
    return s;
}

/* ---- cells ---- */

/* "B2" to row 1, column 1; false when it is none. */
static bool take_place(const char *text, int64_t *row, int64_t *column)
{
    int64_t c = 0, r = 0;
    const char *p = text;
    for (; *p >= 'A' && *p <= 'Z' && c <= MOST_COLUMNS; p++) c = c * 26 + (*p - 'A' + 1);
    const bool letters = p > text;
    for (; *p >= '0' && *p <= '9' && r <= MOST_ROWS; p++) r = r * 10 + (*p - '0');
    if (!letters || *p || r < 1 || r > MOST_ROWS || c > MOST_COLUMNS) return false;
    *row = r - 1;
    *column = c - 1;
    return true;
}

static fth_status bad_cell(reader *r, const sheet *s, const cell *c, const char *what,
                           const char *found)
{
    char letters[8];
    int n = 0;
    for (int64_t v = c->column + 1; v > 0; v = (v - 1) / 26)
        letters[n++] = (char)('A' + (v - 1) % 26);
    FTH_ASSERT(n <= 3); /* XFD is the last column */
    for (int i = 0; i < n / 2; i++) {
        const char t = letters[i];
        letters[i] = letters[n - 1 - i];
        letters[n - 1 - i] = t;
    }
    return FTH_FAIL(r->err, FTH_E_FILE_FORMAT, "%s: sheet '%s', cell %.*s%d: %s, found \"%.60s\"",
                    r->path, s->name, n, letters, (int)c->row + 1, what, found);
}

static fth_status new_text(reader *r, cell *c, const char *text)
{
    c->text = fth_texts_count(r->book->texts);
    return fth_texts_add(r->book->texts, text, strlen(text), r->err);
}

/* The value of a cell by its type; an empty one has the kind EMPTY. */
static fth_status take_value(reader *r, const sheet *s, const fth__xml_node *node, cell *c)
{
    const char *type = fth__xml_attr(node, "t");
    const fth__xml_node *v = fth__xml_child(node, "v"), *is = fth__xml_child(node, "is");
    const char *text = fth__xml_text(v);
    int64_t index = -1;
    if (!type) type = "n";
    if (strcmp(type, "inlineStr") == 0 && is) {
        char *room = NULL;
        int64_t capacity = 0;
        c->kind = FTH_CELL_TEXT;
        c->text = fth_texts_count(r->book->texts);
        const fth_status got = add_string(r, is, &room, &capacity);
        fth__heap_free(r->book->mem, room);
        return got;
    }
    if (!v || !text[0]) {
        c->kind = strcmp(type, "str") == 0 && v ? FTH_CELL_TEXT : FTH_CELL_EMPTY;
        return c->kind == FTH_CELL_TEXT ? new_text(r, c, "") : FTH_OK;
    }
    if (strcmp(type, "s") == 0) {
        if (!fth_int_parse(text, &index) || index < 0 || index >= r->book->n_shared)
            return bad_cell(r, s, c, "it names a shared string that is not there", text);
        c->kind = FTH_CELL_TEXT;
        c->text = index;
        return FTH_OK;
    }
    if (strcmp(type, "b") == 0) {
        c->kind = FTH_CELL_BOOL;
        c->number = text[0] != '0';
        return new_text(r, c, text[0] != '0' ? "TRUE" : "FALSE");
    }
    if (strcmp(type, "n") == 0) {
        c->kind = FTH_CELL_NUMBER;
        if (!fth_real_parse(text, &c->number)) return bad_cell(r, s, c, "no number", text);
    } else {
        c->kind = strcmp(type, "e") == 0 ? FTH_CELL_ERROR : FTH_CELL_TEXT;
    }
    return new_text(r, c, text);
}

static fth_status take_cell(reader *r, sheet *s, const fth__xml_node *node, int64_t *row,
                            int64_t *column)
{
    const char *place = fth__xml_attr(node, "r");
    if (place && !take_place(place, row, column))
        return FTH_FAIL(r->err, FTH_E_FILE_FORMAT, "%s: sheet '%s' has a cell at \"%.20s\"",
                        r->path, s->name, place);
    if (*row >= MOST_ROWS || *column >= MOST_COLUMNS || s->n >= MOST_CELLS)
        return FTH_FAIL(r->err, FTH_E_FILE_FEATURE, "%s: sheet '%s' has too many cells", r->path,
                        s->name);
    cell c = {.row = (int32_t)*row, .column = (int32_t)*column, .number = (double)NAN};
    FTH_TRY(take_value(r, s, node, &c));
    if (c.kind == FTH_CELL_EMPTY) return FTH_OK;
    FTH_TRY(fth__grow(r->book->mem, &s->cells, &s->capacity, s->n + 1, r->err));
    s->cells[s->n++] = c;
    if (*row >= s->rows) s->rows = *row + 1;
    if (*column >= s->columns) s->columns = *column + 1;
    return FTH_OK;
}

static int by_place(const void *a, const void *b)
{
    const cell *p = a, *q = b;
    if (p->row != q->row) return p->row < q->row ? -1 : 1;
    return (p->column > q->column) - (p->column < q->column);
}

static fth_status take_rows(reader *r, sheet *s, const fth__xml_node *data)
{
    int64_t row = -1;
    for (const fth__xml_node *line = fth__xml_child(data, "row"); line;
         line = fth__xml_next(line, "row")) {
        const char *text = fth__xml_attr(line, "r");
        int64_t number = row + 2, column = 0;
        if (text && (!fth_int_parse(text, &number) || number < 1))
            return FTH_FAIL(r->err, FTH_E_FILE_FORMAT, "%s: sheet '%s' has a row \"%.20s\"",
                            r->path, s->name, text);
        row = number - 1;
        for (const fth__xml_node *c = fth__xml_child(line, "c"); c; c = fth__xml_next(c, "c")) {
            FTH_TRY(take_cell(r, s, c, &row, &column));
            column++;
        }
    }
    if (s->n > 1) qsort(s->cells, (size_t)s->n, sizeof *s->cells, by_place);
    for (int64_t i = 1; i < s->n; i++)
        if (by_place(&s->cells[i - 1], &s->cells[i]) == 0)
            return bad_cell(r, s, &s->cells[i], "the cell is there twice",
                            fth_texts_get(r->book->texts, s->cells[i].text));
    return FTH_OK;
}

/* ---- sheets ---- */

/* The entry that a relation of the workbook names: "/xl/a.xml", or "a.xml" beside the workbook. */
static bool entry_of(const fth__xml_node *relations, const char *id, const char *type_end,
                     char path[PATH])
{
    for (const fth__xml_node *n = fth__xml_child(relations, "Relationship"); n;
         n = fth__xml_next(n, "Relationship")) {
        const char *own = fth__xml_attr(n, "Id"), *target = fth__xml_attr(n, "Target");
        const char *type = fth__xml_attr(n, "Type");
        const char *slash = type ? strrchr(type, '/') : NULL;
        if (!target || (id && (!own || strcmp(own, id) != 0))) continue;
        if (!id && (!slash || strcmp(slash + 1, type_end) != 0)) continue;
        const int used = target[0] == '/' ? snprintf(path, PATH, "%s", target + 1)
                                          : snprintf(path, PATH, "xl/%s", target);
        return used < PATH;
    }
    return false;
}

static fth_status take_sheet(reader *r, const fth__xml_node *node, const fth__xml_node *relations)
{
    const char *name = fth__xml_attr(node, "name"), *id = fth__xml_attr(node, "id");
    sheet *s = &r->book->sheets[r->book->n];
    char path[PATH];
    fth__xml *xml = NULL;
    if (!name || !id || !entry_of(relations, id, NULL, path))
        return FTH_FAIL(r->err, FTH_E_FILE_FORMAT, "%s: sheet '%s' has no entry in the workbook",
                        r->path, name ? name : "(without a name)");
    s->name = fth__heap_strdup(r->book->mem, name);
    if (!s->name) return FTH_FAIL(r->err, FTH_E_NOMEM, "no memory to read %s", r->path);
    r->book->n++;
    FTH_TRY(parse(r, path, true, &xml));
    const fth_status got = take_rows(r, s, fth__xml_child(fth__xml_root(xml), "sheetData"));
    fth__xml_free(xml);
    return got;
}

static fth_status take_sheets(reader *r, const fth__xml_node *list, const fth__xml_node *relations)
{
    int64_t n = 0;
    void *block = NULL;
    for (const fth__xml_node *s = fth__xml_child(list, "sheet"); s; s = fth__xml_next(s, "sheet"))
        n++;
    if (n > MOST_SHEETS)
        return FTH_FAIL(r->err, FTH_E_FILE_FEATURE, "%s: %" PRId64 " sheets, at most %d are read",
                        r->path, n, (int)MOST_SHEETS);
    FTH_TRY(fth__heap_take(r->book->mem, n, sizeof(sheet), &block, r->err));
    r->book->sheets = block;
    for (const fth__xml_node *s = fth__xml_child(list, "sheet"); s; s = fth__xml_next(s, "sheet"))
        FTH_TRY(take_sheet(r, s, relations));
    return FTH_OK;
}

static fth_status take_book(reader *r)
{
    fth__xml *book = NULL, *relations = NULL;
    char path[PATH];
    fth_status s = fth_texts_create(&r->book->texts, r->book->mem, r->err);
    if (s == FTH_OK) s = parse(r, "xl/workbook.xml", true, &book);
    if (s == FTH_OK) s = parse(r, "xl/_rels/workbook.xml.rels", true, &relations);
    if (s == FTH_OK && entry_of(fth__xml_root(relations), NULL, "sharedStrings", path))
        s = take_shared(r, path);
    if (s == FTH_OK)
        s = take_sheets(r, fth__xml_child(fth__xml_root(book), "sheets"), fth__xml_root(relations));
    fth__xml_free(relations);
    fth__xml_free(book);
    return s;
}

fth_status fth_xlsx_open(fth_xlsx **out, fth_mem *mem, const char *path, fth_err *err)
{
    void *block = NULL;
    *out = NULL;
    FTH_TRY(fth__heap_take(mem, 1, sizeof(fth_xlsx), &block, err));
    reader r = {.book = block, .path = path, .err = err};
    r.book->mem = mem;
    fth_status s = fth__zip_open(&r.zip, mem, path, err);
    if (s == FTH_OK) s = take_book(&r);
    fth__zip_close(&r.zip);
    if (s != FTH_OK) {
        fth_xlsx_close(r.book);
        return s;
    }
    *out = r.book;
    return FTH_OK;
}

void fth_xlsx_close(fth_xlsx *book)
{
    if (!book) return;
    for (int64_t i = 0; i < book->n; i++) {
        fth__heap_free(book->mem, book->sheets[i].name);
        fth__heap_free(book->mem, book->sheets[i].cells);
    }
    fth__heap_free(book->mem, book->sheets);
    fth_texts_free(book->texts);
    fth__heap_free(book->mem, book);
}

/* ---- queries ---- */

int64_t fth_xlsx_count(const fth_xlsx *book)
{
    return book->n;
}

const char *fth_xlsx_name(const fth_xlsx *book, int64_t i)
{
    return i >= 0 && i < book->n ? book->sheets[i].name : NULL;
}

int64_t fth_xlsx_find(const fth_xlsx *book, const char *name)
{
    for (int64_t i = 0; i < book->n; i++)
        if (strcmp(book->sheets[i].name, name) == 0) return i;
    return -1;
}

void fth_xlsx_size(const fth_xlsx *book, int64_t i, int64_t *rows, int64_t *columns)
{
    const bool there = i >= 0 && i < book->n;
    *rows = there ? book->sheets[i].rows : 0;
    *columns = there ? book->sheets[i].columns : 0;
}

fth_cell fth_xlsx_get(const fth_xlsx *book, int64_t i, int64_t row, int64_t column)
{
    const fth_cell empty = {FTH_CELL_EMPTY, "", (double)NAN};
    if (i < 0 || i >= book->n || row < 0 || row >= MOST_ROWS || column < 0 ||
        column >= MOST_COLUMNS || book->sheets[i].n == 0)
        return empty;
    const sheet *s = &book->sheets[i];
    const cell key = {.row = (int32_t)row, .column = (int32_t)column};
    const cell *c = bsearch(&key, s->cells, (size_t)s->n, sizeof key, by_place);
    if (!c) return empty;
    FTH_ASSERT(c->text >= 0 && c->text < fth_texts_count(book->texts));
    return (fth_cell){c->kind, fth_texts_get(book->texts, c->text), c->number};
}
