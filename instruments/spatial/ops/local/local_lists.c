/* local_lists.c - the contributions of a batch to training cells: the lists, and the operation that
 * checks them.
 *
 * Lists determine which memory the gradient reads, so they must be valid. The check is a separate
 * operation that runs before anything changes; its output, true, orders the scatter after it.
 */
#include "local_op.h"

#include "local_lists.h"

#include <string.h>

void sp_local_touch_lists(int32_t *ptr, int32_t *items, int64_t cells, const int64_t *idx,
                          int64_t n, const int32_t *nbr, int64_t k)
{
    memset(ptr, 0, sizeof *ptr * (size_t)(cells + 1));
    for (int64_t t = 0; t < n; t++) {
        for (int64_t j = 0; j < k; j++) ptr[nbr[idx[t] * k + j]]++;
        ptr[idx[t]]++;
    }
    int32_t sum = 0; /* ptr[i] is first the end of row i and is decremented to its start */
    for (int64_t i = 0; i <= cells; i++) ptr[i] = sum += ptr[i];
    for (int64_t t = n - 1; t >= 0; t--) {
        items[--ptr[idx[t]]] = (int32_t)(t * (k + 1) + k);
        for (int64_t j = k - 1; j >= 0; j--)
            items[--ptr[nbr[idx[t] * k + j]]] = (int32_t)(t * (k + 1) + j);
    }
}

static fth_status infer(fth_node *node, fth_err *err)
{
    FTH_TRY(sp_local_need(node, PTR, FTH_I32, 1, err));
    FTH_TRY(sp_local_need(node, ITEMS, FTH_I32, 1, err));
    const int64_t places = ((const attr *)node->attr)->places;
    if (node->in[PTR].size[0] < 1 || node->in[ITEMS].size[0] < places)
        return FTH_FAIL(
            err, FTH_E_AXIS_SIZE,
            "%s: a batch with %lld places needs lists of 1 and %lld, found %lld and %lld",
            node->op->name, (long long)places, (long long)places, (long long)node->in[PTR].size[0],
            (long long)node->in[ITEMS].size[0]);
    node->n_out = 1;
    node->out[0] = (fth_desc){.dtype = FTH_BOOL};
    return FTH_OK;
}

static double flops(const fth_call *call)
{
    return (double)call->node->in[PTR].size[0] + (double)call->node->in[ITEMS].size[0];
}

static fth_status run(const fth_call *call)
{
    const fth_tile *ptr = &call->in[PTR];
    const int32_t *p = ptr->data, *item = call->in[ITEMS].data;
    const int64_t n = ((const attr *)call->node->attr)->places;
    for (int64_t i = 0; i < ptr->extent[0]; i++)
        if (p[i] < 0 || p[i] > n || (i > 0 && p[i] < p[i - 1]))
            return sp_local_outside(call->node, SP_THE_LIST, i, p[i], n, call->err);
    for (int64_t i = p[0]; i < p[ptr->extent[0] - 1]; i++)
        if (item[i] < 0 || item[i] >= n)
            return sp_local_outside(call->node, SP_AN_ITEM, i, item[i], n, call->err);
    *(bool *)call->out[0].data = true;
    return FTH_OK;
}

static const fth_op lists = {
    .name = "spatial_local_lists",
    .brief = "check of the lists of contributions to cells",
    .flags = FTH_OP_MAY_FAIL,
    .infer = infer,
    .flops = flops,
    .run = run,
};

fth_val sp_local_lists_(fth_site site, const sp_local_touched *t, const sp_local_batch *b)
{
    const fth_val in[INPUTS] = {t->ptr, t->items};
    const attr a = {fth_val_size(b->nbr, 0) * (fth_val_size(b->nbr, 1) + 1)};
    return fth_node_add_(t->ptr.graph, site, &lists, INPUTS, in, &a, sizeof a);
}
