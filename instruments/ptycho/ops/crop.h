/* crop.h - patches of a canvas at whole pixels, and patches added to a canvas: adjoints.
 *
 * Corners are [pattern xy] of i64: column, then row, of the first pixel of a patch. What lies
 * outside of the canvas is zero in a patch, and is left out of a canvas. Patches are added in the
 * order of the patterns.
 */
#ifndef PT_OPS_CROP_H
#define PT_OPS_CROP_H

#include <fathom/fathom.h>

extern const fth_op pt_crop_op, pt_place_op;

/* canvas [orow ocol], corners [pattern xy] -> [pattern row col]; row and col are declared. */
fth_val pt_crop_(fth_site site, fth_val canvas, fth_val corners);
#define pt_crop(canvas, corners) pt_crop_(FTH_HERE, (canvas), (corners))
/* patches [pattern row col], corners -> [orow ocol]; orow and ocol are declared. */
fth_val pt_place_(fth_site site, fth_val patches, fth_val corners);
#define pt_place(patches, corners) pt_place_(FTH_HERE, (patches), (corners))

#endif
