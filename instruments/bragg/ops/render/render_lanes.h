/* render_lanes.h - the loops of a render for a vector of pixels along fast.
 *
 * Lanes are pixels; layers, subpixels, sources, spindle steps and domains are loops around them, so
 * that a rotated cell is three broadcast rows and lanes do not diverge. A row that is not a
 * multiple of the vector is rendered past its end and truncated. Included by one file per
 * precision; compiled once per instruction set.
 *
 * Everything up to h k l is computed with the operations of the plain loop, in its order.
 */
#include "pixel_lanes.h"

/* Compile-time variants of a loop. */
typedef struct kind {
    br_shape shape;
    lookup how;
    bool every;   /* axis has more than one cell */
    bool running; /* factors multiply the sum so far */
} kind;

/* ---- factors ---- */

static void solid_angle(pixels *x, vr r)
{
    const br_scene *s = x->v->scene;
    const vm need = v_eq(x->omega, v_set(0));
    if (!s->oversample_omega && m_bits(need) == 0) return;
    const vr near = v_set((real)x->v->close);
    const vr now =
        s->point_pixel ? 1 / r / r : v_set((real)(s->pixel * s->pixel)) / r / r * near / r;
    x->omega = s->oversample_omega ? now : v_pick(need, now, x->omega);
}

static void absorption(pixels *x, int64_t layer)
{
    const br_scene *s = x->v->scene;
    const vm need = v_eq(x->capture, v_set(0));
    if (!s->oversample_thick && m_bits(need) == 0) return;
    const vr path = (real)(s->layer_step * s->mu) / dot_with(x->d, x->v->odet);
    const vr now = v_exp(-(real)layer * path) - v_exp(-(real)(layer + 1) * path);
    x->capture = s->oversample_thick ? now : v_pick(need, now, x->capture);
}

/* cos(2 psi) without the angle. */
static void polarisation(pixels *x, const br_beam *beam)
{
    const br_scene *s = x->v->scene;
    const vm need = s->oversample_polar ? x->live : m_and(x->live, v_eq(x->polar, v_set(0)));
    if (m_bits(need) == 0) return;
    const vr c = dot_with(x->d, beam->to), c2 = c * c;
    vr now = 1 + c2;
    if (s->kahn != 0) {
        const vr b = dot_with(x->d, beam->across), e = dot_with(x->d, beam->along);
        const vr bb = b * b, ee = e * e;
        const vr twice = v_pick(v_eq(bb + ee, v_set(0)), v_set(1), (ee - bb) / (ee + bb));
        now = now - (real)s->kahn * twice * (1 - c2);
    }
    x->polar = v_pick(need, R(0.5) * now, x->polar);
}

/* ---- the lattice ---- */

/* Products over the axes of sin(pi N delta) and sin(pi delta). A negligible offset keeps their
 * quotient at N where delta is 0. */
LANE void gratings(const pixels *x, const vr *delta, bool every, vr *above, vr *below)
{
    const double *n = x->v->scene->cells;
    const real speck = FTH_VECTOR_REAL == 32 ? (real)0x1p-40 : (real)0x1p-300;
    *above = *below = v_set(1);
    for (int k = 0; k < 3; k++) {
        if (!every && !(n[k] > 1)) continue;
        const vr t = delta[k] + speck, r = v_rest((real)n[k] * t);
        *above = *above * (r * v_sin_pi_over(r * r));
        *below = *below * (t * v_sin_pi_over(t * t));
    }
}

/* Terms cancel near 0: the plain formula is used, so that rounding errors agree with it. */
static vr sinc3(vr x, vr turns)
{
    const vr t = turns - v_rint(turns), z = t * t;
    const vr s = t * v_sin_pi_over(z), c = v_cos_pi(z);
    vr r = 3 * (s / x - c) / (x * x);
    const uint32_t small = m_bits(v_lt(x, v_set(R(0.05))));
    if (small == 0) return r;
    real in[LANES], out[LANES];
    v_store(in, x);
    v_store(out, r);
    for (int i = 0; i < LANES; i++) {
        const double a = (double)in[i];
        if (small >> i & 1) out[i] = (real)(a == 0 ? 1 : 3 * (sin(a) / a - cos(a)) / (a * a));
    }
    return v_load(out);
}

