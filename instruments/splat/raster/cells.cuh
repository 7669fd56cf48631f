/* cells.cuh - the tiles of a Gaussian's box, numbered row by row. Part of raster_*.cu. */
#ifndef SPLAT_RASTER_CELLS_CUH
#define SPLAT_RASTER_CELLS_CUH

#include "gaussian_lanes.h"

namespace
{

enum { FEW_TILES = 8 }; /* up to so many are tested by one thread, more by a warp */

struct cells {
    int x0, y0, wide, n; /* a box of tiles, row by row */
};

__device__ inline cells cells_of(const box &b)
{
    const int wide = (int)(b.x1 - b.x0), high = (int)(b.y1 - b.y0);
    cells c = {(int)b.x0, (int)b.y0, wide, wide > 0 && high > 0 ? wide * high : 0};
    return c;
}

__device__ inline bool cell_touches(const gs_raster &rule, const real *s, const cells &c, int at)
{
    const int y = at / c.wide;
    return touches(&rule, s, c.x0 + (at - y * c.wide), c.y0 + y);
}

} // namespace

#endif
