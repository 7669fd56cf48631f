/* blend_lanes.h - the pixels of a tile: Gaussians front to back, and cotangents of the image back.
 *
 * A vector is some pixels of a row. Where light ends, T becomes 0, and nothing more is blended: so
 * pixels outside the image, which begin with 0, need no test of their own. The backward walks
 * forward too: what is behind a Gaussian is the image less what was in front of it.
 */
#include "exp_lanes.h"
#include "lists_lanes.h"
#if GS_RAYS
#include "ray_lanes.h"
#endif

enum { WIDE = GS_TILE_MOST > LANES ? GS_TILE_MOST : LANES, PIXELS = WIDE * GS_TILE_MOST };

#define LEAST_LIGHT R(1e-4)

typedef struct pixels {
    int width, height, across; /* of the tile in the image; across: pixels of whole vectors */
    real x, y;                 /* centre of the first pixel */
    real T[PIXELS];            /* light that is left; 0 where it ended */
    real F[PIXELS];            /* the same, and what was left where it ended */
    real C[3][PIXELS];
    real g[3][PIXELS], q[PIXELS]; /* backward: cotangents; gA F - g . C of what is behind */
#if GS_RAYS
    real ray[3][PIXELS];
    bool has_ray[PIXELS];
#endif
} pixels;

static void pixels_begin(pixels *p, const lists *l, int64_t tile)
{
    const gs_raster *a = l->w->rule;
    const int64_t x = tile % l->gw * a->tile, y = (l->w->row + tile / l->gw) * a->tile;
    p->width = (int)(a->width - x < a->tile ? a->width - x : a->tile);
    p->height = (int)(a->height - y < a->tile ? a->height - y : a->tile);
    p->across = (p->width + LANES - 1) / LANES * LANES;
    p->x = (real)x + R(0.5);
    p->y = (real)y + R(0.5);
#if GS_RAYS
    for (int i = 0; i < p->height; i++)
        for (int j = 0; j < p->across; j++) {
            const int at = i * WIDE + j;
            real d[3];
            p->has_ray[at] = ray_or_axis(l->w->view, p->x + (real)j, p->y + (real)i, d);
            for (int c = 0; c < 3; c++) p->ray[c][at] = d[c];
        }
#endif
}

/* Does light come from anywhere? */
LANE bool is_open(const pixels *p, int at)
{
#if GS_RAYS
    return p->has_ray[at];
#else
    (void)p, (void)at;
    return true;
#endif
}

static void pixels_light(pixels *p)
{
    for (int i = 0; i < p->height; i++)
        for (int j = 0; j < p->across; j++) {
            p->F[i * WIDE + j] = j < p->width ? 1 : 0;
            p->T[i * WIDE + j] = is_open(p, i * WIDE + j) ? p->F[i * WIDE + j] : 0;
        }
}

static void pixels_dark(pixels *p)
{
    for (int c = 0; c < 3; c++)
        for (int i = 0; i < p->height; i++)
            memset(p->C[c] + i * WIDE, 0, (size_t)p->across * sizeof(real));
}

static bool is_lit(const pixels *p)
{
    for (int i = 0; i < p->height; i++)
        for (int j = 0; j < p->across; j++)
            if (p->T[i * WIDE + j] > 0) return true;
    return false;
}

#if GS_RAYS
#include "ray_blend_lanes.h"
#else
/* A Gaussian, its numbers as vectors. */
typedef struct brush {
    vr half_a, b, o, limit, most, colour[3];
    real u, v, half_c, reach_x, reach_y;
} brush;

static brush brush_of(const lists *l, const pixels *p, const real *s)
{
    const double most = l->w->rule->most_alpha;
    (void)p;
    brush k = {.half_a = v_set(R(0.5) * s[GS_A]),
               .b = v_set(s[GS_B]),
               .o = v_set(s[GS_O]),
               .limit = v_set(s[GS_LIMIT]),
               .most = v_set((real)most),
               .u = s[GS_U],
               .v = s[GS_V],
               .half_c = R(0.5) * s[GS_C],
               /* a little more than the box, so that rounding leaves no pixel out */
               .reach_x = (s[GS_EX] + R(0.5)) * R(1.001) + R(0.01),
               .reach_y = (s[GS_EY] + R(0.5)) * R(1.001) + R(0.01)};
    for (int c = 0; c < 3; c++) k.colour[c] = v_set(s[GS_RED + c] > 0 ? s[GS_RED + c] : 0);
    return k;
}

/* Alpha of some pixels, and which of them it is blended into: where it is at least 1/255, which the
 * limit of sigma says. */
LANE vr alpha_of(const brush *k, vr dx, real dy, vm *on)
{
    const vr sigma =
        v_fma(k->half_a * dx, dx, v_fma(k->b * v_set(dy), dx, v_set(k->half_c * dy * dy)));
    *on = m_and(v_le(v_set(0), sigma), v_le(sigma, k->limit));
    return v_min(k->o * exp_of_less(-sigma), k->most);
}

