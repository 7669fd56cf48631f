/* nearest.h - the operation that finds the nearest places of a grid.
 *
 * Ties go to the lower number: lists are those of brute force, on every device. The grid is built
 * on the host (grid.h), in a few hundredths of a second for a million places.
 */
#ifndef SPATIAL_OPS_NEAREST_H
#define SPATIAL_OPS_NEAREST_H

#include "../../grid/grid.h"
#include "nearest_node.h"

typedef struct sp_nearest {
    const sp_grid *grid; /* not read when the graph runs */
    fth_val start;       /* i32 [square1]: as in the grid */
    fth_val id;          /* i32 [cell] */
    fth_val places;      /* f32 [cell dim] */
    fth_val at;          /* f32 [query dim] */
    bool own, self;      /* sp_nearest_attr */
} sp_nearest;
/* i32 [query nbr]: as many as the axis "nbr" has, -1 where there are no more places. */
fth_val sp_nearest_(fth_site site, const sp_nearest *n);

#endif
