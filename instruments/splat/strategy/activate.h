/* activate.h - what stored numbers of a Gaussian mean, in double. */
#ifndef SPLAT_STRATEGY_ACTIVATE_H
#define SPLAT_STRATEGY_ACTIVATE_H

#include <math.h>

#define GS_LEAST_NORM 1e-8 /* |q|^2 of a rotation that is none */

static inline double gs_sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}
static inline double gs_logit(double p)
{
    return log(p / (1 - p));
}
/* log(1 - sigmoid(x)), without losing small opacities or the last of large ones. */
static inline double gs_log_clear(double x)
{
    return x > 0 ? -x - log1p(exp(-x)) : -log1p(exp(x));
}
/* logit(o) of 1 - o = e^l, l < 0. */
static inline double gs_logit_clear(double l)
{
    return log(-expm1(l)) - l;
}
static inline double gs_norm(const float *q)
{
    double n = 0;
    for (int k = 0; k < 4; k++) n += (double)q[k] * (double)q[k];
    return n;
}
static inline float gs_largest(const float *scaling)
{
    const float a = scaling[0] > scaling[1] ? scaling[0] : scaling[1];
    return a > scaling[2] ? a : scaling[2];
}
/* The matrix of a quaternion that need not be a unit. */
static inline void gs_turn(const float *q, double r[3][3])
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
