/* topk.c - the best elements of short lines, by the network that sorts several of them at once
 * (sort.h). Long lines and few go to the loop of the operation, which most elements leave at once.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "cpu/sort.h"
#include "ops/loop.h"
#include "ops/ops.h"

static int dim_of(const fth_node *node)
{
    return fth_desc_find(&node->in[0], ((const fth__topk_attr *)node->attr)->axis);
}

static bool supports(const fth_node *node)
{
    return node->in[0].size[dim_of(node)] <= FTH__SORT_FEW;
}

static bool in_groups(const fth_call *call, int dim)
{
    int64_t lines = 1;
    for (int i = 0; i < call->node->in[0].n_axes; i++)
        if (i != dim) lines *= call->out[0].extent[i];
    return fth__sort_fits(call->in[0].extent[dim], fth_dtype_size(call->node->in[0].dtype), lines);
}

static uint64_t scratch(const fth_call *call)
{
    const int dim = dim_of(call->node);
    if (!in_groups(call, dim)) return call->node->op->scratch(call);
    return fth__sort_room(call->in[0].extent[dim], fth_dtype_size(call->node->in[0].dtype));
}

static fth_status run(const fth_call *call)
{
    const fth_node *node = call->node;
    const fth_tile *in = &call->in[0], *out = &call->out[0], *order = &call->out[1];
    const int dim = dim_of(node);
    const int64_t size = fth_dtype_size(node->in[0].dtype), word = sizeof(int64_t);
    if (!in_groups(call, dim)) return node->op->run(call);
    fth__sort_group g = {.n = in->extent[dim],
                         .puts = out->extent[dim],
                         .step = in->stride[dim] * size,
                         .value_step = out->stride[dim] * size,
                         .order_step = order->stride[dim] * word,
                         .dtype = node->in[0].dtype,
                         .descending = ((const fth__topk_attr *)node->attr)->largest != 0,
                         .wants_value = out->data != NULL,
                         .wants_order = order->data != NULL,
                         .scratch = call->scratch};
    FTH_ASSERT(g.n == node->in[0].size[dim]); /* lines are there whole */
    if (g.puts == 0 || (!out->data && !order->data)) return FTH_OK;
    const char *base = in->data;
    fth__loop l = {0};
    for (int i = 0; i < node->in[0].n_axes; i++) {
        if (i == dim) continue;
        base += (out->origin[i] - in->origin[i]) * in->stride[i] * size;
        fth__loop_add(&l, out->extent[i], in->stride[i] * size, out->stride[i] * size,
                      order->stride[i] * word, 0);
    }
    for (bool more = fth__loop_start(&l); more;) {
        g.line[g.lines] = base + l.at[0];
        g.value[g.lines] = out->data ? (char *)out->data + l.at[1] : NULL;
        g.order[g.lines] = order->data ? (char *)order->data + l.at[2] : NULL;
        more = fth__loop_next(&l);
        if (++g.lines < FTH__SORT_LINES && more) continue;
        FTH_ISA_BEST(fth__sort_loops)->group(&g);
        g.lines = 0;
    }
    return FTH_OK;
}

const fth_kernel fth__cpu_topk = {
    .op = "topk", .supports = supports, .scratch = scratch, .run = run};
