/* layout.c - the same axes in another order in memory. Order is layout, not meaning. */
#include "ops/build.h"
#include "ops/move.h"

typedef struct layout_attr {
    int32_t n;
    fth_axis_id axis[FTH_MAX_AXES];
} layout_attr;

static fth_status infer(fth_node *node, fth_err *err)
{
    const layout_attr *attr = node->attr;
    const fth_desc *in = &node->in[0];
    char a[FTH__SHAPE_TEXT], axes[FTH__AXES_TEXT];
    fth_desc d = *in;
    for (int i = 0; i < attr->n; i++) {
        int dim;
        FTH_TRY(fth__need_axis(node, 0, attr->axis[i], &dim, err));
        d.axis[i] = attr->axis[i];
        d.size[i] = in->size[dim];
        if (in->triangle != FTH_FULL && in->row == dim) d.row = i;
        if (in->triangle != FTH_FULL && in->col == dim) d.col = i;
    }
    if (attr->n != in->n_axes) {
        fth__axes_text(node->graph, attr->n, attr->axis, axes, sizeof axes);
        const fth_status s =
            FTH_FAIL(err, FTH_E_AXIS_MISMATCH, "layout: \"%s\" names %d of the axes of %s", axes,
                     attr->n, fth_in_format(node, 0, a, sizeof a));
        fth_err_hint(err, "name each of: %s", fth__desc_axes(node->graph, in, axes, sizeof axes));
        return s;
    }
    node->n_out = 1;
    node->out[0] = d;
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    fth__rel_same(out, fth_desc_find(&node->out[0], node->in[in].axis[dim]));
}

static fth_status run(const fth_call *call)
{
    const fth_node *node = call->node;
    int to[FTH_MAX_AXES];
    for (int i = 0; i < node->in[0].n_axes; i++)
        to[i] = fth_desc_find(&node->out[0], node->in[0].axis[i]);
    return fth__move_same(call, to);
}

static fth_status vjp(const fth_node *node, const fth_val *out_bar, fth_val *in_bar, fth_err *err)
{
    char axes[FTH__AXES_TEXT];
    (void)err;
    fth__desc_axes(node->graph, &node->in[0], axes, sizeof axes);
    in_bar[0] = fth_layout_(node->site, out_bar[0], axes);
    return FTH_OK;
}

const fth_op fth__op_layout = {.name = "layout",
                               .brief = "the same axes in another order in memory",
                               .flags = FTH_OP_CHEAP,
                               .infer = infer,
                               .relation = relation,
                               .vjp = vjp,
                               .run = run};

fth_val fth_layout_(fth_site site, fth_val v, const char *axes)
{
    layout_attr attr = {0};
    if (!fth__build_axes(v, site, axes, &attr.n, attr.axis)) return fth__poison(v);
    const fth_desc *d = fth__val_desc(v);
    bool same = attr.n == d->n_axes;
    for (int i = 0; same && i < attr.n; i++) same = attr.axis[i] == d->axis[i];
    if (same) return v;
    return fth_node_add_(v.graph, site, &fth__op_layout, 1, &v, &attr, sizeof attr);
}
