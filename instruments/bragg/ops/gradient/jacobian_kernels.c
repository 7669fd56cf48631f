/* jacobian_kernels.c - derivatives of a vector of pixels along fast, per instruction set.
 *
 * As jacobian_plain.c, with everything hoisted out of the loop over samples that does not depend on
 * them. A sample only gives derivatives by h k l; they are summed for the cell in the frame of the
 * crystal and for the scattering vector. A source propagates the latter to the direction, a
 * subpixel to the detector, and factors of the whole sum are applied at the end.
 *
 * Where factors multiply the running sum, the plain loop is used.
 */
#define FTH_VECTOR_REAL 64
#if defined(__GNUC__) && !defined(__clang__) && !defined(BR_ON_DEVICE)
#pragma GCC optimize("no-tree-loop-distribute-patterns") /* a few zeros are set faster one by one  \
                                                          */
#endif
#include "../render/pixel_lanes.h"
#include "jacobian.h"

#include <assert.h>

/* The numbers of adjoint.h that describe the detector: pix0 fdet sdet odet close distance. */
enum { SENSOR = BR_AD_DISTANCE - BR_AD_PIX0 + 1 };

/* A factor with its derivatives by these. */
typedef struct factor {
    vr v, d[SENSOR];
} factor;

/* Derivatives of the samples of one source, before its factors. */
typedef struct slopes {
    vr sum, cell[9], metric[6], q[3];
} slopes;

typedef struct lab {
    pixels x;
    const br_lab *b;
    double series[3][2]; /* of the slope of a grating near its top, by t and t^3 */
    int64_t sub[3];
    vr inv_distance, fd; /* 1 / distance; place along fast */
    double sd, od;
    slopes now;
    factor polar, omega, capture, capture_sum;
    vr layer_sum; /* of terms multiplied by the layer's capture fraction */
    vr sum, bar[3], cell[9], metric[6], lambda, sensor[SENSOR];
} lab;

LANE vr zero(void)
{
    return v_set(0);
}

/* ---- from a position back to the detector ---- */

/* Curved sensors: lane by lane, by the plain code. */
static BR_BOTH BR_APART void push_bent(const lab *l, const vr *bar, vr *to)
{
    double in[3][LANES], out[SENSOR][LANES];
    for (int k = 0; k < 3; k++) v_store(in[k], bar[k]);
    for (int i = 0; i < LANES; i++) {
        double one[BR_ADJOINTS] = {0};
        const double at[3] = {in[0][i], in[1][i], in[2][i]};
        br_push_place(l->x.v, l->x.row->slow, l->x.row->fast + l->x.i + i, l->sub, at, one);
        for (int k = 0; k < SENSOR; k++) out[k][i] = one[BR_AD_PIX0 + k];
    }
    for (int k = 0; k < SENSOR; k++) to[k] += v_load(out[k]);
}

LANE void clear(vr *v, int n)
{
    for (int i = 0; i < n; i++) v[i] = zero();
}

LANE void push_place(const lab *l, const vr *bar, vr *to)
{
    if (l->x.v->scene->curved) {
        push_bent(l, bar, to);
        return;
    }
    for (int i = 0; i < 3; i++) {
        to[i] += bar[i];
        to[3 + i] = v_fma(bar[i], l->fd, to[3 + i]);
        to[6 + i] = v_fma(bar[i], v_set(l->sd), to[6 + i]);
        to[9 + i] = v_fma(bar[i], v_set(l->od), to[9 + i]);
    }
}

LANE void push_direction(const lab *l, const vr *bar, vr *to)
{
    const vr *d = l->x.d, along = dot(d, bar);
    vr place[3];
    for (int i = 0; i < 3; i++) place[i] = (bar[i] - d[i] * along) * l->inv_distance;
    push_place(l, place, to);
}

/* ---- factors ---- */

/* f becomes `now` in the lanes that need it. */
LANE void replace(factor *f, vm need, const factor *now)
{
    const bool all = m_bits(need) == m_all();
    f->v = v_pick(need, now->v, f->v);
    for (int k = 0; k < SENSOR; k++) f->d[k] = all ? now->d[k] : v_pick(need, now->d[k], f->d[k]);
}

static BR_BOTH void set_factor(factor *f, double v)
{
    f->v = v_set(v);
    clear(f->d, SENSOR);
}

