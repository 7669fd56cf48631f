/* ray_lanes.h - one Gaussian as rays of a lens see it (3DGUT), and its cotangents back to the
 * model: what loops of the CPU and threads of a device run of it.
 *
 * M makes the Gaussian a unit ball, in the axes of the camera. Where a ray t d comes closest to it,
 * p = M (t d - m) is the way from its middle, and sigma = |p|^2 / 2. Where on the image that is
 * worth looking is found by an unscented transform, which has no derivative here: gradients go to m
 * and M alone.
 */
#ifndef SPLAT_RASTER_RAY_LANES_H
#define SPLAT_RASTER_RAY_LANES_H

#include "gaussian_lanes.h"
#include "lens_lanes.h"

#define RAY_FAR R(10000.0)
#define RAY_MARGIN R(0.1)             /* of the image, within which all points must be seen */
#define RAY_SPREAD R(0.03)            /* 3 + lambda: the points are its root away, in deviations */
#define RAY_MIDDLE R(-96.01)          /* weight of the middle in the covariance */
#define RAY_WEIGHT (R(1.0) / R(0.06)) /* of the others */
#define RAY_LEAST R(1e-12)            /* sizes whose squares and their inverses are numbers */
#define RAY_MOST R(1e12)

typedef struct ray_seen {
    real o, n;  /* opacity, squared length of the quaternion */
    real clear; /* 1 - o, to all its digits */
    real s[3], R[3][3];
    real m[3], M[3][3];
} ray_seen;

/* The Gaussian in the camera; false: it is not seen. NaN is never seen. */
LANE bool ray_look(const real *view, const real *mean, const real *scaling, const real *q,
                   real opacity, ray_seen *g)
{
    const real *pose = view + GS_VIEW_POSE;
    for (int k = 0; k < 3; k++) g->m[k] = dot3(pose + 4 * k, mean) + pose[4 * k + 3];
    if (!(g->m[2] >= NEAR_PLANE && g->m[2] <= RAY_FAR)) return false;
    g->o = sigmoid(opacity);
    g->clear = sigmoid(-opacity);
    g->n = FMA(q[0], q[0], FMA(q[1], q[1], FMA(q[2], q[2], q[3] * q[3])));
    if (!(g->o >= R(1.0) / 255) || !(g->n >= LEAST)) return false;
    rotation_of(q, g->n, g->R);
    for (int i = 0; i < 3; i++) {
        const real axis[3] = {g->R[0][i], g->R[1][i], g->R[2][i]};
        g->s[i] = EXP(scaling[i]);
        if (!(g->s[i] >= RAY_LEAST && g->s[i] <= RAY_MOST)) return false;
        for (int j = 0; j < 3; j++) g->M[i][j] = dot3(pose + 4 * j, axis) / g->s[i];
    }
    return true;
}

/* Where a point is on the image; false: not within the margin. */
LANE bool ray_place(const gs_raster *rule, const real *view, const real *at, real *to)
{
    const real W = (real)rule->width, H = (real)rule->height;
    return place_of(view, at, &to[0], &to[1]) && to[0] >= -RAY_MARGIN * W &&
           to[0] <= (1 + RAY_MARGIN) * W && to[1] >= -RAY_MARGIN * H &&
           to[1] <= (1 + RAY_MARGIN) * H;
}

/* Mean and covariance on the image by seven points; false: one of them is not seen. */
LANE bool ray_spread(const gs_raster *rule, const real *view, const ray_seen *g, real at[2],
                     real cov[3])
{
    const real far = SQRT(RAY_SPREAD);
    real place[7][2];
    if (!ray_place(rule, view, g->m, place[0])) return false;
    for (int k = 0; k < 6; k++) {
        const int axis = k / 2;
        const real by = (k % 2 ? -far : far) * g->s[axis] * g->s[axis];
        real point[3];
        for (int j = 0; j < 3; j++) point[j] = FMA(by, g->M[axis][j], g->m[j]);
        if (!ray_place(rule, view, point, place[1 + k])) return false;
    }
    /* weights add up to 1, so differences from the middle do, without large numbers */
    for (int c = 0; c < 2; c++) {
        real sum = 0;
        for (int k = 1; k < 7; k++) sum += place[k][c] - place[0][c];
        at[c] = FMA(RAY_WEIGHT, sum, place[0][c]);
    }
    cov[0] = cov[1] = cov[2] = 0;
    for (int k = 0; k < 7; k++) {
        const real w = k ? RAY_WEIGHT : RAY_MIDDLE, x = place[k][0] - at[0],
                   y = place[k][1] - at[1];
        cov[0] = FMA(w * x, x, cov[0]);
        cov[1] = FMA(w * x, y, cov[1]);
        cov[2] = FMA(w * y, y, cov[2]);
    }
    return true;
}

