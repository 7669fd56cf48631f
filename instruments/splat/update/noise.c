/* noise.c - MCMC's noise as an operation of its own, and its normals as values of a graph. */
#include "loops.h"

enum { MEANS, SCALING, ROTATION, OPACITY, NORMALS, RATES, INPUTS };

fth_val gs_normals_(fth_site site, fth_val seed, fth_val iteration)
{
    return fth_random_(site, FTH_RANDOM_NORMAL, FTH_F64, "g xyz", seed, iteration, GS_NOISE_STREAM);
}

static fth_status infer(fth_node *node, fth_err *err)
{
    static const char *const axes[INPUTS] = {"g xyz", "g xyz", "g wxyz", "g", "g xyz", "rate"};
    for (int i = 0; i < INPUTS; i++)
        FTH_TRY(gs_check_axes(node, i, i == NORMALS ? FTH_F64 : FTH_F32, axes[i], err));
    node->n_out = 1;
    node->out[0] = node->in[MEANS];
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    (void)node;
    *out = in != RATES && dim == 0 ? (fth_relation){.along = FTH_SAME, .out_dim = 0}
                                   : (fth_relation){.along = FTH_WHOLE, .out_dim = -1};
}

static int update_of(const fth_node *node, int out)
{
    (void)node, (void)out;
    return MEANS;
}

static const float *row(const fth_call *call, int in, int64_t i)
{
    const fth_tile *t = &call->in[in];
    return (const float *)gs_from(t, &call->out[0], FTH_F32) + i * t->stride[0];
}

static fth_status run(const fth_call *call)
{
    const fth_tile *out = &call->out[0], *normals = &call->in[NORMALS];
    const double rate = (double)((const float *)call->in[RATES].data)[GS_RATE_NOISE];
    const double *first = gs_from(normals, out, FTH_F64);
    for (int64_t i = 0; i < out->extent[0]; i++) {
        const float *mean = row(call, MEANS, i);
        float *to = (float *)out->data + i * out->stride[0];
        double by[3] = {0, 0, 0};
        const bool moves = rate > 0 && gs_noise_of(row(call, SCALING, i), row(call, ROTATION, i),
                                                   *row(call, OPACITY, i), rate,
                                                   first + i * normals->stride[0], by);
        for (int k = 0; k < 3; k++) to[k] = moves ? (float)((double)mean[k] + by[k]) : mean[k];
    }
    return FTH_OK;
}

const fth_op gs_noise_op = {
    .name = "splat_noise",
    .brief = "means of Gaussians, each shaken by its own covariance",
    .infer = infer,
    .relation = relation,
    .update_of = update_of,
    .run = run,
};

fth_val gs_noise_(fth_graph *g, fth_site site, const gs_values *model, fth_val normals,
                  fth_val rates)
{
    const fth_val in[INPUTS] = {model->at[GS_MEANS],
                                model->at[GS_SCALING],
                                model->at[GS_ROTATION],
                                model->at[GS_OPACITY],
                                normals,
                                rates};
    return fth_assign_(site, in[MEANS], fth_node_add_(g, site, &gs_noise_op, INPUTS, in, NULL, 0));
}
