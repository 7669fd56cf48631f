/* gaussian_lanes.h - one Gaussian on the image of a view, and its cotangents back to the model:
 * what loops of the CPU and threads of a device run of it.
 *
 * Formulas are those of EWA splatting: the covariance of three dimensions through the derivative of
 * the projection, 0.3 px^2 added. Where the derivative is taken far off the axis its direction is
 * clamped; the clamp itself is not differentiated, as in every trainer.
 */
#ifndef SPLAT_RASTER_GAUSSIAN_LANES_H
#define SPLAT_RASTER_GAUSSIAN_LANES_H

#include "tile_lanes.h"

#define REAL real
#define SH(name) sh_##name
#define SH_FUNCTION LANE
#include "../sh/sh.h"

#define NEAR_PLANE R(0.01)
#define FAR_PLANE R(1e10)
#define BLUR R(0.3)
#define LEAST R(1e-8)         /* of a determinant, of a squared quaternion */
#define LEAST_SHARE R(2.5e-5) /* of the area without blur in that with it */

/* What both directions need of one Gaussian. */
typedef struct seen {
    real x, y, z; /* X / Z, Y / Z, Z in the camera */
    real tx, ty;  /* clamped directions */
    real o, n;    /* opacity, squared length of the quaternion */
    real clear;   /* 1 - o, to all its digits */
    real s2[3], R[3][3];
    real T[2][3];
    real a, b, c, det;
    real factor; /* of the opacity: 1, or with antialiasing the root of the areas' ratio */
} seen;

LANE real dot3(const real *p, const real *q)
{
    return FMA(p[0], q[0], FMA(p[1], q[1], p[2] * q[2]));
}

/* 1 - sigmoid(x) is sigmoid(-x): of a rounded one, near 1, little would be left. */
LANE real sigmoid(real x)
{
    return 1 / (1 + EXP(-x));
}

LANE real clamp_to(real v, real low, real high)
{
    return v < low ? low : v > high ? high : v;
}

LANE void rotation_of(const real *q, real n, real m[3][3])
{
    const real r = q[0], x = q[1], y = q[2], z = q[3], k = 2 / n;
    m[0][0] = 1 - k * FMA(y, y, z * z);
    m[0][1] = k * FMA(x, y, -(r * z));
    m[0][2] = k * FMA(x, z, r * y);
    m[1][0] = k * FMA(x, y, r * z);
    m[1][1] = 1 - k * FMA(x, x, z * z);
    m[1][2] = k * FMA(y, z, -(r * x));
    m[2][0] = k * FMA(x, z, -(r * y));
    m[2][1] = k * FMA(y, z, r * x);
    m[2][2] = 1 - k * FMA(x, x, y * y);
}

/* The share of a Gaussian's area that is not blur. */
LANE real sharp_share(const seen *g)
{
    const real share = FMA(g->a - BLUR, g->c - BLUR, -(g->b * g->b)) / g->det;
    return share > LEAST_SHARE ? share : LEAST_SHARE;
}

/* Antialiasing: a Gaussian that the blur made wider is as much fainter; false: too faint. */
LANE bool dim(seen *g)
{
    g->factor = SQRT(sharp_share(g));
    return g->o * g->factor >= R(1.0) / 255;
}

