/* project_lanes.h - a Gaussian on the image of a view, and its cotangents back to the model.
 *
 * Formulas are those of EWA splatting: the covariance of three dimensions through the derivative of
 * the projection, 0.3 px^2 added. Where the derivative is taken far off the axis its direction is
 * clamped; the clamp itself is not differentiated, as in every trainer.
 */
#include "tile_lanes.h"

#include <string.h>

#define REAL real
#define SH(name) sh_##name
#include "../sh/sh.h"

#define NEAR_PLANE R(0.01)
#define FAR_PLANE R(1e10)
#define BLUR R(0.3)
#define LEAST R(1e-8) /* of a determinant, of a squared quaternion */

/* What both directions need of one Gaussian. */
typedef struct seen {
    real x, y, z; /* X / Z, Y / Z, Z in the camera */
    real tx, ty;  /* clamped directions */
    real o, n;    /* opacity, squared length of the quaternion */
    real s2[3], R[3][3];
    real cov[3][3];
    real T[2][3];
    real a, b, c, det;
} seen;

static inline real dot3(const real *p, const real *q)
{
    return FMA(p[0], q[0], FMA(p[1], q[1], p[2] * q[2]));
}

static inline real clamp_to(real v, real low, real high)
{
    return v < low ? low : v > high ? high : v;
}

static void rotation_of(const real *q, real n, real m[3][3])
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

/* The covariance on the image; false: it is not seen. NaN is never seen. */
static bool look(const gs_raster *rule, const real *view, const real *mean, const real *scaling,
                 const real *q, real opacity, seen *g)
{
    const real *pose = view + GS_VIEW_POSE, fx = view[GS_VIEW_FX], fy = view[GS_VIEW_FY],
               cx = view[GS_VIEW_CX], cy = view[GS_VIEW_CY];
    const real W = (real)rule->width, H = (real)rule->height;
    g->z = dot3(pose + 8, mean) + pose[11];
    if (!(g->z >= NEAR_PLANE && g->z <= FAR_PLANE)) return false;
    g->o = 1 / (1 + EXP(-opacity));
    g->n = FMA(q[0], q[0], FMA(q[1], q[1], FMA(q[2], q[2], q[3] * q[3])));
    if (!(g->o >= R(1.0) / 255) || !(g->n >= LEAST)) return false;
    rotation_of(q, g->n, g->R);
    for (int k = 0; k < 3; k++) g->s2[k] = EXP(2 * scaling[k]);
    for (int i = 0; i < 3; i++)
        for (int j = i; j < 3; j++) {
            const real *p = g->R[i], *r = g->R[j];
            g->cov[i][j] = g->cov[j][i] =
                FMA(p[0] * g->s2[0], r[0], FMA(p[1] * g->s2[1], r[1], p[2] * g->s2[2] * r[2]));
        }
    g->x = (dot3(pose, mean) + pose[3]) / g->z;
    g->y = (dot3(pose + 4, mean) + pose[7]) / g->z;
    g->tx = clamp_to(g->x, (R(-0.15) * W - cx) / fx, (R(1.15) * W - cx) / fx);
    g->ty = clamp_to(g->y, (R(-0.15) * H - cy) / fy, (R(1.15) * H - cy) / fy);
    real M[2][3];
    for (int k = 0; k < 3; k++) {
        g->T[0][k] = fx / g->z * FMA(-g->tx, pose[8 + k], pose[k]);
        g->T[1][k] = fy / g->z * FMA(-g->ty, pose[8 + k], pose[4 + k]);
    }
    for (int r = 0; r < 2; r++)
        for (int k = 0; k < 3; k++) M[r][k] = dot3(g->T[r], g->cov[k]);
    g->a = dot3(M[0], g->T[0]) + BLUR;
    g->b = dot3(M[0], g->T[1]);
    g->c = dot3(M[1], g->T[1]) + BLUR;
    g->det = FMA(g->a, g->c, -(g->b * g->b));
    return g->det >= LEAST;
}

static int64_t count_tiles(const gs_raster *rule, const real *s)
{
    const box b = box_of(rule, s);
    int64_t n = 0;
    for (int64_t y = b.y0; y < b.y1; y++)
        for (int64_t x = b.x0; x < b.x1; x++) n += touches(rule, s, x, y);
    return n;
}

/* Unit vector from the camera; returns the distance. */
static real direction(const real *view, const real *mean, real d[3])
{
    for (int k = 0; k < 3; k++) d[k] = mean[k] - view[GS_VIEW_CENTRE + k];
    const real far = SQRT(dot3(d, d));
    for (int k = 0; k < 3; k++) d[k] /= far;
    return far;
}

