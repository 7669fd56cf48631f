/* family.h - what a row becomes that is drawn: one statement for the host's loops and a device's.
 */
#ifndef SPLAT_STRATEGY_FAMILY_H
#define SPLAT_STRATEGY_FAMILY_H

#include "activate.h"

#define GS_FAMILY 51 /* rows, at most: larger families are treated as that */
#define GS_MOST_OPACITY (1 - 1e-7)

/* One of `ratio` rows in the place of a row, from its log(1 - opacity): opacity, not clamped, and
 * the factor of the scale. The double sum of the paper is a single one: over i, binomials of i - 1
 * and k add up to the binomial of ratio and k + 1. */
static inline GS_BOTH void gs_family_of(double log_clear, int ratio, double *opacity, double *scale)
{
    const double o = -expm1(log_clear / ratio);
    double sum = 0, binomial = 1, power = 1;
    for (int k = 0; k < ratio; k++) {
        binomial *= (double)(ratio - k) / (k + 1);
        power *= o;
        sum += (k % 2 ? -1 : 1) * binomial * power / sqrt((double)(k + 1));
    }
    *opacity = o;
    *scale = -expm1(log_clear) / sum;
}
/* A row that was drawn so many times, at least once. */
static inline GS_BOTH void gs_share(float *opacity, float *scaling, int times, double min_opacity)
{
    double o, scale;
    gs_family_of(gs_log_clear((double)*opacity), times < GS_FAMILY ? 1 + times : GS_FAMILY, &o,
                 &scale);
    o = o < min_opacity ? min_opacity : o > GS_MOST_OPACITY ? GS_MOST_OPACITY : o;
    *opacity = (float)gs_logit(o);
    for (int k = 0; k < 3; k++) scaling[k] = (float)((double)scaling[k] + log(scale));
}

#endif
