/* index.c - the global index along an axis, as numbers. */
#include "ops/build.h"

static fth_status infer(fth_node *node, fth_err *err)
{
    const fth_axis_id axis = *(const fth_axis_id *)node->attr;
    (void)err;
    node->n_out = 1;
    node->out[0] = (fth_desc){.dtype = FTH_I64, .n_axes = 1};
    node->out[0].axis[0] = axis;
    node->out[0].size[0] = fth__size_of(node->graph, axis);
    return FTH_OK;
}

static fth_status run(const fth_call *call)
{
    const fth_tile *t = &call->out[0];
    int64_t *out = t->data;
    for (int64_t i = 0; i < t->extent[0]; i++) out[i * t->stride[0]] = t->origin[0] + i;
    return FTH_OK;
}

/* Numbers that depend on nothing: no cotangent ever reaches an operand. */
const fth_op fth__op_index = {.name = "index",
                              .brief = "global index along an axis",
                              .flags = FTH_OP_CHEAP | FTH_OP_FREE_AXES,
                              .infer = infer,
                              .run = run};

fth_val fth_index_(fth_graph *g, fth_site site, const char *axis)
{
    fth_axis_id id[FTH_MAX_AXES];
    int n;
    fth_err err = {0};
    if (!g) return (fth_val){0};
    if (fth_axes_parse(g, axis, &n, id, &err) != FTH_OK) return fth__graph_fail(g, site, &err);
    if (n != 1)
        return fth_poison_(g, site, FTH_E_AXIS_NAME, "index takes one axis, but \"%s\" names %d",
                           axis, n);
    return fth_node_add_(g, site, &fth__op_index, 0, NULL, id, sizeof id[0]);
}
