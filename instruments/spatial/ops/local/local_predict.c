/* local_predict.c - operations that predict at places from the weights of their neighbours (model
 * 7.6). */
#include "local_predict.h"
#include "local_op.h"

#include <math.h>

/* Position of the cells in the weights: [cell nbr] or [group cell nbr]. */
static int cells_of(const fth_node *node)
{
    return node->in[A].n_axes - 2;
}

static fth_status check(const fth_node *node, int n_axes, fth_err *err)
{
    const fth_dtype real = node->in[MU].dtype;
    FTH_TRY(sp_local_real(node, real, err));
    FTH_TRY(sp_local_need(node, A, real, n_axes, err));
    FTH_TRY(sp_local_need(node, NBR, FTH_I32, 2, err));
    FTH_TRY(sp_local_need(node, MU, real, 2, err));
    FTH_TRY(sp_local_like(node, A, n_axes - 2, NBR, 0, err));
    return sp_local_like(node, A, n_axes - 1, NBR, 1, err);
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
    const fth_tile *nbr = &call->in[NBR];
    const int64_t cells = call->node->in[MU].size[1];
    for (int64_t i = nbr->origin[0]; i < nbr->origin[0] + nbr->extent[0]; i++)
        for (int64_t k = 0; k < nbr->extent[1]; k++) {
            const int32_t at = ((const int32_t *)nbr->data)[sp_at2(nbr, i, k)];
            if (at < 0 || at >= cells)
                return sp_local_outside(call->node, "a neighbour", i, at, cells, call->err);
        }
    return FTH_OK;
}

/* ---- mean and deviation ---- */

static fth_status infer(fth_node *node, fth_err *err)
{
    const fth_dtype real = node->in[MU].dtype;
    FTH_TRY(check(node, 2, err));
    FTH_TRY(sp_local_need(node, C, real, 1, err));
    FTH_TRY(sp_local_need(node, LAM, real, 3, err));
    FTH_TRY(sp_local_like(node, C, 0, NBR, 0, err));
    FTH_TRY(sp_local_like(node, LAM, 0, MU, 0, err));
    FTH_TRY(sp_local_like(node, LAM, 1, MU, 1, err));
    node->n_out = 2;
    node->out[0] = node->out[1] = shape(node);
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    (void)node;
    *out = (fth_relation){.along = FTH_WHOLE, .out_dim = -1};
    if (dim == 0)
        *out = (fth_relation){.along = FTH_SAME, .out_dim = in == MU || in == LAM ? 0 : 1};
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
    for (int64_t l = f->origin[0]; l < f->origin[0] + f->extent[0]; l++)
        for (int64_t i = f->origin[1]; i < f->origin[1] + f->extent[1]; i++) {
            sp_local_term m = {.k = node->in[NBR].size[1],
                               .r = s->data ? node->in[LAM].size[2] : 0,
                               .jitter = ((const attr *)node->attr)->jitter,
                               .cp = sp_get(in[C].data, real, sp_at1(&in[C], i)),
                               .single = real == FTH_F32,
                               .nbr = (const int32_t *)in[NBR].data + sp_at1(&in[NBR], i),
                               .mu = sp_to(in[MU].data, real, sp_at2(&in[MU], l, 0)),
                               .lam = sp_to(in[LAM].data, real, sp_at3(&in[LAM], l, 0, 0)),
                               .lam_step = in[LAM].stride[1],
                               .a = sp_to(in[A].data, real, sp_at1(&in[A], i))};
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
    const int n = node->in[A].n_axes == 3 ? 3 : 2;
    FTH_TRY(check(node, n, err));
    node->n_out = 1;
    node->out[0] = shape(node);
    if (n == 2) return FTH_OK;
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
    const int first = cells_of(node); /* place of the factors in the result */
    *out = (fth_relation){.along = FTH_WHOLE, .out_dim = -1};
    if (in == MU && dim == 0) *out = (fth_relation){.along = FTH_SAME, .out_dim = first};
    if (in == NBR && dim == 0) *out = (fth_relation){.along = FTH_SAME, .out_dim = first + 1};
    if (in == A && dim == first) *out = (fth_relation){.along = FTH_SAME, .out_dim = first + 1};
    if (in == A && dim < first) *out = (fth_relation){.along = FTH_SAME, .out_dim = 0};
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

/* Weights and result of group g, where there are groups. */
static fth_tile of_group(const fth_tile *t, bool groups, int64_t g, fth_dtype real)
{
    fth_tile one = *t;
    if (!groups) return one;
    one.data = sp_to(t->data, real, sp_at1(t, g));
    for (int d = 0; d < 2; d++) {
        one.extent[d] = t->extent[d + 1];
        one.stride[d] = t->stride[d + 1];
        one.origin[d] = t->origin[d + 1];
    }
    return one;
}

static fth_status run_means(const fth_call *call)
{
    FTH_TRY(check_indices(call));
    const fth_node *node = call->node;
    const fth_tile *in = call->in, *out = &call->out[0];
    const fth_dtype real = node->in[MU].dtype;
    const bool groups = cells_of(node) > 0;
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
                const fth_tile a = of_group(&in[A], groups, g, real),
                               f = of_group(out, groups, g, real);
                const int64_t at = sp_at1(&a, i);
                double sum = 0;
                for (int64_t j = 0; j < k; j++) sum += mu[j] * sp_get(a.data, real, at + j);
                sp_put(f.data, real, sp_at2(&f, l, i), sum);
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
