/* triangle.c - masks over two axes, made of comparisons of global indices. */
#include "ops/triangle.h"

fth_val fth__index_compare(fth_graph *g, fth_site site, fth_ew cmp, const char *row,
                           const char *col)
{
    const fth_val down = fth_index_(g, site, row);
    const fth_val across = fth_expand_(site, fth_index_(g, site, col), row);
    return fth_map_(site, cmp, down, across, (fth_val){0});
}

fth_val fth__keep_triangle(fth_site site, fth_val v, const fth_desc *like)
{
    if (like->triangle == FTH_FULL || !fth_val_ok(v)) return v;
    fth_graph *g = v.graph;
    const char *row = fth_axis_name(g, like->axis[like->row]);
    const char *col = fth_axis_name(g, like->axis[like->col]);
    const fth_ew cmp = like->triangle == FTH_LOWER ? FTH_EW_GE : FTH_EW_LE;
    const fth_val keep = fth__index_compare(g, site, cmp, row, col);
    const fth_val zero = fth_const_(g, site, fth_val_dtype(v), 0.0, 0.0);
    return fth_mark_(site, fth_map_(site, FTH_EW_SELECT, keep, v, zero), like->triangle, row, col);
}
