/* vecmath_complex.h - complex arithmetic and functions.
 *
 * c64 goes through double where a square could overflow; c128 scales by a power of two instead.
 * Infinite parts follow from the formulas: C's Annex G repairs are not made. clog of c128 near the
 * unit circle is accurate to 3e-15 absolute.
 */
#ifndef FTH_OPS_VECMATH_COMPLEX_H
#define FTH_OPS_VECMATH_COMPLEX_H

#include "ops/vecmath_f32.h"
#include "ops/vecmath_f64.h"

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
    FTH__MATH C fth__cexp_##S(C x)                                                                 \
    {                                                                                              \
        const R e = fth__exp_##r(x.re);                                                            \
        const R im = e * fth__sin_##r(x.im);                                                       \
        return FTH__MAKE(C){e * fth__cos_##r(x.im), x.im == 0 ? x.im : im};                        \
    }
FTH__DEFINE_COMPLEX(c64, fth_c64, float, f32)
FTH__DEFINE_COMPLEX(c128, fth_c128, double, f64)
#undef FTH__DEFINE_COMPLEX

FTH__MATH double fth__square_sum_c64(fth_c64 x)
{
    return (double)x.re * (double)x.re + (double)x.im * (double)x.im;
}
FTH__MATH float fth__cabs_c64(fth_c64 x)
{
    const float r = (float)fth__sqrt_f64(fth__square_sum_c64(x));
    const int re_wide = fth__fabs_f32(x.re) == (float)INFINITY,
              im_wide = fth__fabs_f32(x.im) == (float)INFINITY;
    return (re_wide | im_wide) ? (float)INFINITY : r;
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
    return FTH__MAKE(fth_c64){(float)(0.5 * fth__log_f64(fth__square_sum_c64(x))),
                              fth__carg_c64(x)};
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
    const double s = fth__cscale_c128(y);
    const double re = y.re * s, im = y.im * s;
    const double d = re * re + im * im;
    return FTH__MAKE(fth_c128){(x.re * re + x.im * im) / d * s,
                               (x.im * re + fth__flip_f64(x.re) * im) / d * s};
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
FTH__MATH fth_c128 fth__clog_c128(fth_c128 x)
{
    const double a = fth__fabs_f64(x.re), b = fth__fabs_f64(x.im);
    const double big = a > b ? a : b, small = a > b ? b : a;
    const double near = 0.5 * fth__log1p_f64((big - 1.0) * (big + 1.0) + small * small);
    const double r = fth__cabs_finite_c128(x);
    const double re = ((r > 0.7) & (r < 1.5)) ? near : fth__log_f64(r);
    return FTH__MAKE(fth_c128){fth__cwide_c128(x) ? (double)INFINITY : re, fth__carg_c128(x)};
}

#define FTH__DEFINE_CSQRT(S, C, R, r)                                                              \
    FTH__MATH C fth__csqrt_##S(C x)                                                                \
    {                                                                                              \
        const R half = (R)0.5;                                                                     \
        const R t = fth__sqrt_##r(half * fth__fabs_##r(x.re) + half * fth__cabs_##S(x));           \
        const R u = t == 0 ? t : half * x.im / t;                                                  \
        const C y = x.re < 0 ? FTH__MAKE(C){fth__fabs_##r(u), fth__copysign_##r(t, x.im)}          \
                             : FTH__MAKE(C){t, u};                                                 \
        return y;                                                                                  \
    }
FTH__DEFINE_CSQRT(c64, fth_c64, float, f32)
FTH__DEFINE_CSQRT(c128, fth_c128, double, f64)
#undef FTH__DEFINE_CSQRT

#endif
