/* misfit.c - see misfit.h. */
#include "misfit.h"

#include <math.h>

static fth_status infer(fth_node *node, fth_err *err)
{
    return fth_infer_like(node, FTH_F32, 1, err);
}

/* Both tiles are the same piece of the axis. */
static fth_status run(const fth_call *call)
{
    const so_misfit *a = call->node->attr;
    const float *r = call->in[0].data;
    float *out = call->out[0].data;
    for (int64_t i = 0; i < call->out[0].extent[0]; i++) out[i] = SO_MISFIT(r[i], a->limit);
    return FTH_OK;
}

/* f'(r) is 2 r, cut off at 2 d: a graph, so that it runs wherever the engine does. */
static fth_status vjp(const fth_node *node, const fth_val *out_bar, fth_val *in_bar, fth_err *err)
{
    const double d = (double)((const so_misfit *)node->attr)->limit;
    const fth_val most = fth_const(node->graph, FTH_F32, d);
    const fth_val cut = fth_max(fth_min(node->in_val[0], most), fth_neg(most));
    (void)err;
    in_bar[0] = fth_mul(out_bar[0], fth_add(cut, cut));
    return FTH_OK;
}

const fth_op so_misfit_op = {
    .name = "sounding_misfit",
    .brief = "squares, linear beyond a limit (Huber's loss)",
    .infer = infer,
    .relation = fth_relation_same,
    .vjp = vjp,
    .run = run,
};
