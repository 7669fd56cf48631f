/* likelihood.h - the expected log-likelihood of counts, Poisson ones from stored counts alone.
 *
 * Rates are needed only where a count is stored: the linear terms collapse to sums over cells and
 * genes of their own. So no value has both cells and genes (model 8.3).
 */
#ifndef SPATIAL_LIKELIHOOD_H
#define SPATIAL_LIKELIHOOD_H

#include "../ops/poisson/poisson.h"
#include "dispersion.h"
#include "prior.h"

/* Values of one batch in a graph. */
typedef struct sp_likelihood {
    fth_val f, s;    /* real [factor cellb] */
    fth_val eps;     /* real [draw factor cellb]; poison for lower-bound */
    fth_val W;       /* real [geneb factor] */
    fth_val theta;   /* real [geneb]: negative binomial counts; no graph: Poisson ones */
    fth_val row_ptr; /* i64 [cellb1], where cellb1 has one element more than cellb */
    fth_val gene;    /* i32 [entry] */
    fth_val value;   /* f32 [entry] */
    sp_mode mode;
    sp_poisson_path path; /* SP_PATH_AUTO except in tests: by density */
    /* Computed by the first function below that needs them: initialise to zero. Means are over
     * draws; lower-bound has one draw, exp(f). */
    fth_val phi;        /* exp(f) exp(eps s), real [draw factor cellb], or [factor cellb] */
    fth_val linear;     /* factor of the linear term: exp(f + s^2/2), or the mean of phi */
    fth_val linear_s;   /* its slope in s */
    sp_dispersion over; /* of negative binomial counts, in place of the linear term */
} sp_likelihood;
/* row_ptr, gene and value as inputs of a graph, from a batch in memory; declares cellb1 and entry.
 */
fth_status sp_likelihood_inputs(sp_likelihood *l, const sp_model_graph *net,
                                const sp_counts *counts, fth_err *err);
/* The next batch, in the same graph. */
fth_status sp_likelihood_set(const sp_model_graph *net, const sp_counts *counts, fth_err *err);

/* ell: f64 without axes, without the constant; df, ds: its slopes, real [factor cellb]. */
fth_status sp_likelihood_cells(sp_likelihood *l, fth_val *ell, fth_val *df, fth_val *ds,
                               fth_err *err);
/* Slope in ln theta: real [geneb]. */
fth_val sp_likelihood_slope_theta(sp_likelihood *l);
/* Slope in W: real [geneb factor]. */
fth_val sp_likelihood_slope_W(sp_likelihood *l);
/* The rows of the batch after the multiplicative update (model 9.2): real [geneb factor]. */
fth_val sp_likelihood_update_W(sp_likelihood *l);

#endif
