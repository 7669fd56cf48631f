/* local_terms.c - operations over a batch of cells: their marginals, their divergence and what its
 * gradient is made of (model 7.3, 7.4).
 *
 * Gradients in rows of neighbours are not summed here, because cells share them: see
 * local_scatter.c.
 */
#include "local_terms.h"
#include "local_op.h"

#include <math.h>

enum { CELLS_PER_TASK = 16 };

static fth_status check_batch(const fth_node *node, fth_err *err)
{
    const fth_dtype real = node->in[LAM].dtype;
    FTH_TRY(sp_local_real(node, real, err));
    FTH_TRY(sp_local_need(node, IDX, FTH_I64, 1, err));
    FTH_TRY(sp_local_need(node, LAM, real, 3, err));
    FTH_TRY(sp_local_need(node, MU, real, 2, err));
    FTH_TRY(sp_local_like(node, MU, 0, LAM, 0, err));
    return sp_local_like(node, MU, 1, LAM, 1, err);
}

/* [factor cellb], and an axis of an input behind it. */
static fth_desc shape(const fth_node *node, int in, int dim)
{
    fth_desc d = {.dtype = node->in[LAM].dtype,
                  .n_axes = 2,
                  .axis = {node->in[LAM].axis[0], node->in[IDX].axis[0]},
                  .size = {node->in[LAM].size[0], node->in[IDX].size[0]}};
    if (in < 0) return d;
    d.n_axes = 3;
    d.axis[2] = node->in[in].axis[dim];
    d.size[2] = node->in[in].size[dim];
    return d;
}

static fth_status infer(fth_node *node, fth_err *err)
{
    FTH_TRY(check_batch(node, err));
    FTH_TRY(sp_local_need(node, NBR, FTH_I32, 2, err));
    FTH_TRY(sp_local_like(node, NBR, 0, IDX, 0, err));
    FTH_TRY(sp_local_weights_of(node, A, CP, NBR, MU, err));
    node->n_out = SP_TERM_KL + 1;
    node->out[SP_TERM_EQ] = node->out[SP_TERM_EP] = shape(node, LAM, 2);
    node->out[SP_TERM_H] = shape(node, NBR, 1);
    node->out[SP_TERM_D] = node->out[SP_TERM_KL] = shape(node, -1, 0);
    node->out[SP_TERM_KL].dtype = FTH_F64;
    return FTH_OK;
}

/* Weights are those of each factor. */
static bool has_factors(const fth_node *node)
{
    return node->n_in > A && node->in[A].n_axes == 3;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    const bool each = in >= A && has_factors(node);
    *out = (fth_relation){.along = FTH_WHOLE, .out_dim = -1};
    if (each && dim < 2) *out = sp_same(dim);
    if (each || dim > 0) return;
    *out = sp_same(in == MU || in == LAM ? 0 : 1);
}

/* Indices of the call are places of the training cells. */
static fth_status check_indices(const fth_call *call)
{
    const fth_tile *idx = &call->in[IDX], *nbr = &call->in[NBR];
    const int64_t cells = call->node->in[LAM].size[1];
    for (int64_t t = idx->origin[0]; t < idx->origin[0] + idx->extent[0]; t++) {
        const int64_t i = ((const int64_t *)idx->data)[sp_at1(idx, t)];
        if (i < 0 || i >= cells)
            return sp_local_outside(call->node, "the place", t, i, cells, call->err);
        if (call->node->n_in <= NBR) continue;
        const int32_t *row = (const int32_t *)nbr->data + sp_at1(nbr, t);
        for (int64_t k = 0; k < nbr->extent[1]; k++)
            if (row[k] < 0 || row[k] >= cells)
                return sp_local_outside(call->node, "a neighbour", t, row[k], cells, call->err);
    }
    return FTH_OK;
}

static int64_t room(const fth_node *node)
{
    return (sp_local_room(node->in[NBR].size[1], 1, node->in[LAM].size[2]) + 7) / 8 * 8;
}

static uint64_t scratch(const fth_call *call)
{
    return sizeof(double) * (uint64_t)room(call->node) * (uint64_t)call->threads;
}

static double flops(const fth_call *call)
{
    const fth_tile *out = &call->out[0];
    const double k = (double)call->node->in[NBR].size[1], r = (double)call->node->in[LAM].size[2];
    return (double)out->extent[0] * (double)out->extent[1] *
           (k * k * r + k * k * k / 3 + 2 * k * k + 6 * k * r);
}

typedef struct work {
    const fth_call *call;
    const sp_local_loops *loop;
    int64_t blocks; /* of cells */
} work;

