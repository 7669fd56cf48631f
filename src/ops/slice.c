/* slice.c - part of an axis, under a new name, from a given element on. */
#include "base/assert.h"
#include "ops/build.h"
#include "ops/move.h"

static int dim_of(const fth_node *node)
{
    const fth__slice_attr *attr = node->attr;
    return fth_desc_find(&node->in[0], attr->axis);
}

static fth_status infer(fth_node *node, fth_err *err)
{
    const fth__slice_attr *attr = node->attr;
    fth_desc d = node->in[0];
    int dim;
    FTH_TRY(fth__need_axis(node, 0, attr->axis, &dim, err));
    const int64_t size = d.size[dim], n = fth__size_of(node->graph, attr->into);
    FTH_TRY(fth__replace_axis(node, 0, &d, dim, attr->into, err));
    if (attr->from < 0 || n > size || attr->from > size - n) {
        char a[FTH__SHAPE_TEXT];
        const fth_status s =
            FTH_FAIL(err, FTH_E_GRAPH_ATTR,
                     "slice: %lld elements ('%s') from element %lld on are not all in '%s' of %s",
                     (long long)n, fth__name_of(node, attr->into), (long long)attr->from,
                     fth__name_of(node, attr->axis), fth_in_format(node, 0, a, sizeof a));
        fth_err_hint(err, "the axis has %lld elements", (long long)size);
        return s;
    }
    node->n_out = 1;
    node->out[0] = d;
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    const fth__slice_attr *attr = node->attr;
    (void)in;
    if (dim == dim_of(node))
        fth__rel_halo(out, dim, 1, 1, -attr->from, attr->from);
    else
        fth__rel_same(out, dim);
}

static fth_status run(const fth_call *call)
{
    const fth__slice_attr *attr = call->node->attr;
    const int dim = dim_of(call->node);
    fth__move m;
    fth__move_init(&m, call, 0, 0);
    FTH_ASSERT(fth__tile_covers(&call->in[0], dim, &call->out[0], dim, attr->from));
    for (int i = 0; i < m.n; i++) fth__move_follow(&m, call, 0, i, 0, i, i == dim ? attr->from : 0);
    fth__move_run(&m);
    return FTH_OK;
}

static fth_status vjp(const fth_node *node, const fth_val *out_bar, fth_val *in_bar, fth_err *err)
{
    const fth__slice_attr *attr = node->attr;
    (void)err;
    in_bar[0] = fth_pad_(node->site, out_bar[0], fth_axis_name(node->graph, attr->into), attr->from,
                         fth_axis_name(node->graph, attr->axis), 0.0);
    return FTH_OK;
}

const fth_op fth__op_slice = {.name = "slice",
                              .brief = "part of an axis",
                              .flags = FTH_OP_CHEAP,
                              .infer = infer,
                              .relation = relation,
                              .vjp = vjp,
                              .run = run};

fth_val fth_slice_(fth_site site, fth_val v, const char *axis, int64_t from, const char *into)
{
    fth__slice_attr attr = {.from = from};
    if (!fth__build_axis(v, site, "slice", axis, &attr.axis)) return fth__poison(v);
    if (!fth__build_axis(v, site, "slice", into, &attr.into)) return fth__poison(v);
    return fth_node_add_(v.graph, site, &fth__op_slice, 1, &v, &attr, sizeof attr);
}
