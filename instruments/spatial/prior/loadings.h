/* loadings.h - W inside a step: rows of the batch out of the parameter, and back (model 9).
 *
 * The parameter W[gene factor] is W itself, or raw where loadings_mode is softplus or exp. A step
 * asks for the rows of its genes; then either the optimiser moves the parameter, by the gradient
 * from here and with sp_loadings_settle after it, or, when multiplicative, rows are replaced:
 *
 *   l.W = sp_loadings_rows(mode, W, idy);
 *   projected, softplus, exp:                      multiplicative:
 *     slope = sp_likelihood_slope_W(&l)              rows = sp_likelihood_update_W(&l)
 *     grad = sp_loadings_gradient(mode, W, idy,      next = sp_loadings_replace(W, idy, rows)
 *                                 -a slope)          fth_assign(W, next)
 *     fth_optim_step(.., W, grad, .., out)
 *     fth_assign(W, sp_loadings_settle(mode, out[0]))
 */
#ifndef SPATIAL_LOADINGS_H
#define SPATIAL_LOADINGS_H

#include "../spatial.h"

/* `idy` is i64 [geneb], distinct genes; poison when the batch has all of them, in order. The axes
 * gene, geneb and factor are declared by the caller. */

/* W of every gene from the parameter: real [gene factor]. Also for readers of a model. */
fth_val sp_loadings_of(sp_loadings mode, fth_val param);
/* Rows of the batch out of a value with the axis gene, which becomes geneb; and back into their
 * places, zeros elsewhere. */
fth_val sp_loadings_select(fth_val v, fth_val idy);
fth_val sp_loadings_places(fth_val rows, fth_val idy);
/* W of the batch: real [geneb factor]. */
fth_val sp_loadings_rows(sp_loadings mode, fth_val param, fth_val idy);
/* From the slope of the loss in W of the batch [geneb factor], its gradient in the parameter [gene
 * factor]: 0 for genes outside the batch. */
fth_val sp_loadings_gradient(sp_loadings mode, fth_val param, fth_val idy, fth_val slope);
/* The constraint after the optimiser's step: projected is cut at 0. */
fth_val sp_loadings_settle(sp_loadings mode, fth_val next);
/* The parameter with the rows of the batch replaced, the others unchanged to the bit. */
fth_val sp_loadings_replace(fth_val param, fth_val idy, fth_val rows);
/* On the host: the parameter that gives this W, which is at least 1e-8 where there is no zero. */
double sp_loadings_raw(sp_loadings mode, double W);

#endif
