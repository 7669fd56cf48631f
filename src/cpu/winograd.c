/* winograd.c - convolutions by tiles of 2 by 2: a few rows of tiles at a time.
 *
 * Rows of tiles are counted through all images; 64 tiles or so together stay in the cache. None of
 * that changes a bit: tiles are anchored at even rows, and pieces are cut at even rows.
 */
#include "cpu/winograd.h"

#include "base/assert.h"
#include "base/checked.h"
#include "cpu/turn.h"

#include <string.h>

enum {
    PANEL = FTH__WINOGRAD_PANEL,
    POINTS = FTH__WINOGRAD_POINTS,
    SPARE = FTH__WINOGRAD_SPARE,
    GOAL = 64,  /* tiles at a time: two panels; of 64 channels their 16 points are 256 KiB of f32 */
    MOST = 256, /* tiles of a row: of wider images one row of tiles would leave the cache */
    LEAST = 4   /* channels: with fewer the transforms cost more than they save; not measured */
};

static int64_t whole(int64_t n, int64_t of)
{
    return (n + of - 1) / of * of;
}

static int64_t half(int64_t n)
{
    return (n + 1) / 2;
}

bool fth__winograd_pays(int64_t chan, int64_t out_chan)
{
    return chan >= LEAST && out_chan >= LEAST;
}

/* ---- shapes ---- */

typedef struct tiling {
    int64_t tiles, rows, images; /* of a row, of an image */
    int64_t per, columns;        /* rows of tiles at a time, and all their tiles */
    int64_t step;                /* between lines of an image's rows */
} tiling;

static tiling tiling_of(int64_t images, int64_t height, int64_t width)
{
    tiling t = {.tiles = half(width), .rows = half(height), .images = images};
    t.per = fth__min_i64(fth__max_i64(GOAL / t.tiles, 1), t.rows * images);
    t.columns = whole(t.per * t.tiles, PANEL);
    t.step = whole(t.tiles, SPARE) + SPARE;
    FTH_ASSERT(t.tiles >= 1 && t.tiles <= MOST && t.columns % PANEL == 0);
    return t;
}

static bool fits(const fth__conv_source *s, int64_t width)
{
    return s->t == FTH_F32 && s->ky == 3 && s->kx == 3 && s->stride == 1 && s->dilation == 1 &&
           s->pad_y <= 2 && s->pad_x <= 2 && width > 0 && half(width) <= MOST;
}

typedef struct rooms {
    int64_t weights, image, result, turned, lines; /* elements */
} rooms;

static uint64_t bytes_of(const rooms *r)
{
    return 4 * (uint64_t)(r->weights + r->image + r->result + r->turned + r->lines);
}

static rooms rooms_of(const tiling *t, int64_t m, int64_t chan)
{
    return (rooms){
        .weights = POINTS * whole(chan, PANEL) * m,
        .image = POINTS * t->columns * chan,
        .result = POINTS * t->columns * m,
        .lines = 16 * t->step + 3 * (4 * t->step),
    };
}

/* ---- the image ---- */

static int64_t pad_of(const fth__conv_source *s, int64_t pad)
{
    return s->back ? 2 - pad : pad;
}

static const float *row_at(const fth__conv_view *v, int64_t b, int64_t c, int64_t y)
{
    return (const float *)(const void *)v->data + b * v->s[0] + c * v->s[1] +
           (y - v->origin[2]) * v->s[2];
}

static void copy(float *to, int64_t to_step, const float *from, int64_t from_step, int64_t n)
{
    if (to_step == 1 && from_step == 1)
        memcpy(to, from, (size_t)n * sizeof *to);
    else
        for (int64_t i = 0; i < n; i++) to[i * to_step] = from[i * from_step];
}

/* Rows of tiles [first, first + n) of one channel. lines: room for four rows and one line, which is
 * zero. `origin` is the row of the whole result with which the call begins. */
static void fill_channel(const fth__winograd_loops *loops, const fth__conv_source *s,
                         const tiling *t, int64_t first, int64_t n, int64_t c, int64_t origin,
                         fth__winograd_row to, float *lines)
{
    float *line = lines + 16 * t->step;
    const int64_t pad = pad_of(s, s->pad_x), down = pad_of(s, s->pad_y),
                  n_x = fth__min_i64(s->width, 2 * t->tiles + 2 - pad);
    const int64_t top = fth__max_i64(s->v.origin[2], 0), bottom = s->v.origin[2] + s->v.n[2];
    int64_t known = 0, image = -1; /* rows before `known` of this image are transformed already */
    for (int64_t r = 0; r < n; r++, to.at += t->tiles) {
        const int64_t b = (first + r) / t->rows, y0 = origin + (first + r) % t->rows * 2 - down;
        const float *rows[4];
        if (b != image) known = y0;
        image = b;
        for (int64_t y = y0; y < y0 + 4; y++) {
            float *to_row = lines + (y + 4) % 4 * 4 * t->step;
            rows[y - y0] = to_row;
            if (y < known) continue;
            if (y < top || y >= bottom) { /* no result of the call needs another one */
                memset(to_row, 0, (size_t)(4 * t->step) * sizeof *to_row);
                continue;
            }
            copy(line + pad, 1, row_at(&s->v, b, c, y), s->v.s[3], n_x);
            loops->along(to_row, t->step, line, t->tiles);
        }
        known = y0 + 4;
        loops->image(&to, rows, t->step, t->tiles);
    }
}

