/* back_lanes.h - what one row says of its camera; with GS_RAYS along rays of a lens. */
#include "../raster/gaussian_lanes.h"
#if GS_RAYS
#include "../raster/ray_lanes.h"
#endif
#include "back.h"

#if GS_RAYS
typedef ray_seen pose_seen;
#else
typedef seen pose_seen;
#endif

/* false: the row is not seen. */
LANE bool pose_look(const gs_raster *rule, const real *view, const real *mean, const real *scaling,
                    const real *q, real opacity, pose_seen *at)
{
#if GS_RAYS
    (void)rule;
    return ray_look(view, mean, scaling, q, opacity, at);
#else
    return look(rule, view, mean, scaling, q, opacity, at);
#endif
}

/* Cotangents of the pose and of the centre. */
LANE void row_to_view(int degree, const real *view, const real *mean, const real *rest,
                      int64_t rest_k, const real *bar, const pose_seen *at, real to[GS_POSE_SUMS])
{
    real moved[3] = {0, 0, 0};
#if GS_RAYS
    ray_back_pose(mean, at, bar, to);
#else
    flat f;
    back_flat(view, at, bar, &f);
    back_pose(view, mean, at, &f, to);
#endif
    back_colour(degree, view, mean, rest, rest_k, bar + GS_RED, moved, NULL, NULL, 0);
    for (int k = 0; k < 3; k++) to[12 + k] = -moved[k]; /* colours see mean - centre */
}
