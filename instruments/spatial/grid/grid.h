/* grid.h - a uniform grid over positions, for exact nearest neighbours; its fields are public to
 * code that iterates over its squares. */
#ifndef SPATIAL_GRID_H
#define SPATIAL_GRID_H

#include "../spatial.h"
#include "squares.h"

/* Index over n places: a uniform grid with about two of them in a square. */
typedef struct sp_grid sp_grid;
fth_status sp_grid_create(sp_grid **out, fth_mem *mem, const float *xy, int64_t n, fth_err *err);
uint64_t sp_grid_bytes(int64_t n);
void sp_grid_destroy(sp_grid *grid); /* NULL is allowed */
/* The k nearest places to (x, y), nearest first; place number `except` (-1: none) is left out.
 * `out` gets min(k, n) numbers, -1 behind them; `d2` (may be NULL) their squared distances. `room`
 * is sp_grid_room(k) bytes of the caller, so searches may run concurrently. */
size_t sp_grid_room(int64_t k);
void sp_grid_nearest(const sp_grid *grid, const float xy[2], int64_t k, int64_t except,
                     int32_t *out, double *d2, void *room);

struct sp_grid {
    fth_mem *mem;
    int64_t n;
    sp_squares squares;
    int32_t *start; /* [nx * ny + 1]: places of square s are start[s] to start[s + 1] - 1 */
    int32_t *id;    /* [n]: their numbers, ascending within a square */
    float (*at)[2]; /* [n]: their positions */
};

#endif
