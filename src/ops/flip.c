/* flip.c - an axis backwards. */
#include "base/assert.h"
#include "ops/build.h"
#include "ops/move.h"

static int dim_of(const fth_node *node)
{
    const fth__axis_attr *attr = node->attr;
    return fth_desc_find(&node->in[0], attr->axis);
}

static fth_status infer(fth_node *node, fth_err *err)
{
    const fth__axis_attr *attr = node->attr;
    fth_desc d = node->in[0];
    int dim;
    FTH_TRY(fth__need_axis(node, 0, attr->axis, &dim, err));
    if (d.triangle != FTH_FULL && (d.row == dim || d.col == dim)) fth__unmark(&d);
    node->n_out = 1;
    node->out[0] = d;
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    (void)in;
    if (dim == dim_of(node))
        fth__rel_whole(out);
    else
        fth__rel_same(out, dim);
}

static fth_status run(const fth_call *call)
{
    const fth_tile *in = &call->in[0];
    const int dim = dim_of(call->node);
    fth__move m;
    fth__move_init(&m, call, 0, 0);
    for (int i = 0; i < m.n; i++)
        if (i != dim) fth__move_follow(&m, call, 0, i, 0, i, 0);
    FTH_ASSERT(in->extent[dim] == call->node->in[0].size[dim]); /* the axis is there whole */
    m.src_step[dim] = -in->stride[dim] * m.size;
    m.src += (in->extent[dim] - 1 - call->out[0].origin[dim]) * in->stride[dim] * m.size;
    fth__move_run(&m);
    return FTH_OK;
}

static fth_status vjp(const fth_node *node, const fth_val *out_bar, fth_val *in_bar, fth_err *err)
{
    const fth__axis_attr *attr = node->attr;
    (void)err;
    in_bar[0] = fth_flip_(node->site, out_bar[0], fth_axis_name(node->graph, attr->axis));
    return FTH_OK;
}

const fth_op fth__op_flip = {.name = "flip",
                             .brief = "an axis backwards",
                             .flags = FTH_OP_CHEAP,
                             .infer = infer,
                             .relation = relation,
                             .vjp = vjp,
                             .run = run};

fth_val fth_flip_(fth_site site, fth_val v, const char *axis)
{
    fth__axis_attr attr = {0};
    if (!fth__build_axis(v, site, "flip", axis, &attr.axis)) return fth__poison(v);
    return fth_node_add_(v.graph, site, &fth__op_flip, 1, &v, &attr, sizeof attr);
}