LANE vr ball(const pixels *x, const vr *delta)
{
    const br_scene *s = x->v->scene;
    vr r2 = v_set(0);
    for (int k = 0; k < 3; k++) {
        const real n = (real)s->cells[k];
        r2 = r2 + delta[k] * delta[k] * n * n;
    }
    const vr turns = v_sqrt(r2 * (real)s->fudge);
    return (real)(x->v->lattice_sum * 0.723601254558268) * sinc3((real)M_PI * turns, turns);
}

LANE vr square_radius(const pixels *x, const vr *delta)
{
    vr at[3];
    for (int i = 0; i < 3; i++)
        at[i] = delta[0] * x->star[0][i] + delta[1] * x->star[1][i] + delta[2] * x->star[2][i];
    const real n = (real)x->v->lattice_sum;
    return dot(at, at) * n * n;
}

LANE vr gauss(const pixels *x, const vr *delta)
{
    const vr a = square_radius(x, delta) / R(0.63) * (real)x->v->scene->fudge;
    const vr none = v_set(FTH_VECTOR_REAL == 32 ? R(103.9) : R(745.13321910194122)); /* exp is 0 */
    return v_pick(v_lt(none, a), v_set(0), (real)x->v->lattice_sum * v_exp(-a));
}

LANE vr tophat(const pixels *x, const vr *delta)
{
    const vr a = square_radius(x, delta) * (real)x->v->scene->fudge;
    return v_pick(v_lt(a, v_set(R(0.3969))), v_set((real)x->v->lattice_sum), v_set(0));
}

/* ---- structure factors ---- */

static inline vr tricubic(const pixels *x, vm use, const vr *hkl)
{
    real w[3][4][LANES], found[LANES];
    int32_t at[LANES];
    vr whole[3];
    for (int k = 0; k < 3; k++) {
        vr now[4];
        whole[k] = v_floor(hkl[k]);
        weights(hkl[k] - whole[k], now);
        for (int i = 0; i < 4; i++) v_store(w[k][i], now[i]);
    }
    entries(x, use, whole, 1, at);
    const int64_t *step = x->v->table_step;
    const uint32_t bits = m_bits(use);
    for (int i = 0; i < LANES; i++) {
        fth_f64x4 sum = {0};
        found[i] = 0;
        if (!(bits >> i & 1)) continue;
        for (int h = 0; h < 4; h++) {
            fth_f64x4 plane = {0};
            for (int k = 0; k < 4; k++) {
                fth_f64x4 line;
                memcpy(&line, x->v->table + at[i] + h * step[0] + k * step[1], sizeof line);
                fth_f64x4_add_product((double)w[1][k][i], &line, &plane);
            }
            fth_f64x4_add_product((double)w[0][h][i], &plane, &sum);
        }
        found[i] = (real)(((double)w[2][0][i] * fth_f64x4_get(&sum, 0) +
                           (double)w[2][1][i] * fth_f64x4_get(&sum, 1)) +
                          ((double)w[2][2][i] * fth_f64x4_get(&sum, 2) +
                           (double)w[2][3][i] * fth_f64x4_get(&sum, 3)));
    }
    return v_load(found);
}

static inline vr interpolated(pixels *x, const vr *hkl, uint32_t live, int64_t n)
{
    const vm in = inside_table(x, hkl);
    const uint32_t may = may_cubic(x, n), out = ~m_bits(in) & live;
    if (!x->v->latched)
        x->row->outside += __builtin_popcount(out);
    else if (x->latch_lane >= 0 && n == x->latch_sample)
        x->row->outside += out >> x->latch_lane & 1;
    const vm use = m_and(in, m_of(may));
    const uint32_t all = m_bits(use);
    if (all == m_all()) return tricubic(x, use, hkl);
    vr hkl0[3];
    reflection(hkl, hkl0);
    const vr F = nearest(x, hkl0);
    return all == 0 ? F : v_pick(use, tricubic(x, use, hkl), F);
}

/* ---- samples ---- */

