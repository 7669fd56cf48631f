/* fuse.h - one sharp image of each z-stack, as values of a graph: settings and results.
 *
 *   fo_fusion how = fo_fusion_default();
 *   how.method = FO_DEPTH;
 *   FTH_TRY(fo_fusion_settle(&how, err));               // what nobody set, by method and compat
 *   FTH_TRY(fo_fusion_check(&how, sizes, FTH_U16, err));
 *   const fo_fused f = fo_fuse(g, stacks, present, &how);
 *   fth_plan *p = fth_plan_make(g, ((fth_val[]){f.image, f.stats}), 2, &limits, err);
 *
 * Only values that the plan asks for are computed. A value that a method lacks has id 0
 * (fth_val_ok is false): an index of `max`, a depth of `cwt`.
 */
#ifndef FOCUS_FUSE_FUSE_H
#define FOCUS_FUSE_FUSE_H

#include "../ops/border.h"

#include <fathom/op.h>
#include <fathom/ops.h>

/* Each list of names ends with NULL; the order is that of the enum. UNSET: not chosen. */
typedef enum fo_method {
    FO_METHOD_UNSET = -1,
    FO_LOG,
    FO_LOG_SMOOTH,
    FO_DEPTH,
    FO_LAP_PYR,
    FO_CWT,
    FO_MAX,
    FO_MIN,
    FO_MEAN,
    FO_BEST_PLANE,
    FO_METHODS
} fo_method;
typedef enum fo_measure {
    FO_MEASURE_UNSET = -1,
    FO_MEASURE_LOG,
    FO_MEASURE_TENENGRAD,
    FO_MEASURE_MODLAP,
    FO_MEASURE_VARIANCE,
    FO_MEASURES
} fo_measure;
typedef enum fo_reject {
    FO_REJECT_NONE,
    FO_REJECT_PEAK_RELATIVE,
    FO_REJECT_CORRELATION,
    FO_REJECT_HYBRID,
    FO_REJECT_AUTO,
    FO_REJECTS
} fo_reject;
typedef enum fo_prefer { FO_PREFER_NONE, FO_PREFER_NEAR, FO_PREFER_FAR, FO_PREFERS } fo_prefer;
typedef enum fo_scale {
    FO_SCALE_UNSET = -1,
    FO_SCALE_STACK,      /* percentiles of each stack */
    FO_SCALE_EXPERIMENT, /* scale_lo, scale_hi, which the caller found in a sample of stacks */
    FO_SCALE_DTYPE,      /* all that the dtype holds; f32: 0 to 1 */
    FO_SCALE_FIXED,      /* scale_lo, scale_hi */
    FO_SCALE_NONE,       /* the fused values as they are */
    FO_SCALES
} fo_scale;
typedef enum fo_base { FO_BASE_UNSET = -1, FO_BASE_MAX, FO_BASE_MEAN, FO_BASES } fo_base;
typedef enum fo_interp { FO_INTERP_LINEAR, FO_INTERP_NEAREST, FO_INTERPS } fo_interp;
typedef enum fo_polarity { FO_POLARITY_KEEP, FO_POLARITY_INVERT, FO_POLARITIES } fo_polarity;
typedef enum fo_compat { FO_COMPAT_NONE, FO_COMPAT_YX1, FO_COMPAT_KEYENCE, FO_COMPATS } fo_compat;

extern const char *const fo_method_names[FO_METHODS + 1];
extern const char *const fo_measure_names[FO_MEASURES + 1];
extern const char *const fo_border_names[FO_BORDERS + 1];
extern const char *const fo_reject_names[FO_REJECTS + 1];
extern const char *const fo_prefer_names[FO_PREFERS + 1];
extern const char *const fo_scale_names[FO_SCALES + 1];
extern const char *const fo_base_names[FO_BASES + 1];
extern const char *const fo_interp_names[FO_INTERPS + 1];
extern const char *const fo_polarity_names[FO_POLARITIES + 1];

enum { FO_MAX_K = 31, FO_MAX_PLANES = 65535 };

/* All settings that affect the result. */
typedef struct fo_fusion {
    fo_method method;   /* unset: log-smooth; log with compat */
    fo_measure measure; /* of log-smooth and depth; unset: log */
    fo_border border;   /* unset: replicate for log, reflect101 elsewhere; zero with compat */
    int k;              /* size of the LoG kernel, odd; 0: 3 */
    double sigma;       /* of log-smooth and depth, in pixels; < 0: 2 */
    int levels;         /* of lap-pyr and cwt; 0: 4 */
    int window;         /* of the energy of lap-pyr, odd; 0: 3 */
    fo_base base;       /* unset: mean for lap-pyr, max for cwt */
    int consistency;    /* of cwt: 0, 1 (subbands), 2 (then 3x3); < 0: 2 */
    int pad;            /* of cwt, in pixels on each side; < 0: 16 */
    bool no_reassign;   /* cwt gives reconstructed values instead of measured ones */
    bool clamp;         /* lap-pyr stays within the values of each pixel */
    fo_interp interp;   /* of depth */
    bool halo_guard;    /* beside strong edges: depth from reliable neighbours */
    fo_prefer prefer;   /* near-ties go to the smaller or larger plane */
    fo_reject reject;
    double alpha, corr; /* sharp: mean LoG >= alpha * peak; stable: correlation >= corr */
    double low, high;   /* percentiles, 0 to 100; < 0: 0.01, 99.99; 0.1, 99.9 for keyence */
    fo_scale scale;     /* unset: stack */
    double scale_lo, scale_hi;
    fo_polarity polarity;
    int significant_bits; /* of integers, for what counts as saturated; 0: all of the dtype */
    /* The arithmetic of MorphSeq: one range for all stacks of the graph, so the axis `stack` is one
     * batch (yx1) or the tiles of one well (keyence). Missing planes are zeros there and take part,
     * regardless of `present`. */
    fo_compat compat;
    bool want_depth, want_confidence; /* log, log-smooth: make these values too */
} fo_fusion;

