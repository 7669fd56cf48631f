/* fathom/products.h - choosing faster algorithms for matrix products on a device and convolutions
 * on the CPU, whose results differ in the last bits.
 *
 * Threads: one thread at a time per context or graph.
 */
#ifndef FATHOM_PRODUCTS_H
#define FATHOM_PRODUCTS_H

#include <fathom/ops.h>

FTH_BEGIN_DECLS

/* Whether large f32 products run on the device's tensor cores, each number as the sum of three bf16
 * (compute capability 9.0; other cards make plain products): errors are no larger than those of
 * plain products, the bits differ. On in a new context unless fth_options.plain_products is set.
 * Call it before planning; it does not affect the CPU. */
FTH_API void fth_context_set_split_products(fth_context *ctx, bool on);
FTH_API bool fth_context_split_products(const fth_context *ctx);

/* fth_conv2d for which the CPU may use Winograd's algorithm, with tiles of 2 by 2 for f32 windows
 * of 3 by 3, also for gradients: faster. The rounding error of an element is relative to the
 * largest number of its tile, and Inf becomes NaN. */
FTH_API fth_val fth_conv2d_tiled_(fth_site site, fth_val v, fth_val w, const fth_conv *conv);
#define fth_conv2d_tiled(v, w, conv) fth_conv2d_tiled_(FTH_HERE, (v), (w), (conv))

FTH_END_DECLS
#endif /* FATHOM_PRODUCTS_H */
