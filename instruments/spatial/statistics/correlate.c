/* correlate.c - see correlate.h. Columns are centred first, as in the loop of recovery.c. */
#include "correlate.h"

static fth_val array_input(fth_graph *g, const char *name, fth_dtype dtype, const char *axes,
                           int64_t rows, int64_t cols, const void *data)
{
    const fth_source s = {.kind = "memory",
                          .dtype = dtype,
                          .n_axes = cols > 0 ? 2 : 1,
                          .size = {rows, cols},
                          .data = (void *)(uintptr_t)data};
    return fth_input(g, name, dtype, axes, s);
}

/* Columns without their means, [pair col]; `names` are those of its values and axes. */
typedef struct names {
    const char *value, *index, *row, *col, *axes;
} names;

static fth_val centred(fth_graph *g, const sp_columns *c, int64_t n, const names *as)
{
    fth_axis(g, as->row, c->rows);
    fth_axis(g, as->col, c->cols);
    fth_val v = array_input(g, as->value, FTH_F64, as->axes, c->rows, c->cols, c->data);
    if (c->row)
        v = fth_gather(v, as->row, array_input(g, as->index, FTH_I64, "pair", n, 0, c->row));
    else
        v = fth_rename(v, as->row, "pair");
    if (c->log) v = fth_log(fth_max(v, fth_const(g, FTH_F64, 1e-300)));
    const fth_val count = fth_const(g, FTH_F64, (double)n);
    return fth_sub(v, fth_div(fth_sum(v, "pair"), count));
}

static fth_val build(fth_graph *g, const sp_columns *a, const sp_columns *b, int64_t n)
{
    fth_axis(g, "pair", n);
    const fth_val x = centred(g, a, n, &(names){"a", "rows of a", "arow", "acol", "arow acol"}),
                  y = centred(g, b, n, &(names){"b", "rows of b", "brow", "bcol", "brow bcol"}),
                  xx = fth_sum(fth_sqr(x), "pair"), yy = fth_sum(fth_sqr(y), "pair"),
                  both = fth_mul(fth_expand(xx, "bcol"), fth_expand(yy, "acol")),
                  cross = fth_dot(x, y, "pair");
    return fth_layout(fth_div(cross, fth_sqrt(both)), "acol bcol");
}

fth_status sp_correlate(double *out, fth_context *ctx, const sp_columns *a, const sp_columns *b,
                        int64_t n, fth_err *err)
{
    fth_err why = {0}; /* fth_plan_make reports failures through it */
    const fth_sink sink = {
        .kind = "memory", .dtype = FTH_F64, .n_axes = 2, .size = {a->cols, b->cols}, .data = out};
    fth_graph *g = fth_graph_create(ctx);
    if (!g) return FTH_FAIL(err, FTH_E_NOMEM, "no memory for the graph of correlations");
    const fth_val v = build(g, a, b, n);
    fth_plan *plan = fth_plan_make(g, &v, 1, &(fth_limits){0}, &why);
    const fth_status s = plan ? fth_run(plan, &sink, NULL, NULL, &why) : why.status;
    fth_plan_destroy(plan);
    fth_graph_destroy(g);
    if (s != FTH_OK && err) *err = why;
    return s;
}
