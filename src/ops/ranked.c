/* ranked.c - elements at given places of the sorted order along an axis, and where they stand.
 *
 * The order is that of fth_sort, ascending; quantiles are made of it. The plain loop sorts.
 */
#include "ops/ranked_walk.h"

#include "ops/build.h"
#include "ops/order.h"

static int dim_of(const fth_node *node)
{
    return fth_desc_find(&node->in[0], ((const fth__ranked_attr *)node->attr)->axis);
}

static fth_status infer(fth_node *node, fth_err *err)
{
    const fth__ranked_attr *attr = node->attr;
    fth_desc d = node->in[0];
    int dim;
    FTH_TRY(fth__need_axis(node, 0, attr->axis, &dim, err));
    if (fth_dtype_is_complex(d.dtype))
        return fth__fail_dtype(node, 0, "bool, integers and reals", err);
    for (int r = 0; r < attr->n; r++) FTH_ASSERT(attr->rank[r] >= 0 && attr->rank[r] < d.size[dim]);
    fth_desc_drop(&d, dim);
    node->n_out = 2 * attr->n;
    for (int r = 0; r < attr->n; r++) {
        node->out[r] = node->out[attr->n + r] = d;
        node->out[attr->n + r].dtype = FTH_I64;
    }
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    const int ordered = dim_of(node);
    (void)in;
    if (dim == ordered)
        fth__rel_whole(out);
    else
        fth__rel_same(out, dim < ordered ? dim : dim - 1);
}

static uint64_t scratch(const fth_call *call)
{
    return 2 * sizeof(fth__keyed) * (uint64_t)call->in[0].extent[dim_of(call->node)];
}

static fth_status run(const fth_call *call)
{
    const fth_dtype t = call->node->in[0].dtype;
    fth__ranked_walk w;
    fth__ranked_init(&w, call);
    fth__keyed *a = call->scratch, *b = a + w.n;
    for (bool more = fth__loop_start(&w.loop); more; more = fth__loop_next(&w.loop)) {
        const char *line = w.in + w.loop.at[0];
        for (int64_t i = 0; i < w.n; i++)
            a[i] = (fth__keyed){fth__order_key(t, line + i * w.step, false), i};
        const fth__keyed *sorted = fth__order_sort(a, b, w.n);
        for (int r = 0; r < w.attr->n; r++) {
            const int64_t from = sorted[w.attr->rank[r]].index;
            fth__ranked_put(call, &w, w.loop.index, r, line + from * w.step, from);
        }
    }
    return FTH_OK;
}

static fth_status vjp(const fth_node *node, const fth_val *out_bar, fth_val *in_bar, fth_err *err)
{
    const fth__ranked_attr *attr = node->attr;
    (void)err;
    for (int r = 0; r < attr->n; r++) {
        if (!fth_val_ok(out_bar[r])) continue;
        const fth_val place = fth__narrow_positions(node->site, node->out_val[attr->n + r],
                                                    fth__size_of(node->graph, attr->axis), true);
        const fth_val at = fth__at_position(node->site, place, attr->axis, &node->in[0]);
        const fth_val bar = fth__keep_where(node->site, at, out_bar[r], &node->in[0]);
        in_bar[0] = fth_val_ok(in_bar[0]) ? fth__map2(node->site, FTH_EW_ADD, in_bar[0], bar) : bar;
    }
    return FTH_OK;
}

const fth_op fth__op_ranked = {.name = "ranked",
                               .brief = "elements at places of the sorted order along an axis",
                               .infer = infer,
                               .relation = relation,
                               .scratch = scratch,
                               .flops = fth__flops_in0,
                               .vjp = vjp,
                               .run = run};

fth_val fth__ranked(fth_site site, fth_val v, const char *axis, int n, const int64_t *rank)
{
    fth__ranked_attr attr = {.n = n};
    FTH_ASSERT(n > 0 && n <= FTH__RANKS);
    if (!fth__build_axis(v, site, "ranked", axis, &attr.axis)) return fth__poison(v);
    for (int r = 0; r < n; r++) attr.rank[r] = rank[r];
    return fth_node_add_(v.graph, site, &fth__op_ranked, 1, &v, &attr, sizeof attr);
}
