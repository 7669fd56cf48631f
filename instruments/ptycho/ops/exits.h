/* exits.h - exit waves of all patterns, for DM and RAAR: two operations of the engine.
 *
 * ptycho_exits makes the Fourier step of a piece of the scan: exit waves in, exit waves out.
 * ptycho_overlap adds the contribution of a piece to the sums for the object or the probe that
 * earlier pieces left, pattern by pattern, so that pieces may have any length. Fields are two
 * planes, as in sweep.h, and visits have its columns.
 */
#ifndef PT_OPS_EXITS_H
#define PT_OPS_EXITS_H

#include "sweep.h"

typedef struct pt_exits {
    int32_t counts, centred, masked, first; /* first: exit waves are made of object and probe */
    double a, b, c;                         /* psi += b y + a P O - (a + b) psi */
    double bound;                           /* bound of the mean squared misfit; below 0: none */
    double epsilon;
} pt_exits;

/* Inputs: object, probe, patterns, visits, count [] f64, exits [pattern mode part row col], mask.
 * Outputs: exits and statistics of each pattern, as in a sweep; of the model, not of the exit
 * waves. */
enum {
    PT_EXITS_OBJECT,
    PT_EXITS_PROBE,
    PT_EXITS_PATTERNS,
    PT_EXITS_VISITS,
    PT_EXITS_COUNT,
    PT_EXITS_WAVES,
    PT_EXITS_MASK,
    PT_EXITS_INPUTS
};
extern const fth_op pt_exits_op;

typedef struct pt_overlap {
    int32_t probe, spare; /* sums for the probe, else for the object */
} pt_overlap;
/* Inputs: the other field (probe for the object's sums, object for the probe's), visits, count,
 * exits, the sum of conj(other) exits (shape of the object or of the probe), the sum of |other|^2
 * ([orow ocol] or [row col]). Outputs: both sums. */
enum {
    PT_OVERLAP_OTHER,
    PT_OVERLAP_VISITS,
    PT_OVERLAP_COUNT,
    PT_OVERLAP_WAVES,
    PT_OVERLAP_ABOVE,
    PT_OVERLAP_BELOW,
    PT_OVERLAP_INPUTS
};
extern const fth_op pt_overlap_op;

typedef struct pt_exits_work {
    const pt_exits *rule;
    int64_t n, modes, rows, cols;
    const void *object, *probe, *patterns;
    const uint8_t *mask;
    int64_t mask_step;
    fth_dtype dtype;
    const double *visits;
    double *told;
    const void *from; /* exit waves */
    void *to;
    int64_t count;
    fth_team *team;
    int threads;
    void *scratch;
} pt_exits_work;
typedef struct pt_overlap_work {
    bool probe;
    int64_t n, modes, rows, cols;
    const void *other, *waves;
    const double *visits;
    void *above, *below;
    int64_t count;
    fth_team *team;
} pt_overlap_work;

typedef struct pt_exits_loops {
    uint64_t (*scratch)(const pt_exits_work *w);
    void (*exits)(const pt_exits_work *w);
    void (*overlap)(const pt_overlap_work *w);
} pt_exits_loops;
FTH_ISA_DECLARE(const pt_exits_loops, pt_exits_f32);
FTH_ISA_DECLARE(const pt_exits_loops, pt_exits_f64);

#endif
