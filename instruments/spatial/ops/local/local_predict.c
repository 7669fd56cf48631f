/* local_predict.c - operations that predict at places from the weights of their neighbours (model
 * 7.6). */
#include "local_predict.h"
#include "local_op.h"

#include <math.h>

static fth_status check(const fth_node *node, fth_err *err)
{
    const fth_dtype real = node->in[MU].dtype;
    FTH_TRY(sp_local_real(node, real, err));
    FTH_TRY(sp_local_need(node, NBR, FTH_I32, 2, err));
    return sp_local_need(node, MU, real, 2, err);
}

static fth_desc shape(const fth_node *node)
{
    return (fth_desc){.dtype = node->in[MU].dtype,
                      .n_axes = 2,
                      .axis = {node->in[MU].axis[0], node->in[NBR].axis[0]},
                      .size = {node->in[MU].size[0], node->in[NBR].size[0]}};
}

static fth_status check_indices(const fth_call *call)
{
    return sp_local_check_neighbours(call, NBR, call->node->in[MU].size[1]);
}

/* ---- mean and deviation ---- */

static fth_status infer(fth_node *node, fth_err *err)
{
    const fth_dtype real = node->in[MU].dtype;
    FTH_TRY(check(node, err));
    FTH_TRY(sp_local_weights_of(node, A, C, NBR, MU, err));
    FTH_TRY(sp_local_need(node, LAM, real, 3, err));
    FTH_TRY(sp_local_like(node, LAM, 0, MU, 0, err));
    FTH_TRY(sp_local_like(node, LAM, 1, MU, 1, err));
    node->n_out = 2;
    node->out[0] = node->out[1] = shape(node);
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    const bool each = (in == A || in == C) && node->in[A].n_axes == 3;
    *out = (fth_relation){.along = FTH_WHOLE, .out_dim = -1};
    if (each && dim < 2) *out = sp_same(dim);
    if (!each && dim == 0) *out = sp_same(in == MU || in == LAM ? 0 : 1);
}

static double flops(const fth_call *call)
{
    return 2.0 * (double)call->out[0].extent[0] * (double)call->out[0].extent[1] *
           (double)call->node->in[NBR].size[1] * (double)(call->node->in[LAM].size[2] + 2);
}

static fth_status run(const fth_call *call)
{
    FTH_TRY(check_indices(call));
    const fth_node *node = call->node;
    const fth_tile *in = call->in, *f = &call->out[0], *s = &call->out[1];
    const fth_dtype real = node->in[MU].dtype;
    const sp_local_loops *loop = sp_local_best();
    const bool each = node->in[A].n_axes == 3;
    for (int64_t l = f->origin[0]; l < f->origin[0] + f->extent[0]; l++)
        for (int64_t i = f->origin[1]; i < f->origin[1] + f->extent[1]; i++) {
            sp_local_term m = {.k = node->in[NBR].size[1],
                               .r = s->data ? node->in[LAM].size[2] : 0,
                               .jitter = ((const attr *)node->attr)->jitter,
                               .cp = sp_get(in[C].data, real, sp_at_factor(&in[C], each, l, i)),
                               .single = real == FTH_F32,
                               .nbr = (const int32_t *)in[NBR].data + sp_at1(&in[NBR], i),
                               .mu = sp_to(in[MU].data, real, sp_at2(&in[MU], l, 0)),
                               .lam = sp_to(in[LAM].data, real, sp_at3(&in[LAM], l, 0, 0)),
                               .lam_step = in[LAM].stride[1],
                               .a = sp_to(in[A].data, real, sp_at_factor(&in[A], each, l, i))};
            loop->predict(&m, NULL);
            if (f->data) sp_put(f->data, real, sp_at2(f, l, i), m.f);
            if (s->data) sp_put(s->data, real, sp_at2(s, l, i), m.s);
        }
    return FTH_OK;
}

static const fth_op predict = {
    .name = "spatial_local_predict",
    .brief = "mean and deviation of factors at places, from weights of neighbours",
    .flags = FTH_OP_MAY_FAIL,
    .infer = infer,
    .relation = relation,
    .flops = flops,
    .run = run,
};

fth_val sp_local_predict_(fth_site site, fth_val a, fth_val c, fth_val nbr, fth_val mu, fth_val Lam,
                          double jitter)
{
    const fth_val in[INPUTS] = {[A] = a, [NBR] = nbr, [MU] = mu, [C] = c, [LAM] = Lam};
    const attr how = {jitter};
    return fth_node_add_(a.graph, site, &predict, INPUTS, in, &how, sizeof how);
}

/* ---- means ---- */

