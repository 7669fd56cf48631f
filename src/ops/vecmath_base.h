/* vecmath_base.h - bits of numbers, rounding, integer division: what the other vecmath headers
 * stand on. */
#ifndef FTH_OPS_VECMATH_BASE_H
#define FTH_OPS_VECMATH_BASE_H

#include "base/both.h"

#include <fathom/array.h>

#include <math.h>
#include <stdint.h>
#include <string.h>

/* Always inlined: a call in a loop would keep the loop scalar. Device code defines it before, with
 * the qualifiers of its functions. */
#ifndef FTH__MATH
#define FTH__MATH static inline __attribute__((always_inline, unused)) FTH__BOTH
#endif
/* Long and rarely needed: not inlined. */
#ifndef FTH__FAR
#define FTH__FAR static __attribute__((noinline, unused)) FTH__BOTH
#endif
/* A struct with these members, in C and in C++. */
#ifdef __cplusplus
#define FTH__MAKE(type) type
#else
#define FTH__MAKE(type) (type)
#endif

/* On a GPU these are its own functions, which round as the host's do. */
#ifdef __CUDA_ARCH__
#define FTH__LIBM(name) name
#else
#define FTH__LIBM(name) __builtin_##name
#endif

FTH__MATH uint32_t fth__bits_f32(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}
FTH__MATH float fth__from_bits_f32(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}
FTH__MATH uint64_t fth__bits_f64(double x)
{
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}
FTH__MATH double fth__from_bits_f64(uint64_t u)
{
    double x;
    memcpy(&x, &u, sizeof x);
    return x;
}

FTH__MATH float fth__fabs_f32(float x)
{
    return FTH__LIBM(fabsf)(x);
}
FTH__MATH double fth__fabs_f64(double x)
{
    return FTH__LIBM(fabs)(x);
}
FTH__MATH float fth__copysign_f32(float x, float sign)
{
    return fth__from_bits_f32((fth__bits_f32(x) & 0x7fffffffu) |
                              (fth__bits_f32(sign) & 0x80000000u));
}
FTH__MATH double fth__copysign_f64(double x, double sign)
{
    const uint64_t top = UINT64_C(0x8000000000000000);
    return fth__from_bits_f64((fth__bits_f64(x) & ~top) | (fth__bits_f64(sign) & top));
}
FTH__MATH float fth__sqrt_f32(float x)
{
    return FTH__LIBM(sqrtf)(x);
}
FTH__MATH double fth__sqrt_f64(double x)
{
    return FTH__LIBM(sqrt)(x);
}
FTH__MATH float fth__fma_f32(float x, float y, float z)
{
    return FTH__LIBM(fmaf)(x, y, z);
}
FTH__MATH double fth__fma_f64(double x, double y, double z)
{
    return FTH__LIBM(fma)(x, y, z);
}
FTH__MATH float fth__fmod_f32(float x, float y)
{
    return FTH__LIBM(fmodf)(x, y);
}
FTH__MATH double fth__fmod_f64(double x, double y)
{
    return FTH__LIBM(fmod)(x, y);
}

/* To the nearest integer, halves to even: adding 2^23 (2^52) leaves no room for a fraction. */
FTH__MATH float fth__rint_f32(float x)
{
    const float a = fth__fabs_f32(x);
    const float r = fth__copysign_f32((a + 8388608.0f) - 8388608.0f, x);
    return a < 8388608.0f ? r : x;
}
FTH__MATH double fth__rint_f64(double x)
{
    const double a = fth__fabs_f64(x);
    const double r = fth__copysign_f64((a + 4503599627370496.0) - 4503599627370496.0, x);
    return a < 4503599627370496.0 ? r : x;
}
FTH__MATH float fth__floor_f32(float x)
{
    const float r = fth__rint_f32(x);
    return r > x ? r - 1.0f : r;
}
FTH__MATH double fth__floor_f64(double x)
{
    const double r = fth__rint_f64(x);
    return r > x ? r - 1.0 : r;
}

/* Integers: x/0 and x mod 0 are 0, and the one quotient that does not fit wraps. */
FTH__MATH int32_t fth__idiv_i32(int32_t x, int32_t y)
{
    const int32_t safe = y == 0 || y == -1 ? 1 : y;
    const int32_t q = x / safe;
    return y == 0 ? 0 : y == -1 ? (int32_t)(0u - (uint32_t)x) : q;
}
FTH__MATH int64_t fth__idiv_i64(int64_t x, int64_t y)
{
    const int64_t safe = y == 0 || y == -1 ? 1 : y;
    const int64_t q = x / safe;
    return y == 0 ? 0 : y == -1 ? (int64_t)(UINT64_C(0) - (uint64_t)x) : q;
}
FTH__MATH uint32_t fth__idiv_u32(uint32_t x, uint32_t y)
{
    return y == 0 ? 0u : x / (y == 0 ? 1u : y);
}
FTH__MATH uint32_t fth__imod_u32(uint32_t x, uint32_t y)
{
    return x % (y == 0 ? 1u : y);
}
FTH__MATH int32_t fth__imod_i32(int32_t x, int32_t y)
{
    return x % (y == 0 || y == -1 ? 1 : y);
}
FTH__MATH int64_t fth__imod_i64(int64_t x, int64_t y)
{
    return x % (y == 0 || y == -1 ? 1 : y);
}

/* Sums of powers by Horner's rule, constant term first. */
#define FTH__POLY2(x, a, b) ((a) + (x) * (b))
#define FTH__POLY3(x, a, b, c) ((a) + (x)*FTH__POLY2(x, b, c))
#define FTH__POLY4(x, a, b, c, d) ((a) + (x)*FTH__POLY3(x, b, c, d))
#define FTH__POLY5(x, a, b, c, d, e) ((a) + (x)*FTH__POLY4(x, b, c, d, e))
#define FTH__POLY6(x, a, b, c, d, e, f) ((a) + (x)*FTH__POLY5(x, b, c, d, e, f))
#define FTH__POLY7(x, a, b, c, d, e, f, g) ((a) + (x)*FTH__POLY6(x, b, c, d, e, f, g))
#define FTH__POLY8(x, a, b, c, d, e, f, g, h) ((a) + (x)*FTH__POLY7(x, b, c, d, e, f, g, h))

#endif
