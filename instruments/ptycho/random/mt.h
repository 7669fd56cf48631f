/* mt.h - the generator of NumPy's RandomState: MT19937, number by number the same.
 *
 * For what must agree with PtychoPINN: grouping, subsampling, simulated positions and objects, the
 * order of patterns. Everything else takes the engine's streams, which need no order of draws.
 */
#ifndef PTYCHO_RANDOM_MT_H
#define PTYCHO_RANDOM_MT_H

#include <fathom/fathom.h>

enum { PT_MT_WORDS = 624 };
typedef struct pt_mt {
    uint32_t word[PT_MT_WORDS];
    int at;
    bool has_normal;
    double normal; /* the second of a pair */
} pt_mt;

void pt_mt_seed(pt_mt *r, uint32_t seed); /* np.random.seed(seed) */
uint32_t pt_mt_u32(pt_mt *r);
double pt_mt_double(pt_mt *r);                             /* [0, 1), 53 bits: random_sample() */
double pt_mt_uniform(pt_mt *r, double lo, double hi);      /* uniform(lo, hi) */
double pt_mt_normal(pt_mt *r);                             /* standard_normal() */
uint64_t pt_mt_interval(pt_mt *r, uint64_t max);           /* 0 .. max; randint(0, max + 1) */
void pt_mt_permutation(pt_mt *r, int64_t n, int64_t *out); /* permutation(n) */

#endif