/* Nothing chosen: every field as its comment says, alpha 0.7, corr 0.9. */
fo_fusion fo_fusion_default(void);
/* Fills in defaults and rejects contradictions (compat fixes method, kernel, border and scaling; a
 * measure that the method does not use). Idempotent. */
FTH_MUST_USE fth_status fo_fusion_settle(fo_fusion *how, fth_err *err);
typedef struct fo_sizes {
    int64_t stack, z, y, x;
} fo_sizes;
/* Whether settled settings fit the data: ranges, even k, k > 31, k > image, levels, dtype. */
FTH_MUST_USE fth_status fo_fusion_check(const fo_fusion *how, const fo_sizes *sizes,
                                        fth_dtype dtype, fth_err *err);
/* The dtype of `image` with --scale none: the stack's where values are picked, else f32. */
fth_dtype fo_fusion_dtype(const fo_fusion *how, fth_dtype stack);
/* The radius and k of a LoG kernel of `um` micrometres: 2 * max(1, round(um / um_per_px)) + 1. */
int fo_k_of_um(double um, double um_per_px);

/* Columns of fo_fused.stats. */
typedef enum fo_stat {
    FO_STAT_N_TOTAL, /* planes that exist */
    FO_STAT_N_SHARP,
    FO_STAT_N_STABLE,
    FO_STAT_N_KEPT,
    FO_STAT_PEAK_LOG,
    FO_STAT_MEAN_LOG,
    FO_STAT_BEST_Z, /* of the largest mean LoG; -1: no plane exists */
    FO_STAT_MIN_CORR,
    FO_STAT_MEDIAN_CORR,
    FO_STAT_LO,
    FO_STAT_HI,
    FO_STAT_SATURATED, /* share of values at 2^significant_bits - 1 */
    FO_STAT_CONSTANT,  /* 1: all values are equal, and the image is 0 before polarity */
    FO_STATS
} fo_stat;
extern const char *const fo_stat_names[FO_STATS + 1];

/* Results of a fusion. Depth is in planes of the file, counted from 0 like the index, regardless of
 * rejected planes. */
typedef struct fo_fused {
    fth_val image;      /* [stack y x] u16: scaled, with its polarity; scale none: as fused */
    fth_val image8;     /* [stack y x] u8: image >> 8 (compat: its own rule); none for scale none */
    fth_val index;      /* [stack y x] u16: the plane each value is from */
    fth_val depth;      /* [stack y x] f32, in planes */
    fth_val confidence; /* [stack y x] f32: best / second of the energies + 1e-6 */
    fth_val mean_log;   /* [stack z] f64; 0 where there is no plane */
    fth_val corr_next;  /* [stack z] f64: with the next plane that exists; NaN where none does */
    fth_val kept;       /* [stack z] u8: exists, and was not rejected */
    fth_val stats;      /* [stack fo_stat] f64 */
    fth_val lo, hi;     /* [stack] f64: values mapped to 0 and 65535 */
} fo_fused;

/* Build the fusion of `stacks` [stack z y x] (u8, u16, f32), of which the planes with `present`
 * [stack z] u8 != 0 exist, with settled and checked settings. Mistakes are recorded in the graph.
 */
fo_fused fo_fuse(fth_graph *g, fth_val stacks, fth_val present, const fo_fusion *how);
/* The values of `stacks` [stack z y x] at `index` [stack y x] u16: other channels, decided by one.
 * 0 where the index is no plane. */
fth_val fo_pick(fth_graph *g, fth_val stacks, fth_val index);
/* Scale as fo_fuse does (u16, polarity), for values [stack y x] made by fo_pick: lo and hi from the
 * percentiles of their own stacks, or as `how` says. Gives image, image8, lo and hi. */
fo_fused fo_scaled(fth_graph *g, fth_val stacks, fth_val present, fth_val picked,
                   const fo_fusion *how);

/* One method each, for fo_fuse: raw values in, fused values out (in the dtype of fo_fusion_dtype),
 * with the index where there is one. `kept` [stack z] u8 says which planes take part. */
typedef struct fo_picked {
    fth_val value, index, depth, confidence;
} fo_picked;
fo_picked fo_lap_pyr(fth_graph *g, fth_val stacks, fth_val kept, const fo_fusion *how);
fo_picked fo_cwt(fth_graph *g, fth_val stacks, fth_val kept, const fo_fusion *how);

#endif
