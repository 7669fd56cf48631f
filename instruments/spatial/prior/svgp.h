/* svgp.h - values that steps and predictions of the inducing-point models have in common. */
#ifndef SPATIAL_SVGP_H
#define SPATIAL_SVGP_H

#include "../model/kernel.h"
#include "prior.h"

/* bool [row col]: global index of row `cmp` global index of col. */
fth_val sp_compare_index(fth_graph *g, fth_ew cmp, const char *row, const char *col);
/* Which elements of a factor lie below its diagonal, and on it: bool [induce induce2], for all that
 * selects by them in a graph. */
typedef struct sp_lower {
    fth_val below, on;
} sp_lower;
sp_lower sp_svgp_lower(fth_graph *g);

/* The covariance function in the graph of a model: with the lengthscales of its factors where it
 * has them, and then all of the following has the axis of the spatial factors as its first. */
sp_cov sp_svgp_cov(const sp_model_graph *net);
/* Lower factor of Kzz = k(Z,Z) + jitter, f64 [induce induce2]; `slope`, unless NULL, gets that of
 * Kzz in ln lengthscale. */
fth_val sp_svgp_factor(fth_graph *g, const sp_model *m, const sp_cov *cov, fth_val Z,
                       fth_val groupsZ, fth_val *slope);
/* Lc^-1, f64 [induce2 induce], lower: rows are induce2. */
fth_val sp_svgp_inverse(fth_val Lc);
#define SP_SVGP_LEAST 0x1p-60
/* Rows of the projection at places xy [cells dim] of groups gx: Kzz^-1 k(Z,x), or Lc^-1 k(Z,x)
 * where the parameters are whitened, real [cells induce]; and the remaining variance c =
 * max(sigma^2 - |Lc^-1 k|^2, 0), real [cells]. In f64 for every real: Kzz is close to singular by
 * nature. Linv is sp_svgp_inverse of the factor. Weights below SP_SVGP_LEAST, times sigma where the
 * parameters are whitened, are flushed to zero: distant cells would otherwise give numbers down to
 * the denormals of f32, which change no result and slow down split-precision products. */
typedef struct sp_projection {
    fth_val A, c;
    /* in f64: */
    fth_val exact; /* A, [cells induce] */
    fth_val slope; /* of k in ln lengthscale, [cells induce]; only where it is wanted */
} sp_projection;
sp_projection sp_svgp_project(fth_graph *g, const sp_model *m, const sp_cov *cov, fth_val Linv,
                              fth_val Z, fth_val groupsZ, fth_val xy, fth_val gx, const char *cells,
                              bool slope);
/* exp or softplus of the raw parameter: on the diagonal, the factor. */
fth_val sp_svgp_positive(const sp_model_graph *net);
/* The lower factor of the posterior from its raw parameter, [factor induce induce2], marked; or its
 * diagonal [factor induce], which does not need `at`. NULL: it is computed here. */
fth_val sp_svgp_lu(const sp_model_graph *net, const sp_lower *at);
/* f and, before it is clamped, s^2: [factor cells]. */
void sp_svgp_marginals(const sp_model_graph *net, fth_val Lu, fth_val A, fth_val c, fth_val *f,
                       fth_val *variance);
/* ---- lengthscales that are trained: svgp_lengthscale.c ---- */

/* What changes with ln lengthscale, of each factor (model 19.2). */
typedef struct sp_tangent {
    fth_val f, variance; /* slopes of both, real [factor cellb]; of the variance with c held */
    fth_val kl;          /* slope of KL, f64 [factor]; empty where the parameters are whitened */
} sp_tangent;
/* Linv and dK are Lc^-1 and the slope of Kzz; `at` has its slope. */
sp_tangent sp_svgp_tangent(const sp_model_graph *net, fth_val Linv, fth_val dK,
                           const sp_projection *at, fth_val Lu);
/* Slope of the loss in log_ell, real [factor]: gf and 2 gv are slopes in f and, doubled, in the
 * variance (model 19.2f). */
fth_val sp_svgp_slope_of_ell(const sp_model_graph *net, const sp_tangent *t, fth_val gf,
                             fth_val g2v, double b);

/* sqrt(clamp(variance, 0, 100)). */
fth_val sp_svgp_deviation(fth_val variance);
#define SP_SVGP_MOST 100.0

#endif