/* The covariance on the image; false: it is not seen. NaN is never seen. */
LANE bool look(const gs_raster *rule, const real *view, const real *mean, const real *scaling,
               const real *q, real opacity, seen *g)
{
    const real *pose = view + GS_VIEW_POSE, fx = view[GS_VIEW_FX], fy = view[GS_VIEW_FY],
               cx = view[GS_VIEW_CX], cy = view[GS_VIEW_CY];
    const real W = (real)rule->width, H = (real)rule->height;
    g->z = dot3(pose + 8, mean) + pose[11];
    if (!(g->z >= NEAR_PLANE && g->z <= FAR_PLANE)) return false;
    g->o = sigmoid(opacity);
    g->clear = sigmoid(-opacity);
    g->n = FMA(q[0], q[0], FMA(q[1], q[1], FMA(q[2], q[2], q[3] * q[3])));
    if (!(g->o >= R(1.0) / 255) || !(g->n >= LEAST)) return false;
    real cov[3][3], M[2][3];
    rotation_of(q, g->n, g->R);
    for (int k = 0; k < 3; k++) g->s2[k] = EXP(2 * scaling[k]);
    for (int i = 0; i < 3; i++)
        for (int j = i; j < 3; j++) {
            const real *p = g->R[i], *r = g->R[j];
            cov[i][j] = cov[j][i] =
                FMA(p[0] * g->s2[0], r[0], FMA(p[1] * g->s2[1], r[1], p[2] * g->s2[2] * r[2]));
        }
    g->x = (dot3(pose, mean) + pose[3]) / g->z;
    g->y = (dot3(pose + 4, mean) + pose[7]) / g->z;
    g->tx = clamp_to(g->x, (R(-0.15) * W - cx) / fx, (R(1.15) * W - cx) / fx);
    g->ty = clamp_to(g->y, (R(-0.15) * H - cy) / fy, (R(1.15) * H - cy) / fy);
    for (int k = 0; k < 3; k++) {
        g->T[0][k] = fx / g->z * FMA(-g->tx, pose[8 + k], pose[k]);
        g->T[1][k] = fy / g->z * FMA(-g->ty, pose[8 + k], pose[4 + k]);
    }
    for (int r = 0; r < 2; r++)
        for (int k = 0; k < 3; k++) M[r][k] = dot3(g->T[r], cov[k]);
    g->a = dot3(M[0], g->T[0]) + BLUR;
    g->b = dot3(M[0], g->T[1]);
    g->c = dot3(M[1], g->T[1]) + BLUR;
    g->det = FMA(g->a, g->c, -(g->b * g->b));
    g->factor = 1;
    return g->det >= LEAST && (!rule->antialias || dim(g));
}

/* Unit vector from the camera; returns the distance. */
LANE real direction(const real *view, const real *mean, real d[3])
{
    for (int k = 0; k < 3; k++) d[k] = mean[k] - view[GS_VIEW_CENTRE + k];
    const real far = SQRT(dot3(d, d));
    for (int k = 0; k < 3; k++) d[k] /= far;
    return far;
}

LANE void colour_of(const real *sh0, const real *rest, int64_t step, const real *basis, int n,
                    real *out)
{
    for (int c = 0; c < 3; c++) {
        real sum = FMA(basis[0], sh0[c], R(0.5));
        for (int k = 1; k < n; k++) sum = FMA(basis[k], rest[(k - 1) * step + c], sum);
        out[c] = sum;
    }
}

/* A Gaussian that is seen, as a row of splats but for its tiles and its colour. */
LANE void row_of(const real *view, const seen *g, real row[GS_SPLAT])
{
    for (int k = 0; k < GS_SPLAT; k++) row[k] = 0;
    row[GS_U] = FMA(g->x, view[GS_VIEW_FX], view[GS_VIEW_CX]);
    row[GS_V] = FMA(g->y, view[GS_VIEW_FY], view[GS_VIEW_CY]);
    row[GS_A] = g->c / g->det;
    row[GS_B] = -g->b / g->det;
    row[GS_C] = g->a / g->det;
    row[GS_O] = g->o * g->factor;
    row[GS_Z] = g->z;
    row[GS_LIMIT] = LOG(255 * row[GS_O]);
    const real f = SQRT(2 * (row[GS_LIMIT] > 0 ? row[GS_LIMIT] : 0)),
               ex = FMA(f, SQRT(g->a), R(-0.5)), ey = FMA(f, SQRT(g->c), R(-0.5));
    row[GS_EX] = ex > 0 ? ex : 0;
    row[GS_EY] = ey > 0 ? ey : 0;
}

/* ---- backward ---- */