/* A Gaussian that is seen, as a row of splats but for its tiles and its colour; false: it is not.
 */
LANE bool ray_row(const gs_raster *rule, const real *view, const ray_seen *g,
                  real row[GS_RAY_SPLAT])
{
    real cov[3];
    for (int k = 0; k < GS_RAY_SPLAT; k++) row[k] = 0;
    if (!ray_spread(rule, view, g, row + GS_U, cov)) return false;
    const real a = cov[0] + BLUR, c = cov[2] + BLUR, det = FMA(a, c, -(cov[1] * cov[1]));
    if (!(det >= LEAST)) return false;
    row[GS_O] = g->o;
    if (rule->antialias) {
        const real share = FMA(cov[0], cov[2], -(cov[1] * cov[1])) / det;
        row[GS_O] *= SQRT(share > LEAST_SHARE ? share : LEAST_SHARE);
        if (!(row[GS_O] >= R(1.0) / 255)) return false;
    }
    const real limit = LOG(255 * row[GS_O]), wide = SQRT(2 * (limit > 0 ? limit : 0)),
               f = wide < R(3.33) ? wide : R(3.33);
    row[GS_EX] = CEIL(f * SQRT(a));
    row[GS_EY] = CEIL(f * SQRT(c));
    row[GS_Z] = g->m[2];
    for (int k = 0; k < 3; k++) row[GS_A + k] = g->m[k];
    for (int k = 0; k < 9; k++) row[GS_RAY_M + k] = g->M[k / 3][k % 3];
    return true;
}

/* The place on the image has no cotangent. What densification takes for it is that of the mean,
 * moved across the axis at its depth. */
LANE void ray_back_place(const real *view, const real *row, const real *at, real to[2])
{
    to[0] = at[0] * row[GS_Z] / view[GS_VIEW_FX];
    to[1] = at[1] * row[GS_Z] / view[GS_VIEW_FY];
}

/* To the logit of the opacity; `opacity` is that of the row, which antialiasing may have lowered by
 * a factor that has no derivative here. */
LANE real ray_back_opacity(const ray_seen *g, real opacity, const real *bar)
{
    return bar[GS_O] * opacity * g->clear;
}

/* From the mean in the camera and from M to mean, scaling and rotation. */
LANE void ray_back_shape(const real *view, const real *q, const ray_seen *g, const real *bar,
                         bars *to)
{
    const real *pose = view + GS_VIEW_POSE, *at = bar + GS_A, *of = bar + GS_RAY_M;
    real turn[3][3];
    for (int k = 0; k < 3; k++)
        to->mean[k] = FMA(pose[k], at[0], FMA(pose[4 + k], at[1], pose[8 + k] * at[2]));
    for (int i = 0; i < 3; i++) {
        to->scaling[i] = -dot3(g->M[i], of + 3 * i);
        for (int k = 0; k < 3; k++)
            turn[k][i] = FMA(pose[k], of[3 * i],
                             FMA(pose[4 + k], of[3 * i + 1], pose[8 + k] * of[3 * i + 2])) /
                         g->s[i];
    }
    back_rotation(q, g->n, turn, to->q);
}

/* From there to the pose, 3 rows of 4: through the place of the mean and through M. */
LANE void ray_back_pose(const real *mean, const ray_seen *g, const real *bar, real *to)
{
    const real *at = bar + GS_A, *of = bar + GS_RAY_M;
    for (int j = 0; j < 3; j++) {
        for (int k = 0; k < 3; k++) {
            const real axis[3] = {g->R[k][0] / g->s[0], g->R[k][1] / g->s[1], g->R[k][2] / g->s[2]},
                       column[3] = {of[j], of[3 + j], of[6 + j]};
            to[4 * j + k] = FMA(at[j], mean[k], dot3(axis, column));
        }
        to[4 * j + 3] = at[j];
    }
}

#endif
