/* table.c - see table.h. */
#include "table.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char series_sheet[] = "series_number_map";

typedef struct known_column {
    const char *name;
    bool is_number, required;
} known_column;

/* The columns of the legacy layout, in the order of its table. */
static const known_column legacy[] = {
    {"medium", false, true},
    {"genotype", false, true},
    {"chem_perturbation", false, false},
    {"start_age_hpf", false, true},
    {"embryos_per_well", true, false},
    {"temperature", true, true},
    {"pair", false, false},
};
enum { LEGACY = sizeof legacy / sizeof legacy[0] };

/* Sheets that the new layout writes under another name. */
static const char *const renamed[][2] = {
    {"well", "well_index"},
    {"experiment_date", "experiment_id"},
    {"chem_perturbation", "treatment"},
    {"temp", "temperature"},
    {"temp_c", "temperature"},
    {"age", "start_age_hpf"},
    {"start_age", "start_age_hpf"},
    {"n_embryos", "embryos_per_well"},
};
static const char *const v2_numbers[] = {"temperature", "embryos_per_well", "tricane"};

const char *fo_plate_legacy_column(int i)
{
    return i < LEGACY ? legacy[i].name : NULL;
}

fth_status fo_plate_create(fo_plate *plate, fth_mem *mem, fth_err *err)
{
    void *columns = NULL;
    *plate = (fo_plate){.mem = mem};
    for (int w = 0; w < FO_WELLS; w++) plate->series[w] = (double)NAN;
    FTH_TRY(fth_texts_create(&plate->texts, mem, err));
    const fth_status s = fth_mem_take(mem, FTH_MEM_META, FO_PLATE_COLUMNS * sizeof(fo_plate_column),
                                      "plate table", &columns, err);
    plate->column = columns;
    if (s != FTH_OK) fo_plate_free(plate);
    return s;
}

void fo_plate_free(fo_plate *plate)
{
    if (plate->column) fth_mem_release(plate->mem, plate->column, NULL);
    fth_texts_free(plate->texts);
    *plate = (fo_plate){0};
}

const fo_plate_column *fo_plate_find(const fo_plate *plate, const char *name)
{
    for (int i = 0; i < plate->n_columns; i++)
        if (strcmp(plate->column[i].name, name) == 0) return &plate->column[i];
    return NULL;
}

const char *fo_plate_text(const fo_plate *plate, const fo_plate_column *column, int well)
{
    return column->text[well] < 0 ? "" : fth_texts_get(plate->texts, column->text[well]);
}

/* ---- sheets to columns ---- */

static const known_column *find_legacy(const char *name)
{
    for (int i = 0; i < LEGACY; i++)
        if (strcmp(legacy[i].name, name) == 0) return &legacy[i];
    return NULL;
}

static const char *v2_name(const char *name)
{
    for (size_t i = 0; i < sizeof renamed / sizeof renamed[0]; i++)
        if (strcmp(renamed[i][0], name) == 0) return renamed[i][1];
    return name;
}

static bool is_v2_number(const char *name)
{
    for (size_t i = 0; i < sizeof v2_numbers / sizeof v2_numbers[0]; i++)
        if (strcmp(v2_numbers[i], name) == 0) return true;
    return false;
}

/* Empty, or a word that programs write for it. */
static bool is_nothing(const char *text)
{
    return text[0] == 0 || strcmp(text, "nan") == 0;
}

static fth_status keep(fo_plate *plate, const char *text, int *number, fth_err *err)
{
    if (is_nothing(text)) return FTH_OK;
    *number = (int)fth_texts_count(plate->texts);
    return fth_texts_add(plate->texts, text, strlen(text), err);
}

static fth_status fill_cell(fo_plate *plate, fo_plate_column *c, int well, const fth_cell *cell,
                            fth_err *err)
{
    char text[FTH_NUMBER];
    c->text[well] = -1;
    c->number[well] = (double)NAN;
    if (cell->kind == FTH_CELL_EMPTY) return FTH_OK;
    if (cell->kind == FTH_CELL_NUMBER) {
        c->number[well] = cell->number;
        return keep(plate, fth_number_format(text, sizeof text, cell->number, 0), &c->text[well],
                    err);
    }
    if (!fth_real_parse(cell->text, &c->number[well])) c->number[well] = (double)NAN;
    return keep(plate, cell->text, &c->text[well], err);
}

static void take_series(fo_plate *plate, const fth_cell *cell)
{
    plate->has_series = true;
    for (int w = 0; w < FO_WELLS; w++) {
        double v = cell[w].number;
        const bool there = cell[w].kind == FTH_CELL_NUMBER ||
                           (cell[w].kind == FTH_CELL_TEXT && fth_real_parse(cell[w].text, &v));
        plate->series[w] = there ? v : (double)NAN;
    }
}

fth_status fo_plate_add_sheet(fo_plate *plate, fo_layout layout, const char *name,
                              const fth_cell cell[FO_WELLS], fth_err *err)
{
    const known_column *known = find_legacy(name);
    if (strcmp(name, series_sheet) == 0) take_series(plate, cell);
    if (strcmp(name, series_sheet) == 0 || (layout == FO_LAYOUT_LEGACY && !known)) return FTH_OK;
    const char *title = layout == FO_LAYOUT_V2 ? v2_name(name) : name;
    if (fo_plate_find(plate, title))
        return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                        "two sheets or columns are called \"%s\"; rename one", title);
    if (plate->n_columns == FO_PLATE_COLUMNS || strlen(title) >= FO_COLUMN_NAME)
        return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                        "sheet or column \"%.60s\": at most %d of them, with names of at most %d "
                        "bytes, are allowed",
                        title, FO_PLATE_COLUMNS, FO_COLUMN_NAME - 1);
    fo_plate_column *c = &plate->column[plate->n_columns];
    *c = (fo_plate_column){.is_number =
                               layout == FO_LAYOUT_V2 ? is_v2_number(title) : known->is_number};
    memcpy(c->name, title, strlen(title));
    for (int w = 0; w < FO_WELLS; w++) FTH_TRY(fill_cell(plate, c, w, &cell[w], err));
    plate->n_columns++;
    return FTH_OK;
}