LANE bool is_far(const brush *k, real first)
{
    return k->u + k->reach_x < first || k->u - k->reach_x > first + (LANES - 1);
}

static void blend_one(pixels *p, const brush *k, vr lane)
{
    const vr zero = v_set(0), one = v_set(1);
    for (int i = 0; i < p->height; i++) {
        const real dy = k->v - (p->y + (real)i);
        if (dy > k->reach_y || dy < -k->reach_y) continue;
        for (int j = 0; j < p->across; j += LANES) {
            const int at = i * WIDE + j;
            if (is_far(k, p->x + (real)j)) continue;
            vm on;
            const vr dx = v_set(k->u) - (v_set(p->x + (real)j) + lane);
            const vr alpha = alpha_of(k, dx, dy, &on), T = v_load(p->T + at),
                     left = T * (one - alpha);
            const vm keep = m_and(on, v_le(v_set(LEAST_LIGHT), left));
            const vr w = v_pick(keep, T * alpha, zero);
            for (int c = 0; c < 3; c++)
                v_store(p->C[c] + at, v_fma(w, k->colour[c], v_load(p->C[c] + at)));
            v_store(p->F + at, v_pick(keep, left, v_load(p->F + at)));
            v_store(p->T + at, v_pick(keep, left, v_pick(on, zero, T)));
        }
    }
}
#endif

LANE vr lanes(void)
{
    real n[LANES];
    for (int i = 0; i < LANES; i++) n[i] = (real)i;
    return v_load(n);
}

static const real *splat_at(const lists *l, int64_t at)
{
    const int64_t row = l->back ? l->owner[l->item[at]] : l->item[at];
    return (const real *)l->w->splats + row * l->w->splats_step;
}

static void blend_tile(pixels *p, const lists *l, int64_t tile)
{
    const vr lane = lanes();
    pixels_light(p);
    pixels_dark(p);
    for (int64_t at = l->start[tile]; at < l->start[tile + 1]; at++) {
        if ((at - l->start[tile]) % 16 == 15 && !is_lit(p)) break;
        const brush k = brush_of(l, p, splat_at(l, at));
        blend_one(p, &k, lane);
    }
}

/* ---- forward ---- */

static void forward_tile(void *arg, int64_t tile, int worker)
{
    const lists *l = arg;
    const gs_blend_work *w = l->w;
    const real *ground = (const real *)w->view + GS_VIEW_GROUND;
    const int64_t i0 = tile / l->gw * w->rule->tile, j0 = tile % l->gw * w->rule->tile;
    pixels p;
    (void)worker;
    pixels_begin(&p, l, tile);
    blend_tile(&p, l, tile);
    for (int i = 0; i < p.height && i0 + i < w->pixels; i++)
        for (int j = 0; j < p.width; j++) {
            const int at = i * WIDE + j;
            real *image = (real *)w->image + (i0 + i) * w->image_i + (j0 + j) * w->image_j;
            for (int c = 0; c < 3 && w->image; c++) image[c] = FMA(p.F[at], ground[c], p.C[c][at]);
            if (w->alpha) ((real *)w->alpha)[(i0 + i) * w->alpha_i + j0 + j] = 1 - p.F[at];
        }
}

static bool blend_run(gs_blend_work *w)
{
    lists l;
    if (!lists_make(&l, w, false)) return false;
    fth_team_run(w->team, l.tiles, forward_tile, &l);
    return true;
}

/* ---- backward ---- */

#if !GS_RAYS
/* Sums over the pixels of a tile. h is -alpha dL/dalpha. */
typedef struct sums {
    vr h, hx, hxx, hy, hxy, hyy, colour[3];
} sums;

static sums no_sums(void)
{
    const vr zero = v_set(0);
    const sums s = {zero, zero, zero, zero, zero, zero, {zero, zero, zero}};
    return s;
}

