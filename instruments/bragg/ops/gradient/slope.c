/* slope.c - lattice transforms and structure factors with slopes, one sample at a time. */
#include "slope.h"

static const double pi = 3.14159265358979323846;

/* sin(N x) / sin(x) at x = pi h and its slope by h. Near an integer h the two terms of the slope
 * cancel, so a series is used there. The sign of the pair is lost by taking h - round(h), and
 * vanishes in the square. */
static BR_BOTH double grating(double h, double n, double *slope)
{
    const double delta = h - rint(h), x = pi * delta, u = n * x;
    const double s = sin(x), t = sin(u);
    if (fabs(u) < 0.01) {
        const double m = n * n;
        *slope = pi * n * x * ((3 * m * m - 10 * m + 7) * x * x / 90 - (m - 1) / 3);
        return s == 0 ? n : t / s;
    }
    *slope = pi * (n * cos(u) * s - t * cos(x)) / (s * s);
    return t / s;
}

static BR_BOTH void square(const br_scene *scene, const double *hkl, br_lattice_slope *out)
{
    double v[3] = {1, 1, 1}, d[3] = {0};
    for (int i = 0; i < 3; i++)
        if (scene->cells[i] > 1) v[i] = grating(hkl[i], scene->cells[i], &d[i]);
    *out = (br_lattice_slope){.v = v[0] * v[1] * v[2],
                              .d = {d[0] * v[1] * v[2], v[0] * d[1] * v[2], v[0] * v[1] * d[2]}};
}

/* 3 (sin x / x - cos x) / x^2 and its slope over x. */
static BR_BOTH double ball(double x, double *slope_over_x)
{
    if (x == 0) {
        *slope_over_x = -1.0 / 5;
        return 1;
    }
    const double v = 3 * (sin(x) / x - cos(x)) / (x * x), y = x * x;
    *slope_over_x = x < 0.05 ? y / 70 - 1.0 / 5 - y * y / 2520 : 3 * (sin(x) / x - v) / y;
    return v;
}

static BR_BOTH void round_(const br_scene *scene, const double *delta, br_lattice_slope *out)
{
    const double *n = scene->cells, scale = n[0] * n[1] * n[2] * 0.723601254558268;
    double r2 = 0, slope;
    for (int i = 0; i < 3; i++) r2 += delta[i] * delta[i] * n[i] * n[i];
    const double v = ball(pi * sqrt(scene->fudge * r2), &slope);
    out->v = scale * v;
    for (int i = 0; i < 3; i++)
        out->d[i] = scale * slope * pi * pi * scene->fudge * delta[i] * n[i] * n[i];
}

/* |delta . (a* b* c*)|^2 from the products of the axes, and half its slopes. */
static BR_BOTH double squared(const double *m, const double *x, double *half)
{
    half[0] = m[0] * x[0] + m[3] * x[1] + m[4] * x[2];
    half[1] = m[3] * x[0] + m[1] * x[1] + m[5] * x[2];
    half[2] = m[4] * x[0] + m[5] * x[1] + m[2] * x[2];
    return half[0] * x[0] + half[1] * x[1] + half[2] * x[2];
}

static BR_BOTH void gauss(const br_scene *scene, const double *metric, const double *x,
                          br_lattice_slope *out)
{
    const double n = scene->cells[0] * scene->cells[1] * scene->cells[2];
    double half[3];
    const double rs = squared(metric, x, half) * (n * n);
    const double v = n * exp(-(rs / 0.63 * scene->fudge));
    const double slope = -v / 0.63 * scene->fudge * (n * n); /* by the squared length */
    const double pair[6] = {x[0] * x[0],     x[1] * x[1],     x[2] * x[2],
                            2 * x[0] * x[1], 2 * x[0] * x[2], 2 * x[1] * x[2]};
    out->v = v;
    for (int i = 0; i < 3; i++) out->d[i] = slope * 2 * half[i];
    for (int i = 0; i < 6; i++) out->metric[i] = slope * pair[i];
}

static BR_BOTH void tophat(const br_scene *scene, const double *metric, const double *x,
                           br_lattice_slope *out)
{
    const double n = scene->cells[0] * scene->cells[1] * scene->cells[2];
    double half[3];
    const double rs = squared(metric, x, half) * (n * n);
    out->v = rs * scene->fudge < 0.3969 ? n : 0;
}

BR_BOTH BR_APART void br_lattice_at(const br_scene *scene, const double *metric, const double *hkl,
                                    br_lattice_slope *out)
{
    double delta[3];
    *out = (br_lattice_slope){0};
    for (int i = 0; i < 3; i++) delta[i] = hkl[i] - ceil(hkl[i] - 0.5);
    switch ((br_shape)scene->shape) {
    case BR_SQUARE: square(scene, hkl, out); break;
    case BR_ROUND: round_(scene, delta, out); break;
    case BR_GAUSS: gauss(scene, metric, delta, out); break;
    case BR_TOPHAT: tophat(scene, metric, delta, out); break;
    }
}

