/* gaps_kernels.c - the loop of gaps.c, once per instruction set.
 *
 * Two roundings a term and a minimum, which has no order: the bits are the same on every set. */
#include "gaps.h"

#define FTH_VECTOR_REAL 32
#include <fathom/vector.h>

static float nearest(const float *x, const float *y, int64_t n, float u, float v, float least)
{
    vr best = v_set(least);
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        const vr dx = v_load(x + i) - u, dy = v_load(y + i) - v;
        best = v_min(best, dx * dx + dy * dy);
    }
    float lane[LANES];
    v_store(lane, best);
    for (int k = 0; k < LANES; k++) least = lane[k] < least ? lane[k] : least;
    for (; i < n; i++) {
        const float dx = x[i] - u, dy = y[i] - v, square = dx * dx + dy * dy;
        least = square < least ? square : least;
    }
    return least;
}

extern const so_gap_loops FTH_ISA_NAME(so_gap_loops);
const so_gap_loops FTH_ISA_NAME(so_gap_loops) = {nearest};
