/* stol.c - tables of F over sin(theta)/lambda: read, sorted, interpolated. */
#include "stol.h"
#include "read.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static fth_status take(br_stol *out, fth_mem *mem, int64_t rows, fth_err *err)
{
    const int64_t size[2] = {rows + 2 * BR_STOL_GUARD, BR_STOL_COLUMNS};
    out->rows = rows;
    return fth_tensor_create(&out->table, mem, "stol", FTH_F64, 2, size, err);
}

static double *row_of(const br_stol *s, int64_t row)
{
    return (double *)fth_tensor_data(s->table) + BR_STOL_COLUMNS * row;
}

void br_stol_finish(br_stol *s)
{
    static const double far[BR_STOL_GUARD] = {1e98, 1e99};
    const int64_t first = BR_STOL_GUARD, last = s->rows + BR_STOL_GUARD - 1;
    for (int i = 0; i < BR_STOL_GUARD; i++) {
        double *low = row_of(s, first - 1 - i), *high = row_of(s, last + 1 + i);
        low[BR_STOL_X] = -far[i];
        low[BR_STOL_F] = row_of(s, first)[BR_STOL_F];
        high[BR_STOL_X] = far[i];
        high[BR_STOL_F] = row_of(s, last)[BR_STOL_F];
    }
    double reach = -HUGE_VAL;
    for (int64_t i = 0; i <= last + BR_STOL_GUARD; i++) {
        double *row = row_of(s, i);
        if (row[BR_STOL_X] > reach) reach = row[BR_STOL_X];
        row[BR_STOL_REACH] = reach;
    }
}

static void put(br_stol *s, int64_t i, double x, double F)
{
    double *row = row_of(s, BR_STOL_GUARD + i);
    row[BR_STOL_X] = x;
    row[BR_STOL_F] = F;
}

typedef struct line {
    double x, F;
    int64_t place; /* in the file */
} line;

static int by_x(const void *a, const void *b)
{
    const line *p = a, *q = b;
    if (p->x != q->x) return p->x < q->x ? -1 : 1;
    return p->place < q->place ? -1 : 1;
}

/* Rows of the file in order, one for each x. Returns how many. */
static int64_t sort_lines(line *l, int64_t n)
{
    int64_t kept = 0;
    qsort(l, (size_t)n, sizeof *l, by_x);
    for (int64_t i = 0; i < n; i++) {
        if (kept && l[kept - 1].x == l[i].x) kept--;
        l[kept++] = l[i];
    }
    return kept;
}

static fth_status from_columns(br_stol *out, fth_mem *mem, const br_columns *c, line *l,
                               bool strict, const char *path, fth_err *err)
{
    const double *v = fth_tensor_data(c->table);
    for (int64_t i = 0; i < c->rows; i++) {
        const double x = v[2 * i] * out->unit, F = isnan(v[2 * i + 1]) ? 0 : v[2 * i + 1];
        if (!isfinite(x) || !isfinite(F) || fabs(x) > 1e90)
            return FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: row %lld is %g %g", path, (long long)i + 1,
                            v[2 * i], v[2 * i + 1]);
        l[i] = (line){x, F, i};
    }
    FTH_TRY(take(out, mem, strict ? sort_lines(l, c->rows) : c->rows, err));
    for (int64_t i = 0; i < out->rows; i++) put(out, i, l[i].x, l[i].F);
    br_stol_finish(out);
    return FTH_OK;
}

fth_status br_stol_read(br_stol *out, fth_mem *mem, const char *path, double unit, bool strict,
                        fth_err *err)
{
    br_columns c = {0};
    void *lines = NULL;
    *out = (br_stol){.unit = unit};
    FTH_TRY(br_columns_read(&c, mem, path, 2, strict, err));
    fth_status s = FTH_OK;
    if (c.rows < 1) s = FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s has no rows of numbers", path);
    if (s == FTH_OK)
        s = fth_mem_take(mem, FTH_MEM_ANY, sizeof(line) * (uint64_t)c.rows, "stol rows", &lines,
                         err);
    if (s == FTH_OK) s = from_columns(out, mem, &c, lines, strict, path, err);
    fth_mem_release(mem, lines, NULL);
    fth_tensor_release(c.table);
    return s;
}

fth_status br_stol_make(br_stol *out, fth_mem *mem, int64_t n, double step, double unit,
                        fth_err *err)
{
    *out = (br_stol){.unit = unit};
    FTH_TRY(take(out, mem, n, err));
    for (int64_t i = 0; i < n; i++) put(out, i, step * (double)i, 1);
    br_stol_finish(out);
    return FTH_OK;
}

void br_stol_clear(br_stol *s)
{
    fth_tensor_release(s->table);
    *s = (br_stol){0};
}
