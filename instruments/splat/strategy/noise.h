/* noise.h - what MCMC adds to a mean: the covariance of its Gaussian times normals, less for those
 * that are opaque. In double, for loops and kernels. */
#ifndef SPLAT_STRATEGY_NOISE_H
#define SPLAT_STRATEGY_NOISE_H

#ifndef GS_BOTH /* kernels define it */
#define GS_BOTH
#endif

#include "activate.h"

enum { GS_NOISE_STREAM = 3 };

/* R s s R^T e, times rate / (1 + exp(100 o - 0.5)); false: the row has no shape, and stays. */
static inline GS_BOTH bool gs_noise_of(const float *scaling, const float *q, float opacity,
                                       double rate, const double e[3], double by[3])
{
    double r[3][3], along[3];
    if (gs_norm(q) < GS_LEAST_NORM) return false;
    const double step = rate / (1 + exp(100 * gs_sigmoid((double)opacity) - 0.5));
    gs_turn(q, r);
    for (int k = 0; k < 3; k++)
        along[k] = exp(2 * (double)scaling[k]) * (r[0][k] * e[0] + r[1][k] * e[1] + r[2][k] * e[2]);
    for (int k = 0; k < 3; k++)
        by[k] = step * (r[k][0] * along[0] + r[k][1] * along[1] + r[k][2] * along[2]);
    return true;
}

#endif
