/* grid.h - colours of a photograph corrected by a bilateral grid: cells over its rows, columns and
 * brightness hold an affine map of 3 x 4, and a pixel takes the map between its 8 cells.
 *
 * The image is clamped to 0..1 first. All operations are f32 or f64 and the same bits however many
 * threads there are: the gradient of a cell is the sum of strips of pixels in their order.
 */
#ifndef SPLAT_APPEARANCE_GRID_H
#define SPLAT_APPEARANCE_GRID_H

#include <fathom/isa.h>
#include <fathom/ops.h>

enum { GS_AFFINE = 12 }; /* numbers of a cell, 4 * to + from; the last of four is added */

extern const fth_op gs_slice_op, gs_slice_back_op, gs_grid_slope_op;

/* image [i j c], grid [affine luma row column] with axes of any name; cells are at least 2 a side.
 */
fth_val gs_slice_(fth_graph *g, fth_site site, fth_val image, fth_val grid);
#define gs_slice(g, image, grid) gs_slice_((g), FTH_HERE, (image), (grid))

/* Of all grids [image affine luma row column]: output 0 is `weight` times the mean of their squared
 * differences between neighbours, along each axis by itself, f64 []; output 1 its gradient, to
 * which `bar` [affine luma row column] is added at the grid number `at`, i64 []. */
fth_val gs_grid_slope_(fth_graph *g, fth_site site, double weight, fth_val grids, fth_val bar,
                       fth_val at);
#define gs_grid_slope(g, weight, grids, bar, at)                                                   \
    gs_grid_slope_((g), FTH_HERE, (weight), (grids), (bar), (at))

#endif
