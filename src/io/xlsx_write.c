/* xlsx_write.c - workbooks of plain cells: the five kinds of documents that readers insist on.
 *
 * Texts stand in their cells, not in a shared list: templates repeat few of them.
 */
#include <fathom/xlsx.h>

#include "base/assert.h"
#include "base/str.h"
#include "io/zip.h"
#include "mem/heap.h"

#include <fathom/number.h>

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { MOST_ROWS = 1048576, MOST_COLUMNS = 16384, LONGEST_NAME = 31 };

#define HEAD "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\n"
#define OFFICE "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
#define PACKAGE "http://schemas.openxmlformats.org/package/2006/"
#define MAIN "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
#define TYPE "application/vnd.openxmlformats-officedocument.spreadsheetml."

/* A document that grows; the first failure is kept. */
typedef struct document {
    fth_mem *mem;
    char *data;
    int64_t n, capacity;
    fth_status status;
    fth_err *err;
} document;

static void add(document *d, const char *text, size_t n)
{
    if (d->status == FTH_OK)
        d->status = fth__grow(d->mem, &d->data, &d->capacity, d->n + (int64_t)n, d->err);
    if (d->status != FTH_OK) return;
    memcpy(d->data + d->n, text, n);
    d->n += (int64_t)n;
}

static void say(document *d, const char *text)
{
    add(d, text, strlen(text));
}

static void say_int(document *d, int64_t v)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, v);
    say(d, text);
}

/* Characters that XML cannot hold become '?'. */
static void say_text(document *d, const char *text)
{
    static const struct {
        char c;
        const char *as;
    } marks[] = {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}};
    for (size_t left = strlen(text); left > 0;) {
        const size_t n = fth__utf8_length(text, left);
        const bool control = (unsigned char)*text < 32 && !strchr("\t\n", *text);
        const char *as = n == 0 || control ? "?" : NULL;
        for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++)
            if (*text == marks[i].c) as = marks[i].as;
        if (as)
            say(d, as);
        else
            add(d, text, n);
        text += n ? n : 1;
        left -= n ? n : 1;
    }
}

/* ---- a sheet ---- */

static void say_place(document *d, int64_t row, int64_t column)
{
    char letters[8];
    int n = (int)sizeof letters;
    for (int64_t v = column + 1; v > 0; v = (v - 1) / 26) letters[--n] = (char)('A' + (v - 1) % 26);
    FTH_ASSERT(n >= (int)sizeof letters - 3); /* XFD is the last column */
    add(d, letters + n, sizeof letters - (size_t)n);
    say_int(d, row + 1);
}

static void say_cell(document *d, const fth_cell *c, int64_t row, int64_t column)
{
    char number[FTH_NUMBER];
    const bool real = c->kind == FTH_CELL_NUMBER, flag = c->kind == FTH_CELL_BOOL;
    if (c->kind == FTH_CELL_EMPTY || (real && !isfinite(c->number))) return;
    say(d, "<c r=\"");
    say_place(d, row, column);
    if (real || flag) {
        say(d, flag ? "\" t=\"b\"><v>" : "\"><v>");
        say(d, fth_number_format(number, sizeof number, c->number, 0));
        say(d, "</v></c>");
    } else {
        const bool wrong = c->kind == FTH_CELL_ERROR;
        say(d, wrong ? "\" t=\"e\"><v>" : "\" t=\"inlineStr\"><is><t xml:space=\"preserve\">");
        say_text(d, c->text);
        say(d, wrong ? "</v></c>" : "</t></is></c>");
    }
}

static void say_sheet(document *d, const fth_xlsx_sheet *s)
{
    say(d, HEAD "<worksheet xmlns=\"" MAIN "\"><sheetData>");
    for (int64_t row = 0; row < s->rows; row++) {
        say(d, "<row r=\"");
        say_int(d, row + 1);
        say(d, "\">");
        for (int64_t c = 0; c < s->columns; c++)
            say_cell(d, &s->cell[row * s->columns + c], row, c);
        say(d, "</row>");
    }
    say(d, "</sheetData></worksheet>");
}

/* ---- the workbook ---- */

static void say_types(document *d, int64_t n)
{
    say(d, HEAD "<Types xmlns=\"" PACKAGE "content-types\"><Default Extension=\"rels\" "
                "ContentType=\"application/vnd.openxmlformats-package.relationships+xml\"/>"
                "<Default Extension=\"xml\" ContentType=\"application/xml\"/>"
                "<Override PartName=\"/xl/workbook.xml\" ContentType=\"" TYPE "sheet.main+xml\"/>");
    for (int64_t i = 1; i <= n; i++) {
        say(d, "<Override PartName=\"/xl/worksheets/sheet");
        say_int(d, i);
        say(d, ".xml\" ContentType=\"" TYPE "worksheet+xml\"/>");
    }
    say(d, "</Types>");
}

