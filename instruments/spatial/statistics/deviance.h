/* deviance.h - goodness of fit: Poisson deviance and reconstruction error (model 14.3, 14.4). */
#ifndef SPATIAL_DEVIANCE_H
#define SPATIAL_DEVIANCE_H

#include "sums.h"

typedef struct sp_fit {
    double total, mean, mean_per_gene; /* 2 [sum (y ln(y/mu) - y) + sum mu] */
    double nsf;   /* mean of y ln(y/mu) where y > 0, plus mean of mu - y: no factor 2 */
    double error; /* |Y - F W^T| / |Y|; NaN when the sums are not whole */
    int64_t cells;
} sp_fit;

/* Of the cells in bins first to end - 1, of which there are `cells`. `more` is what the floor of mu
 * adds to the sum of rates: sp_floor_rates. */
void sp_fit_of(sp_fit *out, const sp_sums *s, const sp_sums_input *in, const float *W,
               int64_t first, int64_t end, int64_t cells, double more);

/* Sum over the cells of each bin, and all genes, of max(mu, 1e-10) - mu; bins [bin]. To be called
 * if the factors of some cell sum to less than 1e-10 (s->least): it reads F once more, in pieces.
 */
fth_status sp_floor_rates(double *more, fth_mem *mem, const sp_sums_input *in, const float *W,
                          fth_err *err);
#define SP_RATE_FLOOR 1e-10

#endif
