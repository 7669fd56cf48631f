/* loadings.c - see loadings.h. */
#include "loadings.h"

#include <math.h>

fth_val sp_loadings_of(sp_loadings mode, fth_val param)
{
    if (mode == SP_LOADINGS_SOFTPLUS) return fth_softplus(param);
    if (mode == SP_LOADINGS_EXP) return fth_exp(param);
    return param;
}

fth_val sp_loadings_select(fth_val v, fth_val idy)
{
    return fth_val_ok(idy) ? fth_gather(v, "gene", idy) : fth_rename(v, "gene", "geneb");
}

fth_val sp_loadings_places(fth_val rows, fth_val idy)
{
    return fth_val_ok(idy) ? fth_scatter_add(rows, "geneb", idy, "gene")
                           : fth_rename(rows, "geneb", "gene");
}

fth_val sp_loadings_rows(sp_loadings mode, fth_val param, fth_val idy)
{
    return fth_label(sp_loadings_of(mode, sp_loadings_select(param, idy)), "W of the batch");
}

fth_val sp_loadings_gradient(sp_loadings mode, fth_val param, fth_val idy, fth_val slope)
{
    if (mode == SP_LOADINGS_SOFTPLUS)
        slope = fth_mul(slope, fth_sigmoid(sp_loadings_select(param, idy)));
    if (mode == SP_LOADINGS_EXP) slope = fth_mul(slope, fth_exp(sp_loadings_select(param, idy)));
    return sp_loadings_places(slope, idy);
}

fth_val sp_loadings_settle(sp_loadings mode, fth_val next)
{
    if (mode != SP_PROJECTED) return next;
    return fth_max(next, fth_const(next.graph, fth_val_dtype(next), 0.0));
}

fth_val sp_loadings_replace(fth_val param, fth_val idy, fth_val rows)
{
    if (!fth_val_ok(idy)) return sp_loadings_places(rows, idy);
    fth_graph *g = param.graph;
    const fth_val here = fth_eq(idy, idy); /* true for every row of the batch */
    const fth_val taken = fth_scatter_add(fth_cast(here, FTH_I64), "geneb", idy, "gene");
    return fth_select(fth_gt(taken, fth_const_i64(g, FTH_I64, 0)), sp_loadings_places(rows, idy),
                      param);
}

double sp_loadings_raw(sp_loadings mode, double W)
{
    if (mode != SP_LOADINGS_SOFTPLUS && mode != SP_LOADINGS_EXP) return W;
    const double w = fmax(W, 1e-8);
    /* ln(e^w - 1), without the overflow of a large w */
    return mode == SP_LOADINGS_EXP ? log(w) : w + log(-expm1(-w));
}