static void say_book(document *d, const fth_xlsx_sheet *sheets, int64_t n)
{
    say(d, HEAD "<workbook xmlns=\"" MAIN "\" xmlns:r=\"" OFFICE "\"><sheets>");
    for (int64_t i = 1; i <= n; i++) {
        say(d, "<sheet name=\"");
        say_text(d, sheets[i - 1].name);
        say(d, "\" sheetId=\"");
        say_int(d, i);
        say(d, "\" r:id=\"rId");
        say_int(d, i);
        say(d, "\"/>");
    }
    say(d, "</sheets></workbook>");
}

static void say_relations(document *d, int64_t n)
{
    say(d, HEAD "<Relationships xmlns=\"" PACKAGE "relationships\">");
    for (int64_t i = 1; i <= n; i++) {
        say(d, "<Relationship Id=\"rId");
        say_int(d, i);
        say(d, "\" Type=\"" OFFICE "/worksheet\" Target=\"worksheets/sheet");
        say_int(d, i);
        say(d, ".xml\"/>");
    }
    say(d, "</Relationships>");
}

static fth_status check(const fth_xlsx_sheet *sheets, int64_t n, fth_err *err)
{
    if (n < 1) return FTH_FAIL(err, FTH_E_USAGE, "a workbook has at least one sheet");
    for (int64_t i = 0; i < n; i++) {
        const fth_xlsx_sheet *s = &sheets[i];
        const size_t length = s->name ? strlen(s->name) : 0;
        if (length == 0 || length > LONGEST_NAME || strpbrk(s->name, "[]:*?/\\"))
            return FTH_FAIL(err, FTH_E_USAGE,
                            "a sheet cannot be named '%s': 1 to %d characters, none of []:*?/\\",
                            s->name ? s->name : "", (int)LONGEST_NAME);
        for (int64_t k = 0; k < i; k++)
            if (strcmp(s->name, sheets[k].name) == 0)
                return FTH_FAIL(err, FTH_E_USAGE, "two sheets are named '%s'", s->name);
        if (s->rows < 0 || s->rows > MOST_ROWS || s->columns < 0 || s->columns > MOST_COLUMNS)
            return FTH_FAIL(err, FTH_E_USAGE,
                            "sheet '%s' has %" PRId64 " rows and %" PRId64
                            " columns; at most %d and %d are possible",
                            s->name, s->rows, s->columns, (int)MOST_ROWS, (int)MOST_COLUMNS);
    }
    return FTH_OK;
}

/* One member of the zip; the document starts again. */
static void finish(document *d, fth__zip_out *z, const char *name)
{
    if (d->status == FTH_OK) d->status = fth__zip_add(z, name, d->data, (uint64_t)d->n, d->err);
    d->n = 0;
}

fth_status fth_xlsx_save(fth_mem *mem, const char *path, const fth_xlsx_sheet *sheets, int64_t n,
                         fth_err *err)
{
    fth__zip_out z;
    document d = {.mem = mem, .err = err};
    FTH_TRY(check(sheets, n, err));
    FTH_TRY(fth__zip_create(&z, mem, path, err));
    say_types(&d, n);
    finish(&d, &z, "[Content_Types].xml");
    say(&d, HEAD "<Relationships xmlns=\"" PACKAGE "relationships\"><Relationship Id=\"rId1\" "
                 "Type=\"" OFFICE "/officeDocument\" Target=\"xl/workbook.xml\"/></Relationships>");
    finish(&d, &z, "_rels/.rels");
    say_book(&d, sheets, n);
    finish(&d, &z, "xl/workbook.xml");
    say_relations(&d, n);
    finish(&d, &z, "xl/_rels/workbook.xml.rels");
    for (int64_t i = 0; i < n && d.status == FTH_OK; i++) {
        char name[60];
        say_sheet(&d, &sheets[i]);
        snprintf(name, sizeof name, "xl/worksheets/sheet%" PRId64 ".xml", i + 1);
        finish(&d, &z, name);
    }
    const fth_status s = d.status == FTH_OK ? fth__zip_commit(&z, err) : d.status;
    fth__zip_abandon(&z);
    fth__heap_free(mem, d.data);
    return s;
}
