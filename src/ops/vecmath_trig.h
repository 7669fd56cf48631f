/* vecmath_trig.h - sine and cosine of any argument.
 *
 * Error below 1.7 ulp in f32 and below 1 ulp in f64, over every finite argument. Near zero, up to
 * FTH__NEAR_F32 and FTH__NEAR_F64, a few products with pieces of pi/2 reduce the argument: the
 * functions named "near" do only that, have no branch and make vector loops. Beyond, the reduction
 * takes the bits of 2/pi that matter at that exponent (Payne and Hanek); it is a call. Loops ask
 * fth__is_far of their elements first.
 */
#ifndef FTH_OPS_VECMATH_TRIG_H
#define FTH_OPS_VECMATH_TRIG_H

#include "ops/vecmath_f32.h"
#include "ops/vecmath_f64.h"

/* Below these the number of quarters has at most 23 and 30 bits, so that its products with pieces
 * of pi/2 of 30 and 23 bits are exact in the 53 bits of a double. */
#define FTH__NEAR_F32 1e7f
#define FTH__NEAR_F64 1e9

/* The top bit is set where the argument is finite and not near. In integers, so that a loop that
 * joins them with | is a vector loop on every instruction set. */
FTH__MATH uint32_t fth__is_far_f32(float x)
{
    const uint32_t u = fth__bits_f32(x) & 0x7fffffffu;
    return (fth__bits_f32(FTH__NEAR_F32) - u) & (u - 0x7f800000u);
}
FTH__MATH uint64_t fth__is_far_f64(double x)
{
    const uint64_t u = fth__bits_f64(x) & UINT64_C(0x7fffffffffffffff);
    return (fth__bits_f64(FTH__NEAR_F64) - u) & (u - UINT64_C(0x7ff0000000000000));
}

/* ---- arguments near zero: x = q pi/2 + r ---- */

/* In f64, where 30 bits of pi/2 times q is exact. */
FTH__MATH float fth__sincos_reduce_f32(float x, uint32_t *q)
{
    const double magic = 6755399441055744.0;
    const double t = (double)x * 0.63661977236758134 + magic;
    const double n = t - magic;
    *q = (uint32_t)fth__bits_f64(t);
    return (float)(((double)x - n * 0x1.921fb54p+0) - n * 0x1.10b4611a62633p-30);
}
/* Three pieces of pi/2 of 23 bits times q are exact and the rest is kept in *tail. */
FTH__MATH double fth__sincos_reduce_f64(double x, double *tail, uint64_t *q)
{
    const double magic = 6755399441055744.0;
    const double t = x * 0.63661977236758134 + magic;
    const double n = t - magic;
    *q = fth__bits_f64(t);
    const double a = (x - n * 0x1.921fb4p+0) - n * 0x1.4442dp-24;
    const double b = n * 0x1.846988p-48;
    const double c = a - b;
    const double d = ((a - c) - b) - n * 0x1.8cc51701b839ap-72;
    const double r = c + d;
    *tail = (c - r) + d;
    return r;
}

/* ---- arguments far from zero ---- */

typedef struct fth__turn {
    double r, tail; /* what is left, in two parts */
    uint64_t q;     /* quarters of a turn, the last bits of them */
} fth__turn;

/* Of a finite |x| >= 2^23. With x = m 2^e, bits of 2/pi that give whole turns are left out, and 192
 * bits behind them leave an error of 2^-137 quarters; no double is nearer than 2^-62 to one. */
FTH__FAR fth__turn fth__far_reduce(double x)
{
    /* 2/pi behind the point, 32 bits each, after 32 zeros */
    const uint32_t bits[38] = {
        0x00000000, 0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041,
        0xfe5163ab, 0xdebbc561, 0xb7246e3a, 0x424dd2e0, 0x06492eea, 0x09d1921c, 0xfe1deb1c,
        0xb129a73e, 0xe88235f5, 0x2ebb4484, 0xe99c7026, 0xb45f7e41, 0x3991d639, 0x835339f4,
        0x9c845f8b, 0xbdf9283b, 0x1ff897ff, 0xde05980f, 0xef2f118b, 0x5a0a6d1f, 0x6d367ecf,
        0x27cb09b7, 0x4f463f66, 0x9e5fea2d, 0x7527bac7, 0xebe5f17b, 0x3d0739f7, 0x8a5292ea,
        0x6bfb5fb1, 0x1f8d5d08, 0x56033046};
    const uint64_t u = fth__bits_f64(x);
    const uint64_t m = (u & UINT64_C(0x000fffffffffffff)) | UINT64_C(0x0010000000000000);
    const uint32_t from = (uint32_t)(u >> 52 & 2047u) - 1075u - 2u + 32u; /* bit after e - 2 */
    const uint32_t word = from >> 5, shift = from & 31u;
    /* m times the window, modulo 2^192: the last limb of the window first */
    uint32_t p[6];
    uint64_t carry_low = 0, carry_high = 0;
    uint32_t below = 0; /* limb of m's high half times the limb before */
    for (int i = 0; i < 6; i++) {
        const uint64_t pair =
            (uint64_t)bits[word + 5u - (uint32_t)i] << 32 | bits[word + 6u - (uint32_t)i];
        const uint64_t w = (pair << shift) >> 32;
        carry_low += w * (m & 0xffffffffu);
        const uint64_t sum = (carry_low & 0xffffffffu) + below;
        p[i] = (uint32_t)sum;
        carry_low = (carry_low >> 32) + (sum >> 32);
        carry_high += w * (m >> 32);
        below = (uint32_t)carry_high;
        carry_high >>= 32;
    }
    /* two bits of quarters, then the fraction; what is over a half counts from the next quarter */
    uint32_t f[4];
    for (int i = 0; i < 4; i++) f[i] = p[i + 2] << 2 | p[i + 1] >> 30;
    const uint32_t over = f[3] >> 31, flip = 0u - over;
    for (int i = 0; i < 4; i++) f[i] ^= flip;
    const double a = (double)f[3] * 0x1p-32, b = (double)f[2] * 0x1p-64;
    const double c = ((double)f[1] + (double)f[0] * 0x1p-32) * 0x1p-96;
    const double s = a + b, rest = (b - (s - a)) + c;
    const double hi = s + rest, lo = rest - (hi - s);
    const fth__two t = fth__two_product(hi, 1.5707963267948966);
    const double low = t.lo + (hi * 6.123233995736766e-17 + lo * 1.5707963267948966);
    const double r = t.hi + low, tail = low - (r - t.hi);
    const uint64_t q = (p[5] >> 30) + over;
    const int minus = (u >> 63) != 0; /* of the argument; the fraction has its own */
    const int back = minus != (over != 0);
    return FTH__MAKE(fth__turn){back ? -r : r, back ? -tail : tail, minus ? 0u - q : q};
}

