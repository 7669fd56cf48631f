/* svgp_values.c - Kzz, projections and marginals of the inducing-point models (model 6.2).
 *
 * A Lu, which has an element for every factor, cell and inducing point, is only squared and summed:
 * a product followed by a reduction, which the engine evaluates tile by tile. Cells are projected
 * with the inverse of Lc, computed once: a triangular product takes half the time of a solve and is
 * as accurate, because the factor is Lc^-1, never Kzz^-1.
 */
#include "svgp.h"

fth_val sp_compare_index(fth_graph *g, fth_ew cmp, const char *row, const char *col)
{
    return fth_map2(cmp, fth_index(g, row), fth_expand(fth_index(g, col), row));
}

sp_lower sp_svgp_lower(fth_graph *g)
{
    return (sp_lower){sp_compare_index(g, FTH_EW_GT, "induce", "induce2"),
                      sp_compare_index(g, FTH_EW_EQ, "induce", "induce2")};
}

sp_cov sp_svgp_cov(const sp_model_graph *net)
{
    sp_cov cov = sp_cov_of(net->model);
    if (!net->model->param[SP_P_ELL]) return cov;
    cov.log_ell = fth_cast(net->param[SP_P_ELL], FTH_F64);
    cov.factor = net->sfactor;
    return cov;
}

fth_val sp_svgp_factor(fth_graph *g, const sp_model *m, const sp_cov *cov, fth_val Z,
                       fth_val groupsZ, fth_val *slope)
{
    const fth_val Z2 = fth_rename(Z, "induce", "induce2");
    const fth_val g2 = cov->groups ? fth_rename(groupsZ, "induce", "induce2") : groupsZ;
    const fth_val k =
        slope ? sp_cov_block_slope(g, cov, FTH_F64, Z, groupsZ, "induce", Z2, g2, "induce2", slope)
              : sp_cov_block(g, cov, FTH_F64, Z, groupsZ, "induce", Z2, g2, "induce2");
    const fth_val diagonal = sp_compare_index(g, FTH_EW_EQ, "induce", "induce2");
    const fth_val jitter =
        fth_mul(fth_cast(diagonal, FTH_F64), fth_const(g, FTH_F64, m->set.jitter));
    return fth_label(fth_cholesky(fth_label(fth_add(k, jitter), "Kzz"), "induce", "induce2"), "Lc");
}

fth_val sp_svgp_inverse(fth_val Lc)
{
    fth_graph *g = Lc.graph;
    if (fth_axis_size(g, "induce3") < 0) fth_axis_like(g, "induce3", "induce");
    fth_val one = fth_cast(sp_compare_index(g, FTH_EW_EQ, "induce", "induce3"), FTH_F64);
    if (fth_val_axes(Lc) == 3) one = fth_expand(one, fth_val_axis(Lc, 0)); /* of each factor */
    const fth_val x = fth_rename(fth_solve(Lc, one, "induce", "induce2"), "induce3", "induce");
    return fth_label(fth_mark(x, FTH_LOWER, "induce2", "induce"), "Lc^-1");
}

sp_projection sp_svgp_project(fth_graph *g, const sp_model *m, const sp_cov *cov, fth_val Linv,
                              fth_val Z, fth_val groupsZ, fth_val xy, fth_val gx, const char *cells,
                              bool slope)
{
    sp_projection p = {0};
    const fth_val k =
        slope ? sp_cov_block_slope(g, cov, FTH_F64, xy, gx, cells, Z, groupsZ, "induce", &p.slope)
              : sp_cov_block(g, cov, FTH_F64, xy, gx, cells, Z, groupsZ, "induce");
    const fth_val w = fth_label(fth_dot(Linv, fth_label(k, "Kxz"), "induce"), "w");
    const fth_val rest =
        fth_sub(fth_const(g, FTH_F64, cov->sigma * cov->sigma), fth_sum(fth_sqr(w), "induce2"));
    p.c = fth_cast(fth_max(rest, fth_const(g, FTH_F64, 0.0)), m->real);
    const bool whitened = m->set.parametrization == SP_WHITENED;
    const fth_val solved =
        whitened ? fth_rename(w, "induce2", "induce") : fth_dot(Linv, w, "induce2");
    const fth_val least = fth_const(g, FTH_F64, SP_SVGP_LEAST * (whitened ? cov->sigma : 1.0));
    const fth_val far = fth_lt(fth_abs(solved), least);
    const fth_val near = fth_select(far, fth_const(g, FTH_F64, 0.0), solved);
    p.A = fth_label(fth_cast(near, m->real), "A");
    p.exact = solved;
    return p;
}

fth_val sp_svgp_positive(const sp_model_graph *net)
{
    const fth_val raw = net->param[SP_P_LU];
    return net->model->set.cholesky_mode == SP_CHOLESKY_EXP ? fth_exp(raw) : fth_softplus(raw);
}

fth_val sp_svgp_lu(const sp_model_graph *net, const sp_lower *at)
{
    const fth_val positive = sp_svgp_positive(net);
    if (net->model->set.diagonal_only) return fth_label(positive, "Lu");
    const sp_lower where = at ? *at : sp_svgp_lower(net->g);
    const fth_val zero = fth_const(net->g, net->real, 0.0);
    const fth_val lower =
        fth_select(where.below, net->param[SP_P_LU], fth_select(where.on, positive, zero));
    return fth_label(fth_mark(lower, FTH_LOWER, "induce", "induce2"), "Lu");
}

void sp_svgp_marginals(const sp_model_graph *net, fth_val Lu, fth_val A, fth_val c, fth_val *f,
                       fth_val *variance)
{
    fth_val spread;
    if (net->model->set.diagonal_only)
        spread = fth_dot(fth_sqr(A), fth_sqr(Lu), "induce");
    else
        spread = fth_sum(fth_sqr(fth_label(fth_dot(A, Lu, "induce"), "U")), "induce2");
    *f = fth_label(fth_dot(A, net->param[SP_P_MU], "induce"), "f");
    *variance = fth_label(fth_add(spread, c), "variance");
}

fth_val sp_svgp_deviation(fth_val variance)
{
    fth_graph *g = variance.graph;
    const fth_dtype real = fth_val_dtype(variance);
    const fth_val low = fth_const(g, real, 0.0), high = fth_const(g, real, SP_SVGP_MOST);
    return fth_label(fth_sqrt(fth_min(fth_max(variance, low), high)), "s");
}
