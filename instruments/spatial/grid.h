/* grid.h - the inside of sp_grid, for those who walk over its squares. */
#ifndef SPATIAL_GRID_H
#define SPATIAL_GRID_H

#include "neighbours.h"

struct sp_grid {
    fth_mem *mem;
    int64_t n;
    int64_t nx, ny;   /* squares */
    double x0, y0;    /* corner of the first one */
    double edge, inv; /* length of a side, and 1 / edge */
    int32_t *start;   /* [nx * ny + 1]: places of square s are start[s] to start[s + 1] - 1 */
    int32_t *id;      /* [n]: their numbers, ascending within a square */
    float (*at)[2];   /* [n]: their positions */
};

/* Square of a coordinate; places beyond the edge belong to the outermost ones. */
static inline int64_t sp_grid_index(double x, double x0, double inv, int64_t n)
{
    const double at = (x - x0) * inv;
    if (!(at > 0)) return 0;
    return at < (double)n ? (int64_t)at : n - 1;
}

#endif