static void fill_image(const fth__winograd_loops *loops, const fth__conv_source *s, const tiling *t,
                       int64_t first, int64_t n, int64_t chan, int64_t origin, float *to,
                       float *lines)
{
    memset(lines + 16 * t->step, 0, (size_t)(4 * t->step) * sizeof *lines);
    for (int64_t c = 0; c < chan; c++)
        fill_channel(loops, s, t, first, n, c, origin,
                     (fth__winograd_row){to + c * PANEL, t->columns * chan, chan * PANEL, 0},
                     lines);
}

/* ---- forward and back to the image ---- */

static void fill_weights(const fth__winograd_loops *loops, const fth__conv_job *j, float *to)
{
    const fth__conv_view *w = &j->w;
    const int64_t m = j->to.n[1], chan = w->n[j->depth_role], plane = whole(chan, PANEL) * m;
    const float *from = (const float *)(const void *)w->data;
    for (int64_t c0 = 0; c0 < chan; c0 += PANEL)
        for (int64_t o = 0; o < m; o++) {
            float g[9 * PANEL] = {0};
            for (int64_t c = c0; c < fth__min_i64(c0 + PANEL, chan); c++)
                for (int64_t k = 0; k < 9; k++) {
                    const int64_t y = j->from.back ? 2 - k / 3 : k / 3,
                                  x = j->from.back ? 2 - k % 3 : k % 3;
                    g[k * PANEL + c - c0] = from[o * w->s[j->m_role] + c * w->s[j->depth_role] +
                                                 y * w->s[2] + x * w->s[3]];
                }
            loops->window(to + c0 * m + o * PANEL, plane, g);
        }
}

/* One row of tiles of one channel to where it belongs; two lines for what does not fit there. */
static void write_row(const fth__winograd_loops *loops, const fth__conv_view *to, const tiling *t,
                      int64_t b, int64_t o, int64_t y, const fth__winograd_row *from, float *lines)
{
    float *rows[2] = {lines, lines + 2 * t->step}, *out[2];
    const int64_t n = fth__min_i64(2, to->n[2] - y);
    FTH_ASSERT(n > 0 && from->at + t->tiles <= t->columns);
    const bool direct = to->s[3] == 1 && to->n[3] == 2 * t->tiles;
    for (int64_t i = 0; i < n; i++) {
        out[i] = (float *)(void *)to->data + b * to->s[0] + o * to->s[1] + (y + i) * to->s[2];
        if (direct) rows[i] = out[i];
    }
    loops->result(rows, from, t->tiles);
    for (int64_t i = 0; i < n && !direct; i++) copy(out[i], to->s[3], rows[i], 1, to->n[3]);
}

uint64_t fth__winograd_scratch(const fth__conv_job *j)
{
    const int64_t chan = j->w.n[j->depth_role];
    if (!j->tiled || !fits(&j->from, j->to.n[3])) return 0;
    const tiling t = tiling_of(j->to.n[0], j->to.n[2], j->to.n[3]);
    const rooms r = rooms_of(&t, j->to.n[1], chan);
    return bytes_of(&r);
}

void fth__winograd_run(const fth__conv_job *j, void *scratch)
{
    const fth__winograd_loops *loops = FTH_ISA_BEST(fth__winograd_loops);
    const int64_t chan = j->w.n[j->depth_role], m = j->to.n[1];
    const tiling t = tiling_of(j->to.n[0], j->to.n[2], j->to.n[3]);
    const rooms r = rooms_of(&t, m, chan);
    float *weights = scratch, *image = weights + r.weights, *result = image + r.image,
          *lines = result + r.result;
    FTH_ASSERT(j->to.origin[2] % 2 == 0); /* tiles are anchored at even rows */
    const int64_t all = t.rows * t.images, w_plane = r.weights / POINTS, i_plane = r.image / POINTS,
                  r_plane = r.result / POINTS;
    fill_weights(loops, j, weights);
    memset(image, 0, (size_t)r.image * sizeof *image); /* columns beyond the tiles */
    for (int64_t first = 0; first < all; first += t.per) {
        const int64_t n = fth__min_i64(t.per, all - first);
        fill_image(loops, &j->from, &t, first, n, chan, j->to.origin[2], image, lines);
        for (int k = 0; k < POINTS; k++)
            loops->product(m, n * t.tiles, chan, weights + k * w_plane, image + k * i_plane,
                           result + k * r_plane, false);
        for (int64_t o = 0; o < m; o++)
            for (int64_t i = 0; i < n; i++)
                write_row(loops, &j->to, &t, (first + i) / t.rows, o, (first + i) % t.rows * 2,
                          &(fth__winograd_row){result + o * PANEL, r_plane, m * PANEL, i * t.tiles},
                          lines);
    }
}

