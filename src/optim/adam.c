/* adam.c - Adam (Kingma & Ba 2015) with decoupled decay (Loshchilov & Hutter 2019), as a graph.
 *
 * Bias corrections are computed in f64 from the step number, then cast: in f32 1 - beta2^t loses
 * half its digits for the first thousand steps.
 */
#include "graph/graph.h"

#include <fathom/optim.h>

static fth_val map2(fth_site s, fth_ew op, fth_val a, fth_val b)
{
    return fth_map_(s, op, a, b, (fth_val){0});
}

static fth_val num(fth_site s, fth_val like, double x)
{
    return fth_const_(like.graph, s, fth_val_dtype(like), x, 0.0);
}

/* 1 / (1 - beta^step), in f64 */
static fth_val correction(fth_site s, fth_val step, double beta)
{
    const fth_val t = fth_cast_(s, step, FTH_F64), one = num(s, t, 1.0);
    const fth_val power = map2(s, FTH_EW_POW, num(s, t, beta), t);
    return map2(s, FTH_EW_DIV, one, map2(s, FTH_EW_SUB, one, power));
}

/* beta * old + (1 - beta) * x */
static fth_val average(fth_site s, fth_val old, fth_val x, double beta)
{
    return map2(s, FTH_EW_ADD, map2(s, FTH_EW_MUL, num(s, old, beta), old),
                map2(s, FTH_EW_MUL, num(s, x, 1.0 - beta), x));
}

fth_status fth_adam_(fth_site site, const fth_adam *opt, fth_val param, fth_val grad, fth_val m,
                     fth_val v, fth_val rate, fth_val step, fth_val out[3])
{
    fth_graph *g = param.graph;
    for (int i = 0; i < 3; i++) out[i] = (fth_val){g, 0};
    if (!fth_val_ok(param) || !fth_val_ok(grad)) return fth_graph_check(g, NULL);
    const fth_dtype t = fth_val_dtype(param);
    if (!fth_dtype_is_real(t)) {
        fth_poison_(g, site, FTH_E_DTYPE_OP, "adam: the parameter is %s and must be real",
                    fth_dtype_name(t));
        return FTH_E_DTYPE_OP;
    }
    const fth_val m1 = average(site, m, grad, opt->beta1);
    const fth_val v1 = average(site, v, map2(site, FTH_EW_MUL, grad, grad), opt->beta2);
    const fth_val scale =
        fth_cast_(site, map2(site, FTH_EW_MUL, rate, correction(site, step, opt->beta1)), t);
    const fth_val root = fth_cast_(
        site,
        fth_map_(site, FTH_EW_SQRT, correction(site, step, opt->beta2), (fth_val){0}, (fth_val){0}),
        t);
    const fth_val bottom = map2(
        site, FTH_EW_ADD,
        map2(site, FTH_EW_MUL, fth_map_(site, FTH_EW_SQRT, v1, (fth_val){0}, (fth_val){0}), root),
        num(site, v, opt->eps));
    fth_val next = map2(site, FTH_EW_SUB, param,
                        map2(site, FTH_EW_DIV, map2(site, FTH_EW_MUL, m1, scale), bottom));
    if (opt->decay != 0.0) {
        const fth_val shrink =
            fth_cast_(site, map2(site, FTH_EW_MUL, rate, num(site, rate, opt->decay)), t);
        next = map2(site, FTH_EW_SUB, next, map2(site, FTH_EW_MUL, param, shrink));
    }
    out[0] = fth_assign_(site, param, next);
    out[1] = fth_assign_(site, m, m1);
    out[2] = fth_assign_(site, v, v1);
    return fth_graph_check(g, NULL);
}
