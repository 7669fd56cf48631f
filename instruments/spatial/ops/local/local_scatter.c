/* local_scatter.c - the operation that turns the terms of a batch into the gradient (model 7.5).
 *
 * Cells of a batch share neighbours, so scattering with atomics would depend on the order of
 * threads. Instead every training cell gathers: the host lists its contributions in the order of
 * the batch, and the sum is the same for any chunk and any worker. The lists are checked before
 * (local_lists.c), so this cannot fail, and a plan may compute the gradient in chunks while
 * parameters change.
 */
#include "local_scatter.h"
#include "local_op.h"

#include <string.h>

enum { CELLS_PER_TASK = 512 };

/* Weights are those of each factor. */
static bool has_factors(const fth_node *node)
{
    return node->in[A].n_axes == 3;
}

static fth_status infer(fth_node *node, fth_err *err)
{
    const fth_dtype real = node->in[LAM].dtype;
    FTH_TRY(sp_local_real(node, real, err));
    FTH_TRY(sp_local_need(node, PTR, FTH_I32, 1, err));
    FTH_TRY(sp_local_need(node, ITEMS, FTH_I32, 1, err));
    FTH_TRY(sp_local_need(node, LAM, real, 3, err));
    for (int in = EQ; in <= H; in++) FTH_TRY(sp_local_need(node, in, real, 3, err));
    const int each = has_factors(node);
    for (int in = D; in <= GS; in++)
        FTH_TRY(sp_local_need(node, in, real, in == A ? 2 + each : 2, err));
    FTH_TRY(sp_local_need(node, LISTED, FTH_BOOL, 0, err));
    for (int in = EQ; in <= GS; in++) {
        if (in == A) continue;
        FTH_TRY(sp_local_like(node, in, 0, LAM, 0, err));
        FTH_TRY(sp_local_like(node, in, 1, EQ, 1, err));
    }
    FTH_TRY(sp_local_like(node, EQ, 2, LAM, 2, err));
    FTH_TRY(sp_local_like(node, EP, 2, LAM, 2, err));
    FTH_TRY(sp_local_like(node, A, each, EQ, 1, err));
    FTH_TRY(sp_local_like(node, A, 1 + each, H, 2, err));
    if (each) FTH_TRY(sp_local_like(node, A, 0, LAM, 0, err));
    const int64_t cells = node->in[LAM].size[1], n = node->in[EQ].size[1], k = node->in[H].size[2];
    if (node->in[PTR].size[0] != cells + 1 || node->in[ITEMS].size[0] < n * (k + 1) ||
        n > INT32_MAX / (k + 1))
        return FTH_FAIL(err, FTH_E_AXIS_SIZE,
                        "%s: %lld cells with %lld places in a batch of %lld need lists of %lld and "
                        "%lld, found %lld and %lld",
                        node->op->name, (long long)cells, (long long)k, (long long)n,
                        (long long)(cells + 1), (long long)(n * (k + 1)),
                        (long long)node->in[PTR].size[0], (long long)node->in[ITEMS].size[0]);
    node->n_out = 2;
    node->out[0] = node->out[1] = node->in[LAM];
    node->out[1].n_axes = 2;
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    *out = (fth_relation){.along = FTH_WHOLE, .out_dim = -1};
    if (in == PTR) /* a chunk of cells needs one more row pointer */
        *out = (fth_relation){.along = FTH_HALO, .out_dim = 1, .mul = 1, .div = 1, .hi = 1};
    else if (dim == 0 && in != ITEMS && (in != A || has_factors(node)))
        *out = sp_same(0);
    else if (in == LAM && dim == 1)
        *out = sp_same(1);
}

static int64_t room(const fth_node *node)
{
    return (node->in[LAM].size[2] + 7) / 8 * 8;
}

static uint64_t scratch(const fth_call *call)
{
    return sizeof(double) * (uint64_t)room(call->node) * (uint64_t)call->threads;
}

static double flops(const fth_call *call)
{
    const fth_node *n = call->node;
    return (double)call->out[0].extent[0] * (double)n->in[LAM].size[2] *
           ((double)call->out[0].extent[1] + 4.0 * (double)call->out[0].extent[1] *
                                                 (double)n->in[ITEMS].size[0] /
                                                 (double)(n->in[LAM].size[1] + 1));
}

typedef struct work {
    const fth_call *call;
    const sp_local_loops *loop;
    int64_t blocks;
} work;

