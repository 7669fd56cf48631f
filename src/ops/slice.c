/* slice.c - part of an axis, under a new name: elements at equal distances from a given one on. */
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
    if (attr->step < 1)
        return FTH_FAIL(err, FTH_E_GRAPH_ATTR, "slice: a step of %lld; flip an axis to walk back",
                        (long long)attr->step);
    const bool begins = attr->from >= 0 && attr->from <= size;
    if (!begins ||
        (n > 0 && (size == attr->from || (size - 1 - attr->from) / attr->step < n - 1))) {
        char a[FTH__SHAPE_TEXT], every[48] = "";
        if (attr->step > 1)
            snprintf(every, sizeof every, ", each %lld apart,", (long long)attr->step);
        const fth_status s =
            FTH_FAIL(err, FTH_E_GRAPH_ATTR,
                     "slice: %lld elements ('%s') from element %lld on%s are not all in '%s' of %s",
                     (long long)n, fth__name_of(node, attr->into), (long long)attr->from, every,
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
        fth__rel_halo(out, dim, attr->step, 1, -attr->from, attr->from + 1 - attr->step);
    else
        fth__rel_same(out, dim);
}

static fth_status run(const fth_call *call)
{
    const fth__slice_attr *attr = call->node->attr;
    const int dim = dim_of(call->node);
    fth__move m;
    fth__move_init(&m, call, 0, 0);
    FTH_ASSERT(attr->step > 1 ||
               fth__tile_covers(&call->in[0], dim, &call->out[0], dim, attr->from));
    for (int i = 0; i < m.n; i++) fth__move_follow(&m, call, 0, i, 0, i, i == dim ? attr->from : 0);
    fth__move_stretch(&m, call, dim, attr->step);
    fth__move_run(&m);
    return FTH_OK;
}

static fth_status vjp(const fth_node *node, const fth_val *out_bar, fth_val *in_bar, fth_err *err)
{
    const fth__slice_attr *attr = node->attr;
    (void)err;
    const fth__pad_attr back = {
        .before = attr->from, .step = attr->step, .axis = attr->into, .into = attr->axis};
    in_bar[0] =
        fth_node_add_(out_bar[0].graph, node->site, &fth__op_pad, 1, out_bar, &back, sizeof back);
    return FTH_OK;
}

const fth_op fth__op_slice = {.name = "slice",
                              .brief = "part of an axis",
                              .flags = FTH_OP_CHEAP,
                              .infer = infer,
                              .relation = relation,
                              .vjp = vjp,
                              .run = run};

fth_val fth_slice_step_(fth_site site, fth_val v, const char *axis, int64_t from, int64_t step,
                        const char *into)
{
    fth__slice_attr attr = {.from = from, .step = step};
    if (!fth__build_axis(v, site, "slice", axis, &attr.axis)) return fth__poison(v);
    if (!fth__build_axis(v, site, "slice", into, &attr.into)) return fth__poison(v);
    return fth_node_add_(v.graph, site, &fth__op_slice, 1, &v, &attr, sizeof attr);
}

fth_val fth_slice_(fth_site site, fth_val v, const char *axis, int64_t from, const char *into)
{
    return fth_slice_step_(site, v, axis, from, 1, into);
}
