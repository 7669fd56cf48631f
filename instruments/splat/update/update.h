/* update.h - a step of training as one operation: cotangents of splats back to the model, and Adam
 * of all attributes where they lie.
 *
 * The gradient of a row lives in registers alone. What gs_project_back, the regularisers and
 * fth_adam_step would do one after the other is done here with the same roundings, so the bits are
 * theirs. Numbers that change from step to step come as one small vector, "rates", which the host
 * fills: attributes are turned off there, and no graph is made again.
 */
#ifndef SPLAT_UPDATE_UPDATE_H
#define SPLAT_UPDATE_UPDATE_H

#include "../raster/raster.h"

/* Axes that a graph declares beside those of raster.h: rate=GS_RATES, and sum=GS_UPDATE_SUM where
 * there are sums. "rates": */
enum {
    GS_RATE_STEP = 0,                             /* rate times the first correction, */
    GS_RATE_ROOT = GS_RATE_STEP + GS_ATTRIBUTES,  /* root of the second, */
    GS_RATE_ON = GS_RATE_ROOT + GS_ATTRIBUTES,    /* 0: the attribute and its moments stay */
    GS_RATE_SCALING = GS_RATE_ON + GS_ATTRIBUTES, /* weights of the regularisers, over the */
    GS_RATE_OPACITY,                              /* numbers that they are means of */
    GS_RATE_NOISE,                                /* of MCMC; 0: none */
    GS_RATE_SPARSITY,                             /* rho of ADMM; 0: none */
    GS_RATES
};

/* What a step is made with. */
typedef struct gs_rates {
    double rate[GS_ATTRIBUTES];  /* learning rates; of means with the scene's scale in it */
    int64_t step[GS_ATTRIBUTES]; /* counts from 1, of the attribute */
    bool on[GS_ATTRIBUTES];
    double scale_reg, opacity_reg; /* 0: none */
    double noise;                  /* of MCMC: that of the means times noise_lr; 0: none */
    double rho;                    /* penalty of ADMM; 0: none */
    int64_t n;                     /* rows */
} gs_rates;
/* As the operation takes them, in f32. */
void gs_rates_put(const gs_rates *r, float out[GS_RATES]);

/* All that is changed: parameters with their moments, and sums for densification ([g sum], how
 * often a row was seen and the length of its gradient on the screen; poison: none). shN is poison
 * where the degree is 0. With normals (f64 [g xyz], for a model in f32; poison: none) means are
 * shaken as gs_mcmc_noise does before they move, whether or not they are on. With `aim` ([g];
 * poison: none) the loss has rho / 2 |opacity - aim|^2 too, the sparsity term of ADMM. */
typedef struct gs_update_rows {
    gs_values value, first, second;
    fth_val densify, normals, aim;
} gs_update_rows;
/* Normals of an iteration; both numbers are i64 without axes. */
fth_val gs_normals_(fth_site site, fth_val seed, fth_val iteration);
#define gs_normals(seed, iteration) gs_normals_(FTH_HERE, (seed), (iteration))
enum { GS_UPDATE_ASSIGNS = 3 * GS_ATTRIBUTES + 1, GS_UPDATE_SUM = 2 };

extern const fth_op gs_update_op, gs_noise_op;

/* The new values of all rows; output 0 are the means. Order: means sh0 scaling rotation opacity,
 * their first and their second moments; then shN with its moments, then the sums, where they are.
 */
fth_val gs_update_values_(fth_graph *g, fth_site site, const gs_raster *rule,
                          const gs_update_rows *rows, fth_val view, fth_val splats, fth_val bar,
                          fth_val rates);
/* The same, assigned to the parameters that they come from: the step that follows from the
 * cotangents `bar` of `splats`, which gs_project made of the same values and view. `assigns` are
 * outputs of a plan; returns how many there are, 0 after a mistake, which the graph knows. */
int gs_update_(fth_graph *g, fth_site site, const gs_raster *rule, const gs_update_rows *rows,
               fth_val view, fth_val splats, fth_val bar, fth_val rates,
               fth_val assigns[GS_UPDATE_ASSIGNS]);
/* Noise alone, for an iteration whose rows a strategy replaced: new means, assigned. */
fth_val gs_noise_(fth_graph *g, fth_site site, const gs_values *model, fth_val normals,
                  fth_val rates);
#define gs_noise(g, model, normals, rates) gs_noise_((g), FTH_HERE, (model), (normals), (rates))
#define gs_update(g, rule, rows, view, splats, bar, rates, assigns)                                \
    gs_update_((g), FTH_HERE, (rule), (rows), (view), (splats), (bar), (rates), (assigns))

#endif
