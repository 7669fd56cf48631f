/* pixel_lanes.h - a vector of pixels along fast, up to a sample: positions, scattering vectors,
 * reflections. For the loops of images and of derivatives.
 *
 * Everything up to h k l is computed with the operations of the plain loop, in its order.
 */
#ifndef BRAGG_OPS_PIXEL_LANES_H
#define BRAGG_OPS_PIXEL_LANES_H

#include "view.h"

#include <fathom/vector.h>

typedef enum lookup { NO_TABLE, NEAREST, TRICUBIC } lookup;

#if FTH_VECTOR_REAL == 32
#define CELLS(v) ((v)->cells_f32)
#else
#define CELLS(v) ((v)->cells)
#endif

/* State of a vector of pixels in the loops. */
typedef struct pixels pixels;
struct pixels {
    void (*loop)(pixels *x, int64_t source, int64_t n, int64_t group, vr factor);
    const br_view *v;
    br_row *row;
    int64_t i; /* of the first lane in the row */
    vr at;     /* first subpixel of each lane along fast */
    lookup how;
    uint32_t rendered; /* bits of lanes */
    vr d[3], q[3];     /* direction; scattering vector of the current source */
    vr polar, omega, capture;
    vm live;      /* lanes in which dmin does not cut the current source */
    va sum, part; /* of all samples; of the current ones, before factors */
    va omega_sum, capture_sum;
    uint32_t all_cubic;   /* lanes before the latch */
    int latch_lane;       /* lane of the latch; -1: none */
    int64_t latch_sample; /* in its pixel */
    int chain_lane;       /* lane in which the chain begins; -1: none */
    int64_t chain_group, chain_pixel, latch_pixel;
    bool running; /* factors multiply the sum so far */
    bool pooled;  /* all sources of a subpixel have the same factor, and none is cut */
    real star[3][3];
};

LANE vr dot(const vr *a, const vr *b)
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}
LANE vr dot_with(const vr *a, const double *b)
{
    return (real)b[0] * a[0] + (real)b[1] * a[1] + (real)b[2] * a[2];
}

/* ---- subpixels ---- */

static BR_BOTH void bent_position(const pixels *x, const int64_t sub[3], vr *p)
{
    real at[3][LANES];
    for (int i = 0; i < LANES; i++) {
        double pos[3];
        br_position(x->v, x->row, x->i + i, sub, pos);
        for (int k = 0; k < 3; k++) at[k][i] = (real)pos[k];
    }
    for (int k = 0; k < 3; k++) p[k] = v_load(at[k]);
}

/* Direction p, distance, and one over it. */
LANE vr position(const pixels *x, const int64_t sub[3], vr *p, vr *inv_distance)
{
    const br_view *v = x->v;
    const br_scene *s = v->scene;
    const real edge = (real)(s->pixel / (double)s->oversample), half = (real)(edge / 2);
    const vr fd = edge * (x->at + (real)sub[2]) + half;
    const real sd = edge * (real)(x->row->slow * s->oversample + sub[1]) + half;
    const real od = (real)sub[0] * (real)s->layer_step;
    for (int k = 0; k < 3; k++)
        p[k] = fd * (real)v->fdet[k] + sd * (real)v->sdet[k] + od * (real)v->odet[k] +
               (real)v->pix0[k];
    if (s->curved) bent_position(x, sub, p);
    const vr r = v_sqrt(dot(p, p)), y = 1 / r;
    const vm zero = v_eq(r, v_set(0));
    for (int k = 0; k < 3; k++) p[k] = v_pick(zero, v_set(0), v_over(p[k], r, y));
    *inv_distance = y;
    return r;
}

LANE void scattering(const pixels *x, const br_beam *beam, vr *q)
{
    const real lambda = (real)beam->lambda;
    const vr b = v_set(lambda), y = v_set(1 / lambda);
    for (int k = 0; k < 3; k++) q[k] = v_over(x->d[k] + (real)beam->to[k], b, y);
}

/* q of a source, and the lanes in which dmin does not cut it. */
LANE void scatter(pixels *x, const br_beam *beam)
{
    const double dmin = x->v->scene->dmin;
    scattering(x, beam, x->q);
    x->live = m_of(x->rendered);
    if (dmin > 0) {
        const vr stol = R(0.5) * v_sqrt(dot(x->q, x->q));
        const vm cut = m_and(v_lt(v_set(0), stol), v_lt(R(0.5) / stol, v_set((real)dmin)));
        x->live = m_and(x->live, m_not(cut));
    }
}

/* ---- indices and the table ---- */

LANE void indices(const vr *q, const real *cell, vr *hkl)
{
    for (int k = 0; k < 3; k++) {
        const real *a = cell + 3 * k;
        hkl[k] = a[0] * q[0] + a[1] * q[1] + a[2] * q[2];
    }
}

/* The nearest reflection; halves round down. */
LANE void reflection(const vr *hkl, vr *hkl0)
{
    for (int k = 0; k < 3; k++) hkl0[k] = v_ceil(hkl[k] - R(0.5));
}

LANE vm inside_table(const pixels *x, const vr *hkl)
{
    const br_scene *s = x->v->scene;
    const int64_t lo[3] = {s->h_min, s->k_min, s->l_min}, hi[3] = {s->h_max, s->k_max, s->l_max};
    vm in = m_of(m_all());
    for (int k = 0; k < 3; k++) {
        const vr from = v_set((real)lo[k]), n = v_set((real)(hi[k] - lo[k] + 1));
        in = m_and(in, m_and(v_le(hkl[k] - from + 3, n), v_le(from, hkl[k] - 2)));
    }
    return in;
}