static int degree_of(const gs_project_work *w, const real *view)
{
    const int wanted = (int)view[GS_VIEW_DEGREE];
    return wanted < w->degree ? wanted : w->degree;
}

static void colour_of(const real *sh0, const real *rest, int64_t step, const real *basis, int n,
                      real *out)
{
    for (int c = 0; c < 3; c++) {
        real sum = FMA(basis[0], sh0[c], R(0.5));
        for (int k = 1; k < n; k++) sum = FMA(basis[k], rest[(k - 1) * step + c], sum);
        out[c] = sum;
    }
}

#define ROW(type, base, step, i) ((type)(base) + (step) * (i))
#define IN(part, i) ROW(const real *, w->in[part], w->step[part], i)

static void project_run(const gs_project_work *w)
{
    const real *view = w->view;
    const int degree = degree_of(w, view), n = (degree + 1) * (degree + 1);
    for (int64_t i = 0; i < w->n; i++) {
        real *s = ROW(real *, w->out[0], w->out_step[0], i), d[3], basis[16];
        const real *mean = IN(GS_IN_MEANS, i);
        seen g;
        memset(s, 0, GS_SPLAT * sizeof *s);
        if (!look(w->rule, view, mean, IN(GS_IN_SCALING, i), IN(GS_IN_ROTATION, i),
                  *IN(GS_IN_OPACITY, i), &g))
            continue;
        real row[GS_SPLAT] = {0};
        row[GS_U] = FMA(g.x, view[GS_VIEW_FX], view[GS_VIEW_CX]);
        row[GS_V] = FMA(g.y, view[GS_VIEW_FY], view[GS_VIEW_CY]);
        row[GS_A] = g.c / g.det;
        row[GS_B] = -g.b / g.det;
        row[GS_C] = g.a / g.det;
        row[GS_O] = g.o;
        row[GS_Z] = g.z;
        row[GS_LIMIT] = LOG(255 * g.o);
        const real f = SQRT(2 * (row[GS_LIMIT] > 0 ? row[GS_LIMIT] : 0)),
                   ex = FMA(f, SQRT(g.a), R(-0.5)), ey = FMA(f, SQRT(g.c), R(-0.5));
        row[GS_EX] = ex > 0 ? ex : 0;
        row[GS_EY] = ey > 0 ? ey : 0;
        row[GS_TILES] = (real)count_tiles(w->rule, row);
        if (!(row[GS_TILES] > 0)) continue;
        direction(view, mean, d);
        sh_basis(degree, d[0], d[1], d[2], basis);
        colour_of(IN(GS_IN_SH0, i), ROW(const real *, w->rest, w->rest_step, i), w->rest_k, basis,
                  n, row + GS_RED);
        memcpy(s, row, sizeof row);
    }
}

/* ---- backward ---- */

/* Cotangents of one Gaussian. */
typedef struct bars {
    real mean[3], scaling[3], q[4];
} bars;

static void back_rotation(const real *q, real n, real M[3][3], real *out)
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

/* From the conic and the place on the image to mean, scaling and rotation. */
static void back_shape(const real *view, const real *q, const seen *g, const real *bar, bars *to)
{
    const real *pose = view + GS_VIEW_POSE, fx = view[GS_VIEW_FX], fy = view[GS_VIEW_FY];
    const real a = g->a, b = g->b, c = g->c, D = 1 / (g->det * g->det);
    const real gA = bar[GS_A], gB = bar[GS_B] / 2, gC = bar[GS_C]; /* of symmetric matrices */
    const real g11 = D * (2 * b * c * gB - c * c * gA - b * b * gC),
               g12 = D * (b * c * gA - (a * c + b * b) * gB + a * b * gC),
               g22 = D * (2 * a * b * gB - b * b * gA - a * a * gC);
    real P[2][3], G3[3][3], dT[2][3], dJ[2][3];
    for (int k = 0; k < 3; k++) {
        P[0][k] = FMA(g11, g->T[0][k], g12 * g->T[1][k]);
        P[1][k] = FMA(g12, g->T[0][k], g22 * g->T[1][k]);
    }
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) G3[i][j] = FMA(g->T[0][i], P[0][j], g->T[1][i] * P[1][j]);
    for (int r = 0; r < 2; r++)
        for (int k = 0; k < 3; k++) dT[r][k] = 2 * dot3(P[r], g->cov[k]);
    for (int r = 0; r < 2; r++)
        for (int k = 0; k < 3; k++) dJ[r][k] = dot3(dT[r], pose + 4 * k);
    const real z = g->z, gu = bar[GS_U], gv = bar[GS_V];
    const real at[3] = {fx / z * (gu - dJ[0][2] / z), fy / z * (gv - dJ[1][2] / z),
                        -(fx / z) * FMA(g->x, gu, (dJ[0][0] - 2 * g->tx * dJ[0][2]) / z) -
                            fy / z * FMA(g->y, gv, (dJ[1][1] - 2 * g->ty * dJ[1][2]) / z)};
    real M[3][3];
    for (int k = 0; k < 3; k++) {
        to->mean[k] = FMA(pose[k], at[0], FMA(pose[4 + k], at[1], pose[8 + k] * at[2]));
        real column[3], turned[3];
        for (int i = 0; i < 3; i++) column[i] = g->R[i][k];
        for (int i = 0; i < 3; i++) turned[i] = dot3(G3[i], column);
        to->scaling[k] = 2 * g->s2[k] * dot3(column, turned);
        for (int i = 0; i < 3; i++) M[i][k] = 2 * turned[i] * g->s2[k];
    }
    back_rotation(q, g->n, M, to->q);
}