static BR_BOTH BR_APART void solid_angle(lab *l)
{
    const br_scene *s = l->x.v->scene;
    const vm need = s->oversample_omega ? m_of(m_all()) : v_eq(l->omega.v, zero());
    if (m_bits(need) == 0) return;
    const vr y = l->inv_distance, one = s->pixel * s->pixel * (y * y * y);
    factor now;
    now.v = s->point_pixel ? y * y : one * l->x.v->close;
    clear(now.d, SENSOR);
    const vr slope = (s->point_pixel ? -2.0 : -3.0) * now.v * y;
    const vr bar[3] = {slope * l->x.d[0], slope * l->x.d[1], slope * l->x.d[2]};
    push_place(l, bar, now.d);
    if (!s->point_pixel) now.d[BR_AD_CLOSE - BR_AD_PIX0] = one;
    replace(&l->omega, need, &now);
}

static BR_BOTH BR_APART void absorption(lab *l, int64_t layer)
{
    const br_view *v = l->x.v;
    const br_scene *s = v->scene;
    const vm need = s->oversample_thick ? m_of(m_all()) : v_eq(l->capture.v, zero());
    if (m_bits(need) == 0) return;
    const vr rho = dot_with(l->x.d, v->odet), path = s->layer_step * s->mu / rho;
    const vr near = (double)layer * path, far = (double)(layer + 1) * path;
    const vr in = v_exp(-near), left = v_exp(-far), slope = (near * in - far * left) / rho;
    factor now;
    vr bar[3];
    now.v = in - left;
    clear(now.d, SENSOR);
    for (int i = 0; i < 3; i++) {
        bar[i] = slope * v->odet[i];
        now.d[BR_AD_ODET - BR_AD_PIX0 + i] = slope * l->x.d[i];
    }
    push_direction(l, bar, now.d);
    replace(&l->capture, need, &now);
}

static BR_BOTH BR_APART void polarisation(lab *l, const br_beam *beam)
{
    const br_scene *s = l->x.v->scene;
    const vm need = s->oversample_polar ? l->x.live : m_and(l->x.live, v_eq(l->polar.v, zero()));
    if (m_bits(need) == 0) return;
    const vr c = dot_with(l->x.d, beam->to), rest = 1 - c * c; /* `to` points against the beam */
    vr twice = v_set(1), by_b = zero(), by_e = zero(), bar[3];
    if (s->kahn != 0) {
        const vr b = dot_with(l->x.d, beam->across), e = dot_with(l->x.d, beam->along);
        const vr n = b * b + e * e, y = 1 / n;
        const vm none = v_eq(n, zero());
        twice = v_pick(none, v_set(1), (e * e - b * b) * y);
        by_b = v_pick(none, zero(), -4 * b * e * e * (y * y));
        by_e = v_pick(none, zero(), 4 * e * b * b * (y * y));
    }
    factor now;
    now.v = 0.5 * (1 + c * c - s->kahn * twice * rest);
    clear(now.d, SENSOR);
    for (int i = 0; i < 3; i++)
        bar[i] = c * (1 + s->kahn * twice) * beam->to[i] -
                 0.5 * s->kahn * rest * (by_e * beam->along[i] + by_b * beam->across[i]);
    push_direction(l, bar, now.d);
    replace(&l->polar, need, &now);
}

/* ---- lattice: value and slopes ---- */

/* sin(pi N t) / sin(pi t) and the slope of each axis. Where both are near 0 the terms of the slope
 * cancel, so its series is used. `every`: no axis has one cell only. */
