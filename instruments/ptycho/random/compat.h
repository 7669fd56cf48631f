/* compat.h - MT19937 with the derived draws of NumPy's legacy generator.
 *
 * For what has to come out as in public programs: groups, subsamples, simulated positions and
 * objects, the order of a solver. Everything else uses the engine's streams.
 */
#ifndef PTYCHO_RANDOM_COMPAT_H
#define PTYCHO_RANDOM_COMPAT_H

#include <fathom/base.h>

typedef struct pt_compat {
    uint32_t word[624];
    int at;
    bool has_normal; /* the other one of a pair is kept */
    double normal;
} pt_compat;

void pt_compat_seed(pt_compat *r, uint32_t seed);
uint32_t pt_compat_u32(pt_compat *r);
double pt_compat_double(pt_compat *r); /* in [0, 1), 53 bits */
double pt_compat_uniform(pt_compat *r, double lo, double hi);
/* 0 to max, both included; draws nothing for 0. */
uint32_t pt_compat_interval(pt_compat *r, uint32_t max);
double pt_compat_normal(pt_compat *r);
/* out[0..n) becomes a permutation of 0..n-1; n below 2^32. */
void pt_compat_permutation(pt_compat *r, int64_t *out, int64_t n);

#endif