/* Colours to coefficients, and through the direction to the mean. */
static void back_colour(const gs_project_work *w, int64_t i, int degree, const real *bar,
                        real *mean)
{
    const real *view = w->view, *rest = ROW(const real *, w->rest, w->rest_step, i),
               *col = bar + GS_RED;
    real d[3], basis[16], slopes[16][3], gd[3] = {0, 0, 0};
    const real far = direction(view, IN(GS_IN_MEANS, i), d);
    const int n = (degree + 1) * (degree + 1);
    sh_basis(degree, d[0], d[1], d[2], basis);
    sh_slopes(degree, d[0], d[1], d[2], slopes);
    if (w->out[GS_IN_SH0]) {
        real *to = ROW(real *, w->out[GS_IN_SH0], w->out_step[GS_IN_SH0], i);
        for (int c = 0; c < 3; c++) to[c] = basis[0] * col[c];
    }
    for (int k = 1; k < n; k++) {
        const real along = dot3(rest + (k - 1) * w->rest_k, col);
        for (int e = 0; e < 3; e++) gd[e] = FMA(slopes[k][e], along, gd[e]);
        if (!w->out_rest) continue;
        real *to = ROW(real *, w->out_rest, w->out_rest_step, i) + (k - 1) * w->out_rest_k;
        for (int c = 0; c < 3; c++) to[c] = basis[k] * col[c];
    }
    const real inward = dot3(d, gd);
    for (int e = 0; e < 3; e++) mean[e] += FMA(-d[e], inward, gd[e]) / far;
}

static void clear_row(const gs_project_work *w, int64_t i)
{
    static const int columns[GS_IN_PARTS] = {3, 3, 3, 4, 1};
    for (int p = 0; p < GS_IN_PARTS; p++)
        if (w->out[p])
            memset(ROW(real *, w->out[p], w->out_step[p], i), 0, (size_t)columns[p] * sizeof(real));
    for (int k = 0; w->out_rest && k < (w->degree + 1) * (w->degree + 1) - 1; k++)
        memset(ROW(real *, w->out_rest, w->out_rest_step, i) + k * w->out_rest_k, 0,
               3 * sizeof(real));
}

static void put(const gs_project_work *w, int part, int64_t i, const real *from, int n)
{
    if (w->out[part])
        memcpy(ROW(real *, w->out[part], w->out_step[part], i), from, (size_t)n * sizeof *from);
}

static void project_back_run(const gs_project_work *w)
{
    const real *view = w->view;
    const int degree = degree_of(w, view);
    for (int64_t i = 0; i < w->n; i++) {
        const real *s = ROW(const real *, w->splats, w->splats_step, i),
                   *bar = ROW(const real *, w->bar, w->bar_step, i), *q = IN(GS_IN_ROTATION, i);
        seen g;
        bars to;
        clear_row(w, i);
        if (!(s[GS_TILES] > 0) || !look(w->rule, view, IN(GS_IN_MEANS, i), IN(GS_IN_SCALING, i), q,
                                        *IN(GS_IN_OPACITY, i), &g))
            continue;
        back_shape(view, q, &g, bar, &to);
        back_colour(w, i, degree, bar, to.mean);
        const real logit = bar[GS_O] * g.o * (1 - g.o);
        put(w, GS_IN_MEANS, i, to.mean, 3);
        put(w, GS_IN_SCALING, i, to.scaling, 3);
        put(w, GS_IN_ROTATION, i, to.q, 4);
        put(w, GS_IN_OPACITY, i, &logit, 1);
    }
}
#undef IN
