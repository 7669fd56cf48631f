/* stitch.h - patches of many groups summed into one canvas, each at its place.
 *
 * A patch of M by M pixels moved by a fraction of a pixel covers M + 1 by M + 1 pixels of the
 * canvas, with bilinear weights. Every pixel of the canvas adds its patches in the order of the
 * groups, so neither chunks nor workers change a bit.
 */
#ifndef PTYCHO_OPS_STITCH_H
#define PTYCHO_OPS_STITCH_H

#include <fathom/fathom.h>

/* patches [group srow scol] f32 f64 c64 c128, shift [group xy] of their real dtype, in pixels from
 * the middle of the canvas; axes orow and ocol are declared. Gives the sum of patches [orow ocol],
 * and with fth_out(v, 1) the sum of their weights, real. */
fth_val pt_stitch_(fth_site site, fth_val patches, fth_val shift);
#define pt_stitch(patches, shift) pt_stitch_(FTH_HERE, (patches), (shift))
/* The sum divided by the weights + 1e-9. */
fth_val pt_stitched_(fth_site site, fth_val patches, fth_val shift);
#define pt_stitched(patches, shift) pt_stitched_(FTH_HERE, (patches), (shift))

extern const fth_op pt_stitch_op, pt_unstitch_op;

#endif
