/* divide.h - quotients of integers by floating-point division, in loops that become vectors.
 *
 * Processors divide integers one by one, floating-point numbers by vectors. Every quotient here is
 * the one of ops/vecmath_base.h: either no rounding can reach the next integer, or the remainder
 * says in which direction the estimate is wrong. Of a divisor that is the same all over a loop the
 * compiler takes 1/y out of it. Divisors of 0 are replaced before, and their quotient afterwards.
 */
#ifndef FTH_CPU_DIVIDE_H
#define FTH_CPU_DIVIDE_H

#include "cpu/vec_loop.h"
#include "ops/vecmath_base.h"

#include <fathom/isa.h>

#include <stdbool.h>

/* ---- up to 32 bits ---------------------------------------------------------------------- */

/* The quotient, without its fraction, of |x| + 1/2 is that of |x|, and is 1/2y or more away from
 * the next integer. Both roundings together move it by 2^(b-23)/y where x has b bits, by 2^(b-52)/y
 * in doubles: far less. y is neither 0 nor -1, whose quotient may not fit. */
FTH__MATH int32_t fth__vec_quotient_small(int32_t x, int32_t y)
{
    const float f = (float)x;
    return (int32_t)((f + fth__copysign_f32(0.5f, f)) * (1.0f / (float)y));
}
FTH__MATH int32_t fth__vec_quotient_i32(int32_t x, int32_t y)
{
    const double f = x;
    return (int32_t)((f + fth__copysign_f64(0.5, f)) * (1.0 / y));
}

#define FTH__DEFINE_DIVISIONS(tag)                                                                 \
    FTH__MATH int32_t fth__vec_idiv_##tag(int32_t x, int32_t y)                                    \
    {                                                                                              \
        const int32_t q = fth__vec_quotient_##tag(x, y == 0 || y == -1 ? 1 : y);                   \
        return y == 0 ? 0 : y == -1 ? (int32_t)(0u - (uint32_t)x) : q;                             \
    }                                                                                              \
    FTH__MATH int32_t fth__vec_imod_##tag(int32_t x, int32_t y)                                    \
    {                                                                                              \
        const int32_t safe = y == 0 || y == -1 ? 1 : y;                                            \
        return x - fth__vec_quotient_##tag(x, safe) * safe;                                        \
    }
FTH__DEFINE_DIVISIONS(small)
FTH__DEFINE_DIVISIONS(i32)
#undef FTH__DEFINE_DIVISIONS

FTH__MATH uint32_t fth__vec_idiv_u32(uint32_t x, uint32_t y)
{
    const uint32_t q = (uint32_t)((x + 0.5) * (1.0 / (y == 0 ? 1u : y)));
    return y == 0 ? 0u : q;
}
FTH__MATH uint32_t fth__vec_imod_u32(uint32_t x, uint32_t y)
{
    const uint32_t safe = y == 0 ? 1u : y;
    return x - fth__vec_idiv_u32(x, safe) * safe;
}

/* ---- 64 bits, all of a block within 2^49 ------------------------------------------------- */

static inline bool fth__all_near(const int64_t *v, int64_t n)
{
    uint64_t far = 0;
    FTH__EACH
    for (int64_t i = 0; i < n; i++) far |= (uint64_t)v[i] + (UINT64_C(1) << 49);
    return far >> 50 == 0;
}

#if FTH_ISA_LEVEL >= 4
FTH__MATH double fth__near_double(int64_t v)
{
    return (double)v;
}
FTH__MATH int64_t fth__near_trunc(double v)
{
    return (int64_t)v;
}
#else
/* Processors without AVX-512 convert no 64-bit integers by vectors. The last place of 1.5 * 2^52 is
 * 1: bits of it and of a number within 2^51 may be added. Adding it rounds to the nearest integer,
 * which towards zero is that of the number less 1/2. */
#define FTH__NEAR_BITS UINT64_C(0x4338000000000000)
#define FTH__NEAR_ONE 6755399441055744.0
FTH__MATH double fth__near_double(int64_t v)
{
    return fth__from_bits_f64((uint64_t)v + FTH__NEAR_BITS) - FTH__NEAR_ONE;
}
FTH__MATH int64_t fth__near_trunc(double v)
{
    const double nearest = (v - fth__copysign_f64(0.5, v)) + FTH__NEAR_ONE;
    return (int64_t)(fth__bits_f64(nearest) - FTH__NEAR_BITS);
}
#endif

/* As above: x has 49 bits, and its quotient moves by at most 2^-3/y. */
FTH__MATH int64_t fth__near_quotient(int64_t x, int64_t y)
{
    const double f = fth__near_double(x);
    return fth__near_trunc((f + fth__copysign_f64(0.5, f)) * (1.0 / fth__near_double(y)));
}

/* ---- 64 bits ----------------------------------------------------------------------------- */

/* An estimate, too small by less than 2^-50 of itself, because 1/y is taken smaller by more than
 * all roundings together add: so it always fits, and what remains of x keeps its sign. The estimate
 * of that remainder's quotient, below 2^14, is at most 1 too small. */
FTH__MATH int64_t fth__far_quotient(int64_t x, int64_t y)
{
    const double each = (1.0 - 0x1p-51) / (double)y;
    const uint64_t b = (uint64_t)y, q1 = (uint64_t)(int64_t)((double)x * each),
                   r1 = (uint64_t)x - q1 * b, q2 = (uint64_t)(int64_t)((double)(int64_t)r1 * each),
                   r2 = r1 - q2 * b;
    const uint64_t x_sign = (uint64_t)(x >> 63), y_sign = (uint64_t)(y >> 63),
                   one = (x_sign ^ y_sign) | 1;
    const bool more = (r2 ^ x_sign) - x_sign >= (b ^ y_sign) - y_sign;
    return (int64_t)(q1 + q2 + (more ? one : 0));
}

#define FTH__DEFINE_DIVISIONS(kind)                                                                \
    FTH__MATH int64_t fth__##kind##_idiv(int64_t x, int64_t y)                                     \
    {                                                                                              \
        const int64_t q = fth__##kind##_quotient(x, y == 0 ? 1 : y);                               \
        return y == 0 ? 0 : q;                                                                     \
    }                                                                                              \
    FTH__MATH int64_t fth__##kind##_imod(int64_t x, int64_t y)                                     \
    {                                                                                              \
        const int64_t safe = y == 0 ? 1 : y;                                                       \
        return (int64_t)((uint64_t)x -                                                             \
                         (uint64_t)fth__##kind##_quotient(x, safe) * (uint64_t)safe);              \
    }
FTH__DEFINE_DIVISIONS(near)
FTH__DEFINE_DIVISIONS(far)
#undef FTH__DEFINE_DIVISIONS

/* Without 64-bit products and conversions by vectors the processor's own division is faster. */
#if FTH_ISA_LEVEL >= 4
#define fth__vec_idiv_i64 fth__far_idiv
#define fth__vec_imod_i64 fth__far_imod
#else
#define fth__vec_idiv_i64 fth__idiv_i64
#define fth__vec_imod_i64 fth__imod_i64
#endif

#endif
