/* totals.c - the operation that adds up sums of rows of integers. */
#include "planes.h"
#include "stack.h"

#include <string.h>

static fth_status infer(fth_node *node, fth_err *err)
{
    const fth_desc *in = &node->in[0];
    char text[256];
    if (in->n_axes != 4 || in->dtype != FTH_I64)
        return FTH_FAIL(err, FTH_E_DTYPE_OP,
                        "focus_plane_totals: sums i64 [stack z y sum] are wanted, not %s",
                        fth_in_format(node, 0, text, sizeof text));
    node->n_out = 1;
    node->out[0] = *in;
    node->out[0].n_axes = 3;
    node->out[0].axis[FO_Y] = in->axis[FO_X];
    node->out[0].size[FO_Y] = in->size[FO_X];
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    (void)node, (void)in;
    *out = (fth_relation){.along = FTH_SAME, .out_dim = dim == FO_X ? FO_Y : dim};
    if (dim == FO_Y) *out = (fth_relation){.along = FTH_ACCUMULATE, .out_dim = -1};
}

static fth_status run(const fth_call *call)
{
    const fth_tile *in = &call->in[0], *out = &call->out[0];
    const int64_t sums = out->extent[2];
    for (int64_t s = 0; s < out->extent[0]; s++)
        for (int64_t z = 0; z < out->extent[1]; z++) {
            const int64_t *row = (const int64_t *)in->data + s * in->stride[0] + z * in->stride[1];
            int64_t *to = (int64_t *)out->data + s * out->stride[0] + z * out->stride[1];
            if (call->first) memset(to, 0, (size_t)sums * sizeof *to);
            for (int64_t y = 0; y < in->extent[FO_Y]; y++, row += in->stride[FO_Y])
                for (int64_t k = 0; k < sums; k++) to[k] += row[k];
        }
    return FTH_OK;
}

static const fth_op totals = {
    .name = "focus_plane_totals",
    .brief = "sums over rows added up to sums over planes",
    .infer = infer,
    .relation = relation,
    .run = run,
};

fth_val fo_plane_totals_(fth_site site, fth_val rows)
{
    return fth_node_add_(rows.graph, site, &totals, 1, &rows, NULL, 0);
}
