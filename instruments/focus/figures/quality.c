/* quality.c - see quality.h. */
#include "quality.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { WELL, TIME, CHANNEL, SHARPNESS, BEST_Z, MIN_CORR, COLUMNS };
static const char *const names[COLUMNS] = {"well", "t", "c", "peak_log", "best_z", "min_corr"};

static fth_status find_columns(const fth_csv *csv, int64_t column[COLUMNS], fth_err *err)
{
    for (int i = 0; i < COLUMNS; i++) {
        column[i] = -1;
        for (int64_t c = 0; c < csv->width; c++)
            if (strcmp(fth_csv_get(csv, 0, c), names[i]) == 0) column[i] = c;
        if (column[i] < 0)
            return FTH_FAIL(err, FTH_E_FILE_KEY,
                            "%s: no column \"%s\"; is it the metrics.csv of a run?", csv->path,
                            names[i]);
    }
    return FTH_OK;
}

/* An empty field is allowed: NaN. */
static fth_status number(const fth_csv *csv, int64_t row, int64_t column, double *out, fth_err *err)
{
    const char *text = fth_csv_get(csv, row, column);
    *out = (double)NAN;
    if (!text[0] || fth_real_parse(text, out)) return FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s, row %" PRId64 ": %s is \"%s\"; expected a number",
                    csv->path, row + 1, fth_csv_get(csv, 0, column), text);
}

static fth_status take_row(fo_quality *q, const fth_csv *csv, int64_t r, const int64_t *column,
                           fth_err *err)
{
    double t;
    fo_quality_row *row = &q->row[q->n];
    *row = (fo_quality_row){.well = fo_well_parse(fth_csv_get(csv, r, column[WELL]))};
    FTH_TRY(number(csv, r, column[TIME], &t, err));
    FTH_TRY(number(csv, r, column[SHARPNESS], &row->sharpness, err));
    FTH_TRY(number(csv, r, column[BEST_Z], &row->best_z, err));
    FTH_TRY(number(csv, r, column[MIN_CORR], &row->min_corr, err));
    if (!(t >= 0 && t < 1e9)) t = 0; /* stacks without times are one time point */
    row->t = (int64_t)t;
    if (row->t >= q->times) q->times = row->t + 1;
    q->n++;
    return FTH_OK;
}

static fth_status take_rows(fo_quality *q, const fth_csv *csv, fth_err *err)
{
    int64_t column[COLUMNS];
    void *rows = NULL;
    FTH_TRY(find_columns(csv, column, err));
    FTH_TRY(fth_mem_take(q->mem, FTH_MEM_META, (uint64_t)csv->rows * sizeof *q->row,
                         "quality of stacks", &rows, err));
    q->row = rows;
    for (int64_t r = 1; r < csv->rows; r++)
        if (strcmp(fth_csv_get(csv, r, column[CHANNEL]), fth_csv_get(csv, 1, column[CHANNEL])) == 0)
            FTH_TRY(take_row(q, csv, r, column, err));
    return FTH_OK;
}

fth_status fo_quality_read(fo_quality *q, fth_mem *mem, const char *path, fth_err *err)
{
    fth_csv csv;
    *q = (fo_quality){.mem = mem};
    FTH_TRY(fth_csv_read(&csv, mem, path, err));
    const fth_status s = take_rows(q, &csv, err);
    fth_csv_free(&csv);
    if (s != FTH_OK) fo_quality_free(q);
    return s;
}

void fo_quality_free(fo_quality *q)
{
    if (q->row) fth_mem_release(q->mem, q->row, NULL);
    *q = (fo_quality){0};
}
