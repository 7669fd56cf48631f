/* mosaic.c - see mosaic.h. */
#include "mosaic.h"

#include <math.h>
#include <string.h>

void fo_mosaic_size(const fo_tiles *t, const fo_tile_place *place, int64_t *y, int64_t *x)
{
    *y = *x = 0;
    for (int i = 0; i < fo_tiles_count(t); i++) {
        const int64_t end_y = (int64_t)place[i].y + t->y, end_x = (int64_t)place[i].x + t->x;
        if (end_y > *y) *y = end_y;
        if (end_x > *x) *x = end_x;
    }
}

/* compat truncates the result of a gamma; a gain of 1 up to rounding changes nothing. */
static double toned(const fo_tone *tone, double v, double white, bool whole)
{
    v = fmin(white, fmax(0, fo_tone_of(tone, v, white)));
    return whole ? floor(tone->gamma != 1 ? v : v + 0.5) : v;
}

/* How much a pixel counts: less towards the edges of its tile. Neighbours share one factor along
 * the edge that they have in common, so that across it the share falls linearly. */
static double weight_of(const fo_tiles *t, int64_t y, int64_t x)
{
    const int64_t wy = y + 1 < t->y - y ? y + 1 : t->y - y,
                  wx = x + 1 < t->x - x ? x + 1 : t->x - x;
    return (double)wy * (double)wx;
}

/* Rows or columns of a tile, from its corner in the window, that lie in the window. */
static void visible(int64_t corner, int64_t size, int64_t window, int64_t *from, int64_t *end)
{
    *from = corner < 0 ? -corner : 0;
    *end = corner + size > window ? window - corner : size;
}

static void draw_tile(const fo_drawing *d, const fo_window *w, int i, float *out, float *weight)
{
    const fo_tiles *t = d->tiles;
    const fo_tone *tone = &d->tone[i];
    const int64_t cy = (int64_t)d->place[i].y - w->y, cx = (int64_t)d->place[i].x - w->x;
    int64_t y0, y1, x0, x1;
    visible(cy, t->y, w->rows, &y0, &y1);
    visible(cx, t->x, w->columns, &x0, &x1);
    for (int64_t y = y0; y < y1; y++)
        for (int64_t x = x0; x < x1; x++) {
            const int64_t at = (cy + y) * w->columns + cx + x;
            const double v = (double)t->tile[i][y * t->x + x];
            if (d->blend != FO_BLEND_LINEAR) {
                out[at] = (float)toned(tone, v, d->white, d->whole);
                continue;
            }
            const double share = weight_of(t, y, x);
            out[at] += (float)(share * toned(tone, v, d->white, false));
            weight[at] += (float)share;
        }
}

void fo_mosaic_draw(float *out, float *weight, const fo_window *w, const fo_drawing *d)
{
    const int64_t n = w->rows * w->columns;
    memset(out, 0, (size_t)n * sizeof *out);
    if (d->blend == FO_BLEND_LINEAR) memset(weight, 0, (size_t)n * sizeof *weight);
    for (int i = 0; i < fo_tiles_count(d->tiles); i++)
        if (d->tiles->tile[i]) draw_tile(d, w, i, out, weight);
    if (d->blend != FO_BLEND_LINEAR) return;
    for (int64_t k = 0; k < n; k++) {
        const float v = weight[k] > 0 ? out[k] / weight[k] : 0;
        out[k] = d->whole ? floorf(v + 0.5f) : v;
    }
}

/* ---- canvas ---- */

int64_t fo_canvas_from(int64_t have, int64_t to)
{
    /* cut behind (have - to) / 2, or pad with (to - have) / 2 before: one rule for both */
    return have > to ? (have - to) / 2 : -((to - have) / 2);
}

bool fo_canvas_size(int tiles, bool vertical, int64_t width_px, int64_t *y, int64_t *x)
{
    static const struct {
        int tiles;
        int64_t y, x[2]; /* x: in a row, in a column */
    } canvas[] = {{1, 480, {640, 640}}, {2, 800, {630, 630}}, {3, 1140, {480, 630}}};
    for (size_t i = 0; i < sizeof canvas / sizeof canvas[0]; i++) {
        if (canvas[i].tiles != tiles) continue;
        const double factor = (double)width_px / 640; /* sizes are those of 640 pixels */
        *y = (int64_t)((double)canvas[i].y * factor);
        *x = (int64_t)((double)canvas[i].x[vertical] * factor);
        return true;
    }
    return false;
}
