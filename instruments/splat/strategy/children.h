/* children.h - where the children of a split row lie and what they look like: one statement for the
 * host's loops and a device's. */
#ifndef SPLAT_STRATEGY_CHILDREN_H
#define SPLAT_STRATEGY_CHILDREN_H

#include "activate.h"

enum { GS_STREAM_SPLIT = 2 };

/* The number of a normal in its stream. */
static inline GS_BOTH int64_t gs_child_index(int64_t row, int child, int k)
{
    return (2 * row + child) * 3 + k;
}
/* The parent's mean, and normals `e` in its shape. */
static inline GS_BOTH void gs_child_mean(const float *mean, const float *scaling, const float *q,
                                         const double e[3], float out[3])
{
    double turn[3][3], s[3];
    gs_turn(q, turn);
    for (int k = 0; k < 3; k++) s[k] = exp((double)scaling[k]) * e[k];
    for (int k = 0; k < 3; k++)
        out[k] =
            (float)((double)mean[k] + turn[k][0] * s[0] + turn[k][1] * s[1] + turn[k][2] * s[2]);
}
static inline GS_BOTH float gs_child_scaling(float scaling)
{
    return (float)((double)scaling - 0.47000362924573563); /* log 1.6 */
}
/* Of two that together are as opaque as their parent. */
static inline GS_BOTH float gs_child_opacity(float opacity)
{
    return (float)gs_logit_clear(0.5 * gs_log_clear((double)opacity));
}

#endif
