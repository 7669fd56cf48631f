/* tile_lanes.h - which tiles a Gaussian touches: exactly those where a pixel may see it. */
#ifndef SPLAT_RASTER_TILE_LANES_H
#define SPLAT_RASTER_TILE_LANES_H

#include "loops.h"

#include <fathom/vector.h>

typedef struct box {
    int64_t x0, x1, y0, y1; /* of tiles; empty where x0 >= x1 or y0 >= y1 */
} box;

/* floor or ceil of v, from 0 to `most`; NaN is 0. */
LANE int64_t clamped(real v, int64_t most)
{
    return v >= (real)most ? most : v > 0 ? (int64_t)v : 0;
}

LANE box box_of(const gs_raster *a, const real *s)
{
    const real tile = (real)a->tile;
    const int64_t gw = (a->width + a->tile - 1) / a->tile, gh = (a->height + a->tile - 1) / a->tile;
    const box b = {.x0 = clamped(FLOOR((s[GS_U] - s[GS_EX]) / tile), gw),
                   .x1 = clamped(CEIL((s[GS_U] + s[GS_EX]) / tile), gw),
                   .y0 = clamped(FLOOR((s[GS_V] - s[GS_EY]) / tile), gh),
                   .y1 = clamped(CEIL((s[GS_V] + s[GS_EY]) / tile), gh)};
    return b;
}

LANE real saturate(real v)
{
    return v < 0 ? 0 : v > 1 ? 1 : v;
}

/* Of the pixels whose centres are at [left, left + wide] x [top, top + high], half a pixel less:
 * the place on their two nearest edges where sigma is smallest, as a way from the Gaussian. False:
 * the Gaussian is among them. */
LANE bool nearest_edge(const real *s, real left, real top, real wide, real high, real *ex, real *ey)
{
    const real x = s[GS_U] - R(0.5), y = s[GS_V] - R(0.5);
    const bool out_x = x < left || x > left + wide, out_y = y < top || y > top + high;
    if (!out_x && !out_y) return false;
    const real A = s[GS_A], B = s[GS_B], C = s[GS_C];
    const real wx = x - (x < left ? left : left + wide), wy = y - (y < top ? top : top + high),
               dx = left - x < 0 ? -wide : wide, dy = top - y < 0 ? -high : high;
    const real px = out_y ? saturate((dx * A * wx + dx * B * wy) / (dx * A * dx)) : 0,
               py = out_x ? saturate((dy * B * wx + dy * C * wy) / (dy * C * dy)) : 0;
    *ex = wx - px * dx;
    *ey = wy - py * dy;
    return true;
}

/* The smallest sigma over the centres of the pixels of a tile, on its two nearest edges, is within
 * the limit. */
LANE bool touches(const gs_raster *a, const real *s, int64_t tx, int64_t ty)
{
    const real side = (real)(a->tile - 1);
    real ex, ey;
    if (!nearest_edge(s, (real)(a->tile * tx), (real)(a->tile * ty), side, side, &ex, &ey))
        return true;
    return R(0.5) * (s[GS_A] * ex * ex + s[GS_C] * ey * ey) + s[GS_B] * ex * ey <= s[GS_LIMIT];
}

#endif
