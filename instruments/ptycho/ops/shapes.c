/* shapes.c - see shapes.h. */
#include "shapes.h"

#include <math.h>

fth_status pt_check_axes(const fth_node *node, int in, fth_dtype dtype, const char *axes,
                         fth_err *err)
{
    const fth_desc *d = &node->in[in];
    fth_axis_id id[FTH_MAX_AXES];
    char text[256];
    int n = 0;
    if (d->dtype != dtype)
        return FTH_FAIL(err, FTH_E_DTYPE_OP, "%s: input %d must be %s, but is %s", node->op->name,
                        in, fth_dtype_name(dtype), fth_in_format(node, in, text, sizeof text));
    FTH_TRY(fth_axes_parse(node->graph, axes, &n, id, err));
    bool same = n == d->n_axes;
    for (int i = 0; same && i < n; i++) same = d->axis[i] == id[i];
    if (same) return FTH_OK;
    return FTH_FAIL(err, FTH_E_AXIS_MISMATCH, "%s: input %d must have the axes [%s], but is %s",
                    node->op->name, in, axes, fth_in_format(node, in, text, sizeof text));
}

fth_status pt_desc_of(const fth_graph *g, const char *axes, fth_dtype dtype, fth_desc *out,
                      fth_err *err)
{
    *out = (fth_desc){.dtype = dtype};
    FTH_TRY(fth_axes_parse(g, axes, &out->n_axes, out->axis, err));
    for (int i = 0; i < out->n_axes; i++)
        out->size[i] = fth_axis_size(g, fth_axis_name(g, out->axis[i]));
    return FTH_OK;
}

fth_status pt_check_visits(const double *visits, int64_t count, int64_t room, int64_t columns,
                           int64_t n, int64_t rows, int64_t cols, fth_err *err)
{
    if (count < 0 || count > room)
        return FTH_FAIL(err, FTH_E_USAGE, "%lld patterns, but there is room for %lld",
                        (long long)count, (long long)room);
    for (int64_t i = 0; i < count; i++) {
        const double r = visits[i * columns], c = visits[i * columns + 1];
        if (!(r >= 0 && c >= 0 && r + (double)n <= (double)rows && c + (double)n <= (double)cols))
            return FTH_FAIL(err, FTH_E_USAGE,
                            "patch %lld of %lld x %lld pixels at row %g, column %g does not lie in "
                            "the canvas of %lld x %lld",
                            (long long)i, (long long)n, (long long)n, r, c, (long long)rows,
                            (long long)cols);
    }
    return FTH_OK;
}
