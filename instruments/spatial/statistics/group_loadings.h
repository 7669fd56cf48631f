/* group_loadings.h - loadings of each group of cells for given factors (model 14.6).
 *
 * Least squares needs only two small sums of each group, Y_g^T F_g and F_g^T F_g, so an iteration
 * does not touch cells. The stopping rule does: it uses the Poisson likelihood, which takes a pass
 * over the stored counts. So the likelihood is evaluated after each of the first iterations, then
 * at 16, 32, 64..., and the first iteration that meets the rule is found by bisection: about thirty
 * passes for a thousand iterations, all groups in each.
 */
#ifndef SPATIAL_GROUP_LOADINGS_H
#define SPATIAL_GROUP_LOADINGS_H

#include "../spatial.h"

typedef struct sp_group_problem {
    fth_context *ctx; /* whose workers iterate; NULL: the calling thread */
    int64_t groups, genes, factors;
    const int64_t *cells; /* [group]; fewer than factors: the global loadings are taken */
    const double *YF;     /* [group][gene][factor] */
    const double *FF;     /* [group][factor][factor] */
    const double *F;      /* [group][factor]: sums over cells */
    const double *yy;     /* [group]: sum of squared counts */
    const float *W;       /* [gene][factor]: of all cells */
    bool poisson;         /* the rule of the Poisson likelihood instead of least squares */
    bool every;           /* evaluate the likelihood after every iteration */
    double start;         /* of all loadings; 0: 0.1 u, by the seed */
    int64_t seed;
    int64_t iterations; /* 0: 1000 */
    double tol;         /* 0: 1e-4 */
    double worth;       /* least number of multiplications to use a device; 0: 2e8 */
    /* Sums of y ln max(rate, 1e-8) of each group, with loadings A and B [group][gene][factor]. */
    fth_status (*fit)(void *user, const double *A, const double *B, double *a, double *b,
                      fth_err *err);
    /* The same for A alone, and sum of y / rate * F [group][gene][factor]; NULL unless poisson. */
    fth_status (*ratio)(void *user, const double *A, double *QF, double *a, fth_err *err);
    void *user;
} sp_group_problem;

typedef struct sp_group_result {
    double *W;      /* [group][gene][factor] */
    double *error;  /* [group]: |Y_g - F_g W_g^T| / |Y_g|; NaN where the global ones were taken */
    int64_t *steps; /* [group]: iterations done */
    void *block;
    fth_mem *mem;
    int64_t passes; /* over the counts */
} sp_group_result;

/* Memory for a result and the work of so many workers on it; held until sp_group_clear. */
fth_status sp_group_reserve(sp_group_result *out, fth_mem *mem, int64_t groups, int64_t genes,
                            int64_t factors, int threads, fth_err *err);
fth_status sp_group_solve(sp_group_result *out, const sp_group_problem *p, fth_err *err);
void sp_group_clear(sp_group_result *r); /* an empty one is allowed */

/* |Y - F W^T|^2 from sums of some cells: yy - 2 <YF, W> + tr(FF W^T W), never below 0. */
double sp_residual(const double *YF, const double *FF, double yy, const double *W, int64_t genes,
                   int64_t factors);

#endif