static void back_one(pixels *p, const brush *k, vr lane, sums *s)
{
    const vr zero = v_set(0), one = v_set(1);
    for (int i = 0; i < p->height; i++) {
        const real dy = k->v - (p->y + (real)i);
        if (dy > k->reach_y || dy < -k->reach_y) continue;
        const vr vy = v_set(dy);
        for (int j = 0; j < p->across; j += LANES) {
            const int at = i * WIDE + j;
            if (is_far(k, p->x + (real)j)) continue;
            vm on;
            const vr dx = v_set(k->u) - (v_set(p->x + (real)j) + lane);
            const vr alpha = alpha_of(k, dx, dy, &on), T = v_load(p->T + at), rest = one - alpha,
                     left = T * rest;
            const vm keep = m_and(on, v_le(v_set(LEAST_LIGHT), left));
            const vr w = v_pick(keep, T * alpha, zero);
            vr near = zero;
            for (int c = 0; c < 3; c++) {
                const vr g = v_load(p->g[c] + at);
                near = v_fma(g, k->colour[c], near);
                s->colour[c] = v_fma(w, g, s->colour[c]);
            }
            const vr behind = v_fma(w, near, v_load(p->q + at)),
                     slope = v_fma(T, near, behind / rest);
            v_store(p->q + at, behind);
            const vr h = v_pick(keep, -alpha * slope, zero), hx = h * dx, hy = h * vy;
            s->h = s->h + h;
            s->hx = s->hx + hx;
            s->hxx = v_fma(hx, dx, s->hxx);
            s->hy = s->hy + hy;
            s->hxy = v_fma(hx, vy, s->hxy);
            s->hyy = v_fma(hy, vy, s->hyy);
            v_store(p->T + at, v_pick(keep, left, v_pick(on, zero, T)));
        }
    }
}

static void put_sums(const lists *l, const real *splat, const sums *s, real *to)
{
    const real A = splat[GS_A], B = splat[GS_B], C = splat[GS_C], hx = v_total(s->hx),
               hy = v_total(s->hy);
    (void)l;
    to[0] = FMA(A, hx, B * hy);
    to[1] = FMA(B, hx, C * hy);
    to[2] = R(0.5) * v_total(s->hxx);
    to[3] = v_total(s->hxy);
    to[4] = R(0.5) * v_total(s->hyy);
    to[5] = -v_total(s->h) / splat[GS_O];
    for (int c = 0; c < 3; c++) to[6 + c] = splat[GS_RED + c] >= 0 ? v_total(s->colour[c]) : 0;
}
#endif

/* Cotangents of the image of a tile, 0 outside and where no light comes from. With G the ground and
 * F the light that is left the image is C + F G, so gA F - g . C, in which gA has -g . G of the
 * image, is alpha's own gA F less g . image. */
static void read_bars(pixels *p, const lists *l, int64_t tile)
{
    const gs_blend_work *w = l->w;
    const int64_t i0 = tile / l->gw * w->rule->tile, j0 = tile % l->gw * w->rule->tile;
    for (int i = 0; i < p->height; i++)
        for (int j = 0; j < p->across; j++) {
            const int at = i * WIDE + j;
            const bool inside = j < p->width && i0 + i < w->pixels && is_open(p, at);
            p->q[at] = p->g[0][at] = p->g[1][at] = p->g[2][at] = 0;
            if (!inside) continue;
            const real *bar =
                           (const real *)w->image + (i0 + i) * w->image_i + (j0 + j) * w->image_j,
                       *made = (const real *)w->made_image + (i0 + i) * w->made_i +
                               (j0 + j) * w->made_j;
            real q = 0;
            if (w->alpha)
                q = ((const real *)w->alpha)[(i0 + i) * w->alpha_i + j0 + j] *
                    (1 - ((const real *)w->made_alpha)[(i0 + i) * w->made_alpha_i + j0 + j]);
            for (int c = 0; c < 3; c++) {
                p->g[c][at] = bar[c];
                q = FMA(-bar[c], made[c], q);
            }
            p->q[at] = q;
        }
}

static void backward_tile(void *arg, int64_t tile, int worker)
{
    const lists *l = arg;
    const vr lane = lanes();
    pixels p;
    (void)worker;
    if (l->start[tile] == l->start[tile + 1]) return;
    pixels_begin(&p, l, tile);
    read_bars(&p, l, tile);
    pixels_light(&p);
    for (int64_t at = l->start[tile]; at < l->start[tile + 1]; at++) {
        const real *splat = splat_at(l, at);
        const brush k = brush_of(l, &p, splat);
        sums s = no_sums();
        back_one(&p, &k, lane, &s);
        put_sums(l, splat, &s, l->sum + (int64_t)l->item[at] * SUMS);
    }
}

/* The slots of a Gaussian lie in one block, one after another: added in that order. */
static void add_block(void *arg, int64_t block, int worker)
{
    const lists *l = arg;
    (void)worker;
    for (int64_t slot = l->slots[block]; slot < l->slots[block + 1]; slot++) {
        real *to = (real *)l->w->bar + (int64_t)l->owner[slot] * l->w->bar_step;
        for (int k = 0; k < SUMS; k++) to[COLUMN_OF_SUM(k)] += l->sum[slot * SUMS + k];
    }
}

static bool blend_back_run(gs_blend_work *w)
{
    lists l;
    if (!lists_make(&l, w, true)) return false;
    fth_team_run(w->team, l.tiles, backward_tile, &l);
    if (!fth_team_cancelled(w->team)) fth_team_run(w->team, GS_BLOCKS, add_block, &l);
    return true;
}