LANE void square(const lab *l, const vr *delta, bool every, vr *value, vr *d)
{
    const double *cells = l->x.v->scene->cells, pi = 3.14159265358979323846;
    vr above[3], below[3], slope[3];
    for (int k = 0; k < 3; k++) {
        above[k] = below[k] = v_set(1);
        slope[k] = zero();
        if (!every && !(cells[k] > 1)) continue;
        const vr n = v_set(cells[k]), t = delta[k] + 0x1p-300, u = n * t;
        const vr r = v_fma(n, t, -v_rint(u)), tt = t * t, rr = r * r;
        below[k] = t * v_sin_pi_over(tt);
        above[k] = r * v_sin_pi_over(rr);
        const vr far = v_fma(n * v_cos_pi(rr), below[k], -(above[k] * v_cos_pi(tt)));
        const vr near = v_fma(tt, v_set(l->series[k][1]), v_set(l->series[k][0])) * t;
        const vm top = v_lt(u * u, v_set(1e-5));
        slope[k] = v_pick(top, near * (below[k] * below[k]), pi * far);
    }
    const vr inverse = 1 / (below[0] * below[1] * below[2]);
    vr one[3], f[3];
    one[0] = below[1] * below[2] * inverse;
    one[1] = below[0] * below[2] * inverse;
    one[2] = below[0] * below[1] * inverse;
    for (int k = 0; k < 3; k++) {
        f[k] = above[k] * one[k];
        slope[k] = slope[k] * one[k] * one[k];
    }
    *value = f[0] * f[1] * f[2];
    d[0] = slope[0] * f[1] * f[2];
    d[1] = f[0] * slope[1] * f[2];
    d[2] = f[0] * f[1] * slope[2];
}

/* Terms cancel near 0: the value comes from the plain formula, its slope from a series. */
static BR_BOTH BR_APART void sinc3(vr x, vr turns, vr *value, vr *slope_over_x)
{
    const vr t = turns - v_rint(turns), z = t * t, xx = x * x;
    const vr s = t * v_sin_pi_over(z) / x, c = v_cos_pi(z);
    *value = 3 * (s - c) / xx;
    *slope_over_x = 3 * (s - *value) / xx;
    const vm near = v_lt(x, v_set(0.05));
    const uint32_t small = m_bits(near);
    if (small == 0) return;
    double in[LANES], out[LANES];
    v_store(in, x);
    v_store(out, *value);
    for (int i = 0; i < LANES; i++)
        if (small >> i & 1)
            out[i] = in[i] == 0 ? 1 : 3 * (sin(in[i]) / in[i] - cos(in[i])) / (in[i] * in[i]);
    *value = v_load(out);
    *slope_over_x = v_pick(near, xx / 70 - 0.2 - xx * xx / 2520, *slope_over_x);
}

LANE void ball(const lab *l, const vr *delta, vr *value, vr *d)
{
    const br_scene *s = l->x.v->scene;
    const double *n = s->cells, scale = l->x.v->lattice_sum * 0.723601254558268;
    vr r2 = zero(), slope;
    for (int k = 0; k < 3; k++) r2 = r2 + delta[k] * delta[k] * n[k] * n[k];
    const vr turns = v_sqrt(r2 * s->fudge);
    sinc3(M_PI * turns, turns, value, &slope);
    *value = scale * *value;
    slope = scale * M_PI * M_PI * s->fudge * slope;
    for (int k = 0; k < 3; k++) d[k] = slope * (delta[k] * (n[k] * n[k]));
}

/* `by_square` is the slope by the squared length of delta . (a* b* c*). */
LANE void gauss(const lab *l, const vr *x, vr *value, vr *d, vr *by_square)
{
    const br_scene *s = l->x.v->scene;
    const double n = l->x.v->lattice_sum, k = s->fudge / 0.63 * (n * n), *m = l->b->metric;
    vr half[3];
    half[0] = m[0] * x[0] + m[3] * x[1] + m[4] * x[2];
    half[1] = m[3] * x[0] + m[1] * x[1] + m[5] * x[2];
    half[2] = m[4] * x[0] + m[5] * x[1] + m[2] * x[2];
    const vr a = k * (half[0] * x[0] + half[1] * x[1] + half[2] * x[2]);
    *value = v_pick(v_lt(v_set(745.13321910194122), a), zero(), n * v_exp(-a));
    *by_square = -k * *value;
    for (int i = 0; i < 3; i++) d[i] = 2 * *by_square * half[i];
}

LANE void tophat(const lab *l, const vr *x, vr *value, vr *d)
{
    const double n = l->x.v->lattice_sum;
    vr at[3];
    for (int i = 0; i < 3; i++)
        at[i] = x[0] * l->x.star[0][i] + x[1] * l->x.star[1][i] + x[2] * l->x.star[2][i];
    const vr a = dot(at, at) * n * n * l->x.v->scene->fudge;
    *value = v_pick(v_lt(a, v_set(0.3969)), v_set(n), zero());
    d[0] = d[1] = d[2] = zero();
}

