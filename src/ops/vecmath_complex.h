/* vecmath_complex.h - complex arithmetic and functions.
 *
 * c64 goes through double where a square could overflow; c128 scales by powers of two instead, so
 * that what is between them overflows or underflows only where the result does.
 * Infinite parts follow from the formulas: C's Annex G repairs are not made.
 */
#ifndef FTH_OPS_VECMATH_COMPLEX_H
#define FTH_OPS_VECMATH_COMPLEX_H

#include "ops/vecmath_trig.h"

/* The sign changed by its bit. Products are written with it as sums only: where one part is a sum
 * and the other a difference, gcc 12 makes vector code that fuses the multiplication whatever it is
 * told. */
FTH__MATH float fth__flip_f32(float x)
{
    return fth__from_bits_f32(fth__bits_f32(x) ^ 0x80000000u);
}
FTH__MATH double fth__flip_f64(double x)
{
    return fth__from_bits_f64(fth__bits_f64(x) ^ UINT64_C(0x8000000000000000));
}

#define FTH__DEFINE_COMPLEX(S, C, R, r)                                                            \
    FTH__MATH C fth__cmake_##r(R re, R im)                                                         \
    {                                                                                              \
        return FTH__MAKE(C){re, im};                                                               \
    }                                                                                              \
    FTH__MATH C fth__cadd_##S(C x, C y)                                                            \
    {                                                                                              \
        return FTH__MAKE(C){x.re + y.re, x.im + y.im};                                             \
    }                                                                                              \
    FTH__MATH C fth__csub_##S(C x, C y)                                                            \
    {                                                                                              \
        return FTH__MAKE(C){x.re - y.re, x.im - y.im};                                             \
    }                                                                                              \
    FTH__MATH C fth__cmul_##S(C x, C y)                                                            \
    {                                                                                              \
        const R minus = fth__flip_##r(x.im);                                                       \
        return FTH__MAKE(C){x.re * y.re + minus * y.im, x.re * y.im + x.im * y.re};                \
    }                                                                                              \
    FTH__MATH C fth__cneg_##S(C x)                                                                 \
    {                                                                                              \
        return FTH__MAKE(C){-x.re, -x.im};                                                         \
    }                                                                                              \
    FTH__MATH C fth__conj_##S(C x)                                                                 \
    {                                                                                              \
        return FTH__MAKE(C){x.re, -x.im};                                                          \
    }                                                                                              \
    FTH__MATH C fth__cselect_##S(int x, C y, C z)                                                  \
    {                                                                                              \
        return FTH__MAKE(C){x ? y.re : z.re, x ? y.im : z.im};                                     \
    }                                                                                              \
    FTH__MATH R fth__carg_##S(C x)                                                                 \
    {                                                                                              \
        return fth__atan2_##r(x.im, x.re);                                                         \
    }                                                                                              \
    FTH__MATH C fth__ctimes_##S(C x, R y)                                                          \
    {                                                                                              \
        return FTH__MAKE(C){x.re * y, x.im * y};                                                   \
    }
FTH__DEFINE_COMPLEX(c64, fth_c64, float, f32)
FTH__DEFINE_COMPLEX(c128, fth_c128, double, f64)
#undef FTH__DEFINE_COMPLEX

/* e^re may overflow where its product with a small sine does not: up to two factors e^by come
 * behind that product. The near form is for arguments that need none. */
