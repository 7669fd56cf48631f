/* depth_kernels.c - loops of depths, for every instruction set. */
#include "depth.h"

#include <fathom/vector.h>

static void refine(float *restrict to, const uint16_t *restrict index, const float *restrict energy,
                   const float *restrict left, const float *restrict right, int64_t n)
{
    for (int64_t x = 0; x < n; x++)
        to[x] = fo_refine_at((float)index[x], energy[x], left[x], right[x]);
}

#define V fth_f32v
enum { W = FTH_F32V_LANES, ALL = 25, KEPT = 14 };

/* The smaller to *a, the larger to *b. */
FTH_LANE void order(V *a, V *b)
{
    const V low = fth_f32v_min(*a, *b), high = fth_f32v_max(*a, *b);
    *a = low;
    *b = high;
}

/* Of 14 of the 25 the smallest and the largest cannot be the median: they go, another comes, and so
 * on until three are left. */
static void median(float *restrict to, const float *const rows[5], int64_t n)
{
    for (int64_t x = 0; x < n; x += W) {
        V v[KEPT];
        int next = 0;
        for (; next < KEPT; next++) v[next] = fth_f32v_load(rows[next / 5] + x + next % 5 - 2);
        for (int m = KEPT; m > 2; m--) {
            for (int i = 0; i < m / 2; i++) order(&v[i], &v[m - 1 - i]);
            for (int i = 1; i < (m + 1) / 2; i++) order(&v[0], &v[i]);
            for (int i = m / 2; i < m - 1; i++) order(&v[i], &v[m - 1]);
            /* v[0] and v[m-1] go */
            if (next < ALL) {
                v[0] = fth_f32v_load(rows[next / 5] + x + next % 5 - 2);
                next++;
            } else
                break;
        }
        fth_f32v_store(to + x, v[1]);
    }
}

const fo_depth_loops FTH_ISA_NAME(fo_depth_loops) = {refine, median};
