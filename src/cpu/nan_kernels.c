/* nan_kernels.c - every NaN of a block becomes the one of array/nan.h.
 *
 * Compiled once per instruction set. Most blocks have none: they are read once, in cache, and
 * nothing is written.
 */
#include "array/nan.h"
#include "cpu/vec.h"
#include "cpu/vec_loop.h"

#define DEFINE(name, T, ONE)                                                                       \
    static void name(int64_t n, void *v_)                                                          \
    {                                                                                              \
        T *v = v_;                                                                                 \
        int any = 0;                                                                               \
        for (int64_t i = 0; i < n; i++) any |= v[i] != v[i];                                       \
        if (!any) return;                                                                          \
        FTH__EACH                                                                                  \
        for (int64_t i = 0; i < n; i++) v[i] = ONE(v[i]);                                          \
    }
DEFINE(one_nan_f32, float, fth__one_nan_f32)
DEFINE(one_nan_f64, double, fth__one_nan)

const fth__nan_loops FTH_ISA_NAME(fth__nan_loops) = {one_nan_f32, one_nan_f64};
