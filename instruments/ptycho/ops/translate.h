/* translate.h - images moved by fractions of a pixel, bilinear or nearest, zeros outside.
 *
 * out(y, x) = in(y - t.y, x - t.x), where t has the order x, y. Images and offsets have the same
 * leading axes, by name and in order: nothing is repeated by itself, only where the caller names
 * the axes. The adjoint is the translation by -t, a gather as well.
 */
#ifndef PTYCHO_OPS_TRANSLATE_H
#define PTYCHO_OPS_TRANSLATE_H

#include <fathom/fathom.h>

/* images [.. row col] f32 f64 c64 c128, offsets [.. xy] of their real dtype, xy of size 2. */
fth_val pt_translate_(fth_site site, fth_val images, fth_val offsets);
#define pt_translate(images, offsets) pt_translate_(FTH_HERE, (images), (offsets))
/* The same into axes "prow pcol" of other sizes. The middle of the smaller frame is in the middle
 * of the larger: pixel 0 of it is pixel (large - small) / 2. Padding and moving, or moving and
 * trimming, in one. Each image is taken once for every element of the axes `repeat` of the offsets,
 * "chan"; "" for none. */
fth_val pt_translate_into_(fth_site site, fth_val images, fth_val offsets, const char *repeat,
                           const char *row, const char *col);
#define pt_translate_into(images, offsets, repeat, row, col)                                       \
    pt_translate_into_(FTH_HERE, (images), (offsets), (repeat), (row), (col))

/* Each pixel is a copy of the one that lies nearest to y - t.y, x - t.x, halves to the even one;
 * zero where that is outside of the image. Offsets have no gradient. */
fth_val pt_translate_nearest_(fth_site site, fth_val images, fth_val offsets);
#define pt_translate_nearest(images, offsets) pt_translate_nearest_(FTH_HERE, (images), (offsets))

extern const fth_op pt_translate_op, pt_translate_slope_op;

#endif
