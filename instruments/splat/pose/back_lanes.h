/* back_lanes.h - what one row says of its camera, and the sum of a block of rows. */
#include "../raster/gaussian_lanes.h"
#include "back.h"

/* Cotangents of the pose and of the centre. */
LANE void row_to_view(int degree, const real *view, const real *mean, const real *rest,
                      int64_t rest_k, const real *bar, const seen *at, real to[GS_POSE_SUMS])
{
    real moved[3] = {0, 0, 0};
    flat f;
    back_flat(view, at, bar, &f);
    back_pose(view, mean, at, &f, to);
    back_colour(degree, view, mean, rest, rest_k, bar + GS_RED, moved, NULL, NULL, 0);
    for (int k = 0; k < 3; k++) to[12 + k] = -moved[k]; /* colours see mean - centre */
}