LANE vr lattice(const pixels *x, const vr *delta, br_shape shape)
{
    return shape == BR_ROUND   ? ball(x, delta)
           : shape == BR_GAUSS ? gauss(x, delta)
                               : tophat(x, delta);
}

/* The sum so far is multiplied as well (running-sum). */
LANE void run_on(pixels *x, vr term, uint32_t live)
{
    const br_scene *s = x->v->scene;
    va now = x->sum + v_wide(term);
    if (s->oversample_thick) now *= v_wide(x->capture);
    if (s->oversample_polar) now *= v_wide(x->polar);
    if (s->oversample_omega) now *= v_wide(x->omega);
    for (int i = 0; i < LANES; i++)
        if (live >> i & 1) x->sum[i] = now[i];
}

/* One row of rotated cells: samples n, n + 1 .. of the pixel, in the lanes `live`. */
LANE void domains(pixels *x, const vr *q, const real *cell, uint32_t live, int64_t n,
                  const kind *kd, vr factor)
{
    const br_scene *s = x->v->scene;
    const bool whole = kd->how == NEAREST || kd->shape == BR_GAUSS || kd->shape == BR_TOPHAT;
    va part = x->part;
    for (int64_t m = 0; m < s->mosaics; m++, cell += 9) {
        vr hkl[3], hkl0[3], delta[3], F = v_set((real)s->default_F), f, below = v_set(1);
        uint32_t now = live;
        indices(q, cell, hkl);
        for (int k = 0; k < 3; k++) delta[k] = v_rest(hkl[k]);
        if (whole) {
            reflection(hkl, hkl0);
            for (int k = 0; k < 3; k++) delta[k] = hkl[k] - hkl0[k];
        }
        if (kd->how == NEAREST) F = nearest(x, hkl0);
        if (kd->shape == BR_SQUARE) {
            gratings(x, delta, kd->every, &f, &below);
        } else {
            f = lattice(x, delta, kd->shape);
            if (s->water == 0) now &= ~m_bits(v_eq(f, v_set(0)));
        }
        if (kd->how == TRICUBIC) F = interpolated(x, hkl, now, n + m);
        f = F * f;
        if (kd->shape == BR_SQUARE) f = f / below;
        if (kd->running)
            run_on(x, f * f * factor, now);
        else
            part += v_wide(f * f);
    }
    x->part = part;
}

/* All spindle steps of a source. The lane in which the chain begins has a cell of its own there: it
 * is computed first, alone, and left out of the first step. */
LANE void turns(pixels *x, const vr *q, int64_t group, const kind *kd, vr factor)
{
    const br_scene *s = x->v->scene;
    const uint32_t live = m_bits(x->live);
    const bool begins = x->chain_lane >= 0 && group == x->chain_group;
    const uint32_t one = begins ? 1u << x->chain_lane : 0;
    const va before = x->part;
    double begun = 0;
    for (int64_t at = begins ? -1 : 0; at < s->phis; at++) {
        const int64_t turned = at < 0 ? s->phis : at, phi = at < 0 ? 0 : at;
        const uint32_t lanes = live & (at < 0 ? one : at == 0 ? ~one : ~0u);
        const int64_t n = (group * s->phis + phi) * s->mosaics;
        domains(x, q, CELLS(x->v) + turned * s->mosaics * 9, lanes, n, kd, factor);
        if (at < 0) {
            begun = x->part[x->chain_lane];
            x->part = before;
        } else if (at == 0 && begins) {
            x->part[x->chain_lane] = begun;
        }
    }
}

/* Sources source, source + 1 ..: groups group, group + 1 .. */
LANE void steps(pixels *x, int64_t source, int64_t n, int64_t group, const kind *kd, vr factor)
{
    for (int64_t j = 0; j < n; j++) {
        vr q[3];
        scattering(x, &x->v->beams[source + j], q);
        turns(x, q, group + j, kd, factor);
    }
}

#define STEPS(name, shape, how, every)                                                             \
    static void name(pixels *x, int64_t source, int64_t n, int64_t group, vr factor)               \
    {                                                                                              \
        const kind kd = {shape, how, every, false};                                                \
        steps(x, source, n, group, &kd, factor);                                                   \
    }