/* ---- the weights ---- */

static tiling sum_tiling(const fth__winograd_sum *s, int64_t images)
{
    return tiling_of(images, s->r->n[2], s->r->n[3]);
}

static rooms sum_rooms(const fth__winograd_sum *s, const tiling *t)
{
    rooms r = rooms_of(t, s->r->n[1], s->chan);
    r.turned = whole(s->chan, PANEL) * t->columns;
    return r;
}

uint64_t fth__winograd_sum_scratch(const fth__winograd_sum *s)
{
    if (!s->tiled || !fits(s->from, s->r->n[3])) return 0;
    const tiling t = sum_tiling(s, fth__max_i64(s->r->n[0], 1));
    const rooms r = sum_rooms(s, &t);
    return bytes_of(&r);
}

/* Rows of tiles [first, first + n) of the cotangent of the result. */
static void fill_slope(const fth__winograd_loops *loops, const fth__conv_view *v, const tiling *t,
                       int64_t first, int64_t n, float *to, float *lines)
{
    const int64_t m = v->n[1];
    float *line[2] = {lines, lines + 4 * t->step};
    memset(lines, 0, (size_t)(8 * t->step) * sizeof *lines);
    for (int64_t o = 0; o < m; o++)
        for (int64_t i = 0; i < n; i++) {
            const int64_t b = (first + i) / t->rows, y = (first + i) % t->rows * 2;
            copy(line[0], 1, row_at(v, b, o, v->origin[2] + y), v->s[3], v->n[3]);
            if (y + 1 < v->n[2])
                copy(line[1], 1, row_at(v, b, o, v->origin[2] + y + 1), v->s[3], v->n[3]);
            else
                memset(line[1], 0, (size_t)v->n[3] * sizeof *lines);
            loops->slope(
                &(fth__winograd_row){to + o * PANEL, t->columns * m, m * PANEL, i * t->tiles},
                (const float *const[2]){line[0], line[1]}, t->tiles);
        }
}

/* chan by tiles to tiles by chan. */
static void turn_over(float *to, const float *from, int64_t chan, int64_t columns)
{
    const fth__turn_loops *turn = FTH_ISA_BEST(fth__turn_loops);
    for (int64_t p = 0; p < columns; p += PANEL)
        for (int64_t c = 0; c < chan; c += PANEL)
            turn->turn(to + c * columns + p * PANEL, PANEL, from + p * chan + c * PANEL, PANEL,
                       fth__min_i64(PANEL, columns - p), fth__min_i64(PANEL, chan - c));
}

static void write_sum(const fth__winograd_loops *loops, int64_t m, int64_t chan, const float *from,
                      float *sum)
{
    const int64_t plane = whole(chan, PANEL) * m;
    float g[9 * PANEL];
    for (int64_t c0 = 0; c0 < chan; c0 += PANEL)
        for (int64_t o = 0; o < m; o++) {
            float *to = sum + (o * chan + c0) * 9;
            loops->window_slope(g, from + c0 * m + o * PANEL, plane);
            for (int64_t c = 0; c < fth__min_i64(PANEL, chan - c0); c++)
                for (int64_t k = 0; k < 9; k++) to[c * 9 + k] = g[k * PANEL + c];
        }
}

void fth__winograd_sum_run(const fth__winograd_sum *s, int64_t first, int64_t end, float *sum,
                           void *scratch)
{
    const fth__winograd_loops *loops = FTH_ISA_BEST(fth__winograd_loops);
    const int64_t m = s->r->n[1], chan = s->chan;
    const tiling t = sum_tiling(s, s->r->n[0]);
    const rooms r = sum_rooms(s, &t);
    float *weights = scratch, *image = weights + r.weights, *slope = image + r.image,
          *turned = slope + r.result, *lines = turned + r.turned;
    const int64_t w_plane = r.weights / POINTS, i_plane = r.image / POINTS,
                  s_plane = r.result / POINTS;
    FTH_ASSERT(first >= 0 && first < end && end <= s->r->n[0]);
    memset(turned, 0, (size_t)r.turned * sizeof *turned); /* columns beyond the channels */
    for (int64_t at = first * t.rows, last = end * t.rows; at < last; at += t.per) {
        const int64_t n = fth__min_i64(t.per, last - at), columns = n * t.tiles;
        fill_image(loops, s->from, &t, at, n, chan, 0, image, lines);
        fill_slope(loops, s->r, &t, at, n, slope, lines);
        for (int k = 0; k < POINTS; k++) {
            turn_over(turned, image + k * i_plane, chan, columns);
            loops->product(m, chan, columns, slope + k * s_plane, turned, weights + k * w_plane,
                           at > first * t.rows);
        }
    }
    write_sum(loops, m, chan, weights, sum);
}