/* ---- on [-pi/4, pi/4] ---- */

FTH__MATH float fth__sin_poly_f32(float r)
{
    const float q = r * r;
    return r + r * q * FTH__POLY3(q, -0.166666647f, 0.00833274594f, -0.000195873873f);
}
FTH__MATH float fth__cos_poly_f32(float r)
{
    const float q = r * r;
    return (1.0f - 0.5f * q) +
           q * q * FTH__POLY3(q, 0.0416666646f, -0.00138883007f, 2.45474375e-5f);
}
/* sin(r + q pi/2) */
FTH__MATH float fth__sin_quadrant_f32(float r, uint32_t q)
{
    const float y = (q & 1u) ? fth__cos_poly_f32(r) : fth__sin_poly_f32(r);
    return fth__from_bits_f32(fth__bits_f32(y) ^ ((q & 2u) << 30));
}
FTH__MATH double fth__sin_poly_f64(double r, double tail)
{
    const double q = r * r;
    const double p =
        FTH__POLY6(q, -0.16666666666666665, 0.0083333333333309246, -0.00019841269836722436,
                   2.7557316083825741e-6, -2.5051127945965639e-8, 1.5917848665121939e-10);
    return r + (r * q * p + tail * (1.0 - 0.5 * q));
}
FTH__MATH double fth__cos_poly_f64(double r, double tail)
{
    const double q = r * r;
    const double p =
        FTH__POLY6(q, 0.041666666666666665, -0.0013888888888887382, 2.4801587298743081e-5,
                   -2.7557317260014707e-7, 2.0876143829213937e-9, -1.1382456865840482e-11);
    return 1.0 - (0.5 * q - (q * q * p - r * tail));
}
FTH__MATH double fth__sin_quadrant_f64(double r, double tail, uint64_t q)
{
    const double y = (q & 1u) ? fth__cos_poly_f64(r, tail) : fth__sin_poly_f64(r, tail);
    return fth__from_bits_f64(fth__bits_f64(y) ^ ((q & 2u) << 62));
}

/* ---- the functions ---- */

FTH__MATH float fth__sin_near_f32(float x)
{
    uint32_t q;
    const float r = fth__sincos_reduce_f32(x, &q);
    const float y = fth__sin_quadrant_f32(r, q);
    const float special = x == 0.0f ? x : x - x;
    return ((x != 0.0f) & (fth__fabs_f32(x) < (float)INFINITY)) ? y : special;
}
FTH__MATH float fth__cos_near_f32(float x)
{
    uint32_t q;
    const float r = fth__sincos_reduce_f32(x, &q);
    const float y = fth__sin_quadrant_f32(r, q + 1u);
    return fth__fabs_f32(x) < (float)INFINITY ? y : x - x;
}
FTH__MATH double fth__sin_near_f64(double x)
{
    uint64_t q;
    double tail;
    const double r = fth__sincos_reduce_f64(x, &tail, &q);
    const double y = fth__sin_quadrant_f64(r, tail, q);
    const double special = x == 0.0 ? x : x - x;
    return ((x != 0.0) & (fth__fabs_f64(x) < (double)INFINITY)) ? y : special;
}
FTH__MATH double fth__cos_near_f64(double x)
{
    uint64_t q;
    double tail;
    const double r = fth__sincos_reduce_f64(x, &tail, &q);
    const double y = fth__sin_quadrant_f64(r, tail, q + 1u);
    return fth__fabs_f64(x) < (double)INFINITY ? y : x - x;
}

#define FTH__DEFINE_TURNED(name, more)                                                             \
    FTH__MATH float fth__##name##_f32(float x)                                                     \
    {                                                                                              \
        if (fth__is_far_f32(x) >> 31 == 0) return fth__##name##_near_f32(x);                       \
        const fth__turn t = fth__far_reduce((double)x);                                            \
        return fth__sin_quadrant_f32((float)t.r, (uint32_t)t.q + more##u);                         \
    }                                                                                              \
    FTH__MATH double fth__##name##_f64(double x)                                                   \
    {                                                                                              \
        if (fth__is_far_f64(x) >> 63 == 0) return fth__##name##_near_f64(x);                       \
        const fth__turn t = fth__far_reduce(x);                                                    \
        return fth__sin_quadrant_f64(t.r, t.tail, t.q + more##u);                                  \
    }
FTH__DEFINE_TURNED(sin, 0)
FTH__DEFINE_TURNED(cos, 1)
#undef FTH__DEFINE_TURNED

#endif
