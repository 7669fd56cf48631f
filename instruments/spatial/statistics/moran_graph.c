/* moran_graph.c - see moran_graph.h. The graph is that of moran.c's loops: neighbours by the
 * operation of ops/nearest.h, then sums over cells and edges, in f64.
 */
#include "moran_graph.h"

#include "../ops/nearest/nearest.h"

enum { OUTPUTS = 6 };

/* An array of the host that is only read. */
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

/* i64 [query nbr]: cell "query" has an edge to each of them. */
static fth_val edges(fth_graph *g, const sp_grid *grid, const float *xy)
{
    const int64_t squares = grid->squares.nx * grid->squares.ny;
    fth_axis(g, "square1", squares + 1);
    const sp_nearest in = {
        .grid = grid,
        .start = array_input(g, "start", FTH_I32, "square1", squares + 1, 0, grid->start),
        .id = array_input(g, "id", FTH_I32, "cell", grid->n, 0, grid->id),
        .places = array_input(g, "places", FTH_F32, "cell dim", grid->n, 2, grid->at),
        .at = array_input(g, "at", FTH_F32, "query dim", grid->n, 2, xy),
        .own = true};
    return fth_cast(sp_nearest_(FTH_HERE, &in), FTH_I64);
}

/* How many edges have another that goes back: of each edge, those of its end that name its start.
 */
static fth_val count_mutual(fth_graph *g, fth_val nbr)
{
    const fth_val of_end = fth_rename(nbr, "query nbr", "cell nbr2"),
                  back = fth_gather(of_end, "cell", nbr), /* [query nbr nbr2] */
        start = fth_expand(fth_expand(fth_index(g, "query"), "nbr"), "nbr2");
    return fth_sum(fth_cast(fth_eq(back, start), FTH_I64), "query nbr nbr2");
}

static fth_val sum_of_arrows(fth_graph *g, fth_val nbr, int64_t k)
{
    const fth_val one = fth_const(g, FTH_F64, 1.0), ends = fth_merge(nbr, "query nbr", "edge"),
                  ones = fth_expand(fth_const_i64(g, FTH_I64, 1), "edge"),
                  arrows = fth_cast(fth_scatter_add(ones, "edge", ends, "cell"), FTH_F64),
                  both = fth_add(one, fth_div(arrows, fth_const(g, FTH_F64, (double)k)));
    return fth_sum(fth_sqr(both), "cell");
}

static void build(fth_graph *g, const sp_grid *grid, const float *xy, const float *x,
                  int64_t factors, int64_t k, fth_val out[OUTPUTS])
{
    fth_axis(g, "cell", grid->n);
    fth_axis(g, "dim", 2);
    fth_axis(g, "nbr", k);
    fth_axis(g, "factor", factors);
    fth_axis_like(g, "query", "cell");
    fth_axis_like(g, "nbr2", "nbr");
    fth_axis(g, "edge", grid->n * k);
    const fth_val v = array_input(g, "factors", FTH_F32, "cell factor", grid->n, factors, x),
                  nbr = edges(g, grid, xy), wide = fth_cast(v, FTH_F64),
                  n = fth_const(g, FTH_F64, (double)grid->n),
                  mean = fth_div(fth_sum(wide, "cell"), n), z = fth_sub(wide, mean),
                  around = fth_sum(fth_gather(z, "cell", nbr), "nbr"),
                  lag = fth_div(around, fth_const(g, FTH_F64, (double)k)),
                  here = fth_rename(z, "cell", "query");
    out[0] = fth_sum(fth_mul(here, lag), "query");
    out[1] = fth_sum(fth_sqr(z), "cell");
    out[2] = fth_rmin(v, "cell");
    out[3] = fth_rmax(v, "cell");
    out[4] = count_mutual(g, nbr);
    out[5] = sum_of_arrows(g, nbr, k);
}

static fth_sink to_array(fth_dtype dtype, int64_t n, void *data)
{
    return (fth_sink){.kind = "memory", .dtype = dtype, .n_axes = 1, .size = {n}, .data = data};
}

fth_status sp_moran_on_device(sp_moran_sums *out, fth_context *ctx, const sp_grid *grid,
                              const float *xy, const float *x, int64_t factors, int64_t k,
                              fth_err *err)
{
    fth_err why = {0}; /* a plan that is not made says so here alone */
    fth_val v[OUTPUTS];
    const fth_sink sink[OUTPUTS] = {
        to_array(FTH_F64, factors, out->lag),   to_array(FTH_F64, factors, out->square),
        to_array(FTH_F32, factors, out->least), to_array(FTH_F32, factors, out->most),
        fth_scalar_sink(FTH_I64, &out->mutual), fth_scalar_sink(FTH_F64, &out->s2)};
    fth_graph *g = fth_graph_create(ctx);
    if (!g) return FTH_FAIL(err, FTH_E_NOMEM, "no memory for the graph of Moran's I");
    build(g, grid, xy, x, factors, k, v);
    fth_plan *plan = fth_plan_make(g, v, OUTPUTS, &(fth_limits){0}, &why);
    const fth_status s = plan ? fth_run(plan, sink, NULL, NULL, &why) : why.status;
    fth_plan_destroy(plan);
    fth_graph_destroy(g);
    if (s != FTH_OK && err) *err = why;
    return s;
}
