/* sweep.h - the inner loop of the iterative solvers as one operation of the engine.
 *
 * A run takes a piece of an epoch, patterns in the order they are visited, and goes through it
 * batch by batch: each batch sees what the one before made of object and probe. Pieces that begin
 * at a batch give the same bits however long they are. Fields are two planes of real numbers:
 * `part` 0 is real, 1 imaginary. Inside a batch workers take patterns, then rows; sums go in the
 * order of the patterns.
 */
#ifndef PT_OPS_SWEEP_H
#define PT_OPS_SWEEP_H

#include <fathom/fathom.h>

typedef enum pt_rule { PT_EPIE, PT_RPIE, PT_PIE, PT_LSQML, PT_LOOK, PT_RULE_COUNT } pt_rule;

/* Attributes: plain bytes without gaps. */
typedef struct pt_sweep {
    int32_t rule;      /* pt_rule; PT_LOOK only compares the model with the data */
    int32_t batch;     /* patterns */
    int32_t counts;    /* patterns are counts, not amplitudes */
    int32_t centred;   /* zero frequency at n/2, not at 0 */
    int32_t poisson;   /* noise of lsqml */
    int32_t ptypy;     /* epie: the probe's update sees the new object */
    int32_t shift;     /* fractions of positions move the probe */
    int32_t masked;    /* input PT_SWEEP_MASK is there */
    int32_t positions; /* shifts of positions may be requested */
    int32_t opr;       /* eigenprobes of lsqml */
    int32_t hold;      /* lsqml: leave the object, accumulate its directions in PT_SWEEP_CHANGE */
    int32_t spare;     /* 0 */
    double epsilon;    /* added to the model's amplitude */
    double object_alpha, probe_alpha;
} pt_sweep;

/* Inputs: object [part orow ocol], probe [mode part row col], patterns [frame row col], visits
 * [pattern visit] f64, switches [switch] f64; of lsqml the weight [orow ocol] of the object's
 * direction; with `masked` the mask [frame row col] or [row col] of bool, true is good. */
enum {
    PT_SWEEP_OBJECT,
    PT_SWEEP_PROBE,
    PT_SWEEP_PATTERNS,
    PT_SWEEP_VISITS,
    PT_SWEEP_SWITCHES,
    PT_SWEEP_WEIGHT,
    PT_SWEEP_MASK,
    PT_SWEEP_EIGEN,  /* with opr: [opr part row col] */
    PT_SWEEP_SHARES, /* with opr: [pattern share] f64, of the probe and of each eigenprobe */
    PT_SWEEP_CHANGE, /* with hold: [part orow ocol], sum of the directions of the batches before */
    PT_SWEEP_INPUTS
};
/* Columns of a visit. */
enum {
    PT_VISIT_ROW, /* corner in the object */
    PT_VISIT_COL,
    PT_VISIT_DROW, /* what is left of the position, from -0.5 to 0.5 */
    PT_VISIT_DCOL,
    PT_VISIT_ALPHA, /* step of the Poisson model, as the last visit left it */
    PT_VISIT_FRAME, /* which of the patterns it is */
    PT_VISITS
};
enum {
    PT_SWITCH_COUNT,     /* patterns of this piece: the rest of the room is ignored */
    PT_SWITCH_PROBE,     /* the probe is updated     */
    PT_SWITCH_POSITIONS, /* shifts of positions told */
    PT_SWITCH_SHARE,     /* lsqml: fraction of its step that the probe takes */
    PT_SWITCHES
};
/* Outputs: object (with hold: the new sum of directions), probe, and statistics of each pattern
 * [pattern told] f64; with opr the eigenprobes and the shares as well. */
enum {
    PT_TOLD_MISFIT, /* sum of (model - measured)^2 of amplitudes */
    PT_TOLD_COUNTS, /* sum of measured intensities                */
    PT_TOLD_MODEL,  /* sum of the model's                          */
    PT_TOLD_ALPHA,
    PT_TOLD_DROW, /* true minus current position, by the gradient */
    PT_TOLD_DCOL,
    PT_TOLD_STEP, /* lsqml, at the first pattern of a batch: the object's step */
    PT_TOLD
};

extern const fth_op pt_sweep_op;

/* What the loops of one precision work on. */
typedef struct pt_sweep_work {
    const pt_sweep *rule;
    int64_t n, modes, rows, cols;
    void *object, *probe; /* in: as before, out: new */
    void *change;         /* hold: the same, and the object stays as it is */
    void *eigen;          /* the same */
    double *shares;
    const void *weight, *patterns;
    const uint8_t *mask;
    int64_t mask_step; /* from a pattern's mask to the next; 0: one for all */
    fth_dtype dtype;   /* of patterns */
    const double *visits;
    double *told;
    int64_t count;
    bool probe_on, positions_on;
    double probe_share;
    fth_team *team;
    int threads;
    void *scratch;
} pt_sweep_work;

/* The illumination of every pixel of the object: the sum of |P|^2 of the first mode over all
 * patches. Inputs: probe, visits [scan visit] f64; output [orow ocol]. */
typedef struct pt_cover {
    int32_t rows, cols; /* of the canvas, to be sure which axes are meant */
} pt_cover;
extern const fth_op pt_cover_op;
typedef struct pt_cover_work {
    int64_t n, rows, cols, count;
    const void *probe;
    const double *visits;
    void *out;
    fth_team *team;
} pt_cover_work;

/* Compiled once per instruction set and precision. */
typedef struct pt_sweep_loops {
    uint64_t (*scratch)(const pt_sweep_work *w);
    void (*run)(const pt_sweep_work *w);
    void (*cover)(const pt_cover_work *w);
} pt_sweep_loops;
FTH_ISA_DECLARE(const pt_sweep_loops, pt_sweep_f32);
FTH_ISA_DECLARE(const pt_sweep_loops, pt_sweep_f64);

#endif