STEPS(square_none, BR_SQUARE, NO_TABLE, true)
STEPS(square_nearest, BR_SQUARE, NEAREST, true)
STEPS(square_cubic, BR_SQUARE, TRICUBIC, true)
STEPS(some_none, BR_SQUARE, NO_TABLE, false)
STEPS(some_nearest, BR_SQUARE, NEAREST, false)
STEPS(some_cubic, BR_SQUARE, TRICUBIC, false)
/* Rare shapes are not specialised: they read the scene in the loop. */
STEPS(round_any, BR_ROUND, x->how, false)
STEPS(gauss_any, BR_GAUSS, x->how, false)
STEPS(tophat_any, BR_TOPHAT, x->how, false)

typedef void steps_fn(pixels *x, int64_t source, int64_t n, int64_t group, vr factor);
static steps_fn *const square_of[2][3] = {{some_none, some_nearest, some_cubic},
                                          {square_none, square_nearest, square_cubic}};
static steps_fn *const others[] = {
    [BR_ROUND] = round_any, [BR_GAUSS] = gauss_any, [BR_TOPHAT] = tophat_any};

static void steps_running(pixels *x, int64_t source, int64_t group, vr factor)
{
    const kind kd = {(br_shape)x->v->scene->shape, x->how, false, true};
    steps(x, source, 1, group, &kd, factor);
}

static void one_source(pixels *x, int64_t j, int64_t group)
{
    const br_scene *s = x->v->scene;
    const br_beam *beam = &x->v->beams[j];
    scatter(x, beam);
    if (m_bits(x->live) == 0) return;
    polarisation(x, beam);
    vr factor = v_set((real)beam->weight);
    if (s->oversample_thick ? !x->running : !br_has(s, BR_QUIRK_LAST_LAYER)) factor *= x->capture;
    if (x->running) {
        steps_running(x, j, group, factor);
        return;
    }
    if (s->oversample_polar) factor *= x->polar;
    if (s->oversample_omega) factor *= x->omega;
    x->part = (va){0};
    x->loop(x, j, 1, group, factor);
    const uint32_t live = m_bits(x->live);
    va part = x->part * v_wide(factor);
    for (int i = 0; live != m_all() && i < LANES; i++)
        if (!(live >> i & 1)) part[i] = 0;
    x->sum += part;
}

static void all_sources(pixels *x, int64_t group)
{
    const br_scene *s = x->v->scene;
    x->live = m_of(x->rendered);
    for (int64_t j = 0; j < s->sources && m_bits(v_eq(x->polar, v_set(0))) & x->rendered; j++)
        polarisation(x, &x->v->beams[j]);
    x->part = (va){0};
    x->loop(x, 0, s->sources, group, v_set(1));
    if (s->oversample_thick || !br_has(s, BR_QUIRK_LAST_LAYER)) x->part *= v_wide(x->capture);
    if (s->oversample_omega) x->part *= v_wide(x->omega);
    x->sum += x->part;
}

static void layer(pixels *x, int64_t t)
{
    const br_scene *s = x->v->scene;
    const int64_t O = s->oversample;
    int64_t group = t * O * O * s->sources;
    x->capture = v_set(s->thickness == 0 ? 1 : 0);
    for (int64_t subs = 0; subs < O; subs++)
        for (int64_t subf = 0; subf < O; subf++, group += s->sources) {
            vr inv_distance;
            solid_angle(x, position(x, (int64_t[3]){t, subs, subf}, x->d, &inv_distance));
            x->omega_sum += v_wide(x->omega);
            absorption(x, t);
            if (x->pooled)
                all_sources(x, group);
            else
                for (int64_t j = 0; j < s->sources; j++) one_source(x, j, group + j);
        }
    x->capture_sum += v_wide(x->capture);
}

/* Remaining factors, as in the plain loop. */
static void finish(const pixels *x)
{
    const br_view *v = x->v;
    const br_scene *s = v->scene;
    const va polar = v_wide(x->polar), omega = v_wide(x->omega);
    va value = v->scale * x->sum / s->steps;
    if (!s->oversample_thick && br_has(s, BR_QUIRK_LAST_LAYER)) value *= v_wide(x->capture);
    if (!s->oversample_polar) value *= polar;
    if (!s->oversample_omega) value *= omega;
    if (s->water != 0 && !br_has(s, BR_QUIRK_WATER_SCALE))
        value += v->water * polar * omega * x->capture_sum;
    for (int i = 0; i < LANES && x->i + i < x->row->n; i++) {
        const bool on = x->rendered >> i & 1;
        x->row->value[x->i + i] = on ? value[i] : 0;
        x->row->omega[x->i + i] = on ? x->omega_sum[i] : 0;
    }
}

