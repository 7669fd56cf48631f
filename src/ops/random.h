/* random.h - where an element of a random value stands: its global index in declared axis order. */
#ifndef FTH_OPS_RANDOM_H
#define FTH_OPS_RANDOM_H

#include "ops/philox.h"

#include <fathom/ops.h>

/* Of one number: ten rounds of Philox; an estimate for the planner. */
enum { FTH__RANDOM_FLOPS = 60 };

typedef struct fth__random_attr {
    int32_t kind, dtype;
    int64_t stream;
    int32_t n;
    fth_axis_id axis[FTH_MAX_AXES];
    int32_t zero;
} fth__random_attr;

/* How much the counter grows per step along each axis of `d`: row-major over its axes by id. */
static inline void fth__random_steps(const fth_desc *d, uint64_t *step)
{
    for (int k = 0; k < d->n_axes; k++) {
        step[k] = 1;
        for (int i = 0; i < d->n_axes; i++)
            if (d->axis[i] > d->axis[k]) step[k] *= (uint64_t)d->size[i];
    }
}
/* Counter of the first element of a tile. */
static inline uint64_t fth__random_first(const fth_desc *d, const fth_tile *t, const uint64_t *step)
{
    uint64_t first = 0;
    for (int k = 0; k < d->n_axes; k++) first += (uint64_t)t->origin[k] * step[k];
    return first;
}
/* The random number of one counter, as it lies in memory. */
void fth__random_draw(int kind, fth_dtype dtype, const fth__random_key *key, uint64_t index,
                      char *out);
/* The key from the two scalar operands. */
fth__random_key fth__random_call_key(const fth_tile *seed, const fth_tile *iteration,
                                     int64_t stream);
/* Both scalars must be 0-axis i64. */
fth_status fth__random_check(const fth_node *node, int seed, int iteration, fth_err *err);

#endif
