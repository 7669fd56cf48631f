/* fathom/xlsx.h - workbooks of spreadsheets: sheets by name, cells as text or number.
 *
 * Opening reads all sheets: workbooks are small. Formulas count as the value that was last computed
 * for them; styles, and so dates, are not looked at. Entries over 64 MiB are refused.
 *
 *   fth_xlsx *book;
 *   FTH_TRY(fth_xlsx_open(&book, mem, path, err));
 *   const int64_t sheet = fth_xlsx_find(book, "genotype");            -1: there is none
 *   const fth_cell b2 = fth_xlsx_get(book, sheet, 1, 1);
 *   fth_xlsx_close(book);
 *
 * Ownership: texts live as long as the workbook.
 * Threads:   any number may read one workbook.
 * Failure:   file and entry, line and column; on failure *out is NULL.
 */
#ifndef FATHOM_XLSX_H
#define FATHOM_XLSX_H

#include <fathom/memory.h>

FTH_BEGIN_DECLS

typedef enum fth_cell_kind {
    FTH_CELL_EMPTY,
    FTH_CELL_TEXT,
    FTH_CELL_NUMBER,
    FTH_CELL_BOOL, /* `number` is 0 or 1 */
    FTH_CELL_ERROR /* "#N/A" */
} fth_cell_kind;

typedef struct fth_cell {
    fth_cell_kind kind;
    const char *text; /* as it stands in the file: "3.50"; "" for an empty cell, "TRUE", "FALSE" */
    double number;    /* NaN unless it is a number or a bool */
} fth_cell;

typedef struct fth_xlsx fth_xlsx;
FTH_API FTH_MUST_USE fth_status fth_xlsx_open(fth_xlsx **out, fth_mem *mem, const char *path,
                                              fth_err *err);
FTH_API void fth_xlsx_close(fth_xlsx *book); /* NULL is allowed */
FTH_API int64_t fth_xlsx_count(const fth_xlsx *book);
/* The name of a sheet, in the order of the tabs; NULL past the last. */
FTH_API const char *fth_xlsx_name(const fth_xlsx *book, int64_t sheet);
/* The sheet of exactly this name; -1: there is none. */
FTH_API int64_t fth_xlsx_find(const fth_xlsx *book, const char *name);
/* Rows and columns up to the last cell that is not empty; 0 past the last sheet. */
FTH_API void fth_xlsx_size(const fth_xlsx *book, int64_t sheet, int64_t *rows, int64_t *columns);
/* B2 is row 1, column 1. Empty wherever there is nothing. */
FTH_API fth_cell fth_xlsx_get(const fth_xlsx *book, int64_t sheet, int64_t row, int64_t column);

/* One sheet to be written: cells in row-major order. */
typedef struct fth_xlsx_sheet {
    const char *name; /* at most 31 characters, none of []:*?/\ */
    int64_t rows, columns;
    const fth_cell *cell;
} fth_xlsx_sheet;
/* A workbook, whole or not at all; equal cells give equal files. A number is written as `number`, a
 * text as `text`. */
FTH_API FTH_MUST_USE fth_status fth_xlsx_save(fth_mem *mem, const char *path,
                                              const fth_xlsx_sheet *sheets, int64_t n,
                                              fth_err *err);

FTH_END_DECLS
#endif /* FATHOM_XLSX_H */
