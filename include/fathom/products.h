/* fathom/products.h - how matrix products of a device, and convolutions of a CPU, are made. */
#ifndef FATHOM_PRODUCTS_H
#define FATHOM_PRODUCTS_H

#include <fathom/ops.h>

FTH_BEGIN_DECLS

/* Large products of f32 on the device's matrix units, each number as the sum of three bf16 (cards
 * of capability 9.0; others make plain products): errors no larger than those of plain products,
 * other bits. On in a new context, unless fth_options.plain_products says otherwise. Call it before
 * anything is planned; the CPU has its own way. */
FTH_API void fth_context_set_split_products(fth_context *ctx, bool on);
FTH_API bool fth_context_split_products(const fth_context *ctx);

/* fth_conv2d, of which the CPU may compute f32 results of windows of 3 by 3 in tiles of 2 by 2
 * (Winograd), and gradients likewise: faster. Rounding errors of an element are those of numbers as
 * large as the largest that its tile sees, and Inf becomes NaN. */
FTH_API fth_val fth_conv2d_tiled_(fth_site site, fth_val v, fth_val w, const fth_conv *conv);
#define fth_conv2d_tiled(v, w, conv) fth_conv2d_tiled_(FTH_HERE, (v), (w), (conv))

FTH_END_DECLS
#endif /* FATHOM_PRODUCTS_H */
