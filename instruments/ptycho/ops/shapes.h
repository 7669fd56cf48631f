/* shapes.h - what the operations of the instrument check of their operands. */
#ifndef PT_OPS_SHAPES_H
#define PT_OPS_SHAPES_H

#include <fathom/fathom.h>

/* Input `in` has this dtype and these axes in this order; else an error that names both. */
fth_status pt_check_axes(const fth_node *node, int in, fth_dtype dtype, const char *axes,
                         fth_err *err);
/* The shape of an output over declared axes. */
fth_status pt_desc_of(const fth_graph *g, const char *axes, fth_dtype dtype, fth_desc *out,
                      fth_err *err);
/* Corners of `count` patches of n by n (row and column are the first two of `columns` numbers each)
 * lie in a canvas; `count` is at most `room`. */
fth_status pt_check_visits(const double *visits, int64_t count, int64_t room, int64_t columns,
                           int64_t n, int64_t rows, int64_t cols, fth_err *err);

#endif
