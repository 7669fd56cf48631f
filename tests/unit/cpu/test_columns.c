/* test_columns.c - reductions of columns: by one worker, by columns and by rows.
 * seconds: 2
 */
#include "testing/test.h"

#include "plan/plan.h"

#include <fathom/fathom.h>
#include <stdlib.h>

typedef struct columns {
    fth_dtype dtype;
    int64_t rows, cols;
    int threads;
} columns;

typedef fth_val make_fn(fth_val x);

static fth_val sum(fth_val x)
{
    return fth_sum(x, "i");
}
static fth_val sum_of_squares(fth_val x)
{
    return fth_sum(fth_mul(x, x), "i");
}
static fth_val largest(fth_val x)
{
    return fth_rmax(x, "i");
}

/* How the only step is spread over workers. */
typedef enum spread { ALONE, BY_COLUMNS, BY_ROWS } spread;

static spread spread_of(const fth_plan *p)
{
    for (int64_t i = 0; i < p->n_items; i++) {
        if (p->item[i].kind != FTH__STEP) continue;
        return p->item[i].team ? BY_ROWS : p->item[i].split_dim >= 0 ? BY_COLUMNS : ALONE;
    }
    return ALONE;
}

/* Of `data`, which has c->rows x c->cols elements; NULL: it is only planned. */
static spread reduce(const columns *c, make_fn *make, void *data, void *out)
{
    fth_err err = {0};
    fth_options opt;
    fth_context *ctx;
    fth_options_default(&opt);
    opt.threads = c->threads;
    OKE(fth_context_create(&ctx, &opt, &err), &err);
    fth_graph *g = fth_graph_create(ctx);
    fth_tensor *x = NULL, *y = NULL;
    fth_axis(g, "i", c->rows);
    fth_axis(g, "j", c->cols);
    const int64_t size[] = {c->rows, c->cols};
    if (data)
        OKE(fth_tensor_wrap(&x, fth_context_mem(ctx), "x", c->dtype, 2, size, data, &err), &err);
    else
        OKE(fth_tensor_create(&x, fth_context_mem(ctx), "x", c->dtype, 2, size, &err), &err);
    const fth_val v = make(fth_input(g, "x", c->dtype, "i j", fth_tensor_source(x)));
    OKE(fth_tensor_wrap(&y, fth_context_mem(ctx), "y", fth_val_dtype(v), 1, &c->cols, out, &err),
        &err);
    const fth_sink sink = fth_tensor_sink(y);
    const fth_limits limits = {.sinks = &sink, .stream = ""};
    fth_plan *p = fth_plan_make(g, &v, 1, &limits, &err);
    if (!p) OKE(err.status, &err);
    const spread found = spread_of(p);
    if (data) OKE(fth_run(p, &sink, NULL, NULL, &err), &err);
    fth_plan_destroy(p);
    fth_graph_destroy(g);
    fth_tensor_release(x);
    fth_tensor_release(y);
    OKE(fth_context_destroy(ctx, &err), &err);
    return found;
}

static spread planned(int64_t rows, int64_t cols)
{
    void *out = malloc((size_t)cols * 8);
    const spread found = reduce(&(columns){FTH_F32, rows, cols, 2}, sum, NULL, out);
    free(out);
    return found;
}

TEST(pieces_of_short_rows_are_left_to_those_who_take_whole_ones)
{
    EQ_I64(planned(1 << 16, 64), BY_ROWS);
    EQ_I64(planned(1 << 13, 1 << 10), BY_ROWS);
    EQ_I64(planned(1 << 13, 1 << 13), BY_COLUMNS); /* pieces of 5 KiB */
    EQ_I64(planned(1 << 11, 1 << 10), BY_COLUMNS); /* two blocks of the grid */
}

static void fill(fth_dtype t, void *data, int64_t n, t_random *r)
{
    for (int64_t i = 0; i < n; i++)
        if (t == FTH_F64)
            ((double *)data)[i] = 2.0 * t_random_f64(r) - 1.0;
        else if (t == FTH_F32)
            ((float *)data)[i] = 2.0F * (float)t_random_f64(r) - 1.0F;
        else if (t == FTH_F16)
            ((uint16_t *)data)[i] = (uint16_t)t_random_i64(r, 0, 0x7bff); /* finite */
        else if (t == FTH_U8)
            ((uint8_t *)data)[i] = (uint8_t)t_random_i64(r, 0, 255);
        else
            ((int32_t *)data)[i] = (int32_t)t_random_i64(r, -9, 9);
}

/* Elements of two bytes and less are widened, some columns fit a vector and some do not. */
TEST(bits_are_those_of_one_worker)
{
    enum { ROWS = 9001, MOST = 1100 };
    static const int64_t widths[] = {1, 3, 48, 49, 300, 513, MOST};
    static const fth_dtype dtypes[] = {FTH_F32, FTH_F64, FTH_F16, FTH_U8, FTH_I32};
    static make_fn *const makes[] = {sum, sum_of_squares, largest};
    double *data = malloc(sizeof(double) * ROWS * MOST), *one = malloc(sizeof(double) * 2 * MOST),
           *all = malloc(sizeof(double) * 2 * MOST);
    t_random r = t_random_make(1);
    for (int d = 0; d < 5; d++)
        for (int w = 0; w < 7; w++) {
            columns c = {dtypes[d], ROWS, widths[w], 1};
            fill(dtypes[d], data, ROWS * widths[w], &r);
            for (int m = 0; m < 3; m++) {
                memset(one, 0, sizeof(double) * 2 * MOST);
                c.threads = 1;
                EQ_I64(reduce(&c, makes[m], data, one), ALONE);
                for (c.threads = 2; c.threads <= 3; c.threads++) {
                    memset(all, 0, sizeof(double) * 2 * MOST);
                    const spread how = reduce(&c, makes[m], data, all);
                    if (c.cols > 3) EQ_I64(how, BY_ROWS); /* else a moment's work */
                    SAME_BYTES(all, one, sizeof(double) * 2 * MOST);
                }
            }
        }
    free(data);
    free(one);
    free(all);
}

TEST_MAIN()
