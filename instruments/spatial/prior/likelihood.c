/* likelihood.c - the expected log-likelihood of a batch as values of a graph (model 8.1, 8.2).
 *
 * Two operations read the stored counts (ops/poisson/poisson.h); exponentials and the linear terms
 * need no counts and are ordinary elementwise values and sums.
 */
#include "likelihood.h"

static const double floor_rate = 1e-8;

static const char *const input_name[] = {"counts.row_ptr", "counts.gene", "counts.value"};

fth_status sp_likelihood_inputs(sp_likelihood *l, const sp_model_graph *net,
                                const sp_counts *counts, fth_err *err)
{
    fth_axis(net->g, "cellb1", fth_tensor_size(counts->row_ptr, 0));
    fth_axis(net->g, "entry", fth_tensor_size(counts->gene, 0));
    l->row_ptr = sp_model_graph_batch(net, input_name[0], "cellb1", counts->row_ptr);
    l->gene = sp_model_graph_batch(net, input_name[1], "entry", counts->gene);
    l->value = sp_model_graph_batch(net, input_name[2], "entry", counts->value);
    return fth_graph_check(net->g, err);
}

fth_status sp_likelihood_set(const sp_model_graph *net, const sp_counts *counts, fth_err *err)
{
    FTH_TRY(sp_model_graph_next(net, input_name[0], counts->row_ptr, err));
    FTH_TRY(sp_model_graph_next(net, input_name[1], counts->gene, err));
    return sp_model_graph_next(net, input_name[2], counts->value, err);
}

static fth_val number(const sp_likelihood *l, double x)
{
    return fth_const(l->f.graph, fth_val_dtype(l->f), x);
}

/* phi, and what is linear in W. */
static void prepare(sp_likelihood *l)
{
    if (l->phi.graph) return;
    const fth_val base = fth_exp(l->f);
    l->phi = l->mode == SP_LOWER_BOUND ? base : fth_mul(fth_exp(fth_mul(l->eps, l->s)), base);
    fth_label(l->phi, "phi");
    if (l->mode == SP_SIMPLE) {
        l->linear = fth_mean(l->phi, "draw");
        l->linear_s = fth_mean(fth_mul(l->eps, l->phi), "draw");
    } else {
        l->linear = fth_exp(fth_fma(fth_sqr(l->s), number(l, 0.5), l->f));
        l->linear_s = fth_mul(l->s, l->linear);
    }
    fth_label(l->linear, "mhat");
    if (!l->theta.graph) return;
    l->over = (sp_dispersion){.theta = l->theta,
                              .W = l->W,
                              .mean = l->mode == SP_LOWER_BOUND ? l->linear : l->phi,
                              .row_ptr = l->row_ptr,
                              .gene = l->gene,
                              .value = l->value};
    sp_dispersion_make(&l->over);
}

static sp_poisson_in operands(const sp_likelihood *l)
{
    return (sp_poisson_in){.phi = l->phi,
                           .W = l->W,
                           .row_ptr = l->row_ptr,
                           .gene = l->gene,
                           .value = l->value,
                           .path = l->path};
}

static double draws(const sp_likelihood *l)
{
    return l->mode == SP_LOWER_BOUND ? 1.0 : (double)fth_val_size(l->phi, 0);
}

/* Sum over factors and cells of c_l linear[l, n], in f64. */
static fth_val linear_sum(const sp_likelihood *l)
{
    const fth_val c = fth_sum(fth_cast(l->W, FTH_F64), "geneb");
    return fth_sum(fth_mul(fth_sum(fth_cast(l->linear, FTH_F64), "cellb"), c), "factor");
}

/* ell, df, ds of negative binomial counts, from those of y ln(rate). The modes expanded and simple
 * are the same: no term has an expectation in closed form. */
static void add_dispersion(const sp_likelihood *l, fth_val by_cell, fth_val *ell, fth_val *df,
                           fth_val *ds)
{
    const fth_val back = sp_dispersion_back(&l->over);
    *ell = fth_label(fth_add(fth_sum(by_cell, "cellb"), sp_dispersion_ell(&l->over)), "ell");
    if (l->mode == SP_LOWER_BOUND) {
        *df = fth_sub(fth_out(by_cell, 1), back);
        *ds = fth_neg(fth_mul(l->s, back));
    } else {
        *df = fth_sub(fth_out(by_cell, 1), fth_mean(back, "draw"));
        *ds = fth_sub(fth_out(by_cell, 2), fth_mean(fth_mul(l->eps, back), "draw"));
    }
}

fth_status sp_likelihood_cells(sp_likelihood *l, fth_val *ell, fth_val *df, fth_val *ds,
                               fth_err *err)
{
    prepare(l);
    const sp_poisson_in in = operands(l);
    const bool drawn = l->mode != SP_LOWER_BOUND;
    const fth_val by_cell =
        sp_poisson_cells_(FTH_HERE, &in, drawn ? l->eps : (fth_val){l->f.graph, 0});
    if (l->theta.graph) {
        add_dispersion(l, by_cell, ell, df, ds);
        return fth_graph_check(l->f.graph, err);
    }
    const fth_val c = fth_sum(l->W, "geneb");
    *ell = fth_label(fth_sub(fth_sum(by_cell, "cellb"), linear_sum(l)), "ell");
    *df = fth_sub(fth_out(by_cell, 1), fth_mul(l->linear, c));
    const fth_val slope = fth_mul(l->linear_s, c);
    *ds = drawn ? fth_sub(fth_out(by_cell, 2), slope) : fth_neg(slope);
    return fth_graph_check(l->f.graph, err);
}

/* What the slope of W subtracts, summed over cells: f64 [factor], or [geneb factor]. */
static fth_val linear_by_factor(const sp_likelihood *l)
{
    if (l->theta.graph) return sp_dispersion_by_gene(&l->over);
    return fth_sum(fth_cast(l->linear, FTH_F64), "cellb");
}

fth_val sp_likelihood_slope_W(sp_likelihood *l)
{
    prepare(l);
    const sp_poisson_in in = operands(l);
    const fth_val sum = sp_poisson_genes_(FTH_HERE, &in, false);
    const fth_val mean = fth_mul(sum, fth_const(l->f.graph, FTH_F64, 1.0 / draws(l)));
    return fth_cast(fth_sub(mean, linear_by_factor(l)), fth_val_dtype(l->W));
}

fth_val sp_likelihood_slope_theta(sp_likelihood *l)
{
    prepare(l);
    return fth_cast(sp_dispersion_slope(&l->over), fth_val_dtype(l->W));
}

fth_val sp_likelihood_update_W(sp_likelihood *l)
{
    prepare(l);
    fth_graph *g = l->f.graph;
    const sp_poisson_in in = operands(l);
    const fth_val sum = sp_poisson_genes_(FTH_HERE, &in, true);
    /* simple has sums over draws in numerator and denominator, the others means; it is computed
     * from the mean of phi, times the number of draws, so that the floor keeps its size. */
    const double share = l->mode == SP_SIMPLE ? 1.0 : 1.0 / draws(l);
    const double below = l->mode == SP_SIMPLE ? draws(l) : 1.0;
    const fth_val num = fth_mul(sum, fth_const(g, FTH_F64, share));
    const fth_val den = fth_add(fth_mul(linear_by_factor(l), fth_const(g, FTH_F64, below)),
                                fth_const(g, FTH_F64, floor_rate));
    const fth_val next = fth_div(fth_mul(fth_cast(l->W, FTH_F64), num), den);
    return fth_cast(fth_max(next, fth_const(g, FTH_F64, floor_rate)), fth_val_dtype(l->W));
}