/* ---- after the last one ---- */

static fth_status check_required(const fo_plate *plate, const char *path, fth_err *err)
{
    char missing[200] = "";
    for (int i = 0; i < LEGACY; i++)
        if (legacy[i].required && !fo_plate_find(plate, legacy[i].name)) {
            const size_t n = strlen(missing);
            snprintf(missing + n, sizeof missing - n, "%s%s", n ? ", " : "", legacy[i].name);
        }
    if (!missing[0]) return FTH_OK;
    return FTH_FAIL(
        err, FTH_E_FILE_KEY,
        "%s: no sheet or column %s; 'fathom focus init-plate' writes a template with all of them",
        path, missing);
}

/* In the order of the layout, with those that were not there. */
static void order_legacy(fo_plate *plate)
{
    for (int i = 0; i < LEGACY; i++) {
        const fo_plate_column *found = fo_plate_find(plate, legacy[i].name);
        fo_plate_column *to = &plate->column[i];
        const fo_plate_column was = *to;
        if (found) {
            const long at = found - plate->column;
            *to = *found;
            plate->column[at] = was;
            continue;
        }
        plate->column[plate->n_columns++] = was;
        *to = (fo_plate_column){.is_number = legacy[i].is_number};
        memcpy(to->name, legacy[i].name, strlen(legacy[i].name));
        for (int w = 0; w < FO_WELLS; w++) {
            to->text[w] = -1;
            to->number[w] = (double)NAN;
        }
    }
    plate->n_columns = LEGACY;
}

fth_status fo_plate_finish(fo_plate *plate, fo_layout layout, const char *path, fth_err *err)
{
    if (layout == FO_LAYOUT_LEGACY) {
        FTH_TRY(check_required(plate, path, err));
        order_legacy(plate);
    }
    const fo_plate_column *age = fo_plate_find(plate, "start_age_hpf");
    if (!age)
        return FTH_FAIL(err, FTH_E_FILE_KEY,
                        "%s: no sheet or column start_age_hpf, which selects the wells", path);
    for (int w = 0; w < FO_WELLS; w++)
        plate->has_well[w] =
            layout == FO_LAYOUT_V2 ? isfinite(age->number[w]) != 0 : age->text[w] >= 0;
    return FTH_OK;
}

/* ---- CSV ---- */

static int64_t well_column(const fth_csv *csv)
{
    for (int64_t i = 0; i < csv->width; i++) {
        const char *name = fth_csv_get(csv, 0, i);
        if (strcmp(name, "well") == 0 || strcmp(name, "well_index") == 0) return i;
    }
    return -1;
}

static fth_status wells_of(const fth_csv *csv, int64_t column, int *row_of_well, fth_err *err)
{
    for (int w = 0; w < FO_WELLS; w++) row_of_well[w] = -1;
    for (int64_t r = 1; r < csv->rows; r++) {
        const char *text = fth_csv_get(csv, r, column);
        const int w = fo_well_parse(text);
        if (w < 0)
            return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                            "%s, row %" PRId64 ": \"%s\" is not a well; expected A01 to H12",
                            csv->path, r + 1, text);
        if (row_of_well[w] >= 0)
            return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                            "%s, row %" PRId64 ": well %s is also in row %d", csv->path, r + 1,
                            text, row_of_well[w] + 1);
        row_of_well[w] = (int)r;
    }
    return FTH_OK;
}

static fth_status add_columns(fo_plate *plate, fo_layout layout, const fth_csv *csv, fth_err *err)
{
    int row_of_well[FO_WELLS];
    const int64_t wells = well_column(csv);
    if (wells < 0) return FTH_FAIL(err, FTH_E_FILE_KEY, "%s: no column \"well\"", csv->path);
    FTH_TRY(wells_of(csv, wells, row_of_well, err));
    for (int64_t c = 0; c < csv->width; c++) {
        fth_cell cell[FO_WELLS];
        if (c == wells) continue;
        for (int w = 0; w < FO_WELLS; w++) {
            const char *text = row_of_well[w] < 0 ? "" : fth_csv_get(csv, row_of_well[w], c);
            cell[w] =
                (fth_cell){.kind = is_nothing(text) ? FTH_CELL_EMPTY : FTH_CELL_TEXT, .text = text};
        }
        FTH_TRY_CTX(fo_plate_add_sheet(plate, layout, fth_csv_get(csv, 0, c), cell, err), err, "%s",
                    csv->path);
    }
    return fo_plate_finish(plate, layout, csv->path, err);
}

fth_status fo_plate_read_csv(fo_plate *plate, fth_mem *mem, fo_layout layout, const char *path,
                             fth_err *err)
{
    fth_csv csv;
    FTH_TRY(fo_plate_create(plate, mem, err));
    fth_status s = fth_csv_read(&csv, mem, path, err);
    if (s == FTH_OK) {
        s = add_columns(plate, layout, &csv, err);
        fth_csv_free(&csv);
    }
    if (s != FTH_OK) fo_plate_free(plate);
    return s;
}
