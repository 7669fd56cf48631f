/* said.c - what an operation says of itself is the same whenever it is asked. */
#include "trial/check.h"

#include "mem/heap.h"

#include <string.h>

static bool same_relation(const fth_relation *a, const fth_relation *b)
{
    const bool follows = a->along != FTH_ACCUMULATE && a->along != FTH_WHOLE;
    if (a->along != b->along || (follows && a->out_dim != b->out_dim)) return false;
    if (a->along == FTH_HALO)
        return a->mul == b->mul && a->div == b->div && a->lo == b->lo && a->hi == b->hi;
    if (a->along == FTH_SPREAD || a->along == FTH_COLLECT)
        return a->row_ptr == b->row_ptr && a->rows == b->rows;
    return true;
}

/* infer on a copy of the node whose outputs are garbage. */
static fth_status ask_infer(const fth_node *node, fth_desc *out, fth_err *err)
{
    fth_node again = *node;
    fth_err own = {0};
    memset(out, 0x5A, FTH_MAX_OUT * sizeof *out);
    for (int k = 0; k < FTH_MAX_OUT; k++) out[k].triangle = FTH_FULL;
    again.out = out;
    again.n_out = 0;
    if (node->op->infer(&again, &own) != FTH_OK)
        return FTH_FAIL(err, FTH_E_GRAPH_PROMISE,
                        "operation '%.40s': infer refuses what it accepted before: %.300s",
                        node->op->name, own.text);
    bool same = again.n_out == node->n_out;
    int k = 0;
    for (; same && k < node->n_out; k++) same = fth__desc_same(&out[k], &node->out[k]);
    if (same) return FTH_OK;
    return FTH_FAIL(err, FTH_E_GRAPH_PROMISE,
                    "operation '%.40s': infer gives other outputs when asked again (output %d of "
                    "%d, %d before): what it says may follow from operands and attributes alone",
                    node->op->name, k ? k - 1 : 0, again.n_out, node->n_out);
}

static fth_status ask_axis(const fth_node *node, int in, int d, fth_err *err)
{
    const fth_op *op = node->op;
    const fth_relation a = fth__check_relation(node, in, d), b = fth__check_relation(node, in, d);
    const char *axis = fth_axis_name(node->graph, node->in[in].axis[d]);
    if (!same_relation(&a, &b))
        return FTH_FAIL(err, FTH_E_GRAPH_PROMISE,
                        "operation '%.40s': relation says something else of axis '%s' of input %d "
                        "when asked again",
                        op->name, axis, in);
    if (op->grid && op->grid(node, in, d) != op->grid(node, in, d))
        return FTH_FAIL(err, FTH_E_GRAPH_PROMISE,
                        "operation '%.40s': grid says something else of axis '%s' of input %d when "
                        "asked again",
                        op->name, axis, in);
    return FTH_OK;
}

fth_status fth__check_said(const fth_node *node, fth_mem *mem, fth_err *err)
{
    const fth_op *op = node->op;
    fth_desc *out = fth__heap_alloc(mem, FTH_MAX_OUT * sizeof *out);
    if (!out) return FTH_FAIL(err, FTH_E_NOMEM, "the check of '%.40s'", op->name);
    fth_status s = ask_infer(node, out, err);
    fth__heap_free(mem, out);
    FTH_TRY(s);
    for (int i = 0; i < node->n_in; i++)
        for (int d = 0; d < node->in[i].n_axes; d++) FTH_TRY(ask_axis(node, i, d, err));
    for (int k = 0; k < node->n_out; k++) {
        const uint64_t bytes = fth__node_state(node, k);
        if (bytes != fth__node_state(node, k))
            return FTH_FAIL(err, FTH_E_GRAPH_PROMISE,
                            "operation '%.40s': state says something else of output %d when asked "
                            "again",
                            op->name, k);
    }
    return FTH_OK;
}
