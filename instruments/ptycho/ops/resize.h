/* resize.h - frames at half and at twice their size, for the blocks of the network.
 *
 * The engine's pool and upsample do the same along one axis at a time, and keep a position for each
 * maximum; here both axes are done at once and the slope finds the maximum again.
 */
#ifndef PTYCHO_OPS_RESIZE_H
#define PTYCHO_OPS_RESIZE_H

#include <fathom/fathom.h>

/* v [.. y x] f32 or f64 to [.. row col] of half the sizes: the largest of 2 by 2; NaN wins, and of
 * equal ones the first has the slope. */
fth_val pt_halve_(fth_site site, fth_val v, const char *row, const char *col);
#define pt_halve(v, row, col) pt_halve_(FTH_HERE, (v), (row), (col))
/* To twice the sizes: every number four times. */
fth_val pt_double_(fth_site site, fth_val v, const char *row, const char *col);
#define pt_double(v, row, col) pt_double_(FTH_HERE, (v), (row), (col))

extern const fth_op pt_halve_op, pt_halve_slope_op, pt_double_op, pt_double_slope_op;

#endif
