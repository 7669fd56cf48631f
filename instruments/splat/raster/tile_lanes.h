/* tile_lanes.h - which tiles a Gaussian touches: exactly those where a pixel may see it. GS_RAYS is
 * 1 in loops and kernels of lenses that bend straight lines. */
#ifndef SPLAT_RASTER_TILE_LANES_H
#define SPLAT_RASTER_TILE_LANES_H

#include "loops.h"

#include <fathom/vector.h>

#ifndef GS_RAYS
#define GS_RAYS 0
#endif

/* Numbers of a row of splats, sums of a Gaussian in a tile, and where they go in its cotangents. */
enum { NUMBERS = GS_RAYS ? GS_RAY_SPLAT : GS_SPLAT, SUMS = GS_RAYS ? GS_RAY_SUMS : GS_SUMS };
#define COLUMN_OF_SUM(k) ((k) < GS_SUMS ? (k) : (k)-GS_SUMS + GS_RAY_M)

typedef struct box {
    int64_t x0, x1, y0, y1; /* of tiles; empty where x0 >= x1 or y0 >= y1 */
} box;

/* floor or ceil of v, from 0 to `most`; NaN is 0. */
LANE int64_t clamped(real v, int64_t most)
{
    return v >= (real)most ? most : v > 0 ? (int64_t)v : 0;
}

#if GS_RAYS
/* The pixels in which a Gaussian is looked for: those whose centres are in its box. */
LANE box pixels_of(const gs_raster *a, const real *s)
{
    const real u = s[GS_U] - R(0.5), v = s[GS_V] - R(0.5);
    const box b = {.x0 = clamped(CEIL(u - s[GS_EX]), a->width),
                   .x1 = clamped(FLOOR(u + s[GS_EX]) + 1, a->width),
                   .y0 = clamped(CEIL(v - s[GS_EY]), a->height),
                   .y1 = clamped(FLOOR(v + s[GS_EY]) + 1, a->height)};
    return b;
}

LANE box box_of(const gs_raster *a, const real *s)
{
    const box p = pixels_of(a, s);
    const box none = {0, 0, 0, 0}, b = {p.x0 / a->tile, (p.x1 + a->tile - 1) / a->tile,
                                        p.y0 / a->tile, (p.y1 + a->tile - 1) / a->tile};
    return p.x0 < p.x1 && p.y0 < p.y1 ? b : none;
}

LANE bool touches(const gs_raster *a, const real *s, int64_t tx, int64_t ty)
{
    (void)a, (void)s, (void)tx, (void)ty;
    return true;
}
#else
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

#endif
