/* vecmath_f64.h - functions of double precision.
 *
 * Bar against the true value: relative error 3e-15. Same shapes as vecmath_f32.h; only what differs
 * is commented here.
 */
#ifndef FTH_OPS_VECMATH_F64_H
#define FTH_OPS_VECMATH_F64_H

#include "ops/vecmath_base.h"

/* A small integer, as two's complement, to double without a conversion that AVX2 does not have. */
FTH__MATH double fth__small_f64(uint64_t n)
{
    const double magic = 6755399441055744.0;
    return fth__from_bits_f64(n + fth__bits_f64(magic)) - magic;
}
FTH__MATH double fth__pow2_f64(uint64_t n)
{
    return fth__from_bits_f64((n + 1023u) << 52);
}
FTH__MATH double fth__scale_f64(double x, uint64_t n)
{
    const uint64_t half = ((n + 4096u) >> 1) - 2048u;
    return x * fth__pow2_f64(half) * fth__pow2_f64(n - half);
}
FTH__MATH double fth__exp_reduce_f64(double x, uint64_t *n)
{
    const double magic = 6755399441055744.0;
    const double t = x * 1.4426950408889634 + magic;
    const double n_float = t - magic;
    *n = fth__bits_f64(t) - fth__bits_f64(magic);
    return (x - n_float * 0x1.62e42fefa2p-1) - n_float * 0x1.9ef35793c7673p-41;
}
FTH__MATH double fth__exp_poly_f64(double r)
{
    const double high =
        FTH__POLY5(r, 2.4801587325677462e-5, 2.7557255170000887e-6, 2.755727347871858e-7,
                   2.5105312729622102e-8, 2.0914755325893202e-9);
    return FTH__POLY7(r, 0.5, 0.16666666666666671, 0.04166666666666667, 0.0083333333333260831,
                      0.0013888888888883711, 0.00019841269875002279, high);
}
FTH__MATH double fth__exp_f64(double x)
{
    double c = x > 720.0 ? 720.0 : x;
    c = c < -760.0 ? -760.0 : c;
    uint64_t n;
    const double r = fth__exp_reduce_f64(c, &n);
    return fth__scale_f64(1.0 + (r + r * r * fth__exp_poly_f64(r)), n);
}
FTH__MATH double fth__expm1_f64(double x)
{
    double c = x > 720.0 ? 720.0 : x;
    c = c < -50.0 ? -50.0 : c;
    uint64_t n;
    const double r = fth__exp_reduce_f64(c, &n);
    const double p = r + r * r * fth__exp_poly_f64(r);
    const double s = fth__pow2_f64(n - 1u);
    const double e = (s * p + (s - 0.5)) * 2.0;
    const double y = fth__fabs_f64(x) < 1e-17 ? x : e;
    return x > 710.0 ? (double)INFINITY : y;
}

FTH__MATH double fth__log_core_f64(double f, double k, double c)
{
    const double s = f / (2.0 + f);
    const double w = s * s;
    const double half = 0.5 * f * f;
    const double p = w * FTH__POLY7(w, 0.66666666666666697, 0.39999999999898891,
                                    0.28571428626253838, 0.22222211089379496, 0.18182892432536871,
                                    0.15331611722055008, 0.14617807153417325);
    const double low = s * (half + p) + (k * 0x1.ef35793c7673p-45 + c);
    return k * 0x1.62e42fefa38p-1 + (f - (half - low));
}
FTH__MATH double fth__log_split_f64(double x, double *k)
{
    const uint64_t root = UINT64_C(0x3fe6a09e667f3bcd), one = UINT64_C(0x3ff0000000000000);
    const uint64_t u = fth__bits_f64(x) + (one - root);
    *k = fth__small_f64((u >> 52) - 1023u);
    return fth__from_bits_f64((u & UINT64_C(0x000fffffffffffff)) + root);
}
FTH__MATH double fth__log_f64(double x)
{
    const int tiny = x < 2.2250738585072014e-308;
    double k;
    const double m = fth__log_split_f64(tiny ? x * 18014398509481984.0 : x, &k);
    const double r = fth__log_core_f64(m - 1.0, tiny ? k - 54.0 : k, 0.0);
    const double edge = x == 0.0 ? -(double)INFINITY : x < 0.0 ? (double)NAN : x;
    return ((x > 0.0) & (x < (double)INFINITY)) ? r : edge;
}
FTH__MATH double fth__log1p_f64(double x)
{
    const double u = 1.0 + x;
    double k;
    const double m = fth__log_split_f64(u, &k);
    const double lost = (x >= 1.0 ? 1.0 - (u - x) : x - (u - 1.0)) / u;
    const double r = fth__log_core_f64(k == 0.0 ? x : m - 1.0, k, k == 0.0 ? 0.0 : lost);
    const double edge = x == -1.0 ? -(double)INFINITY : x < -1.0 ? (double)NAN : x;
    return ((x > -1.0) & (x < (double)INFINITY) & (x != 0.0)) ? r : edge;
}