static void one_cell(const work *w, int64_t l, int64_t t, bool more, double *scratch_room)
{
    const fth_call *c = w->call;
    const fth_node *node = c->node;
    const fth_dtype real = node->in[LAM].dtype;
    const fth_tile *in = c->in, *out = c->out;
    const bool each = has_factors(node);
    sp_local_term m = {.k = node->in[NBR].size[1],
                       .r = node->in[LAM].size[2],
                       .jitter = ((const attr *)node->attr)->jitter,
                       .cp = sp_get(in[CP].data, real, sp_at_factor(&in[CP], each, l, t)),
                       .single = real == FTH_F32,
                       .nbr = (const int32_t *)in[NBR].data + sp_at1(&in[NBR], t),
                       .cell = ((const int64_t *)in[IDX].data)[sp_at1(&in[IDX], t)],
                       .mu = sp_to(in[MU].data, real, sp_at2(&in[MU], l, 0)),
                       .lam = sp_to(in[LAM].data, real, sp_at3(&in[LAM], l, 0, 0)),
                       .lam_step = in[LAM].stride[1],
                       .a = sp_to(in[A].data, real, sp_at_factor(&in[A], each, l, t))};
    if (more) m.ahead = m.nbr + in[NBR].stride[0];
    void **const to[] = {&m.eq, &m.ep, &m.h};
    for (int o = SP_TERM_EQ; o <= SP_TERM_H; o++)
        if (out[o].data) *to[o] = sp_to(out[o].data, real, sp_at3(&out[o], l, t, 0));
    w->loop->terms(&m, scratch_room);
    if (out[SP_TERM_D].data) sp_put(out[SP_TERM_D].data, real, sp_at2(&out[SP_TERM_D], l, t), m.d);
    if (out[SP_TERM_KL].data)
        ((double *)out[SP_TERM_KL].data)[sp_at2(&out[SP_TERM_KL], l, t)] = m.kl;
}

static void task(void *arg, int64_t i, int worker)
{
    const work *w = arg;
    const fth_tile *out = &w->call->out[0];
    const int64_t l = out->origin[0] + i / w->blocks,
                  from = out->origin[1] + i % w->blocks * CELLS_PER_TASK,
                  end = out->origin[1] + out->extent[1],
                  to = end - from < CELLS_PER_TASK ? end : from + CELLS_PER_TASK;
    double *mine = (double *)w->call->scratch + worker * room(w->call->node);
    for (int64_t t = from; t < to; t++) one_cell(w, l, t, t + 1 < to, mine);
}

static fth_status run(const fth_call *call)
{
    FTH_TRY(check_indices(call));
    const fth_tile *out = &call->out[0];
    work w = {.call = call,
              .loop = sp_local_best(),
              .blocks = (out->extent[1] + CELLS_PER_TASK - 1) / CELLS_PER_TASK};
    fth_team_run(call->team, out->extent[0] * w.blocks, task, &w);
    return FTH_OK;
}

static const fth_op terms = {
    .name = "spatial_local_terms",
    .brief = "divergence of cells given their neighbours, and the parts of its gradient",
    .flags = FTH_OP_MAY_FAIL | FTH_OP_TEAM | FTH_OP_NO_SPLIT,
    .infer = infer,
    .relation = relation,
    .scratch = scratch,
    .flops = flops,
    .run = run,
};

fth_val sp_local_terms_(fth_site site, const sp_local_batch *b)
{
    const fth_val in[INPUTS] = {b->idx, b->mu, b->Lam, b->nbr, b->a, b->cp};
    const attr a = {b->jitter};
    return fth_node_add_(b->idx.graph, site, &terms, INPUTS, in, &a, sizeof a);
}

/* ---- marginals ---- */

static fth_status infer_marginals(fth_node *node, fth_err *err)
{
    FTH_TRY(check_batch(node, err));
    node->n_out = 2;
    node->out[0] = node->out[1] = shape(node, -1, 0);
    return FTH_OK;
}

static double flops_marginals(const fth_call *call)
{
    return 2.0 * (double)call->out[0].extent[0] * (double)call->out[0].extent[1] *
           (double)call->node->in[LAM].size[2];
}

static fth_status run_marginals(const fth_call *call)
{
    FTH_TRY(check_indices(call));
    const fth_tile *in = call->in, *f = &call->out[0], *s = &call->out[1];
    const fth_dtype real = call->node->in[LAM].dtype;
    const int64_t r = call->node->in[LAM].size[2];
    const sp_local_loops *loop = sp_local_best();
    for (int64_t l = f->origin[0]; l < f->origin[0] + f->extent[0]; l++)
        for (int64_t t = f->origin[1]; t < f->origin[1] + f->extent[1]; t++) {
            const int64_t i = ((const int64_t *)in[IDX].data)[sp_at1(&in[IDX], t)];
            if (f->data)
                sp_put(f->data, real, sp_at2(f, l, t),
                       sp_get(in[MU].data, real, sp_at2(&in[MU], l, i)));
            if (!s->data) continue;
            const double v = loop->norm2(sp_to(in[LAM].data, real, sp_at3(&in[LAM], l, i, 0)),
                                         real == FTH_F32, r);
            sp_put(s->data, real, sp_at2(s, l, t), sqrt(v < 1e-3 ? 1e-3 : v > 100 ? 100 : v));
        }
    return FTH_OK;
}

static const fth_op marginals = {
    .name = "spatial_local_marginals",
    .brief = "mean and deviation of factors at a batch of training cells",
    .flags = FTH_OP_MAY_FAIL,
    .infer = infer_marginals,
    .relation = relation,
    .flops = flops_marginals,
    .run = run_marginals,
};

fth_val sp_local_marginals_(fth_site site, const sp_local_batch *b)
{
    const fth_val in[MARGINAL_INPUTS] = {b->idx, b->mu, b->Lam};
    return fth_node_add_(b->idx.graph, site, &marginals, MARGINAL_INPUTS, in, NULL, 0);
}
