/* block.h - what a layout places: a run of bytes for a run of items. */
#ifndef FTH_PLAN_BLOCK_H
#define FTH_PLAN_BLOCK_H

#include "plan/plan.h"

typedef struct fth__block {
    int buf;
    uint64_t bytes, offset, key;
    int64_t t0, t1;
    uint64_t press; /* most bytes alive at once during its life */
} fth__block;

/* It has bytes of the arena for itself. */
bool fth__buf_is_placed(const fth__buf *b);

/* Place blocks that are sorted by t0, one by one, each at the lowest end of the smallest gap that
 * takes it among those of its time, in n log n steps; `items`: beyond every t1. *top: where the
 * highest ends. */
fth_status fth__place_in_time(fth_mem *mem, fth__block *b, int64_t n, int64_t items, uint64_t *top,
                              fth_err *err);

#endif
