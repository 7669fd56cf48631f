/* depth.h - from the plane of the largest energy to a depth: between planes, without outliers, and
 * from reliable neighbours where an edge outshines what lies beside it.
 *
 * Everything is in planes, f32 [stack y x]. The logarithm is our own, so that a GPU has its bits.
 */
#ifndef FOCUS_OPS_DEPTH_H
#define FOCUS_OPS_DEPTH_H

#include "border.h"

#include <fathom/isa.h>
#include <fathom/op.h>
#include <string.h>

/* The top of the parabola through the logarithms of the energies + 1e-6 at a plane and its two
 * neighbours; the plane itself at an end of the stack and where a neighbour is missing (-1). */
fth_val fo_refine_(fth_site site, fth_val index, fth_val energy, fth_val left, fth_val right);
/* The median of 5 x 5 pixels, mirrored at the border by half samples. */
fth_val fo_median5_(fth_site site, fth_val depth);
/* Halo guard: where the energy is below a tenth of the largest within 20 pixels, the depth is
 * filled from the pixels where it is not, by averages over blocks of 2, 4, 8 and 16. */
fth_val fo_guard_(fth_site site, fth_val depth, fth_val energy);

enum { FO_MEDIAN_RADIUS = 2, FO_GUARD_RADIUS = 20, FO_GUARD_LEVELS = 4 };
#define FO_GUARD_SHARE 0.1f

/* ln x for normal x > 0, relative error 3e-16: x = 2^k m with m about 1, and with
 * s = (m-1)/(m+1), ln m = 2 s + s^3 P(s^2). */
FO_BOTH double fo_ln(double x)
{
    const uint64_t half_root = 0x3fe6a09e667f3bcd, one = 0x3ff0000000000000,
                   mantissa = 0xfffffffffffff;
    uint64_t bits, low;
    double k, m;
    memcpy(&bits, &x, sizeof bits);
    bits += one - half_root;
    low = (bits >> 52) | 0x4330000000000000; /* the exponent as the last bits of 2^52 */
    memcpy(&k, &low, sizeof k);
    k -= 0x1p52 + 1023;
    low = (bits & mantissa) + half_root;
    memcpy(&m, &low, sizeof m);
    const double s = (m - 1) / (m + 1), z = s * s;
    double p = 0x1.2b584aae78a57p-3;
    p = p * z + 0x1.39fe606542ddep-3;
    p = p * z + 0x1.7462b4ab2ef6bp-3;
    p = p * z + 0x1.c71c62e5800a1p-3;
    p = p * z + 0x1.2492492df148dp-2;
    p = p * z + 0x1.99999999952e2p-2;
    p = p * z + 0x1.5555555555558p-1;
    return k * 0x1.62e42fefa3800p-1 + ((k * 0x1.ef35793c76730p-45 + s * z * p) + (s + s));
}

/* Depth of a pixel; see fo_refine_. Branches only at the end, so that loops become vectors. */
FO_BOTH float fo_refine_at(float index, float energy, float left, float right)
{
    const double a = fo_ln((double)(left < 0 ? 0 : left) + 1e-6),
                 b = fo_ln((double)(energy < 0 ? 0 : energy) + 1e-6),
                 c = fo_ln((double)(right < 0 ? 0 : right) + 1e-6), bend = a - 2 * b + c;
    const double d = bend < 0 ? 0.5 * (a - c) / bend : 0;
    const double moved = left < 0 || right < 0 ? 0 : d;
    const float depth = (float)((double)index + moved);
    return depth > 0 ? depth : 0;
}

typedef struct fo_depth_loops {
    void (*refine)(float *to, const uint16_t *index, const float *energy, const float *left,
                   const float *right, int64_t n);
    /* The median of 25, from five rows with two pixels on each side; n is a multiple of 16, and so
     * much can be read. */
    void (*median)(float *to, const float *const rows[5], int64_t n);
} fo_depth_loops;
FTH_ISA_DECLARE(const fo_depth_loops, fo_depth_loops);

#endif
