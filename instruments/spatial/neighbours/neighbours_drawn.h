/* neighbours_drawn.h - neighbours sampled by covariance, one cell at a time. */
#ifndef SPATIAL_NEIGHBOURS_DRAWN_H
#define SPATIAL_NEIGHBOURS_DRAWN_H

#include "neighbours.h"

typedef struct sp_neighbour_draws {
    sp_cov cov;
    const float *xy;
    const int32_t *group; /* NULL: no groups */
    int64_t cells, seed;
} sp_neighbour_draws;

/* k of the other cells of cell i, the largest key first. `nearest` are k others near it; they only
 * speed up the search, and may be `out` itself. `room` is sp_grid_room(k) bytes. */
void sp_draw_neighbours(const sp_neighbour_draws *d, int64_t i, int64_t k, const int32_t *nearest,
                        int32_t *out, void *room);

#endif
