/* ranked.h - elements at places of the sorted order along an axis: what a quantile lies between. */
#ifndef FTH_OPS_RANKED_H
#define FTH_OPS_RANKED_H

#include "ops/ops.h"

enum { FTH__RANKS = 3 };
typedef struct fth__ranked_attr {
    fth_axis_id axis;
    int32_t n;
    int64_t rank[FTH__RANKS];
} fth__ranked_attr;

/* Elements at n places of the sorted order along an axis: outputs 0 to n-1, which lack the axis.
 * Outputs n to 2n-1: their positions, of equals in the order they stand, i64. */
fth_val fth__ranked(fth_site site, fth_val v, const char *axis, int n, const int64_t *rank);

#endif
