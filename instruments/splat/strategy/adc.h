/* adc.h - strategy "default": adaptive density control.
 *
 * Rows whose gradient on the screen is large become two: a small one is duplicated, a large one
 * split. Rows that are nearly transparent, have no rotation or are far too large go. The first
 * child lies in its parent's place and the second at the end, so that no row is copied twice.
 */
#ifndef SPLAT_STRATEGY_ADC_H
#define SPLAT_STRATEGY_ADC_H

#include "rows.h"

typedef struct gs_adc_rules {
    double grad_threshold, grow_scale3d, prune_opacity, prune_scale3d, scene_scale;
    int64_t reset_every; /* sizes are looked at in later iterations only */
    int64_t max_cap;     /* rows there may be; 0: as many as were reserved */
    int64_t seed;
    bool revised_opacity;
    bool canonical; /* rows that stay, then first children, then second ones; takes more memory */
    bool last;      /* the last refinement: free statistics as soon as they were read */
    /* Normals in the place of random ones: [2 noise_rows 3], row j for the j-th split; NULL: none.
     */
    const double *noise;
    int64_t noise_rows;
} gs_adc_rules;
/* The defaults of upstream, with a scale of 1. */
gs_adc_rules gs_adc_default(void);

typedef struct gs_adc_counts {
    int64_t dup, split, pruned, n;
    int64_t wanted; /* dup and split before the cap, which may leave some unchanged */
    int64_t cap;    /* rows there could be, where memory lowered it; else 0. The log says so too */
} gs_adc_counts;

/* Grow by the statistics, if there are any, and prune; statistics begin anew. Whether an iteration
 * refines is the caller's to say. On failure nothing changed, but for statistics that `last` has
 * dropped; where a device stopped between growing and pruning, rows have grown. FTH_E_USAGE: noise
 * for fewer rows than are split, which counts->split has. */
fth_status gs_adc_refine(gs_rows *rows, const gs_adc_rules *rules, int64_t iteration,
                         gs_adc_counts *counts, fth_err *err);
/* The most that the ledger counts meanwhile for rows of n that grow by so many, beside what was
 * held before them: what gs_adc_refine holds itself to. */
uint64_t gs_adc_bytes(const fth_mem *mem, int64_t most, int degree, unsigned flags, int64_t n,
                      int64_t more, const gs_adc_rules *rules);

/* opacity = min(opacity, logit(2 prune_opacity)), and its moments are 0. */
fth_status gs_opacity_reset(gs_rows *rows, double prune_opacity, fth_err *err);

#endif
