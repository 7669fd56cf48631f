/* stack.c - values of the same axes along a new one, the outermost: row i of the result is value i.
 */
#include "base/assert.h"
#include "ops/build.h"
#include "ops/move.h"

static fth_status check_operand(const fth_node *node, int i, fth_err *err)
{
    char a[FTH__SHAPE_TEXT], b[FTH__SHAPE_TEXT];
    const fth_desc *first = &node->in[0], *in = &node->in[i];
    if (in->dtype != first->dtype)
        return FTH_FAIL(err, FTH_E_DTYPE, "stack: %s and %s have different dtypes",
                        fth_in_format(node, 0, a, sizeof a), fth_in_format(node, i, b, sizeof b));
    bool same = in->n_axes == first->n_axes;
    for (int k = 0; same && k < in->n_axes; k++) same = in->axis[k] == first->axis[k];
    if (same) return FTH_OK;
    const fth_status s =
        FTH_FAIL(err, FTH_E_AXIS_MISMATCH, "stack: %s and %s have different axes",
                 fth_in_format(node, 0, a, sizeof a), fth_in_format(node, i, b, sizeof b));
    fth_err_hint(err, "expand or rename so that all have the same axes");
    return s;
}

static fth_status infer(fth_node *node, fth_err *err)
{
    const fth__axis_attr *attr = node->attr;
    char a[FTH__SHAPE_TEXT];
    const fth_desc *in = &node->in[0];
    const int64_t size = fth__size_of(node->graph, attr->axis);
    if (fth_desc_find(in, attr->axis) >= 0)
        return FTH_FAIL(err, FTH_E_AXIS_MISMATCH, "stack: %s has axis '%s' already",
                        fth_in_format(node, 0, a, sizeof a), fth__name_of(node, attr->axis));
    if (in->n_axes == FTH_MAX_AXES)
        return FTH_FAIL(err, FTH_E_AXIS_LIMIT, "stack: %s has %d axes, the most there can be",
                        fth_in_format(node, 0, a, sizeof a), in->n_axes);
    if (size != node->n_in) {
        const fth_status s =
            FTH_FAIL(err, FTH_E_AXIS_SIZE, "stack: %d values along '%s', which has %lld elements",
                     node->n_in, fth__name_of(node, attr->axis), (long long)size);
        fth_err_hint(err, "declare '%s' with the number of values", fth__name_of(node, attr->axis));
        return s;
    }
    for (int i = 1; i < node->n_in; i++) FTH_TRY(check_operand(node, i, err));
    fth_desc d = {.dtype = in->dtype, .n_axes = in->n_axes + 1};
    d.axis[0] = attr->axis;
    d.size[0] = size;
    for (int k = 0; k < in->n_axes; k++) {
        d.axis[k + 1] = in->axis[k];
        d.size[k + 1] = in->size[k];
    }
    node->n_out = 1;
    node->out[0] = d;
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    (void)node, (void)in;
    fth__rel_same(out, dim + 1);
}

static fth_status run(const fth_call *call)
{
    const fth_tile *out = &call->out[0];
    for (int i = 0; i < call->node->n_in; i++) {
        fth__move m;
        fth__move_init(&m, call, i, 0);
        for (int k = 1; k < m.n; k++) fth__move_follow(&m, call, i, k - 1, 0, k, 0);
        int64_t origin = out->origin[0];
        fth__move_clip(&m, 0, &origin, i, i + 1);
        fth__move_run(&m);
    }
    return FTH_OK;
}

static fth_status vjp(const fth_node *node, const fth_val *out_bar, fth_val *in_bar, fth_err *err)
{
    const fth__axis_attr *attr = node->attr;
    const char *axis = fth_axis_name(node->graph, attr->axis);
    (void)err;
    for (int i = 0; i < node->n_in; i++)
        in_bar[i] = fth_gather_(node->site, out_bar[0], axis,
                                fth_const_i64_(node->graph, node->site, FTH_I64, i));
    return FTH_OK;
}

const fth_op fth__op_stack = {.name = "stack",
                              .brief = "values of the same axes along a new one",
                              .flags = FTH_OP_CHEAP | FTH_OP_FREE_AXES,
                              .infer = infer,
                              .relation = relation,
                              .vjp = vjp,
                              .run = run};

fth_val fth_stack_(fth_site site, int n, const fth_val *v, const char *axis)
{
    fth__axis_attr attr = {0};
    fth_val in[FTH__CONCAT_MOST];
    char order[FTH__AXES_TEXT];
    if (n < 1 || !v) return (fth_val){0};
    if (!fth_val_ok(v[0])) return fth__poison(v[0]);
    if (n > FTH__CONCAT_MOST)
        return fth_poison_(v[0].graph, site, FTH_E_GRAPH_ATTR,
                           "stack: %d values, at most %d at a time; stack groups and join them", n,
                           FTH__CONCAT_MOST);
    if (!fth__build_axis(v[0], site, "stack", axis, &attr.axis)) return fth__poison(v[0]);
    const fth_desc *first = fth__val_desc(v[0]);
    for (int i = 0; i < n; i++) {
        in[i] = v[i];
        if (!fth_val_ok(v[i]) || v[i].graph != v[0].graph) continue;
        const fth_desc *d = fth__val_desc(v[i]);
        bool same = d->n_axes == first->n_axes; /* infer refuses others with both shapes */
        for (int k = 0; same && k < d->n_axes; k++) same = fth_desc_find(d, first->axis[k]) >= 0;
        if (same)
            in[i] = fth_layout_(site, v[i], fth__desc_axes(v[0].graph, first, order, sizeof order));
    }
    return fth_node_add_(v[0].graph, site, &fth__op_stack, n, in, &attr, sizeof attr);
}
