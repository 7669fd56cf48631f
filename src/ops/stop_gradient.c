/* stop_gradient.c - a value through which no gradient flows back; no bytes, no work. */
#include "ops/build.h"
#include "ops/move.h"

static fth_status infer(fth_node *node, fth_err *err)
{
    (void)err;
    node->n_out = 1;
    node->out[0] = node->in[0];
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    (void)node, (void)in;
    fth__rel_same(out, dim);
}

static fth_status run(const fth_call *call)
{
    int to[FTH_MAX_AXES];
    for (int i = 0; i < call->node->in[0].n_axes; i++) to[i] = i;
    return fth__move_same(call, to);
}

static fth_status vjp(const fth_node *node, const fth_val *out_bar, fth_val *in_bar, fth_err *err)
{
    (void)node, (void)out_bar, (void)in_bar, (void)err;
    return FTH_OK;
}

const fth_op fth__op_stop_gradient = {.name = "stop_gradient",
                                      .brief = "the value, as a constant to gradients",
                                      .flags = FTH_OP_ALIAS | FTH_OP_CHEAP,
                                      .infer = infer,
                                      .relation = relation,
                                      .vjp = vjp,
                                      .run = run};

fth_val fth_stop_gradient_(fth_site site, fth_val v)
{
    if (!fth_val_ok(v)) return fth__poison(v);
    return fth_node_add_(v.graph, site, &fth__op_stop_gradient, 1, &v, NULL, 0);
}
