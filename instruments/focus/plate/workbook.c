/* workbook.c - the plate's table as a workbook: see table.h.
 *
 * Sheets are grids with the numbers of columns above and the letters of rows to the left: data in
 * B2:M9. Only the sheet of series numbers may come without the numbers above.
 */
#include "table.h"

#include <math.h>
#include <string.h>

static const char series_sheet[] = "series_number_map";
enum { HEADED = 1, SHEET_ROWS = FO_ROWS + HEADED, SHEET_COLUMNS = FO_COLUMNS + 1 };

/* ---- reading ---- */

/* Whether the first row holds 1 to 12. */
static bool has_header(const fth_xlsx *book, int64_t sheet)
{
    for (int c = 0; c < FO_COLUMNS; c++) {
        const fth_cell cell = fth_xlsx_get(book, sheet, 0, c + 1);
        if (cell.kind != FTH_CELL_NUMBER || cell.number != c + 1) return false;
    }
    return true;
}

static fth_status add_sheet(fo_plate *plate, fo_layout layout, const fth_xlsx *book, int64_t sheet,
                            fth_err *err)
{
    const char *name = fth_xlsx_name(book, sheet);
    const bool series = strcmp(name, series_sheet) == 0;
    int64_t rows, columns;
    fth_cell cell[FO_WELLS];
    fth_xlsx_size(book, sheet, &rows, &columns);
    const int top = series && !has_header(book, sheet) ? 0 : HEADED;
    const bool grid = rows >= FO_ROWS + top && columns >= SHEET_COLUMNS;
    if (layout == FO_LAYOUT_V2 && (!grid || strcmp(name, "Export Summary") == 0)) return FTH_OK;
    for (int w = 0; w < FO_WELLS; w++)
        cell[w] = fth_xlsx_get(book, sheet, top + w / FO_COLUMNS, 1 + w % FO_COLUMNS);
    return fo_plate_add_sheet(plate, layout, name, cell, err);
}

static fth_status read_book(fo_plate *plate, fth_mem *mem, fo_layout layout, const char *path,
                            fth_err *err)
{
    fth_xlsx *book = NULL;
    FTH_TRY(fth_xlsx_open(&book, mem, path, err));
    fth_status s = fo_plate_create(plate, mem, err);
    for (int64_t i = 0; s == FTH_OK && i < fth_xlsx_count(book); i++)
        s = add_sheet(plate, layout, book, i, err);
    fth_xlsx_close(book);
    if (s == FTH_OK) s = fo_plate_finish(plate, layout, path, err);
    if (s != FTH_OK) fo_plate_free(plate);
    return s;
}

fth_status fo_plate_read(fo_plate *plate, fth_mem *mem, fo_layout layout, const char *path,
                         fth_err *err)
{
    const size_t n = strlen(path);
    *plate = (fo_plate){0};
    if (n > 4 && strcmp(path + n - 4, ".csv") == 0)
        return fo_plate_read_csv(plate, mem, layout, path, err);
    return read_book(plate, mem, layout, path, err);
}

/* ---- the sheet of series numbers, as pandas writes it ---- */

/* How a column is written: whole numbers stay whole unless a cell is empty, which makes all of them
 * reals; among texts every number stays as it is. */
typedef enum column_kind { WHOLE, REAL, MIXED } column_kind;

static column_kind kind_of(const fth_xlsx *book, int64_t sheet, int64_t rows, int64_t column)
{
    column_kind kind = WHOLE;
    for (int64_t r = HEADED; r < rows; r++) {
        const fth_cell c = fth_xlsx_get(book, sheet, r, column);
        if (c.kind == FTH_CELL_TEXT || c.kind == FTH_CELL_BOOL) return MIXED;
        if (c.kind != FTH_CELL_NUMBER || c.number != floor(c.number)) kind = REAL;
    }
    return kind;
}

static void write_cell(fth_lines *t, const fth_cell *c, column_kind kind)
{
    if (c->kind == FTH_CELL_TEXT || c->kind == FTH_CELL_BOOL)
        fth_lines_field(t, c->text);
    else if (c->kind == FTH_CELL_NUMBER && (kind == REAL || c->number != floor(c->number)))
        fo_lines_float(t, c->number);
    else if (c->kind == FTH_CELL_NUMBER)
        fth_lines_real(t, c->number);
}

static void write_sheet(fth_lines *t, const fth_xlsx *book, int64_t sheet)
{
    int64_t rows, columns;
    fth_xlsx_size(book, sheet, &rows, &columns);
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < columns; c++) {
            const fth_cell cell = fth_xlsx_get(book, sheet, r, c);
            if (c) fth_lines_add(t, ",");
            if (r == 0 && cell.kind == FTH_CELL_EMPTY)
                fth_lines_add(t, "Unnamed: %lld", (long long)c);
            else
                write_cell(t, &cell, r == 0 ? MIXED : kind_of(book, sheet, rows, c));
        }
        fth_lines_add(t, "\n");
    }
}

fth_status fo_series_save_v2(fth_mem *mem, const char *workbook, const char *path, fth_err *err)
{
    fth_xlsx *book = NULL;
    FTH_TRY(fth_xlsx_open(&book, mem, workbook, err));
    const int64_t sheet = fth_xlsx_find(book, series_sheet);
    fth_status s = FTH_OK;
    if (sheet >= 0) {
        fth_lines t;
        fth_lines_begin(&t, mem);
        write_sheet(&t, book, sheet);
        s = fth_lines_save(&t, path, err);
    }
    fth_xlsx_close(book);
    return s;
}

/* ---- a template ---- */

fth_status fo_plate_save_template(fth_mem *mem, const char *path, fth_err *err)
{
    static const char *const letters[FO_ROWS] = {"A", "B", "C", "D", "E", "F", "G", "H"};
    fth_cell cell[SHEET_ROWS * SHEET_COLUMNS];
    fth_xlsx_sheet sheet[16];
    int n = 0;
    for (int i = 0; i < SHEET_ROWS * SHEET_COLUMNS; i++)
        cell[i] = (fth_cell){.kind = FTH_CELL_EMPTY, .text = "", .number = (double)NAN};
    for (int c = 1; c < SHEET_COLUMNS; c++) cell[c] = (fth_cell){FTH_CELL_NUMBER, "", c};
    for (int r = 1; r < SHEET_ROWS; r++)
        cell[r * SHEET_COLUMNS] = (fth_cell){FTH_CELL_TEXT, letters[r - 1], (double)NAN};
    for (const char *name; (name = fo_plate_legacy_column(n)); n++)
        sheet[n] = (fth_xlsx_sheet){name, SHEET_ROWS, SHEET_COLUMNS, cell};
    sheet[n] = (fth_xlsx_sheet){series_sheet, SHEET_ROWS, SHEET_COLUMNS, cell};
    return fth_xlsx_save(mem, path, sheet, n + 1, err);
}
