/* fathom/products.h - how matrix products of a device are made. */
#ifndef FATHOM_PRODUCTS_H
#define FATHOM_PRODUCTS_H

#include <fathom/graph.h>

FTH_BEGIN_DECLS

/* Large products of f32 on the device's matrix units, each number as the sum of three bf16 (cards
 * of capability 9.0; others make plain products): errors no larger than those of plain products,
 * other bits. On in a new context, unless fth_options.plain_products says otherwise. Call it before
 * anything is planned; the CPU has its own way. */
FTH_API void fth_context_set_split_products(fth_context *ctx, bool on);
FTH_API bool fth_context_split_products(const fth_context *ctx);

FTH_END_DECLS
#endif /* FATHOM_PRODUCTS_H */