static fth_status infer_means(fth_node *node, fth_err *err)
{
    FTH_TRY(check(node, err));
    const fth_desc *a = &node->in[A];
    const int n = a->n_axes < 2 ? 2 : a->n_axes > 4 ? 4 : a->n_axes;
    FTH_TRY(sp_local_need(node, A, node->in[MU].dtype, n, err));
    FTH_TRY(sp_local_like(node, A, n - 2, NBR, 0, err));
    FTH_TRY(sp_local_like(node, A, n - 1, NBR, 1, err));
    if (n == 4) FTH_TRY(sp_local_like(node, A, 1, MU, 0, err));
    node->n_out = 1;
    node->out[0] = shape(node);
    if (!sp_means_has_groups(node)) return FTH_OK;
    fth_desc *d = &node->out[0];
    d->n_axes = 3;
    for (int i = 2; i > 0; i--) {
        d->axis[i] = d->axis[i - 1];
        d->size[i] = d->size[i - 1];
    }
    d->axis[0] = node->in[A].axis[0];
    d->size[0] = node->in[A].size[0];
    return FTH_OK;
}

static void relation_means(const fth_node *node, int in, int dim, fth_relation *out)
{
    const int first = sp_means_has_groups(node), /* place of the factors in the result */
        cells = node->in[A].n_axes - 2;          /* and of the cells in the weights */
    *out = (fth_relation){.along = FTH_WHOLE, .out_dim = -1};
    if (in == MU && dim == 0) *out = sp_same(first);
    if (in == NBR && dim == 0) *out = sp_same(first + 1);
    if (in == A && dim == cells) *out = sp_same(first + 1);
    if (in == A && dim < cells) *out = sp_same(dim);
}

static uint64_t scratch_means(const fth_call *call)
{
    return sizeof(double) * (uint64_t)call->node->in[NBR].size[1];
}

static double flops_means(const fth_call *call)
{
    double n = 2.0 * (double)call->node->in[NBR].size[1];
    for (int d = 0; d < call->node->out[0].n_axes; d++) n *= (double)call->out[0].extent[d];
    return n;
}

/* Element (g, l, i) of the weights, with the axes that they have. */
static int64_t weights_at(const fth_node *node, const fth_tile *t, int64_t g, int64_t l, int64_t i)
{
    const bool groups = sp_means_has_groups(node), each = sp_means_has_factors(node);
    if (groups && each) return sp_at3(t, g, l, i);
    return groups ? sp_at2(t, g, i) : sp_at_factor(t, each, l, i);
}

static fth_status run_means(const fth_call *call)
{
    FTH_TRY(check_indices(call));
    const fth_node *node = call->node;
    const fth_tile *in = call->in, *out = &call->out[0];
    const fth_dtype real = node->in[MU].dtype;
    const bool groups = sp_means_has_groups(node);
    const int first = groups ? 1 : 0;
    const int64_t k = node->in[NBR].size[1], g0 = groups ? out->origin[0] : 0,
                  g1 = groups ? g0 + out->extent[0] : 1;
    double *mu = call->scratch;
    for (int64_t l = out->origin[first]; l < out->origin[first] + out->extent[first]; l++)
        for (int64_t i = out->origin[first + 1];
             i < out->origin[first + 1] + out->extent[first + 1]; i++) {
            for (int64_t j = 0; j < k; j++) {
                const int32_t at = ((const int32_t *)in[NBR].data)[sp_at2(&in[NBR], i, j)];
                mu[j] = sp_get(in[MU].data, real, sp_at2(&in[MU], l, at));
            }
            for (int64_t g = g0; g < g1; g++) {
                const int64_t at = weights_at(node, &in[A], g, l, i);
                double sum = 0;
                for (int64_t j = 0; j < k; j++) sum += mu[j] * sp_get(in[A].data, real, at + j);
                sp_put(out->data, real, groups ? sp_at3(out, g, l, i) : sp_at2(out, l, i), sum);
            }
        }
    return FTH_OK;
}

static const fth_op means = {
    .name = "spatial_local_means",
    .brief = "means of factors at places, from weights of neighbours",
    .flags = FTH_OP_MAY_FAIL,
    .infer = infer_means,
    .relation = relation_means,
    .scratch = scratch_means,
    .flops = flops_means,
    .run = run_means,
};

fth_val sp_local_means_(fth_site site, fth_val a, fth_val nbr, fth_val mu)
{
    const fth_val in[MEANS_INPUTS] = {[A] = a, [NBR] = nbr, [MU] = mu};
    return fth_node_add_(a.graph, site, &means, MEANS_INPUTS, in, NULL, 0);
}