/* Cotangents of one Gaussian. */
typedef struct bars {
    real mean[3], scaling[3], q[4];
} bars;

LANE void back_rotation(const real *q, real n, real M[3][3], real *out)
{
    const real r = q[0], x = q[1], y = q[2], z = q[3];
    const real dxx = -(M[1][1] + M[2][2]), dyy = -(M[0][0] + M[2][2]), dzz = -(M[0][0] + M[1][1]),
               dxy = M[0][1] + M[1][0], dxz = M[0][2] + M[2][0], dyz = M[1][2] + M[2][1],
               drx = M[2][1] - M[1][2], dry = M[0][2] - M[2][0], drz = M[1][0] - M[0][1];
    const real h = 2 / n *
                   (x * x * dxx + y * y * dyy + z * z * dzz + x * y * dxy + x * z * dxz +
                    y * z * dyz + r * x * drx + r * y * dry + r * z * drz);
    out[0] = 2 / n * (x * drx + y * dry + z * drz - r * h);
    out[1] = 2 / n * (2 * x * dxx + y * dxy + z * dxz + r * drx - x * h);
    out[2] = 2 / n * (2 * y * dyy + x * dxy + z * dyz + r * dry - y * h);
    out[3] = 2 / n * (2 * z * dzz + x * dxz + y * dyz + r * drz - z * h);
}

/* To the logit of the opacity. */
LANE real back_opacity(const seen *g, const real *bar)
{
    return bar[GS_O] * g->factor * g->o * g->clear;
}

/* Antialiasing: through the factor to the covariance, 11, 12 and 22 of its cotangent. */
LANE void back_factor(const seen *g, const real *bar, real to[3])
{
    for (int k = 0; k < 3; k++) to[k] = 0;
    if (!(g->factor < 1)) return;
    const real share = sharp_share(g);
    if (!(share > LEAST_SHARE)) return;
    const real by = bar[GS_O] * g->o / (2 * g->factor * g->det);
    to[0] = by * (g->c - BLUR - share * g->c);
    to[1] = by * (share - 1) * g->b;
    to[2] = by * (g->a - BLUR - share * g->a);
}

/* The cotangent G of the covariance times an axis t, and t G t, which it returns. The conic K is
 * the inverse of the covariance, so G is -K H K with H that of the conic, and what the factor adds.
 * K goes to t first: entries of G are as large as the short axis of a thin Gaussian makes them, and
 * would leave nothing of the long one. */
LANE real back_axis(const seen *g, const real *bar, const real *add, const real *t, real *to)
{
    const real a = g->a, b = g->b, c = g->c, by = 1 / g->det, half = bar[GS_B] / 2;
    const real x = by * FMA(c, t[0], -(b * t[1])), y = by * FMA(a, t[1], -(b * t[0])),
               p = FMA(bar[GS_A], x, half * y), q = FMA(half, x, bar[GS_C] * y),
               r = FMA(add[0], t[0], add[1] * t[1]), s = FMA(add[1], t[0], add[2] * t[1]);
    to[0] = FMA(by, FMA(b, q, -(c * p)), r);
    to[1] = FMA(by, FMA(b, p, -(a * q)), s);
    return FMA(t[0], r, t[1] * s) - FMA(x, p, y * q);
}

/* From the conic and the place on the image to what the camera saw: the cotangents of the axes on
 * the image (rows of two, over their squared lengths), of scaling, of T, and of the place in the
 * camera. */
typedef struct flat {
    real axis[3][2], scaling[3], dT[2][3], at[3];
} flat;

