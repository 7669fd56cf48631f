/* cwt_taps.h - the complex Daubechies filters of length 6, sample by sample, for every device.
 *
 * h = (r0+ic, r1+ic, r2-2ic, r2-2ic, r1+ic, r0+ic) with r = (-3, 5, 30)/(32 sqrt 2) and
 * c = -sqrt(15)/(32 sqrt 2); the high-pass is g[j] = (-1)^j conj(h[5-j]). Both are symmetric up to
 * a sign, so a filter is three products of sums or differences, and its imaginary part one. The
 * order of operations here is the definition: every kernel has these bits.
 */
#ifndef FOCUS_OPS_CWT_TAPS_H
#define FOCUS_OPS_CWT_TAPS_H

#include "border.h"

#define FO_CWT_R0 (-0.0662912607f)
#define FO_CWT_R1 0.1104854346f
#define FO_CWT_R2 0.6629126074f
#define FO_CWT_C (-0.0855816496f)

typedef struct fo_pair {
    float re, im;
} fo_pair;

/* Of six real samples, in order: the first is sample 2i-3 for output i. */
FO_BOTH fo_pair fo_cwt_low_real(float v0, float v1, float v2, float v3, float v4, float v5)
{
    const float s0 = v0 + v5, s1 = v1 + v4, s2 = v2 + v3;
    fo_pair r;
    r.re = (FO_CWT_R0 * s0 + FO_CWT_R1 * s1) + FO_CWT_R2 * s2;
    r.im = FO_CWT_C * ((s0 + s1) - 2.0f * s2);
    return r;
}
FO_BOTH fo_pair fo_cwt_high_real(float v0, float v1, float v2, float v3, float v4, float v5)
{
    const float d0 = v0 - v5, d1 = v1 - v4, d2 = v2 - v3;
    fo_pair r;
    r.re = (FO_CWT_R0 * d0 - FO_CWT_R1 * d1) + FO_CWT_R2 * d2;
    r.im = FO_CWT_C * ((d1 - d0) + 2.0f * d2);
    return r;
}
/* The filter of x + iy from those of x and of y. */
FO_BOTH fo_pair fo_cwt_join(fo_pair x, fo_pair y)
{
    fo_pair r;
    r.re = x.re - y.im;
    r.im = x.im + y.re;
    return r;
}
FO_BOTH float fo_cwt_energy(fo_pair c, float floor)
{
    const float e = c.re * c.re + c.im * c.im;
    return e < floor ? 0.0f : e;
}

/* Samples 2k and 2k+1 from low-pass a and high-pass d: even from those at k+1, k, k-1, odd from
 * those at k+2, k+1, k. */
FO_BOTH fo_pair fo_cwt_even(fo_pair a0, fo_pair a1, fo_pair a2, fo_pair d0, fo_pair d1, fo_pair d2)
{
    const float b_re = ((a0.re + d0.re) + (a2.re + d2.re)) - 2.0f * (a1.re + d1.re);
    const float b_im = ((a0.im + d0.im) + (a2.im + d2.im)) - 2.0f * (a1.im + d1.im);
    fo_pair r;
    r.re = ((FO_CWT_R1 * (a0.re - d0.re) + FO_CWT_R0 * (a2.re - d2.re)) +
            FO_CWT_R2 * (a1.re - d1.re)) +
           FO_CWT_C * b_im;
    r.im = ((FO_CWT_R1 * (a0.im - d0.im) + FO_CWT_R0 * (a2.im - d2.im)) +
            FO_CWT_R2 * (a1.im - d1.im)) -
           FO_CWT_C * b_re;
    return r;
}
FO_BOTH fo_pair fo_cwt_odd(fo_pair a0, fo_pair a1, fo_pair a2, fo_pair d0, fo_pair d1, fo_pair d2)
{
    const float b_re = ((a0.re - d0.re) + (a2.re - d2.re)) - 2.0f * (a1.re - d1.re);
    const float b_im = ((a0.im - d0.im) + (a2.im - d2.im)) - 2.0f * (a1.im - d1.im);
    fo_pair r;
    r.re = ((FO_CWT_R0 * (a0.re + d0.re) + FO_CWT_R1 * (a2.re + d2.re)) +
            FO_CWT_R2 * (a1.re + d1.re)) +
           FO_CWT_C * b_im;
    r.im = ((FO_CWT_R0 * (a0.im + d0.im) + FO_CWT_R1 * (a2.im + d2.im)) +
            FO_CWT_R2 * (a1.im + d1.im)) -
           FO_CWT_C * b_re;
    return r;
}

/* The largest of these is the plane that most name, the smallest of equals; no plane, no vote. */
FO_BOTH uint32_t fo_cwt_vote_of(uint32_t votes, uint32_t plane, uint32_t none)
{
    return plane == none ? 0 : votes << 16 | (none - plane);
}

#endif
