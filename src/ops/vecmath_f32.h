/* vecmath_f32.h - functions of one precision.
 *
 * Bars against the true value: exp and log 2 ulp, the others 4 ulp. Coefficients are Chebyshev
 * fits made for the reduced ranges below.
 */
#ifndef FTH_OPS_VECMATH_F32_H
#define FTH_OPS_VECMATH_F32_H

#include "ops/vecmath_base.h"

/* 2^n for -126 <= n <= 127, n as two's complement. */
FTH__MATH float fth__pow2_f32(uint32_t n)
{
    return fth__from_bits_f32((n + 127u) << 23);
}
/* x * 2^n with one rounding, |n| <= 252: in two steps, so that the result may be subnormal. */
FTH__MATH float fth__scale_f32(float x, uint32_t n)
{
    const uint32_t half = ((n + 512u) >> 1) - 256u;
    return x * fth__pow2_f32(half) * fth__pow2_f32(n - half);
}
/* x = n ln2 + r, |r| <= ln2/2. Adding 1.5*2^23 puts the nearest integer into the low bits. */
FTH__MATH float fth__exp_reduce_f32(float x, uint32_t *n, float *n_float)
{
    const float magic = 12582912.0f;
    const float t = x * 1.44269504f + magic;
    *n = fth__bits_f32(t) - fth__bits_f32(magic);
    *n_float = t - magic;
    return (x - *n_float * 0x1.62ep-1f) - *n_float * 0x1.0bfbe8p-15f;
}
/* (e^r - 1 - r) / r^2 */
FTH__MATH float fth__exp_poly_f32(float r)
{
    return FTH__POLY5(r, 0.5f, 0.166665767f, 0.0416665542f, 0.00836323288f, 0.00139262508f);
}
FTH__MATH float fth__exp_f32(float x)
{
    float c = x > 90.0f ? 90.0f : x;
    c = c < -105.0f ? -105.0f : c;
    uint32_t n;
    float n_float;
    const float r = fth__exp_reduce_f32(c, &n, &n_float);
    return fth__scale_f32(1.0f + (r + r * r * fth__exp_poly_f32(r)), n);
}
FTH__MATH float fth__expm1_f32(float x)
{
    float c = x > 90.0f ? 90.0f : x;
    c = c < -25.0f ? -25.0f : c;
    uint32_t n;
    float n_float;
    const float r = fth__exp_reduce_f32(c, &n, &n_float);
    const float p = r + r * r * fth__exp_poly_f32(r);
    const float s = fth__pow2_f32(n - 1u); /* half: 2^128 would not fit */
    const float e = (s * p + (s - 0.5f)) * 2.0f;
    const float y = fth__fabs_f32(x) < 1e-8f ? x : e;
    return x > 89.0f ? (float)INFINITY : y;
}

/* log(2^k (1+f)) + c for 1+f in [sqrt(1/2), sqrt(2)]. */
FTH__MATH float fth__log_core_f32(float f, float k, float c)
{
    const float s = f / (2.0f + f);
    const float w = s * s;
    const float half = 0.5f * f * f;
    const float p = w * FTH__POLY4(w, 0.666666666f, 0.400001222f, 0.285507786f, 0.233316145f);
    const float low = s * (half + p) + (k * 0x1.0bfbe8p-15f + c);
    return k * 0x1.62ep-1f + (f - (half - low));
}
/* x = 2^k m with m in [sqrt(1/2), sqrt(2)], for positive normal x. */
FTH__MATH float fth__log_split_f32(float x, float *k)
{
    const uint32_t u = fth__bits_f32(x) + (0x3f800000u - 0x3f3504f3u);
    *k = (float)((int32_t)(u >> 23) - 127);
    return fth__from_bits_f32((u & 0x007fffffu) + 0x3f3504f3u);
}
FTH__MATH float fth__log_f32(float x)
{
    const int tiny = x < 1.17549435e-38f;
    float k;
    const float m = fth__log_split_f32(tiny ? x * 8388608.0f : x, &k);
    const float r = fth__log_core_f32(m - 1.0f, tiny ? k - 23.0f : k, 0.0f);
    const float edge = x == 0.0f ? -(float)INFINITY : x < 0.0f ? (float)NAN : x;
    return ((x > 0.0f) & (x < (float)INFINITY)) ? r : edge;
}
FTH__MATH float fth__log1p_f32(float x)
{
    const float u = 1.0f + x;
    float k;
    const float m = fth__log_split_f32(u, &k);
    /* what rounding 1+x lost, unless x itself is the reduced argument */
    const float lost = (x >= 1.0f ? 1.0f - (u - x) : x - (u - 1.0f)) / u;
    const float r = fth__log_core_f32(k == 0.0f ? x : m - 1.0f, k, k == 0.0f ? 0.0f : lost);
    const float edge = x == -1.0f ? -(float)INFINITY : x < -1.0f ? (float)NAN : x;
    return ((x > -1.0f) & (x < (float)INFINITY) & (x != 0.0f)) ? r : edge;
}

FTH__MATH float fth__tanh_f32(float x)
{
    const float a = fth__fabs_f32(x);
    const float t = fth__expm1_f32(2.0f * (a > 10.0f ? 10.0f : a));
    return fth__copysign_f32(t / (t + 2.0f), x);
}
FTH__MATH float fth__sigmoid_f32(float x)
{
    const float e = fth__exp_f32(-fth__fabs_f32(x));
    return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}
FTH__MATH float fth__softplus_f32(float x)
{
    const float y = (x > 0.0f ? x : 0.0f) + fth__log1p_f32(fth__exp_f32(-fth__fabs_f32(x)));
    return x != x ? x : y;
}
FTH__MATH float fth__erf_f32(float x)
{
    const float a = fth__fabs_f32(x);
    const float q = x * x;
    const float small = x * FTH__POLY7(q, 1.12837917f, -0.37612626f, 0.112835854f, -0.0268537702f,
                                       0.00518814892f, -0.000800776101f, 7.84301924e-5f);
    const float c = a > 4.2f ? 4.2f : a;
    const float t = (c - 2.0f) / (c + 2.0f);
    const float p = FTH__POLY8(t, 0.255395676f, -0.427185848f, 0.241658219f, -0.0789784722f,
                               0.00373192429f, 0.00699371668f, -0.00083512336f, -0.000937325518f);
    const float large = fth__copysign_f32(1.0f - fth__exp_f32(-c * c) * p, x);
    return a < 1.0f ? small : large;
}

FTH__MATH float fth__atan2_f32(float y, float x)
{
    const float a = fth__fabs_f32(y), b = fth__fabs_f32(x);
    const float top = a > b ? b : a, bottom = a > b ? a : b;
    /* both zero, both infinite: the corner that C's atan2 gives */
    const float t = top == bottom ? (bottom == 0.0f ? 0.0f : 1.0f) : top / bottom;
    const int far = t > 0.41421356f;
    const float u = far ? (t - 1.0f) / (t + 1.0f) : t;
    const float q = u * u;
    const float p = u + u * q *
                            FTH__POLY5(q, -0.333333318f, 0.199995388f, -0.142638971f, 0.107430997f,
                                       -0.0644983522f);
    float r = far ? p + 0.785398163f : p;
    r = a > b ? 1.57079633f - r : r;
    r = (fth__bits_f32(x) >> 31) ? 3.14159265f - r : r;
    return ((x != x) | (y != y)) ? x + y : fth__copysign_f32(r, y);
}

#endif
