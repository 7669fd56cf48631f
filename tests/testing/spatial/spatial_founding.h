/* testing/spatial/spatial_founding.h - the analysis of the founding report that asked for 9.88 GiB,
 * at its own size or smaller: predictions of an inducing-point model at many cells. */
#ifndef FATHOM_TESTING_SPATIAL_FOUNDING_H
#define FATHOM_TESTING_SPATIAL_FOUNDING_H

#include "testing/test.h"

#include "instruments/spatial/prior/prior.h"

typedef struct sf_case {
    fth_context *ctx;
    sp_model model;
    sp_model_graph net;
    int64_t cells;
    fth_val out[2]; /* f and s, or f as if of each group */
    int n_out;
} sf_case;

/* Positions on a grid of 0.7, made when asked for; their groups. */
static inline fth_status sf_read_xy(void *self, const int64_t *lo, const int64_t *n, void *dst,
                                    fth_err *err)
{
    (void)self, (void)err;
    float *out = dst;
    for (int64_t i = lo[0]; i < lo[0] + n[0]; i++)
        for (int64_t d = lo[1]; d < lo[1] + n[1]; d++)
            *out++ = 0.7f * (float)(d == 0 ? i % 281 : i / 281) - 98.0f;
    return FTH_OK;
}

static inline fth_status sf_read_group(void *self, const int64_t *lo, const int64_t *n, void *dst,
                                       fth_err *err)
{
    (void)err;
    const sf_case *c = self;
    for (int64_t i = 0; i < n[0]; i++)
        ((int32_t *)dst)[i] = (int32_t)((lo[0] + i) % c->model.set.n_groups);
    return FTH_OK;
}

static inline sp_settings sf_settings(int64_t cells, int64_t points, int64_t factors,
                                      int64_t groups)
{
    sp_settings s = {.seed = 1,
                     .cells = cells,
                     .genes = 161,
                     .n_groups = groups > 0 ? groups : 1,
                     .n_components = factors,
                     .E = 3,
                     .spatial = true,
                     .groups = groups > 0,
                     .sigma = 1.0,
                     .lengthscale = 8.0,
                     .jitter = 1e-5,
                     .group_diff_param = 1.0,
                     .M = points,
                     .scale_ll_D = true,
                     .scale_kl_NM = true,
                     .max_iter = 20000,
                     .batch_size = cells < 7000 ? cells : 7000,
                     .y_batch_size = 161};
    sp_settings_derive(&s);
    return s;
}

/* Inducing points on a grid over the cells; zero parameters take no pages. */
static inline void sf_open(sf_case *c, fth_context *ctx, int64_t cells, int64_t points,
                           int64_t factors, int64_t groups)
{
    fth_err err = {0};
    *c = (sf_case){.ctx = ctx, .cells = cells};
    const sp_settings set = sf_settings(cells, points, factors, groups);
    OKE(sp_model_create(&c->model, fth_context_mem(ctx), &set, FTH_F32, false, &err), &err);
    float *z = fth_tensor_data(c->model.Z);
    for (int64_t i = 0; i < points; i++) {
        z[2 * i] = 3.5f * (float)(i % 56) - 97.0f;
        z[2 * i + 1] = 3.5f * (float)(i / 56) - 97.0f;
        if (groups > 0) ((int32_t *)fth_tensor_data(c->model.groupsZ))[i] = (int32_t)(i % groups);
    }
}

static inline void sf_predict(sf_case *c, bool as_groups)
{
    fth_err err = {0};
    OKE(sp_model_graph_create(&c->net, c->ctx, &c->model, false, c->cells, &err), &err);
    const fth_source xy = {
        .kind = "made", .dtype = FTH_F32, .n_axes = 2, .size = {c->cells, 2}, .read = sf_read_xy};
    const fth_source group = {.kind = "made",
                              .self = c,
                              .dtype = FTH_I32,
                              .n_axes = 1,
                              .size = {c->cells},
                              .read = sf_read_group};
    sp_query q = {.xy = fth_input(c->net.g, "query.xy", FTH_F32, "cell dim", xy)};
    if (c->model.set.groups) q.group = fth_input(c->net.g, "query.group", FTH_I32, "cell", group);
    c->n_out = as_groups ? 1 : 2;
    if (as_groups)
        OKE(sp_predict_groups(&c->net, &q, &c->out[0], &err), &err);
    else
        OKE(sp_predict(&c->net, &q, &c->out[0], &c->out[1], &err), &err);
}

static inline void sf_close(sf_case *c)
{
    if (c->net.g) sp_model_graph_destroy(&c->net);
    sp_model_clear(&c->model);
    OK(fth_context_destroy(c->ctx, NULL));
}

static inline fth_context *sf_context(uint64_t budget, const char *scratch)
{
    fth_context *ctx = NULL;
    fth_err err = {0};
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = 2;
    opt.device = "cpu";
    opt.mem.budget_bytes = budget;
    opt.scratch_dir = scratch;
    OKE(fth_context_create(&ctx, &opt, &err), &err);
    return ctx;
}

#endif
