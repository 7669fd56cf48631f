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

static double toned(const fo_tone *tone, double v, double white, bool whole)
{
    v = fmin(white, fmax(0, fo_tone_of(tone, v, white)));
    return whole ? floor(v) : v;
}

/* How much a pixel counts: less towards the edges of its tile. Neighbours share one factor along
 * the edge that they have in common, so that across it the share falls linearly. */
static double weight_of(const fo_tiles *t, int64_t y, int64_t x)
{
    const int64_t wy = y + 1 < t->y - y ? y + 1 : t->y - y,
                  wx = x + 1 < t->x - x ? x + 1 : t->x - x;
    return (double)wy * (double)wx;
}

static void draw_over(float *out, int64_t width, const fo_tiles *t, int i, const fo_tile_place *p,
                      const fo_tone *tone, double white, bool whole)
{
    for (int64_t y = 0; y < t->y; y++) {
        float *to = out + ((int64_t)p->y + y) * width + (int64_t)p->x;
        for (int64_t x = 0; x < t->x; x++)
            to[x] = (float)toned(tone, (double)t->tile[i][y * t->x + x], white, whole);
    }
}

static void draw_into(float *out, float *weight, int64_t width, const fo_tiles *t, int i,
                      const fo_tile_place *p, const fo_tone *tone, double white)
{
    for (int64_t y = 0; y < t->y; y++) {
        const int64_t at = ((int64_t)p->y + y) * width + (int64_t)p->x;
        for (int64_t x = 0; x < t->x; x++) {
            const double w = weight_of(t, y, x);
            out[at + x] += (float)(w * toned(tone, (double)t->tile[i][y * t->x + x], white, false));
            weight[at + x] += (float)w;
        }
    }
}

void fo_mosaic_draw(float *out, float *weight, const fo_tiles *t, const fo_tile_place *place,
                    const fo_tone *tone, fo_blend blend, double white, bool whole)
{
    int64_t height, width;
    fo_mosaic_size(t, place, &height, &width);
    memset(out, 0, (size_t)(height * width) * sizeof *out);
    if (blend == FO_BLEND_LINEAR) memset(weight, 0, (size_t)(height * width) * sizeof *weight);
    for (int i = 0; i < fo_tiles_count(t); i++) {
        if (!t->tile[i]) continue;
        if (blend == FO_BLEND_LINEAR)
            draw_into(out, weight, width, t, i, &place[i], &tone[i], white);
        else
            draw_over(out, width, t, i, &place[i], &tone[i], white, whole);
    }
    if (blend != FO_BLEND_LINEAR) return;
    for (int64_t k = 0; k < height * width; k++) {
        const float v = weight[k] > 0 ? out[k] / weight[k] : 0;
        out[k] = whole ? floorf(v + 0.5f) : v;
    }
}

/* ---- canvas ---- */

void fo_canvas_fit(float *out, int64_t to_y, int64_t to_x, const float *in, int64_t y, int64_t x,
                   bool turn)
{
    const int64_t have_y = turn ? x : y, have_x = turn ? y : x;
    /* cut behind (have - want) / 2, or pad with (want - have) / 2 before: one rule for both */
    const int64_t from_y = have_y > to_y ? (have_y - to_y) / 2 : -((to_y - have_y) / 2);
    const int64_t from_x = have_x > to_x ? (have_x - to_x) / 2 : -((to_x - have_x) / 2);
    for (int64_t i = 0; i < to_y; i++)
        for (int64_t j = 0; j < to_x; j++) {
            const int64_t r = i + from_y, c = j + from_x;
            const bool there = r >= 0 && r < have_y && c >= 0 && c < have_x;
            out[i * to_x + j] = there ? in[turn ? c * x + r : r * x + c] : 0;
        }
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
