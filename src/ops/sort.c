/* sort.c - stable sort along an axis, and where each element came from.
 *
 * Elements become keys (ops/order.h), so one merge sort serves every dtype; the values are then
 * taken in the order found, with their own bits (of NaN, of -0).
 */
#include "base/assert.h"
#include "ops/build.h"
#include "ops/loop.h"
#include "ops/order.h"

#include <string.h>

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
    if (fth_dtype_is_complex(d.dtype))
        return fth__fail_dtype(node, 0, "bool, integers and reals", err);
    fth__unmark(&d);
    node->n_out = 2;
    node->out[0] = node->out[1] = d;
    node->out[1].dtype = FTH_I64;
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

static uint64_t scratch(const fth_call *call)
{
    return 2 * sizeof(fth__keyed) * (uint64_t)call->in[0].extent[dim_of(call->node)];
}

static fth_status run(const fth_call *call)
{
    const fth_node *node = call->node;
    const fth__axis_attr *attr = node->attr;
    const fth_dtype t = node->in[0].dtype;
    const fth_tile *in = &call->in[0], *out = &call->out[0], *order = &call->out[1];
    const int dim = dim_of(node);
    const int64_t size = fth_dtype_size(t), n = in->extent[dim], step = in->stride[dim] * size;
    fth__keyed *a = call->scratch, *b = a + n;
    FTH_ASSERT(n == node->in[0].size[dim]); /* lines are there whole */
    const char *base = in->data;
    fth__loop l = {0};
    for (int i = 0; i < node->in[0].n_axes; i++) {
        if (i == dim) continue;
        base += (out->origin[i] - in->origin[i]) * in->stride[i] * size;
        fth__loop_add(&l, out->extent[i], in->stride[i] * size, out->stride[i] * size,
                      order->stride[i] * (int64_t)sizeof(int64_t), 0);
    }
    for (bool more = fth__loop_start(&l); more; more = fth__loop_next(&l)) {
        const char *line = base + l.at[0];
        for (int64_t i = 0; i < n; i++)
            a[i] = (fth__keyed){fth__order_key(t, line + i * step, attr->flag != 0), i};
        const fth__keyed *sorted = fth__order_sort(a, b, n);
        for (int64_t i = 0; out->data && i < n; i++)
            memcpy((char *)out->data + l.at[1] + i * out->stride[dim] * size,
                   line + sorted[i].index * step, (size_t)size);
        for (int64_t i = 0; order->data && i < n; i++)
            ((int64_t *)(void *)((char *)order->data + l.at[2]))[i * order->stride[dim]] =
                sorted[i].index;
    }
    return FTH_OK;
}

static double flops(const fth_call *call)
{
    double levels = 1.0;
    for (int64_t n = call->in[0].extent[dim_of(call->node)]; n > 1; n /= 2) levels += 1.0;
    return levels * fth__flops_in0(call);
}

static fth_status vjp(const fth_node *node, const fth_val *out_bar, fth_val *in_bar, fth_err *err)
{
    const fth__axis_attr *attr = node->attr;
    const char *axis = fth_axis_name(node->graph, attr->axis);
    (void)err;
    const fth_val order = fth__narrow_positions(node->site, node->out_val[1],
                                                fth__size_of(node->graph, attr->axis), false);
    in_bar[0] = fth_scatter_add_(node->site, out_bar[0], axis, order, axis);
    return FTH_OK;
}

const fth_op fth__op_sort = {.name = "sort",
                             .brief = "stable sort along an axis, and the order found",
                             .infer = infer,
                             .relation = relation,
                             .scratch = scratch,
                             .flops = flops,
                             .vjp = vjp,
                             .run = run};

fth_val fth_sort_(fth_site site, fth_val v, const char *axis, bool descending)
{
    fth__axis_attr attr = {.flag = descending};
    if (!fth__build_axis(v, site, "sort", axis, &attr.axis)) return fth__poison(v);
    return fth_node_add_(v.graph, site, &fth__op_sort, 1, &v, &attr, sizeof attr);
}