FTH__MATH double fth__tanh_f64(double x)
{
    const double a = fth__fabs_f64(x);
    const double t = fth__expm1_f64(2.0 * (a > 22.0 ? 22.0 : a));
    return fth__copysign_f64(t / (t + 2.0), x);
}
FTH__MATH double fth__sigmoid_f64(double x)
{
    const double e = fth__exp_f64(-fth__fabs_f64(x));
    return (x < 0.0 ? e : 1.0) / (1.0 + e);
}
FTH__MATH double fth__softplus_f64(double x)
{
    const double y = (x > 0.0 ? x : 0.0) + fth__log1p_f64(fth__exp_f64(-fth__fabs_f64(x)));
    return x != x ? x : y;
}
FTH__MATH double fth__erf_f64(double x)
{
    const double a = fth__fabs_f64(x);
    const double q = x * x;
    const double high =
        FTH__POLY5(q, -1.4924694012861657e-5, 1.6446884708989808e-6, -1.6204274038071653e-7,
                   1.3701562962848502e-8, -7.7608627122511049e-10);
    const double small =
        x * FTH__POLY8(q, 1.1283791670955126, -0.37612638903183517, 0.11283791670943994,
                       -0.026866170643068937, 0.0052239776056792729, -0.00085483259043279181,
                       0.00012055292722564614, high);
    const double c = a > 6.2 ? 6.2 : a;
    const double t = (c - 2.0) / (c + 2.0);
    const double tail =
        FTH__POLY8(t, 4.3551009148967673e-5, 0.00017436173107364356, 2.7579567499516297e-5,
                   -2.7629941615113234e-5, -1.4280309739473182e-5, 1.8971042555662125e-6,
                   4.4154730023314125e-6, -4.7790400483257673e-7);
    const double t2 = t * t, t4 = t2 * t2;
    const double p = FTH__POLY8(t, 0.25539567631050569, -0.42718584741395928, 0.2416581942425029,
                                -0.078978581015532389, 0.0037328923999553301, 0.0069974617280707136,
                                -0.0008471430480770104, -0.00098197683333790311) +
                     t4 * t4 * tail;
    const double large = fth__copysign_f64(1.0 - fth__exp_f64(-c * c) * p, x);
    return a < 1.0 ? small : large;
}

FTH__MATH double fth__atan2_f64(double y, double x)
{
    const double a = fth__fabs_f64(y), b = fth__fabs_f64(x);
    const double top = a > b ? b : a, bottom = a > b ? a : b;
    const double t = top == bottom ? (bottom == 0.0 ? 0.0 : 1.0) : top / bottom;
    const int far = t > 0.41421356237309503;
    const double u = far ? (t - 1.0) / (t + 1.0) : t;
    const double q = u * u;
    const double high = FTH__POLY4(q, 0.058580687568615105, -0.050850304928109405,
                                   0.039219552532551294, -0.019162068915902574);
    const double p =
        u + u * q *
                FTH__POLY8(q, -0.3333333333333333, 0.19999999999995479, -0.14285714284657894,
                           0.11111111014561014, -0.09090904549884611, 0.076921825351166482,
                           -0.066645022156714471, high);
    double r = far ? p + 0.78539816339744831 : p;
    r = a > b ? 1.5707963267948966 - r : r;
    r = (fth__bits_f64(x) >> 63) ? 3.1415926535897931 - r : r;
    return ((x != x) | (y != y)) ? x + y : fth__copysign_f64(r, y);
}

