/* activate.h - activations of the stored parameters of a Gaussian, in double. */
#ifndef SPLAT_STRATEGY_ACTIVATE_H
#define SPLAT_STRATEGY_ACTIVATE_H

#include <math.h>
#include <stdbool.h>

#ifndef GS_BOTH /* kernels define it */
#define GS_BOTH
#endif

#define GS_LEAST_NORM 1e-8 /* |q|^2 below which a quaternion is no rotation */

static inline GS_BOTH double gs_sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}
static inline GS_BOTH double gs_logit(double p)
{
    return log(p / (1 - p));
}
/* log(1 - sigmoid(x)), without losing small opacities or the last of large ones. */
static inline GS_BOTH double gs_log_clear(double x)
{
    return x > 0 ? -x - log1p(exp(-x)) : -log1p(exp(x));
}
/* logit(o) of 1 - o = e^l, l < 0. */
static inline GS_BOTH double gs_logit_clear(double l)
{
    return log(-expm1(l)) - l;
}
static inline GS_BOTH double gs_norm(const float *q)
{
    double n = 0;
    for (int k = 0; k < 4; k++) n += (double)q[k] * (double)q[k];
    return n;
}
static inline GS_BOTH float gs_largest(const float *scaling)
{
    const float a = scaling[0] > scaling[1] ? scaling[0] : scaling[1];
    return a > scaling[2] ? a : scaling[2];
}
/* The mean of gradients of a row: how often it was seen, and their sum. */
static inline GS_BOTH float gs_gradient(const float *sums)
{
    return sums[1] / (sums[0] > 1 ? sums[0] : 1);
}
/* Whether ADC prunes a row. */
static inline GS_BOTH bool gs_is_unwanted(const float *scaling, const float *q, float opacity,
                                          float faint, float huge)
{
    return opacity < faint || gs_norm(q) < GS_LEAST_NORM || gs_largest(scaling) > huge;
}
/* The matrix of a quaternion that need not be a unit. */
static inline GS_BOTH void gs_turn(const float *q, double r[3][3])
{
    const double w = (double)q[0], x = (double)q[1], y = (double)q[2], z = (double)q[3];
    const double t = 2 / (w * w + x * x + y * y + z * z);
    r[0][0] = 1 - t * (y * y + z * z);
    r[0][1] = t * (x * y - w * z);
    r[0][2] = t * (x * z + w * y);
    r[1][0] = t * (x * y + w * z);
    r[1][1] = 1 - t * (x * x + z * z);
    r[1][2] = t * (y * z - w * x);
    r[2][0] = t * (x * z - w * y);
    r[2][1] = t * (y * z + w * x);
    r[2][2] = 1 - t * (x * x + y * y);
}

#endif
