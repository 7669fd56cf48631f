/* group_steps.c - see group_steps.h: for each gene of each group, the plain loop. */
#include "group_steps.h"

#include "../local/local_op.h"

#include <string.h>

static fth_status infer(fth_node *node, fth_err *err)
{
    for (int in = SP_STEPS_W; in <= SP_STEPS_FF; in++)
        FTH_TRY(sp_local_need(node, in, FTH_F64, 3, err));
    FTH_TRY(sp_local_need(node, SP_STEPS_N, FTH_I64, 1, err));
    for (int in = SP_STEPS_BEFORE; in <= SP_STEPS_YF; in++)
        for (int d = 0; d < 3; d++) FTH_TRY(sp_local_like(node, in, d, SP_STEPS_W, d, err));
    FTH_TRY(sp_local_like(node, SP_STEPS_FF, 0, SP_STEPS_W, 0, err));
    FTH_TRY(sp_local_like(node, SP_STEPS_FF, 1, SP_STEPS_W, 2, err));
    FTH_TRY(sp_local_like(node, SP_STEPS_N, 0, SP_STEPS_W, 0, err));
    const int64_t factors = node->in[SP_STEPS_W].size[2], other = node->in[SP_STEPS_FF].size[2];
    if (other != factors)
        return FTH_FAIL(err, FTH_E_AXIS_SIZE,
                        "%s: products of %lld and %lld factors, expected %lld", node->op->name,
                        (long long)factors, (long long)other, (long long)factors);
    node->n_out = 2;
    node->out[0] = node->out[1] = node->in[SP_STEPS_W];
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    (void)node;
    *out = (fth_relation){.along = FTH_WHOLE, .out_dim = -1};
    if (dim == 0 || (dim == 1 && in <= SP_STEPS_YF))
        *out = (fth_relation){.along = FTH_SAME, .out_dim = dim};
}

/* A row, and its update. */
static uint64_t scratch(const fth_call *call)
{
    return 2 * sizeof(double) * (uint64_t)call->node->in[SP_STEPS_W].size[2];
}

static double flops(const fth_call *call)
{
    const int64_t *n = call->out[0].extent, factors = call->node->in[SP_STEPS_W].size[2];
    return 100.0 * 2.0 * (double)(n[0] * n[1]) * (double)(factors * factors);
}

static void step(const double *now, const fth_call *call, int64_t g, int64_t d, double *next)
{
    const fth_tile *yf = &call->in[SP_STEPS_YF], *ff = &call->in[SP_STEPS_FF];
    const int64_t L = call->node->in[SP_STEPS_W].size[2];
    for (int64_t l = 0; l < L; l++) {
        double below = 0;
        for (int64_t k = 0; k < L; k++)
            below += now[k] * ((const double *)ff->data)[sp_at3(ff, g, l, k)];
        next[l] = now[l] * ((const double *)yf->data)[sp_at3(yf, g, d, l)] / (below + 1e-8);
    }
}

static void put_row(const fth_tile *out, int64_t g, int64_t d, const double *row, int64_t L)
{
    for (int64_t l = 0; out->data && l < L; l++)
        ((double *)out->data)[sp_at3(out, g, d, l)] = row[l];
}

static void run_row(const fth_call *call, int64_t g, int64_t d, int64_t n)
{
    const int64_t L = call->node->in[SP_STEPS_W].size[2];
    const fth_tile *w = &call->in[SP_STEPS_W], *b = &call->in[SP_STEPS_BEFORE];
    double *now = call->scratch, *then = now + L;
    for (int64_t l = 0; l < L; l++) {
        now[l] = ((const double *)w->data)[sp_at3(w, g, d, l)];
        then[l] = ((const double *)b->data)[sp_at3(b, g, d, l)];
    }
    for (int64_t s = 0; s < n; s++) {
        step(now, call, g, d, then);
        double *const keep = now; /* swap the buffers */
        now = then;
        then = keep;
    }
    put_row(&call->out[0], g, d, now, L);
    put_row(&call->out[1], g, d, then, L);
}

static fth_status run(const fth_call *call)
{
    const fth_tile *out = &call->out[0], *n = &call->in[SP_STEPS_N];
    for (int64_t g = out->origin[0]; g < out->origin[0] + out->extent[0]; g++)
        for (int64_t d = out->origin[1]; d < out->origin[1] + out->extent[1]; d++)
            run_row(call, g, d, ((const int64_t *)n->data)[sp_at1(n, g)]);
    return FTH_OK;
}

static const fth_op group_steps = {
    .name = "spatial_group_steps",
    .brief = "iterations of the loadings of groups",
    .infer = infer,
    .relation = relation,
    .scratch = scratch,
    .flops = flops,
    .run = run,
};

fth_val sp_group_steps_(fth_site site, const fth_val in[SP_STEPS_INPUTS])
{
    return fth_node_add_(in[0].graph, site, &group_steps, SP_STEPS_INPUTS, in, NULL, 0);
}
