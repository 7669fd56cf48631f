/* local_slopes.c - the operation that turns slopes of conditional weights in ln lengthscale into
 * those of the divergence of each cell (model 19.6). */
#include "local_slopes.h"
#include "local_op.h"

static fth_status infer(fth_node *node, fth_err *err)
{
    const fth_dtype real = node->in[LAM].dtype;
    FTH_TRY(sp_local_real(node, real, err));
    FTH_TRY(sp_local_need(node, NBR, FTH_I32, 2, err));
    FTH_TRY(sp_local_need(node, LAM, real, 3, err));
    FTH_TRY(sp_local_need(node, MU, real, 2, err));
    FTH_TRY(sp_local_like(node, MU, 0, LAM, 0, err));
    FTH_TRY(sp_local_like(node, MU, 1, LAM, 1, err));
    FTH_TRY(sp_local_need(node, A, real, 3, err));
    FTH_TRY(sp_local_need(node, DA, real, 3, err));
    FTH_TRY(sp_local_weights_of(node, A, CP, NBR, MU, err));
    FTH_TRY(sp_local_weights_of(node, DA, -1, NBR, MU, err));
    FTH_TRY(sp_local_need(node, EP, real, 3, err));
    FTH_TRY(sp_local_need(node, D, real, 2, err));
    for (int in = EP; in <= D; in++) {
        FTH_TRY(sp_local_like(node, in, 0, MU, 0, err));
        FTH_TRY(sp_local_like(node, in, 1, NBR, 0, err));
    }
    FTH_TRY(sp_local_like(node, EP, 2, LAM, 2, err));
    node->n_out = 1;
    node->out[0] = node->in[D];
    node->out[0].dtype = FTH_F64;
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    (void)node;
    *out = (fth_relation){.along = FTH_WHOLE, .out_dim = -1};
    if (in >= A && dim < 2) *out = sp_same(dim);
    if (in < A && dim == 0) *out = sp_same(in == NBR ? 1 : 0);
}

static double flops(const fth_call *call)
{
    return 2.0 * (double)call->out[0].extent[0] * (double)call->out[0].extent[1] *
           (double)call->node->in[NBR].size[1] * (double)(call->node->in[LAM].size[2] + 3);
}

/* jitter a . da / cp - d (mu[n] . da) - ep . (Lam[n]^T da): d and ep are divided by cp already. */
static double one_cell(const fth_call *c, int64_t l, int64_t t)
{
    const fth_node *node = c->node;
    const fth_dtype real = node->in[LAM].dtype;
    const fth_tile *in = c->in;
    const int64_t k = node->in[NBR].size[1], r = node->in[LAM].size[2], a_at = sp_at2(&in[A], l, t),
                  da_at = sp_at2(&in[DA], l, t), ep_at = sp_at2(&in[EP], l, t);
    const int32_t *nbr = (const int32_t *)in[NBR].data + sp_at1(&in[NBR], t);
    const double cp = sp_get(in[CP].data, real, sp_at2(&in[CP], l, t)),
                 d = sp_get(in[D].data, real, sp_at2(&in[D], l, t)),
                 jitter = ((const attr *)node->attr)->jitter;
    double mean = 0, rows = 0, both = 0;
    for (int64_t i = 0; i < k; i++) {
        const double a = sp_get(in[A].data, real, a_at + i),
                     da = sp_get(in[DA].data, real, da_at + i);
        const int64_t row = sp_at3(&in[LAM], l, nbr[i], 0);
        double sum = 0;
        for (int64_t j = 0; j < r; j++)
            sum += sp_get(in[LAM].data, real, row + j) * sp_get(in[EP].data, real, ep_at + j);
        mean += da * sp_get(in[MU].data, real, sp_at2(&in[MU], l, nbr[i]));
        rows += da * sum;
        both += a * da;
    }
    return jitter * both / cp - d * mean - rows;
}

static fth_status run(const fth_call *call)
{
    const fth_tile *out = &call->out[0];
    FTH_TRY(sp_local_check_neighbours(call, NBR, call->node->in[LAM].size[1]));
    for (int64_t l = out->origin[0]; l < out->origin[0] + out->extent[0]; l++)
        for (int64_t t = out->origin[1]; t < out->origin[1] + out->extent[1]; t++)
            ((double *)out->data)[sp_at2(out, l, t)] = one_cell(call, l, t);
    return FTH_OK;
}

static const fth_op slopes = {
    .name = "spatial_local_slopes",
    .brief = "slopes of the divergence of cells in ln lengthscale, from those of their weights",
    .flags = FTH_OP_MAY_FAIL,
    .infer = infer,
    .relation = relation,
    .flops = flops,
    .run = run,
};

fth_val sp_local_slopes_(fth_site site, const sp_local_batch *b, fth_val terms, fth_val da)
{
    const fth_val in[INPUTS] = {[NBR] = b->nbr,
                                [MU] = b->mu,
                                [LAM] = b->Lam,
                                [A] = b->a,
                                [CP] = b->cp,
                                [DA] = da,
                                [EP] = fth_out_(site, terms, SP_TERM_EP),
                                [D] = fth_out_(site, terms, SP_TERM_D)};
    const attr a = {b->jitter};
    return fth_node_add_(b->nbr.graph, site, &slopes, INPUTS, in, &a, sizeof a);
}
