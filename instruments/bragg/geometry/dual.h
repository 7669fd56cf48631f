/* dual.h - numbers that carry their derivatives with respect to every parameter of params.def.
 *
 * The value part is computed with exactly the operations of the plain formula, so a formula is
 * written once and serves the image and its derivatives.
 */
#ifndef BRAGG_DUAL_H
#define BRAGG_DUAL_H

#include "both.h"

#include <math.h>

/* How many derivatives a dual carries. A device that only wants values takes none. */
#ifndef BR_SLOPES
#define BR_SLOPES BR_PARAMS
#endif
/* Makes x the parameter p. */
#ifndef BR_SEED
#define BR_SEED(x, p)                                                                              \
    if ((p) < BR_SLOPES) (x).d[p] = 1
#endif

#define BR_DEGREE                                                                                  \
    (1.0 / (180.0 * 0.31830988618379067154)) /* radians; typed degrees are DIVIDED                 \
                                                by BR_RTD, see br_radians */
#define BR_RTD (180.0 * 0.31830988618379067154)

typedef enum br_param {
#define BR_PARAM(id, ...) BR_##id,
#include "params.def"
#undef BR_PARAM
    BR_PARAMS
} br_param;

typedef struct br_param_info {
    const char *name, *unit;
    double scale; /* internal units per typed unit */
    const char *doc;
} br_param_info;
extern const br_param_info br_params[BR_PARAMS];

typedef struct br_dual {
    double v;
    double d[BR_SLOPES > 0 ? BR_SLOPES : 1];
} br_dual;

static inline BR_BOTH double br_radians(double degrees)
{
    return degrees / BR_RTD;
}

/* A constant; a parameter. */
static inline BR_BOTH br_dual br_num(double v)
{
    return (br_dual){.v = v};
}
static inline BR_BOTH br_dual br_var(double v, br_param p)
{
    br_dual x = {.v = v};
    BR_SEED(x, p);
    return x;
}
/* A function of one number with value v and slope s at x; of two. */
static inline BR_BOTH br_dual br_chain(double v, double s, const br_dual *x)
{
    br_dual r = {.v = v};
    for (int p = 0; p < BR_SLOPES; p++) r.d[p] = s * x->d[p];
    return r;
}
static inline BR_BOTH br_dual br_chain2(double v, double s, const br_dual *x, double t,
                                        const br_dual *y)
{
    br_dual r = {.v = v};
    for (int p = 0; p < BR_SLOPES; p++) r.d[p] = s * x->d[p] + t * y->d[p];
    return r;
}
static inline BR_BOTH br_dual br_add(br_dual a, br_dual b)
{
    return br_chain2(a.v + b.v, 1, &a, 1, &b);
}
static inline BR_BOTH br_dual br_sub(br_dual a, br_dual b)
{
    return br_chain2(a.v - b.v, 1, &a, -1, &b);
}
static inline BR_BOTH br_dual br_mul(br_dual a, br_dual b)
{
    return br_chain2(a.v * b.v, b.v, &a, a.v, &b);
}
static inline BR_BOTH br_dual br_div(br_dual a, br_dual b)
{
    return br_chain2(a.v / b.v, 1 / b.v, &a, -a.v / (b.v * b.v), &b);
}
static inline BR_BOTH br_dual br_scale(br_dual a, double k)
{
    return br_chain(a.v * k, k, &a);
}
static inline BR_BOTH br_dual br_neg(br_dual a)
{
    return br_chain(-a.v, -1, &a);
}
static inline BR_BOTH br_dual br_sqrt(br_dual a)
{
    const double r = sqrt(a.v);
    return br_chain(r, r > 0 ? 0.5 / r : 0, &a);
}
static inline BR_BOTH br_dual br_sin(br_dual a)
{
    return br_chain(sin(a.v), cos(a.v), &a);
}
static inline BR_BOTH br_dual br_cos(br_dual a)
{
    return br_chain(cos(a.v), -sin(a.v), &a);
}

#endif