BR_BOTH void br_metric(const br_placed *placed, double *metric)
{
    static const int pair[6][2] = {{0, 0}, {1, 1}, {2, 2}, {0, 1}, {0, 2}, {1, 2}};
    for (int i = 0; i < 6; i++) {
        const br_dual *a = placed->star[pair[i][0]], *b = placed->star[pair[i][1]];
        metric[i] = a[0].v * b[0].v + a[1].v * b[1].v + a[2].v * b[2].v;
    }
}

/* ---- structure factors ---- */

static BR_BOTH bool in_range(const br_scene *s, const double *hkl)
{
    const int64_t lo[3] = {s->h_min, s->k_min, s->l_min}, hi[3] = {s->h_max, s->k_max, s->l_max};
    bool in = true; /* NaN is out of range */
    for (int k = 0; k < 3; k++)
        in = in && hkl[k] - (double)lo[k] + 3 <= (double)(hi[k] - lo[k] + 1) &&
             hkl[k] - 2 >= (double)lo[k];
    return in;
}

/* An entry of the table, counted from its first. */
static BR_BOTH void put(const br_view *v, const int64_t *index, int i, br_stencil *out)
{
    const br_scene *s = v->scene;
    const int64_t k = s->k_max - s->k_min + 2, l = s->l_max - s->l_min + 2, *step = v->table_step;
    out->at[i] = index[0] * step[0] + index[1] * step[1] + index[2] * step[2];
    out->entry[i] = (index[0] * k + index[1]) * l + index[2];
}

static BR_BOTH void nearest(const br_view *v, const double *hkl, br_stencil *out)
{
    const br_scene *s = v->scene;
    const int64_t lo[3] = {s->h_min, s->k_min, s->l_min}, hi[3] = {s->h_max, s->k_max, s->l_max};
    int64_t index[3];
    out->n = 0;
    for (int k = 0; k < 3; k++) {
        const double whole = ceil(hkl[k] - 0.5);
        if (s->hkls <= 0 || !(whole >= (double)lo[k] && whole <= (double)hi[k])) return;
        index[k] = (int64_t)whole - lo[k];
    }
    out->n = 1;
    put(v, index, 0, out);
    out->weight[0] = 1;
    for (int k = 0; k < 3; k++) out->slope[0][k] = 0;
}

/* Weights of nodes floor(x)-1 .. floor(x)+2 and their slopes. Returns floor(x) - 1. */
static BR_BOTH double weights(double x, double *w, double *d)
{
    const double whole = floor(x), t = x - whole;
    w[0] = -t * (t - 1) * (t - 2) / 6;
    w[1] = (t + 1) * (t - 1) * (t - 2) / 2;
    w[2] = -(t + 1) * t * (t - 2) / 2;
    w[3] = (t + 1) * t * (t - 1) / 6;
    d[0] = -(3 * t * t - 6 * t + 2) / 6;
    d[1] = (3 * t * t - 4 * t - 1) / 2;
    d[2] = -(3 * t * t - 2 * t - 2) / 2;
    d[3] = (3 * t * t - 1) / 6;
    return whole - 1;
}

BR_BOTH BR_APART void br_stencil_at(const br_view *v, const double *hkl, bool interpolate,
                                    br_stencil *out)
{
    const br_scene *s = v->scene;
    const int64_t lo[3] = {s->h_min, s->k_min, s->l_min};
    double w[3][4], d[3][4];
    int64_t first[3];
    if (!interpolate || !in_range(s, hkl)) {
        nearest(v, hkl, out);
        return;
    }
    for (int k = 0; k < 3; k++) first[k] = (int64_t)weights(hkl[k], w[k], d[k]) - lo[k];
    for (int i = 0; i < 64; i++) {
        const int h = i / 16, k = i / 4 % 4, l = i % 4;
        const int64_t at[3] = {first[0] + h, first[1] + k, first[2] + l};
        put(v, at, i, out);
        out->weight[i] = w[0][h] * w[1][k] * w[2][l];
        out->slope[i][0] = d[0][h] * w[1][k] * w[2][l];
        out->slope[i][1] = w[0][h] * d[1][k] * w[2][l];
        out->slope[i][2] = w[0][h] * w[1][k] * d[2][l];
    }
    out->n = 64;
}

BR_BOTH BR_APART void br_factor_at(const br_view *v, const double *hkl, bool interpolate,
                                   br_factor *out)
{
    br_stencil s;
    br_stencil_at(v, hkl, interpolate, &s);
    *out = (br_factor){.v = s.n ? 0 : v->scene->default_F};
    for (int i = 0; i < s.n; i++) {
        const double f = v->table[s.at[i]];
        out->v += s.weight[i] * f;
        for (int k = 0; k < 3; k++) out->d[k] += s.slope[i][k] * f;
    }
}