/* ---- interpolated structure factors with slopes ---- */

LANE void weight_slopes(vr t, vr *d)
{
    const vr tt = t * t;
    d[0] = -(3 * tt - 6 * t + 2) / 6;
    d[1] = (3 * tt - 4 * t - 1) * 0.5;
    d[2] = -(3 * tt - 2 * t - 2) * 0.5;
    d[3] = (3 * tt - 1) / 6;
}

static inline BR_BOTH double four_dot(const fth_f64x4 *a, const double (*w)[LANES], int i)
{
    return (w[0][i] * fth_f64x4_get(a, 0) + w[1][i] * fth_f64x4_get(a, 1)) +
           (w[2][i] * fth_f64x4_get(a, 2) + w[3][i] * fth_f64x4_get(a, 3));
}

static BR_BOTH BR_APART void tricubic(const lab *l, vm use, const vr *hkl, vr *F, vr *dF)
{
    double w[3][4][LANES], d[3][4][LANES], found[4][LANES] = {{0}};
    int32_t at[LANES];
    vr whole[3], now[4];
    for (int k = 0; k < 3; k++) {
        whole[k] = v_floor(hkl[k]);
        weights(hkl[k] - whole[k], now);
        for (int i = 0; i < 4; i++) v_store(w[k][i], now[i]);
        weight_slopes(hkl[k] - whole[k], now);
        for (int i = 0; i < 4; i++) v_store(d[k][i], now[i]);
    }
    entries(&l->x, use, whole, 1, at);
    const int64_t *step = l->x.v->table_step;
    const uint32_t bits = m_bits(use);
    for (int i = 0; i < LANES; i++) {
        fth_f64x4 sum = {0}, by_h = {0}, by_k = {0};
        if (!(bits >> i & 1)) continue;
        for (int h = 0; h < 4; h++) {
            fth_f64x4 plane = {0}, slope = {0};
            for (int k = 0; k < 4; k++) {
                fth_f64x4 line;
                memcpy(&line, l->x.v->table + at[i] + h * step[0] + k * step[1], sizeof line);
                fth_f64x4_add_product(w[1][k][i], &line, &plane);
                fth_f64x4_add_product(d[1][k][i], &line, &slope);
            }
            fth_f64x4_add_product(w[0][h][i], &plane, &sum);
            fth_f64x4_add_product(d[0][h][i], &plane, &by_h);
            fth_f64x4_add_product(w[0][h][i], &slope, &by_k);
        }
        found[0][i] = four_dot(&by_h, (const double(*)[LANES])w[2], i);
        found[1][i] = four_dot(&by_k, (const double(*)[LANES])w[2], i);
        found[2][i] = four_dot(&sum, (const double(*)[LANES])d[2], i);
        found[3][i] = four_dot(&sum, (const double(*)[LANES])w[2], i);
    }
    *F = v_load(found[3]);
    for (int k = 0; k < 3; k++) dF[k] = v_load(found[k]);
}

static BR_BOTH void interpolated(const lab *l, const vr *hkl, const vr *hkl0, int64_t n, vr *F,
                                 vr *dF)
{
    const vm use = m_and(inside_table(&l->x, hkl), m_of(may_cubic(&l->x, n)));
    const uint32_t all = m_bits(use);
    dF[0] = dF[1] = dF[2] = zero();
    if (all) tricubic(l, use, hkl, F, dF);
    if (all != m_all()) *F = all ? v_pick(use, *F, nearest(&l->x, hkl0)) : nearest(&l->x, hkl0);
}

/* ---- samples ---- */

