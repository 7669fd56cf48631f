/* shapes.c - see shapes.h. */
#include "shapes.h"

#include <inttypes.h>
#include <string.h>

fth_status gs_desc_of(const fth_graph *g, const char *axes, fth_dtype dtype, fth_desc *out,
                      fth_err *err)
{
    *out = (fth_desc){.dtype = dtype};
    FTH_TRY(fth_axes_parse(g, axes, &out->n_axes, out->axis, err));
    for (int d = 0; d < out->n_axes; d++)
        out->size[d] = fth_axis_size(g, fth_axis_name(g, out->axis[d]));
    return FTH_OK;
}

fth_status gs_check_axes(const fth_node *node, int in, fth_dtype dtype, const char *axes,
                         fth_err *err)
{
    fth_desc want;
    char text[256];
    FTH_TRY(gs_desc_of(node->graph, axes, dtype, &want, err));
    const fth_desc *d = &node->in[in];
    if (d->dtype == dtype && d->n_axes == want.n_axes &&
        memcmp(d->axis, want.axis, (size_t)d->n_axes * sizeof *d->axis) == 0)
        return FTH_OK;
    return FTH_FAIL(err, d->dtype == dtype ? FTH_E_AXIS_MISMATCH : FTH_E_DTYPE,
                    "%s: input %d is %s, expected %s [%s]", node->op->name, in,
                    fth_in_format(node, in, text, sizeof text), fth_dtype_name(dtype), axes);
}

fth_status gs_check_numbers(const fth_node *node, const gs_raster *rule, const fth_desc *splats,
                            fth_err *err)
{
    if (splats->size[1] == gs_splat_numbers(rule)) return FTH_OK;
    return FTH_FAIL(err, FTH_E_GRAPH_ATTR,
                    "%s: a row of splats has %" PRId64 " numbers, expected %" PRId64,
                    node->op->name, splats->size[1], gs_splat_numbers(rule));
}

fth_status gs_check_splats(const fth_node *node, int in, const gs_raster *rule, fth_err *err)
{
    FTH_TRY(gs_check_axes(node, in, node->in[0].dtype, "g p", err));
    return gs_check_numbers(node, rule, &node->in[in], err);
}

fth_status gs_check_real(const fth_node *node, fth_err *err)
{
    const fth_dtype dtype = node->in[0].dtype;
    if (dtype == FTH_F32 || dtype == FTH_F64) return FTH_OK;
    return FTH_FAIL(err, FTH_E_DTYPE_OP, "%s: %s is neither f32 nor f64", node->op->name,
                    fth_dtype_name(dtype));
}
