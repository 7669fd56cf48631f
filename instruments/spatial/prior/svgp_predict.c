/* svgp_predict.c - factors of the inducing-point models at any places, and as if of other groups
 * (model 6.6).
 *
 * The mean as if of group g needs no projection: it is k(x, Z) with alpha = Kzz^-1 mu, and only k
 * depends on g. Where all groups are equally far apart there are two kernels in all, for "same
 * group" and for "another": f_g = k_other alpha + sum over Z of group g of (k_same - k_other)
 * alpha, two kernel blocks and two products for any number of groups. These sums cancel, so they
 * are in f64.
 */
#include "svgp.h"

fth_status sp_predict_svgp(sp_model_graph *net, const sp_query *q, fth_val *f, fth_val *s,
                           fth_err *err)
{
    fth_val variance;
    const sp_cov cov = sp_svgp_cov(net);
    const fth_val Linv =
        sp_svgp_inverse(sp_svgp_factor(net->g, net->model, &cov, net->Z, net->groupsZ, NULL));
    const sp_projection p = sp_svgp_project(net->g, net->model, &cov, Linv, net->Z, net->groupsZ,
                                            q->xy, q->group, "cell", false);
    sp_svgp_marginals(net, sp_svgp_lu(net, NULL), p.A, p.c, f, &variance);
    *s = sp_svgp_deviation(variance);
    return fth_graph_check(net->g, err);
}

/* Kzz^-1 mu, f64 [factor induce]. */
static fth_val weights(sp_model_graph *net, const sp_cov *cov)
{
    const fth_val Lc = sp_svgp_factor(net->g, net->model, cov, net->Z, net->groupsZ, NULL);
    fth_val mu = fth_cast(net->param[SP_P_MU], FTH_F64);
    mu = net->model->set.parametrization == SP_WHITENED ? fth_rename(mu, "induce", "induce2")
                                                        : fth_solve(Lc, mu, "induce", "induce2");
    return fth_label(fth_solve_t(Lc, mu, "induce", "induce2"), "alpha");
}

/* All groups equally far apart. */
static fth_val equidistant(sp_model_graph *net, const sp_query *q, const sp_cov *cov, fth_val alpha)
{
    fth_graph *g = net->g;
    const fth_val same = sp_cov_block_nu(g, cov, FTH_F64, q->xy, "cell", net->Z, 1.0);
    const fth_val other =
        sp_cov_block_nu(g, cov, FTH_F64, q->xy, "cell", net->Z, sp_cov_nu(cov, 0, 1));
    const fth_val group = fth_cast(fth_index(g, "group"), FTH_I32);
    const fth_val own = fth_cast(fth_eq(fth_expand(net->groupsZ, "group"), group), FTH_F64);
    const fth_val mine = fth_mul(fth_expand(alpha, "group"), own); /* [group factor induce] */
    return fth_add(fth_dot(fth_sub(same, other), mine, "induce"), fth_dot(other, alpha, "induce"));
}

/* Groups at given distances: a kernel block for each, streamed. */
static fth_val by_table(sp_model_graph *net, const sp_query *q, const sp_cov *cov, fth_val alpha)
{
    const fth_val k =
        sp_cov_block_groups(net->g, cov, FTH_F64, q->xy, "cell", net->Z, net->groupsZ, "induce");
    return fth_layout(fth_dot(k, alpha, "induce"),
                      sp_is_hybrid(&net->model->set) ? "group sfactor cell" : "group factor cell");
}

fth_status sp_predict_groups_svgp(sp_model_graph *net, const sp_query *q, fth_val *f, fth_err *err)
{
    const sp_cov cov = sp_svgp_cov(net);
    const fth_val alpha = weights(net, &cov);
    const fth_val all =
        cov.table ? by_table(net, q, &cov, alpha) : equidistant(net, q, &cov, alpha);
    *f = fth_label(fth_cast(all, net->real), "f as group");
    return fth_graph_check(net->g, err);
}
