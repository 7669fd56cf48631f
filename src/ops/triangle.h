/* ops/triangle.h - masks over two axes, for gradients of marked values. */
#ifndef FTH_OPS_TRIANGLE_H
#define FTH_OPS_TRIANGLE_H

#include <fathom/ops.h>

/* bool [row col]: global index of row `cmp` global index of col (FTH_EW_GE, FTH_EW_EQ, ...). */
fth_val fth__index_compare(fth_graph *g, fth_site site, fth_ew cmp, const char *row,
                           const char *col);
/* v with zeros where the mark of `like` says so, and with that mark; v itself when `like` has none.
 * Both have the same axes, in any order. */
fth_val fth__keep_triangle(fth_site site, fth_val v, const fth_desc *like);

#endif