/* One row of rotated cells: samples n, n + 1 .. of the pixels, in the lanes `live`. */
LANE void domains(const lab *l, int64_t row, vm live, int64_t n, br_shape shape, lookup how,
                  bool every, slopes *sums)
{
    const br_scene *s = l->x.v->scene;
    const double *cell = l->x.v->cells + row * 9, *rotation = l->b->rotations + row * 9;
    const vr *q = l->x.q;
    slopes a = *sums;
    for (int64_t m = 0; m < s->mosaics; m++, cell += 9, rotation += 9) {
        vr hkl[3], hkl0[3], delta[3], F = v_set(s->default_F), dF[3], L, d[3], by_square, g[3];
        indices(l->x.q, cell, hkl);
        reflection(hkl, hkl0);
        for (int k = 0; k < 3; k++) delta[k] = hkl[k] - hkl0[k];
        if (shape == BR_SQUARE) square(l, delta, every, &L, d);
        if (shape == BR_ROUND) ball(l, delta, &L, d);
        if (shape == BR_GAUSS) gauss(l, delta, &L, d, &by_square);
        if (shape == BR_TOPHAT) tophat(l, delta, &L, d);
        if (how == NEAREST) F = nearest(&l->x, hkl0);
        if (how == TRICUBIC) interpolated(l, hkl, hkl0, n + m, &F, dF);
        const vr f = v_pick(live, F * L, zero()), twice = 2 * f;
        a.sum = v_fma(f, f, a.sum);
        for (int k = 0; k < 3; k++) {
            g[k] = F * d[k];
            if (how == TRICUBIC) g[k] = v_fma(dF[k], L, g[k]);
            g[k] = twice * g[k];
        }
        for (int i = 0; i < 3; i++) {
            const vr along = rotation[i] * q[0] + rotation[3 + i] * q[1] + rotation[6 + i] * q[2];
            for (int k = 0; k < 3; k++) {
                a.cell[3 * k + i] = v_fma(g[k], along, a.cell[3 * k + i]);
                a.q[i] = v_fma(g[k], v_set(cell[3 * k + i]), a.q[i]);
            }
        }
        if (shape == BR_GAUSS) {
            const vr k = twice * F * by_square;
            for (int i = 0; i < 3; i++) {
                a.metric[i] += k * delta[i] * delta[i];
                a.metric[3 + i] += 2 * k * delta[i < 2 ? 0 : 1] * delta[i < 1 ? 1 : 2];
            }
        }
    }
    *sums = a;
}

LANE void steps(lab *l, int64_t group, br_shape shape, lookup how, bool every)
{
    const br_scene *s = l->x.v->scene;
    const bool begins = l->x.chain_lane >= 0 && group == l->x.chain_group;
    slopes a;
    a.sum = zero();
    clear(a.cell, 9);
    clear(a.metric, 6);
    clear(a.q, 3);
    /* the lane in which the chain begins has a cell of its own in the first step, and is computed
     * first */
    for (int64_t at = begins ? -1 : 0; at < s->phis; at++) {
        const int64_t phi = at < 0 ? 0 : at, n = (group * s->phis + phi) * s->mosaics;
        vm lanes = l->x.live;
        if (begins && at <= 0) {
            const vm one = m_of(1u << l->x.chain_lane);
            lanes = m_and(lanes, at < 0 ? one : m_not(one));
        }
        domains(l, (at < 0 ? s->phis : at) * s->mosaics, lanes, n, shape, how, every, &a);
    }
    l->now = a;
}

/* A specialised loop for each kind of sample; fewer on a device, where code size costs
 * occupancy. */
#ifdef BR_ON_DEVICE
static BR_BOTH BR_APART void all_steps(lab *l, int64_t group, lookup how)
{
    switch ((br_shape)l->x.v->scene->shape) {
    case BR_SQUARE:
        if (how == NO_TABLE)
            steps(l, group, BR_SQUARE, NO_TABLE, false);
        else
            steps(l, group, BR_SQUARE, how, false);
        break;
    case BR_ROUND: steps(l, group, BR_ROUND, how, false); break;
    case BR_GAUSS: steps(l, group, BR_GAUSS, how, false); break;
    case BR_TOPHAT: steps(l, group, BR_TOPHAT, how, false); break;
    }
}
#else
#define STEPS(name, shape, how)                                                                    \
    static void name(lab *l, int64_t group)                                                        \
    {                                                                                              \
        const double *n = l->x.v->scene->cells;                                                    \
        if (shape == BR_SQUARE && n[0] > 1 && n[1] > 1 && n[2] > 1)                                \
            steps(l, group, shape, how, true);                                                     \
        else                                                                                       \
            steps(l, group, shape, how, false);                                                    \
    }
