/* svgp_lengthscale.c - slopes in the lengthscales of the inducing-point models (model 19.2).
 *
 * Each factor has one lengthscale, so forward mode is exact and short: what changes with ln ell is
 * made beside f and the variance of a batch, and the slopes of the loss in these two contract it.
 * Only Phi, the change of the factor of Kzz seen from its own coordinates, has the size of Kzz.
 *
 * The variance c that the inducing points leave open is held: its slope would reward lengthscales
 * for which the points suffice, whatever the counts say (model 19.1).
 */
#include "svgp.h"

/* Phi of Lc^-1 dK Lc^-T: its lower triangle with half the diagonal, f64 [factor induce2 induce].
 * The slope of Lc is Lc Phi. */
static fth_val phi_of(fth_val Linv, fth_val dK)
{
    fth_graph *g = Linv.graph;
    const fth_val left = fth_dot(Linv, fth_rename(dK, "induce2", "induce3"), "induce"),
                  again = fth_rename(Linv, "induce2 induce", "induce induce3");
    const fth_val P =
        fth_dot_triangle(again, left, "induce3", FTH_LOWER, "induce2", "induce"); /* symmetric */
    const fth_val on = sp_compare_index(g, FTH_EW_EQ, "induce2", "induce"),
                  half = fth_mul(P, fth_const(g, FTH_F64, 0.5));
    return fth_label(fth_mark(fth_select(on, half, P), FTH_LOWER, "induce2", "induce"), "Phi");
}

/* Slope of the rows of the projection, f64 [factor cellb induce]. */
static fth_val slope_of_rows(fth_val Linv, fth_val dK, const sp_projection *at)
{
    const fth_val t = fth_rename(fth_dot(dK, at->exact, "induce"), "induce2", "induce");
    return fth_dot(Linv, fth_dot(Linv, fth_sub(at->slope, t), "induce"), "induce2");
}

static fth_val slope_of_whitened(fth_val Linv, fth_val Phi, const sp_projection *at)
{
    const fth_val dw =
        fth_sub(fth_dot(Linv, at->slope, "induce"), fth_dot(Phi, at->exact, "induce"));
    return fth_rename(dw, "induce2", "induce");
}

/* x . Phi x of columns x [factor induce2 ..], not yet summed over the columns. */
static fth_val form(fth_val Phi, fth_val x)
{
    return fth_sum(fth_mul(x, fth_dot(Phi, fth_rename(x, "induce2", "induce"), "induce")),
                   "induce2");
}

/* tr Phi - sum of the forms of Lc^-1 mu and of the columns of Lc^-1 Lu, f64 [factor]. */
static fth_val slope_of_kl(const sp_model_graph *net, fth_val Linv, fth_val Phi, fth_val Lu)
{
    fth_graph *g = net->g;
    const fth_val on = sp_compare_index(g, FTH_EW_EQ, "induce2", "induce"),
                  zero = fth_const(g, FTH_F64, 0.0), mu = fth_cast(net->param[SP_P_MU], FTH_F64),
                  whole = fth_cast(Lu, FTH_F64);
    const fth_val trace = fth_sum(fth_sum(fth_select(on, Phi, zero), "induce"), "induce2");
    fth_val spread;
    if (net->model->set.diagonal_only) {
        const fth_val B = fth_rename(fth_mul(Linv, whole), "induce", "induce3");
        spread = form(Phi, B);
    } else
        spread = form(Phi, fth_dot(Linv, fth_rename(whole, "induce2", "induce3"), "induce"));
    const fth_val mean = form(Phi, fth_dot(Linv, mu, "induce"));
    return fth_sub(fth_sub(trace, fth_sum(spread, "induce3")), mean);
}

sp_tangent sp_svgp_tangent(const sp_model_graph *net, fth_val Linv, fth_val dK,
                           const sp_projection *at, fth_val Lu)
{
    fth_graph *g = net->g;
    const bool whitened = net->model->set.parametrization == SP_WHITENED;
    const fth_val Phi = phi_of(Linv, dK);
    const fth_val exact = whitened ? slope_of_whitened(Linv, Phi, at) : slope_of_rows(Linv, dK, at);
    const fth_val dA = fth_label(fth_cast(exact, net->real), "dA"),
                  two = fth_const(g, net->real, 2.0);
    fth_val spread;
    if (net->model->set.diagonal_only)
        spread = fth_dot(fth_mul(at->A, dA), fth_sqr(Lu), "induce");
    else
        spread =
            fth_sum(fth_mul(fth_dot(at->A, Lu, "induce"), fth_dot(dA, Lu, "induce")), "induce2");
    sp_tangent t = {.f = fth_label(fth_dot(dA, net->param[SP_P_MU], "induce"), "df"),
                    .variance = fth_label(fth_mul(two, spread), "dv")};
    if (!whitened) t.kl = fth_label(slope_of_kl(net, Linv, Phi, Lu), "dKL");
    return t;
}

fth_val sp_svgp_slope_of_ell(const sp_model_graph *net, const sp_tangent *t, fth_val gf,
                             fth_val g2v, double b)
{
    fth_graph *g = net->g;
    const fth_val half = fth_const(g, net->real, 0.5);
    const fth_val each = fth_add(fth_mul(gf, t->f), fth_mul(half, fth_mul(g2v, t->variance)));
    fth_val sum = fth_sum(fth_cast(each, FTH_F64), "cellb");
    if (t->kl.graph) sum = fth_add(sum, fth_mul(fth_const(g, FTH_F64, b), t->kl));
    return fth_label(fth_cast(sum, net->real), "dlog_ell");
}