static const void *plane(const fth_call *c, int in, int64_t l)
{
    return sp_to(c->in[in].data, c->node->in[LAM].dtype, sp_at2(&c->in[in], l, 0));
}

/* What the cells of a task have in common, for one factor. */
static sp_local_touch common(const fth_call *c, int64_t l)
{
    const fth_node *node = c->node;
    const fth_dtype real = node->in[LAM].dtype;
    const fth_tile *in = c->in;
    const bool each = has_factors(node);
    return (sp_local_touch){.k = node->in[H].size[2],
                            .r = node->in[LAM].size[2],
                            .single = real == FTH_F32,
                            .weight = ((const attr *)node->attr)->weight,
                            .eq = sp_to(in[EQ].data, real, sp_at3(&in[EQ], l, 0, 0)),
                            .ep = sp_to(in[EP].data, real, sp_at3(&in[EP], l, 0, 0)),
                            .h = sp_to(in[H].data, real, sp_at3(&in[H], l, 0, 0)),
                            .a = sp_to(in[A].data, real, each ? sp_at1(&in[A], l) : 0),
                            .eq_step = in[EQ].stride[1],
                            .ep_step = in[EP].stride[1],
                            .h_step = in[H].stride[1],
                            .a_step = in[A].stride[each],
                            .d = plane(c, D, l),
                            .gf = plane(c, GF, l),
                            .gs = plane(c, GS, l)};
}

static void task(void *arg, int64_t n, int worker)
{
    const work *w = arg;
    const fth_call *c = w->call;
    const fth_dtype real = c->node->in[LAM].dtype;
    const fth_tile *out = &c->out[0], *mu = &c->out[1], *ptr = &c->in[PTR];
    const int64_t l = out->origin[0] + n / w->blocks,
                  from = out->origin[1] + n % w->blocks * CELLS_PER_TASK,
                  end = out->origin[1] + out->extent[1],
                  to = end - from < CELLS_PER_TASK ? end : from + CELLS_PER_TASK;
    double *mine = (double *)c->scratch + worker * room(c->node);
    sp_local_touch t = common(c, l);
    for (int64_t i = from; i < to; i++) {
        const int32_t *at = (const int32_t *)ptr->data + sp_at1(ptr, i);
        t.n = at[1] - at[0];
        t.item = (const int32_t *)c->in[ITEMS].data + at[0];
        t.slope = out->data ? sp_to(out->data, real, sp_at3(out, l, i, 0)) : NULL;
        t.slope_mu = 0;
        if (t.n == 0) {
            if (t.slope) memset(t.slope, 0, (size_t)(t.r * fth_dtype_size(real)));
        } else {
            t.lam = sp_to(c->in[LAM].data, real, sp_at3(&c->in[LAM], l, i, 0));
            w->loop->touch(&t, mine);
        }
        if (mu->data) sp_put(mu->data, real, sp_at2(mu, l, i), t.slope_mu);
    }
}

static fth_status run(const fth_call *call)
{
    const fth_tile *out = &call->out[0];
    if (out->extent[1] == 0) return FTH_OK;
    work w = {.call = call,
              .loop = sp_local_best(),
              .blocks = (out->extent[1] + CELLS_PER_TASK - 1) / CELLS_PER_TASK};
    fth_team_run(call->team, out->extent[0] * w.blocks, task, &w);
    return FTH_OK;
}

static const fth_op scatter = {
    .name = "spatial_local_scatter",
    .brief = "gradient of the local models, gathered by training cells",
    .flags = FTH_OP_TEAM | FTH_OP_NO_SPLIT,
    .infer = infer,
    .relation = relation,
    .scratch = scratch,
    .flops = flops,
    .run = run,
};

fth_val sp_local_scatter_(fth_site site, const sp_local_batch *b, fth_val terms,
                          const sp_local_touched *t, fth_val gf, fth_val gs, double weight)
{
    const fth_val in[INPUTS] = {t->ptr,
                                t->items,
                                terms,
                                fth_out_(site, terms, SP_TERM_EP),
                                fth_out_(site, terms, SP_TERM_H),
                                fth_out_(site, terms, SP_TERM_D),
                                b->a,
                                gf,
                                gs,
                                b->Lam,
                                sp_local_lists_(site, t, b)};
    const attr a = {weight};
    return fth_node_add_(t->ptr.graph, site, &scatter, INPUTS, in, &a, sizeof a);
}