STEPS(square_none, BR_SQUARE, NO_TABLE)
STEPS(square_nearest, BR_SQUARE, NEAREST)
STEPS(square_cubic, BR_SQUARE, TRICUBIC)
STEPS(round_none, BR_ROUND, NO_TABLE)
STEPS(round_nearest, BR_ROUND, NEAREST)
STEPS(round_cubic, BR_ROUND, TRICUBIC)
STEPS(gauss_none, BR_GAUSS, NO_TABLE)
STEPS(gauss_nearest, BR_GAUSS, NEAREST)
STEPS(gauss_cubic, BR_GAUSS, TRICUBIC)
STEPS(tophat_none, BR_TOPHAT, NO_TABLE)
STEPS(tophat_nearest, BR_TOPHAT, NEAREST)
STEPS(tophat_cubic, BR_TOPHAT, TRICUBIC)

static void (*const steps_of[4][3])(lab *, int64_t) = {
    [BR_SQUARE] = {square_none, square_nearest, square_cubic},
    [BR_ROUND] = {round_none, round_nearest, round_cubic},
    [BR_GAUSS] = {gauss_none, gauss_nearest, gauss_cubic},
    [BR_TOPHAT] = {tophat_none, tophat_nearest, tophat_cubic}};

static void all_steps(lab *l, int64_t group, lookup how)
{
    steps_of[l->x.v->scene->shape][how](l, group);
}
#endif

/* ---- sources, subpixels, layers ---- */

LANE void add_sensor(lab *l, vr k, const factor *f)
{
    for (int i = 0; i < SENSOR; i++) l->sensor[i] = v_fma(k, f->d[i], l->sensor[i]);
}

/* Whether the capture fraction multiplies each term, not the sum. */
static BR_BOTH bool captures_terms(const br_scene *s)
{
    return s->oversample_thick || !br_has(s, BR_QUIRK_LAST_LAYER);
}

static BR_BOTH void one_source(lab *l, int64_t j, int64_t group, lookup how, vr *omega_sum)
{
    const br_view *v = l->x.v;
    const br_scene *s = v->scene;
    const br_beam *beam = &v->beams[j];
    scatter(&l->x, beam);
    if (m_bits(l->x.live) == 0) return;
    polarisation(l, beam);
    all_steps(l, group, how);
    const slopes *a = &l->now;
    const vr one = v_set(1), capture = captures_terms(s) ? l->capture.v : one,
             polar = s->oversample_polar ? l->polar.v : one,
             omega = s->oversample_omega ? l->omega.v : one,
             k = beam->weight * capture * polar * omega, sum = beam->weight * a->sum;
    l->sum = v_fma(a->sum, k, l->sum);
    for (int i = 0; i < 9; i++) l->cell[i] = v_fma(a->cell[i], k, l->cell[i]);
    for (int i = 0; s->shape == BR_GAUSS && i < 6; i++)
        l->metric[i] = v_fma(a->metric[i], k, l->metric[i]);
    const vr by_lambda = k * (1 / beam->lambda);
    for (int i = 0; i < 3; i++) l->bar[i] = v_fma(a->q[i], by_lambda, l->bar[i]);
    l->lambda -= v->source[j * BR_SRC_COLUMNS + BR_SRC_PART] * by_lambda * dot(l->x.q, a->q);
    l->layer_sum += sum * polar * omega;
    *omega_sum += sum * polar * capture;
    if (s->oversample_polar) add_sensor(l, sum * capture * omega, &l->polar);
}

static BR_BOTH void subpixel(lab *l, const int64_t *sub, lookup how)
{
    const br_scene *s = l->x.v->scene;
    const double edge = s->pixel / (double)s->oversample, half = edge / 2;
    vr omega_sum = zero();
    double first[LANES];
    for (int i = 0; i < LANES; i++)
        first[i] = (double)((l->x.row->fast + l->x.i + i) * s->oversample + sub[2]);
    memcpy(l->sub, sub, sizeof l->sub);
    l->fd = edge * v_load(first) + half;
    l->sd = edge * (double)(l->x.row->slow * s->oversample + sub[1]) + half;
    l->od = (double)sub[0] * s->layer_step;
    position(&l->x, sub, l->x.d, &l->inv_distance);
    solid_angle(l);
    absorption(l, sub[0]);
    for (int i = 0; i < 3; i++) l->bar[i] = zero();
    const int64_t group = ((sub[0] * s->oversample + sub[1]) * s->oversample + sub[2]) * s->sources;
    for (int64_t j = 0; j < s->sources; j++) one_source(l, j, group + j, how, &omega_sum);
    push_direction(l, l->bar, l->sensor);
    if (s->oversample_omega) add_sensor(l, omega_sum, &l->omega);
    if (!s->oversample_thick) return;
    add_sensor(l, l->layer_sum, &l->capture);
    l->layer_sum = zero();
}

