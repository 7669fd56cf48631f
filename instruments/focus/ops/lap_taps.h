/* lap_taps.h - filters of the Laplacian pyramid, sample by sample, for every device.
 *
 * The order of operations here is the definition: every kernel has these bits. Weights are powers
 * of two apart from 6, so level 1 of 16-bit data is exact.
 */
#ifndef FOCUS_OPS_LAP_TAPS_H
#define FOCUS_OPS_LAP_TAPS_H

#include "border.h"

#define FO_LAP_DOWN (1.0f / 256) /* of five_of both ways */
#define FO_LAP_UP (1.0f / 64)    /* of at_of and between_of both ways */

FO_BOTH float fo_lap_five_of(float a, float b, float c, float d, float e)
{
    return ((a + e) + 4.0f * (b + d)) + 6.0f * c;
}
FO_BOTH float fo_lap_at_of(float before, float here, float after)
{
    return (before + after) + 6.0f * here;
}
FO_BOTH float fo_lap_between_of(float before, float after)
{
    return 4.0f * (before + after);
}
/* Coarse index k of an axis with n fine elements, which may lie outside. */
FO_BOTH int64_t fo_lap_coarse_at(int64_t k, int64_t n)
{
    return fo_border_at(2 * k, n, FO_BORDER_REFLECT101) / 2;
}

#endif
