/* totals.c - see totals.h. Totals are sums in f64, in the order of the file. */
#include "totals.h"
#include "walk.h"

#include <math.h>
#include <stdlib.h>

double sp_size_of(double total, double median)
{
    return (total > 0 ? total : 1) / median;
}

static double sum_of(const sp_walk_row *r)
{
    double sum = 0;
    for (int64_t i = 0; i < r->n; i++) sum += (double)r->value[i];
    return sum;
}

static fth_status walk(const sp_data *data, void (*fn)(void *user, const sp_walk_row *row),
                       void *user, fth_err *err)
{
    sp_walk w;
    FTH_TRY(sp_walk_open(&w, data, err));
    const fth_status s = sp_walk_each(&w, fn, user, err);
    sp_walk_close(&w);
    return s;
}

/* ---- the median ---- */

typedef struct totals {
    double *above; /* totals above 0 */
    int64_t n;
} totals;

static void add_total(void *user, const sp_walk_row *r)
{
    totals *t = user;
    const double sum = sum_of(r);
    if (sum > 0) t->above[t->n++] = sum;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static uint64_t totals_bytes(int64_t cells)
{
    return 8 * (uint64_t)cells;
}

uint64_t sp_size_median_bytes(const sp_sizes *size)
{
    return totals_bytes(size->cells) + sp_walk_bytes(size);
}

fth_status sp_size_median(double *out, const sp_data *data, fth_err *err)
{
    void *block = NULL;
    *out = 1;
    FTH_TRY(fth_mem_take(data->mem, FTH_MEM_ANY, totals_bytes(data->size.cells), "totals of cells",
                         &block, err));
    totals t = {.above = block};
    const fth_status s = walk(data, add_total, &t, err);
    if (s == FTH_OK && t.n > 0) {
        qsort(t.above, (size_t)t.n, sizeof *t.above, compare);
        *out = 0.5 * (t.above[(t.n - 1) / 2] + t.above[t.n / 2]);
    }
    (void)fth_mem_release(data->mem, block, NULL);
    return s;
}

/* ---- sizes ---- */

typedef struct filling {
    fth_tensor *to;
    double median;
    bool log;
} filling;

static void put_size(void *user, const sp_walk_row *r)
{
    const filling *f = user;
    const double v = sp_size_of(sum_of(r), f->median), x = f->log ? log(v) : v;
    if (fth_tensor_dtype(f->to) == FTH_F64)
        ((double *)fth_tensor_data(f->to))[r->cell] = x;
    else
        ((float *)fth_tensor_data(f->to))[r->cell] = (float)x;
}

fth_status sp_log_sizes(fth_tensor *to, const sp_data *data, double median, fth_err *err)
{
    return walk(data, put_size, &(filling){to, median, true}, err);
}

fth_status sp_row_sizes(fth_tensor *to, const sp_data *data, double median, fth_err *err)
{
    sp_data all = *data;
    all.row = NULL;
    all.size.cells = all.rows;
    for (int64_t i = 0; i < all.rows; i++) {
        const int64_t n = fth_csr_entries(all.counts, i, i + 1);
        if (n > all.size.most_entries) all.size.most_entries = n;
    }
    return walk(&all, put_size, &(filling){to, median, false}, err);
}
