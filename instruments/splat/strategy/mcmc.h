/* mcmc.h - strategy "mcmc": dead rows are relocated to live ones, rows are added, noise is added to
 * the means.
 *
 * A row that is drawn r - 1 times makes a family of r rows that look as it did alone: each has the
 * opacity 1 - (1 - o)^(1/r) and a scale to match. Draws take row i with the probability of its
 * opacity, by prefix sums in double: they depend on the seed, the iteration and the rows, on
 * nothing else.
 */
#ifndef SPLAT_STRATEGY_MCMC_H
#define SPLAT_STRATEGY_MCMC_H

#include "rows.h"

typedef struct gs_mcmc_rules {
    double min_opacity;
    int64_t max_cap; /* rows there may be; 0: as many as were reserved */
    int64_t seed;
    bool keep_dead_moments; /* as upstream; else moments of dead rows begin at 0 too */
} gs_mcmc_rules;
/* The defaults of upstream. */
gs_mcmc_rules gs_mcmc_default(void);

/* One of a family of `ratio` rows in the place of a row: its opacity, not clamped, and the factor
 * of its scale. */
void gs_family(double opacity, int ratio, double *new_opacity, double *scale);

/* Dead rows (opacity <= min_opacity, or no rotation) become copies of rows that are drawn among the
 * others, or stay where none is left alive; `dead` says how many. On failure nothing changed. */
fth_status gs_mcmc_relocate(gs_rows *rows, const gs_mcmc_rules *rules, int64_t iteration,
                            int64_t *dead, fth_err *err);
/* 5 % more rows, up to the cap: copies of drawn ones. `cap` (may be NULL): what memory lowered the
 * cap to, else 0; the log says so too. On failure nothing changed. */
fth_status gs_mcmc_add(gs_rows *rows, const gs_mcmc_rules *rules, int64_t iteration, int64_t *added,
                       int64_t *cap, fth_err *err);
/* means += rate * 1 / (1 + exp(100 o - 0.5)) * covariance * normals; rate is that of the means
 * times noise_lr. */
fth_status gs_mcmc_noise(gs_rows *rows, double rate, int64_t seed, int64_t iteration, fth_err *err);

#endif
