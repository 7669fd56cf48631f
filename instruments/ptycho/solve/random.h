/* random.h - numbers that depend on (seed, purpose, index) alone, for orders and first objects. */
#ifndef PT_SOLVE_RANDOM_H
#define PT_SOLVE_RANDOM_H

#include <stdint.h>

enum { PT_DRAW_AMPLITUDE = 1, PT_DRAW_PHASE, PT_DRAW_ORDER };

uint64_t pt_draw_bits(uint64_t seed, uint64_t purpose, int64_t index);
/* In [0, 1). */
double pt_draw_uniform(uint64_t seed, uint64_t purpose, int64_t index);
double pt_draw_normal(uint64_t seed, uint64_t purpose, int64_t index);

#endif
