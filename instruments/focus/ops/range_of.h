/* range_of.h - what percentiles are, for the CPU and a GPU.
 *
 * With N values sorted, h = (N-1) q/100 and k = floor(h), a percentile lies between the values of
 * rank k and k + 1, by the share g = h - k: from below when g < 1/2, else from above.
 */
#ifndef FOCUS_OPS_RANGE_OF_H
#define FOCUS_OPS_RANGE_OF_H

#include "border.h"
#include "counts.h"

#include <math.h>
#include <string.h>

FO_BOTH void fo_ranks(int64_t n, double low, double high, int64_t *rank, double *share)
{
    const double q[2] = {low, high};
    for (int i = 0; i < 2; i++) {
        const double h = n > 0 ? (double)(n - 1) * q[i] / 100 : 0, k = floor(h);
        rank[2 * i] = (int64_t)k;
        rank[2 * i + 1] = (int64_t)k + 1 < n ? (int64_t)k + 1 : (int64_t)k;
        share[i] = h - k;
    }
}

/* The float with these halves of its key. */
FO_BOTH double fo_float_of(int64_t upper, int64_t lower)
{
    const uint32_t key = (uint32_t)upper << 16 | (uint32_t)lower;
    const uint32_t bits = key & 0x80000000u ? key & 0x7fffffffu : ~key;
    float value;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

/* What the counts say: values at the four ranks, the first and last bin that is not empty. */
typedef struct fo_ranked {
    int64_t n, first, last, top;
    double value[FO_RANKS];
    bool floats;
} fo_ranked;

FO_BOTH double fo_between_ranks(double a, double b, double g)
{
    return g < 0.5 ? a + g * (b - a) : b - (1 - g) * (b - a);
}
FO_BOTH void fo_range_of(const fo_ranked *r, const double *share, double *out)
{
    const bool any = r->n > 0, one = r->first == r->last;
    out[FO_RANGE_LO] = any ? fo_between_ranks(r->value[0], r->value[1], share[0]) : 0;
    out[FO_RANGE_HI] = any ? fo_between_ranks(r->value[2], r->value[3], share[1]) : 0;
    out[FO_RANGE_SATURATED] = any ? (double)r->top / (double)r->n : 0;
    out[FO_RANGE_CONSTANT] = !any || (one && (!r->floats || r->value[0] == r->value[3]));
    out[FO_RANGE_MAX] = !any ? 0 : r->floats ? r->value[3] : (double)r->last;
}

#endif
