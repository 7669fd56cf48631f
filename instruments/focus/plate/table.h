/* table.h - what was in each well: the plate's table, from a workbook or a CSV file.
 *
 * A workbook has a sheet per column, each a grid of 8 x 12 cells; a CSV file has a row per well.
 * Either becomes columns of texts and numbers by well. The layouts differ in which columns they
 * know.
 */
#ifndef FOCUS_PLATE_TABLE_H
#define FOCUS_PLATE_TABLE_H

#include "well.h"

#include <fathom/xlsx.h>

typedef enum fo_layout {
    FO_LAYOUT_LEGACY, /* seven columns, named as in the workbook */
    FO_LAYOUT_V2,     /* every sheet, some under another name    */
} fo_layout;

enum { FO_PLATE_COLUMNS = 64, FO_COLUMN_NAME = 64 };

typedef struct fo_plate_column {
    char name[FO_COLUMN_NAME];
    bool is_number;          /* written as a number; empty where there is none */
    int text[FO_WELLS];      /* number of a text; -1: empty */
    double number[FO_WELLS]; /* NaN where the cell is none */
} fo_plate_column;

typedef struct fo_plate {
    fth_mem *mem;
    fth_texts *texts; /* of all cells */
    fo_plate_column *column;
    int n_columns;
    bool has_well[FO_WELLS]; /* false: no row, or none with a start_age_hpf */
    bool has_series;
    double series[FO_WELLS]; /* number of the series that shows the well, from 1; NaN: none */
} fo_plate;

fth_status fo_plate_create(fo_plate *plate, fth_mem *mem, fth_err *err);
void fo_plate_free(fo_plate *plate); /* an empty one is allowed */
/* The cells of a sheet, by well. Sheets that the layout does not know are left out;
 * series_number_map goes to `series`. */
fth_status fo_plate_add_sheet(fo_plate *plate, fo_layout layout, const char *name,
                              const fth_cell cell[FO_WELLS], fth_err *err);
/* After the last sheet: adds legacy columns that had none, drops wells without a start_age_hpf.
 * `path` names the file in errors: FTH_E_FILE_KEY lists required columns that are missing. */
fth_status fo_plate_finish(fo_plate *plate, fo_layout layout, const char *path, fth_err *err);
/* A CSV file with a column "well" (or "well_index"): as a workbook with a sheet for each other
 * column. */
fth_status fo_plate_read_csv(fo_plate *plate, fth_mem *mem, fo_layout layout, const char *path,
                             fth_err *err);
/* A workbook, B2:M9 of its sheets; by the ending .csv a CSV file. */
fth_status fo_plate_read(fo_plate *plate, fth_mem *mem, fo_layout layout, const char *path,
                         fth_err *err);
const fo_plate_column *fo_plate_find(const fo_plate *plate, const char *name); /* NULL: none */
/* "" where the cell is empty. Good until the next sheet is added. */
const char *fo_plate_text(const fo_plate *plate, const fo_plate_column *column, int well);

/* As Python writes a real number: the shortest text that reads as it, 30.0 for whole ones; nothing
 * for NaN. */
void fo_lines_float(fth_lines *lines, double v);
/* The value of a column in a row of CSV, with a comma before it. */
void fo_plate_write_cell(fth_lines *lines, const fo_plate *plate, const fo_plate_column *column,
                         int well);
/* The table of the new layout: plate_metadata.csv. */
fth_status fo_plate_save_v2(const fo_plate *plate, const char *experiment, const char *path,
                            fth_err *err);
/* The sheet series_number_map of a workbook as pandas writes it; nothing when there is none. */
fth_status fo_series_save_v2(fth_mem *mem, const char *workbook, const char *path, fth_err *err);
/* An empty workbook to be filled in: all sheets of the legacy layout, and series_number_map. */
fth_status fo_plate_save_template(fth_mem *mem, const char *path, fth_err *err);
/* Names of the columns of the legacy layout, in its order; NULL past the last. */
const char *fo_plate_legacy_column(int i);

#endif
