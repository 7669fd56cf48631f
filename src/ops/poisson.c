/* poisson.c - one Poisson draw per element, as a function of where the element stands. */
#include "ops/poisson.h"

#include "ops/build.h"
#include "ops/loop.h"
#include "ops/misfit.h"

static fth_status infer(fth_node *node, fth_err *err)
{
    if (node->in[0].dtype != FTH_F32 && node->in[0].dtype != FTH_F64)
        return fth__fail_dtype(node, 0, "f32 and f64", err);
    FTH_TRY(fth__random_check(node, 1, 2, err));
    node->n_out = 1;
    node->out[0] = node->in[0];
    node->out[0].dtype = FTH_I64;
    fth__unmark(&node->out[0]);
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    (void)node, (void)in;
    fth__rel_same(out, dim);
}

static fth_status run(const fth_call *call)
{
    const fth__poisson_attr *attr = call->node->attr;
    const fth_desc *d = &call->node->in[0];
    const fth_tile *in = &call->in[0], *out = &call->out[0];
    uint64_t step[FTH_MAX_AXES];
    fth__random_steps(d, step);
    const uint64_t first = fth__random_first(d, out, step);
    const fth__random_key key = fth__random_call_key(&call->in[1], &call->in[2], attr->stream);
    fth__loop l = {0};
    for (int k = 0; k < d->n_axes; k++)
        fth__loop_add(&l, out->extent[k], in->stride[k], out->stride[k], (int64_t)step[k], 0);
    for (bool more = fth__loop_start(&l); more; more = fth__loop_next(&l)) {
        const double rate = d->dtype == FTH_F32 ? (double)((const float *)in->data)[l.at[0]]
                                                : ((const double *)in->data)[l.at[0]];
        const uint64_t index = first + (uint64_t)l.at[2];
        int64_t *to = (int64_t *)out->data + l.at[1];
        if (!fth__poisson_is_rate(rate))
            return fth__misfit_rate(call->node, fth__misfit_place(d, in, l.index), rate, call->err);
        *to = fth__poisson_draw(rate, &key, index);
    }
    return FTH_OK;
}

static double flops(const fth_call *call)
{
    double n =
        200.0; /* of one draw: ten rounds of Philox, logarithms; an estimate for the planner */
    for (int k = 0; k < call->node->out[0].n_axes; k++) n *= (double)call->out[0].extent[k];
    return n;
}

/* The result is whole numbers: nothing flows back to the rate. */
static fth_status vjp(const fth_node *node, const fth_val *out_bar, fth_val *in_bar, fth_err *err)
{
    (void)node, (void)out_bar, (void)in_bar, (void)err;
    return FTH_OK;
}

const fth_op fth__op_poisson = {.name = "poisson",
                                .brief = "one Poisson draw per rate",
                                .flags = FTH_OP_MAY_FAIL,
                                .infer = infer,
                                .relation = relation,
                                .flops = flops,
                                .vjp = vjp,
                                .run = run};

fth_val fth_poisson_(fth_site site, fth_val rate, fth_val seed, fth_val iteration, int64_t stream)
{
    const fth__poisson_attr attr = {stream};
    const fth_val in[3] = {rate, seed, iteration};
    return fth_node_add_(rate.graph, site, &fth__op_poisson, 3, in, &attr, sizeof attr);
}
