/* vec_far.h - before a loop over sines: is any element of the block too large for its near form?
 *
 * One pass of integer instructions over what the loop reads next anyway. Blocks with such an
 * element are computed one by one; an element's bits do not depend on its neighbours.
 */
#ifndef FTH_CPU_VEC_FAR_H
#define FTH_CPU_VEC_FAR_H

#include "cpu/vec_loop.h"
#include "ops/vecmath.h"

#include <stdbool.h>

#define FTH__DEFINE_ANY_FAR(tag, T, U, top)                                                        \
    static __attribute__((unused)) bool fth__any_far_##tag(const T *x, int64_t n)                  \
    {                                                                                              \
        U far = 0;                                                                                 \
        FTH__EACH                                                                                  \
        for (int64_t i = 0; i < n; i++) far |= fth__is_far_##tag(x[i]);                            \
        return far >> top != 0;                                                                    \
    }
FTH__DEFINE_ANY_FAR(f32, float, uint32_t, 31)
FTH__DEFINE_ANY_FAR(f64, double, uint64_t, 63)
FTH__DEFINE_ANY_FAR(c64, fth_c64, uint32_t, 31)
FTH__DEFINE_ANY_FAR(c128, fth_c128, uint64_t, 63)
#undef FTH__DEFINE_ANY_FAR

#endif
