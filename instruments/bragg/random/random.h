/* random.h - the generators of the reference program, to the bit: their deviates are float32.
 *
 * The shuffle table is shared by all streams of a program (shared-ran1), so it is an object; a
 * stream is a seed of its own that is passed to each call. Spec mode gives each stream its object.
 */
#ifndef BRAGG_RANDOM_H
#define BRAGG_RANDOM_H

#include "../geometry/both.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct br_ran1 {
    int64_t y, table[32];
    int64_t seed; /* of the current stream: br_ran1(r, &r->seed) */
    float spare;  /* of br_gauss */
    bool has_spare;
    /* cached by br_poisson while the mean stays the same; mean_known is false at the start */
    float mean, root, log_mean, g;
} br_ran1;

BR_BOTH void br_ran1_clear(br_ran1 *r); /* as at the start of a program; seed 0, mean -1 */
BR_BOTH float br_uniform(br_ran1 *r, int64_t *seed);
BR_BOTH float br_gauss(br_ran1 *r, int64_t *seed);
BR_BOTH float br_poisson(br_ran1 *r, float mean, int64_t *seed);
BR_BOTH float br_log_gamma(float x);

/* A rotation of a cap of `m` radians, 3x3 by rows (model 8.1). */
BR_BOTH void br_cap_rotation(br_ran1 *r, float m, int64_t *seed, double *u);

#endif
