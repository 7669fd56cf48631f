/* nan.h - the one NaN that sums, products and other reductions give: positive, quiet, empty.
 *
 * Which of two NaNs an addition keeps, and the sign of the one that inf - inf makes, are the
 * processor's and the compiler's choice; they would tell how an axis was cut. Every reduction
 * replaces whatever NaN it ends with by this one, where a wide number goes back to memory. As
 * integers, because a compiler may take any NaN for any other.
 */
#ifndef FTH_ARRAY_NAN_H
#define FTH_ARRAY_NAN_H

#include "base/both.h"

#include <fathom/array.h>
#include <stdint.h>
#include <string.h>

#define FTH__NAN_F64 UINT64_C(0x7ff8000000000000)
#define FTH__NAN_F32 0x7fc00000u
#define FTH__NAN_F16 0x7e00u
#define FTH__NAN_BF16 0x7fc0u

static inline FTH__BOTH double fth__one_nan(double x)
{
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    u = x == x ? u : FTH__NAN_F64;
    memcpy(&x, &u, sizeof x);
    return x;
}
static inline FTH__BOTH float fth__one_nan_f32(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    u = x == x ? u : FTH__NAN_F32;
    memcpy(&x, &u, sizeof x);
    return x;
}
static inline FTH__BOTH fth_c128 fth__one_nan_c128(fth_c128 x)
{
    x.re = fth__one_nan(x.re);
    x.im = fth__one_nan(x.im);
    return x;
}
static inline FTH__BOTH fth_c64 fth__one_nan_c64(fth_c64 x)
{
    x.re = fth__one_nan_f32(x.re);
    x.im = fth__one_nan_f32(x.im);
    return x;
}

#endif