static BR_BOTH void layer(lab *l, int64_t t, lookup how)
{
    const br_scene *s = l->x.v->scene;
    const int64_t o = s->oversample;
    l->capture.v = v_set(s->thickness == 0 ? 1 : 0); /* derivatives are 0, or follow later */
    l->layer_sum = zero();
    for (int64_t at = 0; at < o * o; at++) {
        const int64_t sub[3] = {t, at / o, at % o};
        subpixel(l, sub, how);
    }
    if (captures_terms(s)) add_sensor(l, l->layer_sum, &l->capture);
    if (s->water == 0) return; /* not needed */
    l->capture_sum.v += l->capture.v;
    for (int i = 0; i < SENSOR; i++) l->capture_sum.d[i] += l->capture.d[i];
}

/* ---- pixels ---- */

/* k x y z with its slopes, which are added to the sensor; NULL: 1. */
static BR_BOTH BR_APART vr add_product(lab *l, vr k, const factor *x, const factor *y,
                                       const factor *z)
{
    const vr one = v_set(1), a = x ? x->v : one, b = y ? y->v : one, c = z ? z->v : one;
    if (x) add_sensor(l, k * b * c, x);
    if (y) add_sensor(l, k * a * c, y);
    if (z) add_sensor(l, k * a * b, z);
    return a * b * c;
}

/* The first n lanes. */
LANE void store(double *to, int64_t n, vr a)
{
    if (n == LANES)
        v_store(to, a);
    else {
        double all[LANES];
        v_store(all, a);
        for (int64_t i = 0; i < n; i++) to[i] = all[i];
    }
}

/* Factors of the sum, and water, which is added after them. */
static BR_BOTH BR_APART void finish(lab *l, double *adjoint, int64_t step)
{
    const br_view *v = l->x.v;
    const br_scene *s = v->scene;
    const bool in_sum = br_has(s, BR_QUIRK_WATER_SCALE);
    const double k = v->scale / s->steps;
    const factor *capture = captures_terms(s) ? NULL : &l->capture,
                 *polar = s->oversample_polar ? NULL : &l->polar,
                 *omega = s->oversample_omega ? NULL : &l->omega;
    const vr one = v_set(1), end = (capture ? capture->v : one) * (polar ? polar->v : one) *
                                   (omega ? omega->v : one);
    const vr all = k * end;
    for (int i = 0; i < SENSOR; i++) l->sensor[i] *= all;
    add_product(l, k * l->sum, capture, polar, omega);
    vr value = l->sum * all, fluence = (BR_THOMSON / s->steps) * l->sum * end;
    if (s->water != 0 && in_sum) fluence += all * (v->water / l->b->fluence);
    if (s->water != 0 && !in_sum) {
        const vr water =
            v->water * add_product(l, v_set(v->water), &l->capture_sum, &l->polar, &l->omega);
        value += water;
        fluence += water * (1 / l->b->fluence);
    }
    vr out[BR_ADJOINTS];
    for (int i = 0; i < 9; i++) out[BR_AD_CELL + i] = all * l->cell[i];
    for (int i = 0; i < 6; i++) out[BR_AD_METRIC + i] = all * l->metric[i];
    for (int i = 0; i < SENSOR; i++) out[BR_AD_PIX0 + i] = l->sensor[i];
    out[BR_AD_LAMBDA] = all * l->lambda;
    out[BR_AD_FLUENCE] = fluence;
    const vm on = m_of(l->x.rendered);
    const int64_t left = l->x.row->n - l->x.i, n = left < LANES ? left : LANES;
    store(l->x.row->value + l->x.i, n, v_pick(on, value, zero()));
    for (int i = 0; i < BR_ADJOINTS; i++)
        store(adjoint + i * step + l->x.i, n, v_pick(on, out[i], zero()));
}