static void render(const br_view *v, br_row *row)
{
    const br_scene *s = v->scene;
    pixels x = prepared(v, row);
    const double *n = s->cells;
    const bool every = n[0] > 1 && n[1] > 1 && n[2] > 1;
    const double start = s->water != 0 && br_has(s, BR_QUIRK_WATER_SCALE) ? v->water : 0;
    row->outside = 0;
    for (x.i = 0; x.i < row->n; x.i += LANES) {
        begin(&x);
        x.polar = v_set(s->nopolar ? 1 : 0);
        x.omega = v_set(0);
        x.sum = start - (va){0};
        x.omega_sum = x.capture_sum = (va){0};
        x.how = x.all_cubic || x.latch_lane >= 0 ? TRICUBIC : s->hkls > 0 ? NEAREST : NO_TABLE;
        x.loop = s->shape == BR_SQUARE ? square_of[every][x.how] : others[s->shape];
        for (int64_t t = 0; x.rendered && t < s->layers; t++) layer(&x, t);
        finish(&x);
    }
}

/* ---- the first sample out of range ---- */

static void latch_group(pixels *x, int64_t group, uint32_t *open, int64_t *first)
{
    const br_scene *s = x->v->scene;
    const bool begins = x->chain_lane >= 0 && group == x->chain_group;
    for (int64_t phi = 0, n = group * s->phis * s->mosaics; phi < s->phis; phi++)
        for (int64_t m = 0; m < s->mosaics; m++, n++)
            for (int row = 0; row < (phi == 0 && begins ? 2 : 1); row++) {
                const uint32_t one = begins && phi == 0 ? 1u << x->chain_lane : 0;
                const uint32_t lanes = *open & m_bits(x->live) & (row ? one : ~one);
                const real *cell = CELLS(x->v) + ((row ? s->phis : phi) * s->mosaics + m) * 9;
                vr hkl[3], hkl0[3], delta[3];
                indices(x->q, cell, hkl);
                uint32_t out = lanes & ~m_bits(inside_table(x, hkl));
                if (out == 0) continue;
                reflection(hkl, hkl0);
                for (int k = 0; k < 3; k++) delta[k] = hkl[k] - hkl0[k];
                if (s->shape != BR_SQUARE && s->water == 0)
                    out &= ~m_bits(v_eq(lattice(x, delta, (br_shape)s->shape), v_set(0)));
                for (int i = 0; i < LANES; i++)
                    if (out >> i & 1) first[i] = n;
                *open &= ~out;
            }
}

static int64_t latch(const br_view *v, const br_row *row)
{
    const br_scene *s = v->scene;
    const int64_t O = s->oversample, groups = s->layers * O * O * s->sources;
    br_row copy = *row;
    pixels x = prepared(v, &copy);
    if (br_always_inside(v)) return INT64_MAX;
    for (x.i = 0; x.i < row->n; x.i += LANES) {
        int64_t first[LANES];
        begin(&x);
        uint32_t open = x.rendered;
        for (int64_t at = 0; open && at < groups; at++) {
            const int64_t sub[3] = {at / (O * O * s->sources), at / (O * s->sources) % O,
                                    at / s->sources % O};
            vr inv_distance;
            if (at % s->sources == 0) position(&x, sub, x.d, &inv_distance);
            scatter(&x, &v->beams[at % s->sources]);
            latch_group(&x, at, &open, first);
        }
        const uint32_t hit = x.rendered & ~open;
        if (hit == 0) continue;
        const int lane = __builtin_ctz(hit);
        const int64_t pixel = row->slow * s->fast + row->fast + x.i + lane;
        return pixel * groups * s->phis * s->mosaics + first[lane];
    }
    return INT64_MAX;
}
