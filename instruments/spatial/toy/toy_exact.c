/* toy_exact.c - factors from their prior, by the Cholesky factor of the whole covariance.
 *
 * With K = L L^T and standard normal z, factors are F = L z, and K^-1 F = L^-T z comes with them:
 * all that is needed for factors as another group.
 */
#include "toy.h"

typedef struct wanted {
    fth_val factor, projected; /* f64 [cell factor] */
} wanted;

static fth_val places(fth_graph *g, const char *name, const char *axes, fth_tensor *xy)
{
    return fth_input(g, name, FTH_F32, axes, fth_tensor_source(xy));
}

static wanted build(fth_graph *g, const sp_toy *t, fth_tensor *xy, fth_tensor *group)
{
    const sp_cov cov = sp_toy_cov(t);
    fth_axis(g, "cell", t->cells);
    fth_axis_like(g, "cell2", "cell");
    fth_axis(g, "factor", t->factors);
    fth_axis(g, "dim", 2);
    const fth_val a = places(g, "X", "cell dim", xy), b = fth_rename(a, "cell", "cell2");
    const fth_val ga = fth_input(g, "C", FTH_I32, "cell", fth_tensor_source(group));
    const fth_val gb = fth_rename(ga, "cell", "cell2");
    const fth_val k = sp_cov_block(g, &cov, FTH_F64, a, ga, "cell", b, gb, "cell2");
    const fth_val same = fth_eq(fth_expand(fth_index(g, "cell"), "cell2"),
                                fth_expand(fth_index(g, "cell2"), "cell"));
    /* The diagonal is exactly 1 + jitter, without the floor of distances. */
    const fth_val diagonal = fth_const(g, FTH_F64, 1 + t->jitter);
    const fth_val all =
        fth_select(fth_layout(same, "cell cell2"), diagonal, fth_layout(k, "cell cell2"));
    const fth_val L = fth_cholesky(all, "cell", "cell2");
    const fth_val z = fth_normal(FTH_F64, "cell2 factor", fth_const_i64(g, FTH_I64, t->seed),
                                 fth_const_i64(g, FTH_I64, 0), SP_TOY_NOISE);
    return (wanted){.factor = fth_layout(fth_dot(L, z, "cell2"), "cell factor"),
                    .projected = fth_layout(fth_solve_t(L, z, "cell", "cell2"), "cell factor")};
}

static fth_status draw(sp_toy *t, fth_tensor *xy, fth_tensor *group, fth_tensor *factor,
                       fth_err *err)
{
    fth_graph *g = fth_graph_create(t->ctx);
    const wanted w = build(g, t, xy, group);
    const fth_val outs[2] = {w.factor, w.projected};
    const fth_sink sinks[2] = {fth_tensor_sink(factor), fth_tensor_sink(t->projected)};
    fth_plan *p = fth_plan_make(g, outs, 2, &(fth_limits){.sinks = sinks}, err);
    fth_status s = !p          ? fth_graph_check(g, err)
                   : t->answer ? fth_answer_plan(t->answer, "factors", p, err)
                               : fth_run(p, sinks, NULL, NULL, err);
    if (!p && s == FTH_OK) s = err ? err->status : FTH_E_NO_FIT;
    fth_plan_destroy(p);
    fth_graph_destroy(g);
    const double *v = fth_tensor_data(factor);
    for (int64_t i = 0; s == FTH_OK && !t->answer && i < t->cells * t->factors; i++)
        t->factor[i] = (float)v[i];
    if (s == FTH_E_NO_FIT || s == FTH_E_BUDGET)
        fth_err_hint(err, "allow more memory, or draw neighbour by neighbour: --sampler near");
    return s;
}

static fth_status wrap_places(fth_tensor **out, const sp_toy *t, fth_err *err)
{
    return fth_tensor_wrap(out, t->mem, "X", FTH_F32, 2, ((int64_t[]){t->cells, 2}), t->xy, err);
}

static fth_status wrap_groups(fth_tensor **out, const sp_toy *t, int32_t *group, fth_err *err)
{
    return fth_tensor_wrap(out, t->mem, "C", FTH_I32, 1, &t->cells, group, err);
}

fth_status sp_toy_draw_exact(sp_toy *t, fth_err *err)
{
    const int64_t size[2] = {t->cells, t->factors};
    fth_tensor *xy = NULL, *group = NULL, *factor = NULL;
    fth_status s = wrap_places(&xy, t, err);
    if (s == FTH_OK) s = wrap_groups(&group, t, t->group, err);
    if (s == FTH_OK)
        s = fth_tensor_create(&t->projected, t->mem, "projected factors", FTH_F64, 2, size, err);
    if (s == FTH_OK) s = fth_tensor_create(&factor, t->mem, "factors", FTH_F64, 2, size, err);
    if (s == FTH_OK) s = draw(t, xy, group, factor, err);
    fth_tensor_release(factor);
    fth_tensor_release(group);
    fth_tensor_release(xy);
    return s;
}

/* K((x, g), (X, C)) times the projected factors; the kernel matrix is not materialised. */
static fth_status project(const sp_toy *t, fth_tensor *xy, fth_tensor *as, fth_tensor *group,
                          const fth_sink *sink, fth_err *err)
{
    const sp_cov cov = sp_toy_cov(t);
    fth_graph *g = fth_graph_create(t->ctx);
    fth_axis(g, "cell", t->cells);
    fth_axis_like(g, "cell2", "cell");
    fth_axis(g, "factor", t->factors);
    fth_axis(g, "dim", 2);
    const fth_val at = places(g, "X", "cell dim", xy);
    const fth_val ga = fth_input(g, "as", FTH_I32, "cell", fth_tensor_source(as));
    const fth_val gb = fth_input(g, "C", FTH_I32, "cell2", fth_tensor_source(group));
    const fth_val k = sp_cov_block(g, &cov, FTH_F64, at, ga, "cell",
                                   fth_rename(at, "cell", "cell2"), gb, "cell2");
    const fth_val projected =
        fth_input(g, "projected", FTH_F64, "cell2 factor", fth_tensor_source(t->projected));
    const fth_val f = fth_cast(fth_dot(k, projected, "cell2"), FTH_F32);
    const fth_val out = fth_layout(f, "cell factor");
    fth_plan *p = fth_plan_make(g, &out, 1, &(fth_limits){.sinks = sink}, err);
    fth_status s = p ? fth_run(p, sink, NULL, NULL, err) : fth_graph_check(g, err);
    if (!p && s == FTH_OK) s = err ? err->status : FTH_E_NO_FIT;
    fth_plan_destroy(p);
    fth_graph_destroy(g);
    return s;
}

fth_status sp_toy_write_group_exact(const sp_toy *t, int64_t group, const fth_sink *sink,
                                    fth_err *err)
{
    fth_tensor *xy = NULL, *as = NULL, *own = NULL;
    FTH_TRY(fth_tensor_create(&as, t->mem, "as group", FTH_I32, 1, &t->cells, err));
    int32_t *all = fth_tensor_data(as);
    for (int64_t i = 0; i < t->cells; i++) all[i] = (int32_t)group;
    fth_status s = wrap_places(&xy, t, err);
    if (s == FTH_OK) s = wrap_groups(&own, t, t->group, err);
    if (s == FTH_OK) s = project(t, xy, as, own, sink, err);
    fth_tensor_release(own);
    fth_tensor_release(xy);
    fth_tensor_release(as);
    return s;
}
