/* vecmath_gamma.h - log gamma and its first two derivatives.
 *
 * One scheme for the three: reflect arguments below 1/2, shift arguments below 8 up by 8 with one
 * product, then Stirling's series as a fit in 1/z^2. Error 3e-15 of the value or of one, whichever
 * is larger; the f32 functions compute in f64.
 */
#ifndef FTH_OPS_VECMATH_GAMMA_H
#define FTH_OPS_VECMATH_GAMMA_H

#include "ops/vecmath_trig.h"

/* sin(pi x) and cos(pi x): the reduction by whole numbers is exact. */
FTH__MATH double fth__sinpi_f64(double x)
{
    const double f = x - fth__rint_f64(x), a = fth__fabs_f64(f);
    const double near = fth__sin_poly_f64(a * 3.1415926535897931, a * 1.2246467991473532e-16);
    const double far =
        fth__cos_poly_f64((0.5 - a) * 3.1415926535897931, (0.5 - a) * 1.2246467991473532e-16);
    return a < 0.25 ? near : far; /* of |f|: the sign is not used below */
}
FTH__MATH double fth__cotpi_f64(double x)
{
    const double f = x - fth__rint_f64(x), a = fth__fabs_f64(f);
    const double b = 0.5 - a, pi = 3.1415926535897931, pi_low = 1.2246467991473532e-16;
    const double s =
        a < 0.25 ? fth__sin_poly_f64(a * pi, a * pi_low) : fth__cos_poly_f64(b * pi, b * pi_low);
    const double c =
        a < 0.25 ? fth__cos_poly_f64(a * pi, a * pi_low) : fth__sin_poly_f64(b * pi, b * pi_low);
    return fth__copysign_f64(c / s, f);
}

/* log gamma of y >= 1/2 less the parts that need care: the sum of the logarithms goes in. */
FTH__MATH double fth__lgamma_series_f64(double z)
{
    const double v = 1.0 / (z * z);
    return FTH__POLY8(v, 0.083333333333333333, -0.0027777777777776748, 0.00079365079351172819,
                      -0.00059523802342912057, 0.00084173252680149568, -0.001914965912100655,
                      0.0062081367635790043, -0.020855820792300101) /
           z;
}
FTH__MATH double fth__lgamma_finish_f64(double x, double y, double positive)
{
    const double whole =
        y < (double)INFINITY ? positive : y; /* at infinity the parts have no difference */
    /* gamma(x) is 1/x where pi/sin(pi x) could overflow */
    const double a = fth__fabs_f64(x), s = fth__sinpi_f64(x);
    const int tiny = a < 0x1p-60;
    const double log = fth__log_f64(tiny ? a : 3.1415926535897931 / s);
    const double mirror = (tiny ? -log : log) - whole;
    const double r = x < 0.5 ? mirror : whole;
    const int pole = ((s == 0.0) & (x < 0.5)) | (x == -(double)INFINITY);
    const int zero = (x == 1.0) | (x == 2.0);
    return pole ? (double)INFINITY : zero ? 0.0 : r;
}
FTH__MATH double fth__lgamma_f64(double x)
{
    const double y = x < 0.5 ? 1.0 - x : x;
    const int low = y < 8.0;
    const double z = low ? y + 8.0 : y;
    const double a = y * (y + 7.0);
    const double prod = low ? (a * (a + 6.0)) * ((a + 10.0) * (a + 12.0)) : 1.0;
    /* (z - 1/2) log z - log prod - z cancels: the first two are kept in two doubles each */
    const fth__two lz = fth__log_two_f64(z), lp = fth__log_two_f64(prod);
    const fth__two t = fth__two_product(lz.hi, z - 0.5);
    const double dz = low ? y - (z - 8.0) : 0.0; /* what rounding z dropped */
    const double sum = t.hi - lp.hi, b = sum - t.hi;
    const double slip = (t.hi - (sum - b)) - (lp.hi + b);
    const double small = slip + ((t.lo + lz.lo * (z - 0.5)) - lp.lo) + dz * lz.hi;
    const double g = (sum - z) + ((0.91893853320467274 + fth__lgamma_series_f64(z)) + small);
    const double large =
        (z - 0.5) * (lz.hi - 1.0) + 0.41893853320467274; /* splitting would overflow */
    return fth__lgamma_finish_f64(x, y, z < 1e290 ? g : large);
}
FTH__MATH float fth__lgamma_f32(float x)
{
    const double xd = (double)x;
    const double y = xd < 0.5 ? 1.0 - xd : xd;
    const int low = y < 8.0;
    const double z = low ? y + 8.0 : y;
    const double a = y * (y + 7.0);
    const double log_prod = fth__log_f64((a * (a + 6.0)) * ((a + 10.0) * (a + 12.0)));
    const double g = (z - 0.5) * fth__log_f64(z) - (low ? log_prod : 0.0) - z + 0.91893853320467274;
    return (float)fth__lgamma_finish_f64(xd, y, g + fth__lgamma_series_f64(z));
}

FTH__MATH double fth__digamma_f64(double x)
{
    const int mirrored = x < 0.5;
    const double y = mirrored ? 1.0 - x : x;
    const int low = y < 8.0;
    const double z = low ? y + 8.0 : y;
    /* 1/y + ... + 1/(y+7) as one fraction: pairs that sum to the same number share it */
    const double t = y + y + 7.0;
    const double a = y * (y + 7.0), b = (y + 1.0) * (y + 6.0), c = (y + 2.0) * (y + 5.0),
                 d = (y + 3.0) * (y + 4.0);
    const double ab = a * b, cd = c * d;
    const double top = t * ((a + b) * cd + (c + d) * ab);
    const double shift = low ? top / (ab * cd) : 0.0;
    const double v = 1.0 / (z * z);
    const double series =
        v * FTH__POLY8(v, 0.083333333333333333, -0.0083333333333316642, 0.0039682539659997004,
                       -0.0041666655015166474, 0.0075754599203571363, -0.021051060907041664,
                       0.080023374611146252, -0.29942536989712537);
    const double g = ((fth__log_f64(z) - 0.5 / z) - series) - shift;
    const double r = mirrored ? g - 3.1415926535897931 * fth__cotpi_f64(x) : g;
    return x == -(double)INFINITY ? (double)NAN : r;
}

FTH__MATH double fth__trigamma_f64(double x)
{
    const int mirrored = x < 0.5;
    const double y = mirrored ? 1.0 - x : x;
    const int low = y < 8.0;
    const double z = low ? y + 8.0 : y;
    double shift = 0.0;
    for (int k = 7; k >= 0; k--) {
        const double q = y + (double)k;
        shift += 1.0 / (q * q);
    }
    shift = low ? shift : 0.0;
    const double u = 1.0 / z, v = u * u;
    const double high = FTH__POLY4(v, -0.25303182991848652, 1.1574253413403405, -6.4640994181234219,
                                   30.162324880966333);
    const double series =
        FTH__POLY6(v, 0.16666666666666667, -0.0333333333333322, 0.023809523807580094,
                   -0.033333332043804024, 0.075757144590684228, high);
    const double g = u + v * (0.5 + u * series) + shift;
    const double s = fth__sinpi_f64(x);
    const double r = mirrored ? 9.8696044010893586 / (s * s) - g : g;
    return x == -(double)INFINITY ? (double)NAN : r;
}

FTH__MATH float fth__digamma_f32(float x)
{
    return (float)fth__digamma_f64((double)x);
}
FTH__MATH float fth__trigamma_f32(float x)
{
    return (float)fth__trigamma_f64((double)x);
}

#endif