/* ---- powers: log in two doubles, because an error of the logarithm is multiplied by y - */
typedef struct fth__two {
    double hi, lo;
} fth__two;
FTH__MATH fth__two fth__two_product(double a, double b)
{
    /* Dekker: halves of 26 bits have exact products */
    const double as = a * 134217729.0, bs = b * 134217729.0;
    const double ah = as - (as - a), bh = bs - (bs - b);
    const double al = a - ah, bl = b - bh;
    const double p = a * b;
    return FTH__MAKE(fth__two){p, ((ah * bh - p) + ah * bl + al * bh) + al * bl};
}
/* log of a positive finite number, about 65 bits of it. */
FTH__MATH fth__two fth__log_two_f64(double x)
{
    const int tiny = x < 2.2250738585072014e-308;
    double k;
    const double m = fth__log_split_f64(tiny ? x * 18014398509481984.0 : x, &k);
    k = tiny ? k - 54.0 : k;
    const double f = m - 1.0, g = 2.0 + f;
    const double s = f / g;
    const fth__two sg = fth__two_product(s, g);
    const double s_low = ((f - sg.hi) - sg.lo - s * (f - (g - 2.0))) / g;
    /* 2s + 2/3 s^3 + s^5 (...): the cubic term too needs more bits than a double has */
    const fth__two w = fth__two_product(s, s);
    const fth__two cube = fth__two_product(s, w.hi);
    const fth__two third = fth__two_product(cube.hi, 0.66666666666666663);
    const double third_low =
        third.lo + (cube.lo + s * w.lo) * 0.66666666666666663 + cube.hi * 3.7007434154171886e-17;
    const double high = FTH__POLY4(w.hi, 0.15384574966460907, 0.13335645841949377,
                                   0.11687962997542156, 0.1188345239410786);
    const double p = FTH__POLY5(w.hi, 0.39999999999999992, 0.28571428571435408, 0.22222222219844231,
                                0.18181818595769065, high);
    /* k ln2 is exact in its leading part and not smaller than 2s unless k is 0 */
    const double a = k * 0x1.62e42fefa38p-1, b = 2.0 * s;
    const double ab = a + b;
    const double lost_ab = k == 0.0 ? 0.0 : (a - ab) + b;
    const double sum = ab + third.hi;
    const double lost = lost_ab + ((ab - sum) + third.hi);
    const double low = lost + (k * 0x1.ef35793c7673p-45 +
                               (2.0 * s_low * (1.0 + w.hi) + (third_low + cube.hi * w.hi * p)));
    const double hi = sum + low;
    return FTH__MAKE(fth__two){hi, (sum - hi) + low};
}
FTH__MATH double fth__pow_f64(double x, double y)
{
    const double limit = 36893488147419103232.0; /* 2^65: beyond, every power is 0, 1 or infinite */
    double e = y > limit ? limit : y;
    e = e < -limit ? -limit : e;
    const fth__two l = fth__log_two_f64(fth__fabs_f64(x));
    const fth__two p = fth__two_product(l.hi, e);
    const double low = p.lo + l.lo * e;
    const double body = fth__exp_f64(p.hi);
    const int fits = (p.hi > -744.0) & (p.hi < 709.0);
    double r = fits ? body + body * low : body;

    const double ay = fth__fabs_f64(y);
    const int whole = fth__rint_f64(ay) == ay;
    const int odd = whole & (ay < 9007199254740992.0) & (fth__rint_f64(ay * 0.5) != ay * 0.5);
    const double ax = fth__fabs_f64(x);
    const double huge = y > 0.0 ? (double)INFINITY : 0.0, none = y > 0.0 ? 0.0 : (double)INFINITY;
    r = ax == (double)INFINITY ? huge : r;
    r = ax == 0.0 ? none : r;
    r = ax == 1.0 ? 1.0 : r;
    r = ((fth__bits_f64(x) >> 63) != 0) & odd ? -r : r;
    r = ((x < 0.0) & !whole & (ax < (double)INFINITY)) ? (double)NAN : r;
    r = ((x != x) | (y != y)) ? x + y : r;
    return ((y == 0.0) | (x == 1.0)) ? 1.0 : r;
}
FTH__MATH float fth__pow_f32(float x, float y)
{
    /* in double an error of the logarithm stays far below the last bit of a float */
    const double ax = (double)fth__fabs_f32(x), e = (double)y;
    double k;
    const double m = fth__log_split_f64(ax, &k);
    const float body = (float)fth__exp_f64(e * fth__log_core_f64(m - 1.0, k, 0.0));
    const float ay = fth__fabs_f32(y), af = fth__fabs_f32(x);
    const int whole = fth__rint_f32(ay) == ay;
    const int odd = whole & (ay < 16777216.0f) & (fth__rint_f32(ay * 0.5f) != ay * 0.5f);
    const float huge = y > 0.0f ? (float)INFINITY : 0.0f, none = y > 0.0f ? 0.0f : (float)INFINITY;
    float r = af == (float)INFINITY ? huge : body;
    r = af == 0.0f ? none : r;
    r = af == 1.0f ? 1.0f : r;
    r = ((fth__bits_f32(x) >> 31) != 0) & odd ? -r : r;
    r = ((x < 0.0f) & !whole & (af < (float)INFINITY)) ? (float)NAN : r;
    r = ((x != x) | (y != y)) ? x + y : r;
    return ((y == 0.0f) | (x == 1.0f)) ? 1.0f : r;
}

#endif