/* sin(N x) / sin(x) = N (1 - (m-1) x^2/6 + (3m^2-10m+7) x^4/360 ..), m = N^2, x = pi t */
static BR_BOTH void make_series(lab *l)
{
    const double p2 = M_PI * M_PI;
    for (int k = 0; k < 3; k++) {
        const double n = l->b->view.scene->cells[k], m = n * n;
        l->series[k][0] = -p2 * (m - 1) * n / 3;
        l->series[k][1] = p2 * p2 * (3 * m * m - 10 * m + 7) * n / 90;
    }
}

static BR_BOTH void pixels_of_row(const br_lab *b, br_row *row, double *adjoint, int64_t step)
{
    const br_view *v = &b->view;
    const br_scene *s = v->scene;
    const bool kept = !s->nopolar && s->dmin <= 0; /* computed with the first source */
    lab l;
    memset(&l, 0, sizeof l);
    l.x = prepared(v, row);
    l.b = b;
    make_series(&l);
    for (l.x.i = 0; l.x.i < row->n; l.x.i += LANES) {
        begin(&l.x);
        l.sum = v_set(s->water != 0 && br_has(s, BR_QUIRK_WATER_SCALE) ? v->water : 0);
        l.omega.v = l.polar.v = l.lambda = zero();
        if (!kept) set_factor(&l.polar, s->nopolar ? 1 : 0);
        if (s->water != 0) set_factor(&l.capture_sum, 0);
        clear(l.cell, 9);
        clear(l.metric, 6);
        clear(l.sensor, SENSOR);
        const lookup how = l.x.all_cubic || l.x.latch_lane >= 0 ? TRICUBIC
                           : s->hkls > 0                        ? NEAREST
                                                                : NO_TABLE;
        for (int64_t t = 0; l.x.rendered && t < s->layers; t++) layer(&l, t, how);
        finish(&l, adjoint, step);
    }
}

/* ---- from numbers of the placed scene to parameters ---- */

enum { ABREAST = 4 };
static_assert(BR_BLOCK % (ABREAST * LANES) == 0, "vectors of a block come in full groups");

static BR_BOTH void apply(const br_slopes *s, const double *adjoint, int64_t step, int64_t n,
                          double *slope)
{
    for (int64_t x = 0; x < n; x += ABREAST * LANES)
        for (int p = 0, i = 0; p < BR_PARAMS; p++) {
            vr sum[ABREAST];
            clear(sum, ABREAST);
            for (; i < s->n && s->slope[i].param == p; i++) {
                const double *from = adjoint + s->slope[i].number * step + x;
                const vr k = v_set(s->slope[i].value);
                for (int j = 0; j < ABREAST; j++)
                    sum[j] = v_fma(v_load(from + j * LANES), k, sum[j]);
            }
            for (int j = 0; j < ABREAST; j++) v_store(slope + p * step + x + j * LANES, sum[j]);
        }
}

/* ---- a normal matrix ---- */

enum { VECTORS = BR_BLOCK / LANES };
static_assert(BR_NORMAL_LANES % LANES == 0, "sums are whole vectors");

/* sum += w . v, over the lanes of a sum */
LANE void add_dot(const vr *w, const double *v, double *sum)
{
    enum { EACH = BR_NORMAL_LANES / LANES };
    vr s[EACH];
    for (int j = 0; j < EACH; j++) s[j] = v_load(sum + j * LANES);
    for (int i = 0; i < VECTORS; i++) s[i % EACH] = v_fma(w[i], v_load(v + i * LANES), s[i % EACH]);
    for (int j = 0; j < EACH; j++) v_store(sum + j * LANES, s[j]);
}

static BR_BOTH void normal(const double *slope, const double *weight, const double *error,
                           double *sum)
{
    for (int p = 0; p < BR_PARAMS; p++) {
        vr w[VECTORS];
        for (int i = 0; i < VECTORS; i++)
            w[i] = v_load(weight + i * LANES) * v_load(slope + p * BR_BLOCK + i * LANES);
        for (int q = 0; q <= p; q++, sum += BR_NORMAL_LANES) add_dot(w, slope + q * BR_BLOCK, sum);
        add_dot(w, error, sum);
        sum += BR_NORMAL_LANES;
    }
}

#ifndef BR_ON_DEVICE
const br_jacobian_loops FTH_ISA_NAME(br_jacobian) = {pixels_of_row, apply, normal};
#endif