#define FTH__DEFINE_CEXP(S, C, R, r, U, inf, by, e_by)                                             \
    FTH__MATH U fth__is_far_##S(C x)                                                               \
    {                                                                                              \
        const U u = fth__bits_##r(x.re);                                                           \
        return fth__is_far_##r(x.im) | ((fth__bits_##r((R)by) - u) & ~u & (u - inf));              \
    }                                                                                              \
    FTH__MATH C fth__cexp_near_##S(C x)                                                            \
    {                                                                                              \
        const R e = fth__exp_##r(x.re);                                                            \
        const R im = e * fth__sin_near_##r(x.im);                                                  \
        return FTH__MAKE(C){e * fth__cos_near_##r(x.im), x.im == 0 ? x.im : im};                   \
    }                                                                                              \
    FTH__MATH C fth__cexp_##S(C x)                                                                 \
    {                                                                                              \
        const int big = x.re > (R)by, huge = x.re > 2 * (R)by;                                     \
        const R e = fth__exp_##r(huge ? x.re - 2 * (R)by : big ? x.re - (R)by : x.re);             \
        const R more = big ? (R)e_by : (R)1, most = huge ? (R)e_by : (R)1;                         \
        const R im = e * fth__sin_##r(x.im) * more * most;                                         \
        return FTH__MAKE(C){e * fth__cos_##r(x.im) * more * most, x.im == 0 ? x.im : im};          \
    }
FTH__DEFINE_CEXP(c64, fth_c64, float, f32, uint32_t, 0x7f800000u, 80, 5.5406223843935098e34)
FTH__DEFINE_CEXP(c128, fth_c128, double, f64, uint64_t, UINT64_C(0x7ff0000000000000), 700,
                 1.0142320547350045e304)
#undef FTH__DEFINE_CEXP

FTH__MATH double fth__square_sum_c64(fth_c64 x)
{
    return (double)x.re * (double)x.re + (double)x.im * (double)x.im;
}
FTH__MATH int fth__cwide_c64(fth_c64 x)
{
    const int re = fth__fabs_f32(x.re) == (float)INFINITY,
              im = fth__fabs_f32(x.im) == (float)INFINITY;
    return re | im;
}
FTH__MATH float fth__cabs_c64(fth_c64 x)
{
    const float r = (float)fth__sqrt_f64(fth__square_sum_c64(x));
    return fth__cwide_c64(x) ? (float)INFINITY : r;
}
FTH__MATH fth_c64 fth__cdiv_c64(fth_c64 x, fth_c64 y)
{
    const double d = fth__square_sum_c64(y);
    const double re = (double)x.re * (double)y.re + (double)x.im * (double)y.im;
    const double im = (double)x.im * (double)y.re + (double)fth__flip_f32(x.re) * (double)y.im;
    return FTH__MAKE(fth_c64){(float)(re / d), (float)(im / d)};
}
FTH__MATH fth_c64 fth__crecip_c64(fth_c64 x)
{
    const double d = fth__square_sum_c64(x);
    return FTH__MAKE(fth_c64){(float)((double)x.re / d), (float)(-(double)x.im / d)};
}
FTH__MATH fth_c64 fth__csign_c64(fth_c64 x)
{
    const double r = fth__sqrt_f64(fth__square_sum_c64(x));
    const fth_c64 unit = {(float)((double)x.re / r), (float)((double)x.im / r)};
    return fth__cselect_c64(r == 0.0, x, unit);
}
FTH__MATH fth_c64 fth__clog_c64(fth_c64 x)
{
    const double a = (double)fth__fabs_f32(x.re), b = (double)fth__fabs_f32(x.im);
    const double big = a > b ? a : b, small = a > b ? b : a;
    const double square = fth__square_sum_c64(x);
    /* near the unit circle: of squares of floats nothing is lost, so one rounding is made */
    const double near = fth__log1p_f64((big * big - 1.0) + small * small);
    const double re = ((square > 0.5) & (square < 2.0)) ? near : fth__log_f64(square);
    return FTH__MAKE(fth_c64){(float)(0.5 * re), fth__carg_c64(x)};
}
FTH__MATH fth_c64 fth__csqrt_c64(fth_c64 x)
{
    const double re = (double)x.re, im = (double)x.im;
    const double r = fth__cwide_c64(x) ? (double)INFINITY : fth__sqrt_f64(fth__square_sum_c64(x));
    const double t = fth__sqrt_f64(0.5 * fth__fabs_f64(re) + 0.5 * r);
    const double u = t == 0.0 ? t : im / (t + t);
    const double low = x.re < 0.0f ? fth__fabs_f64(u) : t,
                 high = x.re < 0.0f ? fth__copysign_f64(t, im) : u;
    return FTH__MAKE(fth_c64){(float)low, (float)high};
}

/* A power of two near 1/max(|re|, |im|): what it multiplies neither overflows nor underflows. */
FTH__MATH double fth__cscale_c128(fth_c128 x)
{
    const double a = fth__fabs_f64(x.re), b = fth__fabs_f64(x.im);
    const double m = a > b ? a : b;
    const uint64_t top = fth__bits_f64(m) >> 52;
    const uint64_t near = top < 1u ? 1u : top > 2045u ? 2045u : top;
    return fth__from_bits_f64((2046u - near) << 52);
}
FTH__MATH double fth__cabs_finite_c128(fth_c128 x)
{
    const double s = fth__cscale_c128(x);
    const double re = x.re * s, im = x.im * s;
    return fth__sqrt_f64(re * re + im * im) / s;
}
FTH__MATH int fth__cwide_c128(fth_c128 x)
{
    const int re = fth__fabs_f64(x.re) == (double)INFINITY,
              im = fth__fabs_f64(x.im) == (double)INFINITY;
    return re | im;
}
FTH__MATH double fth__cabs_c128(fth_c128 x)
{
    return fth__cwide_c128(x) ? (double)INFINITY : fth__cabs_finite_c128(x);
}
FTH__MATH fth_c128 fth__cdiv_c128(fth_c128 x, fth_c128 y)
{
    const double sx = fth__cscale_c128(x), sy = fth__cscale_c128(y);
    const double xr = x.re * sx, xi = x.im * sx, re = y.re * sy, im = y.im * sy;
    const double d = re * re + im * im;
    /* back by sy / sx, whose exponent may have one bit more than a double's */
    const uint64_t n = (fth__bits_f64(sy) >> 52) - (fth__bits_f64(sx) >> 52);
    return FTH__MAKE(fth_c128){fth__scale_f64((xr * re + xi * im) / d, n),
                               fth__scale_f64((xi * re + fth__flip_f64(xr) * im) / d, n)};
}
FTH__MATH fth_c128 fth__crecip_c128(fth_c128 x)
{
    const double s = fth__cscale_c128(x);
    const double re = x.re * s, im = x.im * s;
    const double d = re * re + im * im;
    return FTH__MAKE(fth_c128){re / d * s, -im / d * s};
}
FTH__MATH fth_c128 fth__csign_c128(fth_c128 x)
{
    const double s = fth__cscale_c128(x);
    const double re = x.re * s, im = x.im * s;
    const double r = fth__sqrt_f64(re * re + im * im);
    return fth__cselect_c128(r == 0.0, x, FTH__MAKE(fth_c128){re / r, im / r});
}
/* 1, or what keeps the absolute value of a huge or tiny number, and its last digits. */
FTH__MATH double fth__cguard_c128(fth_c128 x)
{
    const double a = fth__fabs_f64(x.re), b = fth__fabs_f64(x.im);
    const double m = a > b ? a : b;
    return m > 0x1p1020 ? 0x1p-4 : m < 0x1p-900 ? 0x1p108 : 1.0;
}
FTH__MATH fth_c128 fth__clog_c128(fth_c128 x)
{
    const double a = fth__fabs_f64(x.re), b = fth__fabs_f64(x.im);
    const double big = a > b ? a : b, small = a > b ? b : a;
    /* near the unit circle |x|^2 - 1 cancels: squares in two doubles each */
    const fth__two p = fth__two_product(big, big), q = fth__two_product(small, small);
    const double one = p.hi - 1.0, sum = one + q.hi, back = sum - one;
    const double slip = (one - (sum - back)) + (q.hi - back);
    const double near = 0.5 * fth__log1p_f64(sum + (slip + (p.lo + q.lo)));
    const double s = fth__cguard_c128(x);
    const double r = fth__cabs_finite_c128(fth__ctimes_c128(x, s));
    const double less = s < 1.0 ? -2.7725887222397812 : s > 1.0 ? 74.859895500474093 : 0.0;
    const double re = ((r > 0.75) & (r < 1.4) & (s == 1.0)) ? near : fth__log_f64(r) - less;
    return FTH__MAKE(fth_c128){fth__cwide_c128(x) ? (double)INFINITY : re, fth__carg_c128(x)};
}
FTH__MATH fth_c128 fth__csqrt_c128(fth_c128 x)
{
    const double s = fth__cguard_c128(x); /* a power of four */
    const fth_c128 y = fth__ctimes_c128(x, s);
    const double t = fth__sqrt_f64(0.5 * fth__fabs_f64(y.re) + 0.5 * fth__cabs_c128(y));
    const double u = t == 0.0 ? t : y.im / (t + t);
    const double low = x.re < 0.0 ? fth__fabs_f64(u) : t,
                 high = x.re < 0.0 ? fth__copysign_f64(t, x.im) : u;
    const double root = s < 1.0 ? 0x1p2 : s > 1.0 ? 0x1p-54 : 1.0;
    return FTH__MAKE(fth_c128){low * root, high * root};
}

#endif