/* Table indices of lanes `in`, 0 for others. A float has too few digits for them. */
static inline BR_BOTH void entries(const pixels *x, vm in, const vr *whole, int64_t shift,
                                   int32_t *at)
{
    const br_scene *s = x->v->scene;
    const int64_t lo[3] = {s->h_min + shift, s->k_min + shift, s->l_min + shift};
    const int64_t *step = x->v->table_step;
    real index[3][LANES];
#if FTH_VECTOR_REAL == 32
    for (int k = 0; k < 3; k++) v_store(index[k], v_pick(in, whole[k] - (real)lo[k], v_set(0)));
    for (int i = 0; i < LANES; i++)
        at[i] = (int32_t)index[0][i] * (int32_t)step[0] + (int32_t)index[1][i] * (int32_t)step[1] +
                (int32_t)index[2][i];
#else
    const vr place = (whole[0] - (real)lo[0]) * (real)step[0] +
                     (whole[1] - (real)lo[1]) * (real)step[1] + (whole[2] - (real)lo[2]);
    v_store(index[0], v_pick(in, place, v_set(0)));
    for (int i = 0; i < LANES; i++) at[i] = (int32_t)index[0][i];
#endif
}

LANE vr nearest(const pixels *x, const vr *hkl0)
{
    const br_scene *s = x->v->scene;
    const int64_t lo[3] = {s->h_min, s->k_min, s->l_min}, hi[3] = {s->h_max, s->k_max, s->l_max};
    vm in = m_of(m_all());
    for (int k = 0; k < 3; k++)
        in = m_and(in, m_and(v_le(v_set((real)lo[k]), hkl0[k]), v_le(hkl0[k], v_set((real)hi[k]))));
    const vr other = v_set((real)s->default_F);
#if FTH_VECTOR_REAL == 64 && FTH_ISA_LEVEL >= 3
    const vr at = (hkl0[0] - (real)lo[0]) * (real)x->v->table_step[0] +
                  (hkl0[1] - (real)lo[1]) * (real)x->v->table_step[1] + (hkl0[2] - (real)lo[2]);
    return fth_f64v_gather(x->v->table, at, in, other);
#else
    int32_t at[LANES];
    real found[LANES];
    entries(x, in, hkl0, 0, at);
    for (int i = 0; i < LANES; i++) found[i] = (real)x->v->table[at[i]];
    return v_pick(in, v_load(found), other);
#endif
}

LANE void weights(vr t, vr *w)
{
    const vr left = t + 1, right = t - 1, far = t - 2, sixth = v_set(R(1.0) / 6);
    w[0] = t * right * far * -sixth;
    w[1] = left * right * far * R(0.5);
    w[2] = left * t * far * R(-0.5);
    w[3] = left * t * right * sixth;
}

/* Lanes in which sample n of the pixel may be interpolated. */
LANE uint32_t may_cubic(const pixels *x, int64_t n)
{
    uint32_t may = x->all_cubic;
    if (x->latch_lane >= 0 && n < x->latch_sample) may |= 1u << x->latch_lane;
    return may;
}

/* ---- begin ---- */

/* Values common to all pixels. */
static BR_BOTH pixels prepared(const br_view *v, br_row *row)
{
    const br_scene *s = v->scene;
    const int64_t groups = s->layers * s->oversample * s->oversample * s->sources;
    const int64_t samples = groups * s->phis * s->mosaics;
    pixels x;
    memset(&x, 0, sizeof x);
    x.v = v;
    x.row = row;
    x.chain_pixel = -1;
    x.latch_pixel = v->latch / samples;
    x.latch_sample = v->latch % samples;
    if (v->chain >= 0) {
        x.chain_pixel = v->chain / groups;
        x.chain_group = v->chain % groups;
    }
    x.running = br_has(s, BR_QUIRK_RUNNING_SUM) &&
                (s->oversample_thick || s->oversample_polar || s->oversample_omega);
    x.pooled =
        s->dmin <= 0 && !x.running && !s->oversample_polar && br_has(s, BR_QUIRK_EQUAL_WEIGHTS);
    for (int k = 0; k < 9; k++) x.star[k / 3][k % 3] = (real)v->star[k / 3][k % 3];
    return x;
}

/* Lanes from..to-1. */
LANE uint32_t span(int64_t from, int64_t to)
{
    if (from < 0) from = 0;
    if (to > LANES) to = LANES;
    return from < to ? (uint32_t)(((1ull << to) - 1) & ~((1ull << from) - 1)) : 0;
}

/* Which of these pixels are rendered, and which lane has the latch or the chain. */
static BR_BOTH void begin(pixels *x)
{
    const br_view *v = x->v;
    const br_scene *s = v->scene;
    const int64_t fast = x->row->fast + x->i, first = x->row->slow * s->fast + fast;
    real at[LANES];
    for (int i = 0; i < LANES; i++) at[i] = (real)((fast + i) * s->oversample);
    x->at = v_load(at);
    x->rendered = span(s->roi[0] - fast, s->roi[1] - fast + 1) & span(0, x->row->n - x->i);
    if (x->row->slow < s->roi[2] || x->row->slow > s->roi[3]) x->rendered = 0;
    for (int i = 0; x->row->mask && i < LANES && x->i + i < x->row->n; i++)
        if (!x->row->mask[(x->i + i) * x->row->mask_step]) x->rendered &= ~(1u << i);
    x->chain_lane = x->latch_lane = -1;
    if (x->chain_pixel >= first && x->chain_pixel < first + LANES)
        x->chain_lane = (int)(x->chain_pixel - first);
    x->all_cubic = v->interpolate ? m_all() : 0;
    if (!v->interpolate || !v->latched) return;
    x->all_cubic = span(0, x->latch_pixel - first);
    if (x->latch_pixel >= first && x->latch_pixel < first + LANES)
        x->latch_lane = (int)(x->latch_pixel - first);
}

#endif
