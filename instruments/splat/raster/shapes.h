/* shapes.h - what the operations of this room check of their operands. */
#ifndef SPLAT_RASTER_SHAPES_H
#define SPLAT_RASTER_SHAPES_H

#include "raster.h"

#include <fathom/op.h>

/* Input `in` has this dtype and these axes in this order; else an error that names both. */
fth_status gs_check_axes(const fth_node *node, int in, fth_dtype dtype, const char *axes,
                         fth_err *err);
/* f32 or f64, the dtype of all numbers of a node. */
fth_status gs_check_real(const fth_node *node, fth_err *err);
/* "g p" with the numbers of a rule. */
fth_status gs_check_splats(const fth_node *node, int in, const gs_raster *rule, fth_err *err);
fth_status gs_check_numbers(const fth_node *node, const gs_raster *rule, const fth_desc *splats,
                            fth_err *err);
/* The shape of an output over declared axes. */
fth_status gs_desc_of(const fth_graph *g, const char *axes, fth_dtype dtype, fth_desc *out,
                      fth_err *err);
/* First element of an input's tile that belongs to the first of out's along the first axis. */
static inline const void *gs_from(const fth_tile *in, const fth_tile *out, fth_dtype dtype)
{
    return (const char *)in->data +
           (out->origin[0] - in->origin[0]) * in->stride[0] * fth_dtype_size(dtype);
}
/* A power of two that is at least n: such a grid is never cut. */
static inline int64_t gs_uncut(int64_t n)
{
    int64_t grid = 1;
    while (grid < n) grid *= 2;
    return grid;
}

#endif
