/* exp_lanes.h - exp(-sigma) of pixels: in single precision the same bits in vectors of the CPU and
 * in a thread of a device, as quick as their approximations (scalars.h says why). */
#ifndef SPLAT_RASTER_EXP_LANES_H
#define SPLAT_RASTER_EXP_LANES_H

#include "scalars.h"

/* exp(x) for -87 <= x <= 0, relative error 2.4e-7, 1 of 0; of other x it is some number. x log2 e =
 * n + f, and 2^f, |f| <= 1/2, has the polynomial of least relative error of those that are 1 at 0.
 */
LANE vr exp_of_less(vr x)
{
#if FTH_VECTOR_REAL == 64
    return v_exp(x);
#else
    const vr log2_e = v_set(1.442695041f), shift = v_set(12582912.0f),
             big = v_fma(x, log2_e, shift), f = v_fma(x, log2_e, shift - big);
    vr p = v_set(0.001326472731f);
    p = v_fma(p, f, v_set(0.009671512991f));
    p = v_fma(p, f, v_set(0.05550733581f));
    p = v_fma(p, f, v_set(0.2402224243f));
    p = v_fma(p, f, v_set(0.6931470037f));
    p = v_fma(p, f, v_set(1.0f));
#if FTH_ISA_LEVEL == 0
    return float_of_bits(bits_of_float(p) + (bits_of_float(big) << 23));
#else
    return (vr)((fth_u32v)p + ((fth_u32v)big << 23));
#endif
#endif
}

#endif
