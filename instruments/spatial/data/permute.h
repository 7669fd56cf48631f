/* permute.h - batches without replacement: the first of a keyed permutation. */
#ifndef SPATIAL_PERMUTE_H
#define SPATIAL_PERMUTE_H

#include <stdint.h>

/* `count` distinct numbers of 0..n-1, ascending, from (seed, stream, iteration) alone: a Feistel
 * network over the smallest even number of bits, walked until the number is below n. All of them
 * when count is n or more. */
void sp_permute_first(int64_t *out, int64_t count, int64_t n, int64_t seed, int64_t stream,
                      int64_t iteration);
/* The whole permutation: out[i] is the image of i. */
void sp_permute_all(int32_t *out, int64_t n, int64_t seed, int64_t stream, int64_t iteration);

#endif