LANE void back_flat(const real *view, const seen *g, const real *bar, flat *to)
{
    const real *pose = view + GS_VIEW_POSE, fx = view[GS_VIEW_FX], fy = view[GS_VIEW_FY];
    real add[3], dJ[2][3];
    back_factor(g, bar, add);
    for (int k = 0; k < 3; k++) {
        const real column[3] = {g->R[0][k], g->R[1][k], g->R[2][k]},
                   t[2] = {dot3(g->T[0], column), dot3(g->T[1], column)};
        to->scaling[k] = 2 * g->s2[k] * back_axis(g, bar, add, t, to->axis[k]);
        for (int r = 0; r < 2; r++) to->axis[k][r] *= 2 * g->s2[k];
    }
    for (int r = 0; r < 2; r++) {
        const real by[3] = {to->axis[0][r], to->axis[1][r], to->axis[2][r]};
        for (int k = 0; k < 3; k++) to->dT[r][k] = dot3(by, g->R[k]);
    }
    for (int r = 0; r < 2; r++)
        for (int k = 0; k < 3; k++) dJ[r][k] = dot3(to->dT[r], pose + 4 * k);
    const real z = g->z, gu = bar[GS_U], gv = bar[GS_V];
    to->at[0] = fx / z * (gu - dJ[0][2] / z);
    to->at[1] = fy / z * (gv - dJ[1][2] / z);
    to->at[2] = -(fx / z) * FMA(g->x, gu, (dJ[0][0] - 2 * g->tx * dJ[0][2]) / z) -
                fy / z * FMA(g->y, gv, (dJ[1][1] - 2 * g->ty * dJ[1][2]) / z);
}

/* From there to mean, scaling and rotation. */
LANE void back_shape(const real *view, const real *q, const seen *g, const real *bar, bars *to)
{
    const real *pose = view + GS_VIEW_POSE;
    flat f;
    real M[3][3];
    back_flat(view, g, bar, &f);
    for (int k = 0; k < 3; k++) {
        to->mean[k] = FMA(pose[k], f.at[0], FMA(pose[4 + k], f.at[1], pose[8 + k] * f.at[2]));
        to->scaling[k] = f.scaling[k];
        for (int i = 0; i < 3; i++)
            M[i][k] = FMA(g->T[0][i], f.axis[k][0], g->T[1][i] * f.axis[k][1]);
    }
    back_rotation(q, g->n, M, to->q);
}

/* From there to the pose, 3 rows of 4: through the place of the mean and through T. */
LANE void back_pose(const real *view, const real *mean, const seen *g, const flat *f, real *to)
{
    const real jx = view[GS_VIEW_FX] / g->z, jy = view[GS_VIEW_FY] / g->z;
    for (int k = 0; k < 3; k++) {
        to[k] = FMA(f->at[0], mean[k], jx * f->dT[0][k]);
        to[4 + k] = FMA(f->at[1], mean[k], jy * f->dT[1][k]);
        to[8 + k] = FMA(f->at[2], mean[k], -FMA(jx * g->tx, f->dT[0][k], jy * g->ty * f->dT[1][k]));
        to[4 * k + 3] = f->at[k];
    }
}

/* Colours to coefficients, and through the direction to the mean; sh0 and to_rest may be NULL. */
LANE void back_colour(int degree, const real *view, const real *mean, const real *rest,
                      int64_t step, const real *col, real *to_mean, real *to_sh0, real *to_rest,
                      int64_t to_step)
{
    real d[3], basis[16], slopes[16][3], gd[3] = {0, 0, 0};
    const real far = direction(view, mean, d);
    const int n = (degree + 1) * (degree + 1);
    sh_basis(degree, d[0], d[1], d[2], basis);
    sh_slopes(degree, d[0], d[1], d[2], slopes);
    for (int c = 0; c < 3 && to_sh0; c++) to_sh0[c] = basis[0] * col[c];
    for (int k = 1; k < n; k++) {
        const real along = dot3(rest + (k - 1) * step, col);
        for (int e = 0; e < 3; e++) gd[e] = FMA(slopes[k][e], along, gd[e]);
        for (int c = 0; c < 3 && to_rest; c++) to_rest[(k - 1) * to_step + c] = basis[k] * col[c];
    }
    const real inward = dot3(d, gd);
    for (int e = 0; e < 3; e++) to_mean[e] += FMA(-d[e], inward, gd[e]) / far;
}

#endif
