/* kmeans_graph.c - see kmeans_graph.h. One plan gives the sums, which most iterations need alone,
 * another also the nearest centres.
 */
#include "kmeans_graph.h"

#include "../ops/nearest/centre.h"

#include <string.h>

enum { SUM, COUNT, NEAREST, OUTPUTS };

struct sp_kmeans_graph {
    fth_mem *mem;
    fth_graph *g;
    int64_t n, k;
    fth_tensor *at;
    fth_plan *plan[2]; /* of sums; and of the nearest */
};

/* Only read. */
static fth_source centres(int64_t k, const double (*centre)[2])
{
    return (fth_source){.kind = "memory",
                        .dtype = FTH_F64,
                        .n_axes = 2,
                        .size = {k, 2},
                        .data = (void *)(uintptr_t)centre};
}

static fth_status build(sp_kmeans_graph *of, fth_context *ctx, fth_err *err)
{
    static const double nothing[1][2] = {{0, 0}}; /* another is set before each run */
    fth_graph *g = of->g = fth_graph_create(ctx);
    if (!g) return FTH_FAIL(err, FTH_E_NOMEM, "no memory for the graph of k-means");
    fth_axis(g, "cell", of->n);
    fth_axis(g, "centre", of->k);
    fth_axis(g, "dim", 2);
    const fth_val at = fth_param(g, "places", "cell dim", of->at),
                  centre = fth_input(g, "centres", FTH_F64, "centre dim", centres(of->k, nothing)),
                  nearest = sp_nearest_centre_(FTH_HERE, at, centre),
                  index = fth_cast(nearest, FTH_I64),
                  one = fth_expand(fth_const_i64(g, FTH_I64, 1), "cell");
    const fth_val out[OUTPUTS] = {
        [SUM] = fth_scatter_add(fth_cast(at, FTH_F64), "cell", index, "centre"),
        [COUNT] = fth_scatter_add(one, "cell", index, "centre"),
        [NEAREST] = nearest};
    for (int i = 0; i < 2; i++) {
        of->plan[i] = fth_plan_make(g, out, i == 0 ? NEAREST : OUTPUTS, &(fth_limits){0}, err);
        if (!of->plan[i]) return err->status;
    }
    return FTH_OK;
}

fth_status sp_kmeans_graph_create(sp_kmeans_graph **out, fth_context *ctx, const fth_places *tree,
                                  int64_t k, fth_err *err)
{
    *out = NULL;
    fth_mem *mem = fth_context_mem(ctx);
    void *block = NULL;
    fth_err why = {0};
    FTH_TRY(fth_mem_take(mem, FTH_MEM_META, sizeof(sp_kmeans_graph), "k-means", &block, err));
    sp_kmeans_graph *g = block;
    *g = (sp_kmeans_graph){.mem = mem, .n = tree->n, .k = k};
    fth_status s =
        fth_tensor_create(&g->at, mem, "places", FTH_F32, 2, ((int64_t[]){tree->n, 2}), &why);
    float *at = s == FTH_OK ? fth_tensor_data(g->at) : NULL;
    for (int64_t i = 0; at && i < tree->n; i++) /* as they were before the tree */
        for (int d = 0; d < 2; d++) at[2 * i + d] = (float)tree->at[i][d];
    if (s == FTH_OK) s = build(g, ctx, &why);
    if (s == FTH_OK)
        *out = g;
    else
        sp_kmeans_graph_destroy(g);
    if (s != FTH_OK && err) *err = why;
    return s;
}

void sp_kmeans_graph_destroy(sp_kmeans_graph *g)
{
    if (!g) return;
    for (int i = 0; i < 2; i++) fth_plan_destroy(g->plan[i]);
    fth_graph_destroy(g->g);
    fth_tensor_release(g->at);
    fth_mem_release(g->mem, g, NULL);
}

fth_status sp_kmeans_graph_assign(sp_kmeans_graph *g, sp_restart *r, fth_err *err)
{
    const fth_sink sink[OUTPUTS] = {
        [SUM] =
            {.kind = "memory", .dtype = FTH_F64, .n_axes = 2, .size = {g->k, 2}, .data = r->sum},
        [COUNT] =
            {.kind = "memory", .dtype = FTH_I64, .n_axes = 1, .size = {g->k}, .data = r->count},
        [NEAREST] = {
            .kind = "memory", .dtype = FTH_I32, .n_axes = 1, .size = {g->n}, .data = r->nearest}};
    FTH_TRY(fth_input_set(g->g, "centres", centres(g->k, (const double(*)[2])r->centre), err));
    return fth_run(g->plan[r->nearest ? 1 : 0], sink, NULL, NULL, err);
}
