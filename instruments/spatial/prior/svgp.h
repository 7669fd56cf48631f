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

/* Lower factor of Kzz = k(Z,Z) + jitter, f64 [induce induce2]. */
fth_val sp_svgp_factor(fth_graph *g, const sp_model *m, fth_val Z, fth_val groupsZ);
/* Lc^-1, f64 [induce2 induce], lower: rows are induce2. */
fth_val sp_svgp_inverse(fth_val Lc);
#define SP_SVGP_LEAST 0x1p-60
/* Rows of the projection at places xy [cells dim] of groups gx: Kzz^-1 k(Z,x), or Lc^-1 k(Z,x)
 * where the parameters are whitened, real [cells induce]; and the remaining variance c =
 * max(sigma^2 - |Lc^-1 k|^2, 0), real [cells]. In f64 for every real: Kzz is close to singular by
 * nature. Linv is sp_svgp_inverse of the factor. Weights below SP_SVGP_LEAST, times sigma where the
 * parameters are whitened, are flushed to zero: distant cells would otherwise give numbers down to
 * the denormals of f32, which change no result and slow down split-precision products. */
void sp_svgp_project(fth_graph *g, const sp_model *m, fth_val Linv, fth_val Z, fth_val groupsZ,
                     fth_val xy, fth_val gx, const char *cells, fth_val *A, fth_val *c);
/* exp or softplus of the raw parameter: on the diagonal, the factor. */
fth_val sp_svgp_positive(const sp_model_graph *net);
/* The lower factor of the posterior from its raw parameter, [factor induce induce2], marked; or its
 * diagonal [factor induce], which does not need `at`. NULL: it is computed here. */
fth_val sp_svgp_lu(const sp_model_graph *net, const sp_lower *at);
/* f and, before it is clamped, s^2: [factor cells]. */
void sp_svgp_marginals(const sp_model_graph *net, fth_val Lu, fth_val A, fth_val c, fth_val *f,
                       fth_val *variance);
/* sqrt(clamp(variance, 0, 100)). */
fth_val sp_svgp_deviation(fth_val variance);
#define SP_SVGP_MOST 100.0

#endif
