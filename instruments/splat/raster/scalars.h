/* scalars.h - functions of one number in the precision that FTH_VECTOR_REAL says, for the loops and
 * kernels of splat; fathom/vector.h comes before it.
 *
 * Of single numbers they have the same bits on the CPU and on a device: alpha and light are cut at
 * limits, so what differs in the last place is soon a Gaussian more or less in a pixel. Libraries
 * of both agree on roots and quotients alone, and on others after a rounding from double.
 */
#ifndef SPLAT_RASTER_SCALARS_H
#define SPLAT_RASTER_SCALARS_H

#if FTH_VECTOR_REAL == 32
#define FMA(a, b, c) fmaf((a), (b), (c))
#define EXP same_exp
#define LOG same_log
#define SQRT sqrtf
#define FLOOR floorf
#define CEIL ceilf
#define SIN(x) ((float)sin((double)(x)))
#define COS(x) ((float)cos((double)(x)))
#define ATAN2(y, x) ((float)atan2((double)(y), (double)(x)))

LANE uint32_t bits_of_float(float x)
{
#ifdef __CUDA_ARCH__
    return __float_as_uint(x);
#else
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
#endif
}
LANE float float_of_bits(uint32_t bits)
{
#ifdef __CUDA_ARCH__
    return __uint_as_float(bits);
#else
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
#endif
}

/* exp to 1e-7; what would not be a normal number is 0 or infinite. x = n ln 2 + r. */
LANE float same_exp(float x)
{
    const float shift = 12582912.0f; /* a sum with it has no room for a fraction */
    if (x > 88.7f) return INFINITY;
    if (x < -87.0f) return 0;
    const float big = fmaf(x, 1.442695041f, shift), n = big - shift,
                r = fmaf(n, -1.428606820e-6f, fmaf(n, -0.693145752f, x));
    float p = 1.0f / 5040;
    p = fmaf(p, r, 1.0f / 720);
    p = fmaf(p, r, 1.0f / 120);
    p = fmaf(p, r, 1.0f / 24);
    p = fmaf(p, r, 1.0f / 6);
    p = fmaf(p, r, 0.5f);
    p = fmaf(p, r, 1.0f);
    p = fmaf(p, r, 1.0f);
    return p * float_of_bits((bits_of_float(big) + 127) << 23); /* a product, so that NaN stays */
}

/* log of normal numbers to 1e-7: x = m 2^n, m in [0.7, 1.41), log m = 2 atanh((m - 1) / (m + 1)).
 */
LANE float same_log(float x)
{
    const uint32_t from = 0x3f333333u; /* 0.7 */
    const uint32_t past = bits_of_float(x) - from;
    const int n = (int)past >> 23;
    const float m = float_of_bits((past & 0x7fffffu) + from), s = (m - 1) / (m + 1), z = s * s;
    float p = 2.0f / 9;
    p = fmaf(p, z, 2.0f / 7);
    p = fmaf(p, z, 2.0f / 5);
    p = fmaf(p, z, 2.0f / 3);
    return fmaf((float)n, 0.693147181f, fmaf(s * z, p, 2 * s));
}
#else
#define FMA(a, b, c) fma((a), (b), (c))
#define EXP exp
#define LOG log
#define SQRT sqrt
#define FLOOR floor
#define CEIL ceil
#define SIN sin
#define COS cos
#define ATAN2 atan2
#endif

#endif
