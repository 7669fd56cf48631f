/* grid.h - the inside of sp_grid, for those who walk over its squares. */
#ifndef SPATIAL_GRID_H
#define SPATIAL_GRID_H

#include "neighbours.h"
#include "squares.h"

struct sp_grid {
    fth_mem *mem;
    int64_t n;
    sp_squares squares;
    int32_t *start; /* [nx * ny + 1]: places of square s are start[s] to start[s + 1] - 1 */
    int32_t *id;    /* [n]: their numbers, ascending within a square */
    float (*at)[2]; /* [n]: their positions */
};

#endif
