/* testing/spatial/spatial_priors.h - golden models with their data, steps and predictions of them.
 *
 * The slopes of the likelihood come from a plain loop over the equations, so that a prior is tested
 * by itself.
 */
#ifndef FATHOM_TESTING_SPATIAL_PRIORS_H
#define FATHOM_TESTING_SPATIAL_PRIORS_H

#include "testing/spatial/spatial_golden.h"

enum { SG_CELLS = 300, SG_GENES = 24, SG_FACTORS = 3, SG_BATCH = 120, SG_GENEB = 16, SG_DRAWS = 3 };

typedef struct sg_world {
    fth_context *ctx;
    fth_mem *mem;
    char file[64];
    sp_model model;
    sp_data data;
    fth_tensor *idx; /* i64 [cellb] */
} sg_world;

static inline sp_settings sg_settings(sp_kind kind)
{
    sp_settings s = {.seed = 42,
                     .cells = SG_CELLS,
                     .genes = SG_GENES,
                     .n_groups = 4,
                     .n_components = SG_FACTORS,
                     .E = SG_DRAWS,
                     .spatial = kind != SP_PNMF,
                     .groups = kind == SP_MGGP_SVGP || kind == SP_MGGP_LCGP,
                     .local = kind == SP_LCGP || kind == SP_MGGP_LCGP,
                     .sigma = 1.0,
                     .lengthscale = 8.0,
                     .jitter = 1e-5,
                     .group_diff_param = 1.0,
                     .M = 30,
                     .K = 6,
                     .R = 6,
                     .scale_ll_D = true,
                     .scale_kl_NM = true,
                     .max_iter = 12,
                     .batch_size = SG_BATCH,
                     .y_batch_size = SG_GENEB};
    s.kind = kind;
    return s;
}

static inline sg_world sg_open(sp_kind kind, const char *name, fth_dtype real, fth_context *ctx)
{
    sg_world w = {.ctx = ctx, .mem = fth_context_mem(ctx)};
    snprintf(w.file, sizeof w.file, "model_%s", name);
    w.model = (sp_model){.mem = w.mem, .set = sg_settings(kind), .real = real};
    w.model.param[SP_P_W] = sg_load(w.mem, w.file, "W", real);
    if (kind == SP_PNMF) {
        w.model.param[SP_P_MEAN] = sg_load(w.mem, w.file, "init_mu", real);
        w.model.param[SP_P_RAW] = sg_load(w.mem, w.file, "init_sd_raw", real);
    } else if (w.model.set.local) {
        w.model.set.M = SG_CELLS;
        w.model.param[SP_P_MU] = sg_load(w.mem, w.file, "init_mu", real);
        w.model.param[SP_P_LAM] = sg_load(w.mem, w.file, "init_Lu", real);
        w.model.Z = sg_load(w.mem, "data", "X", FTH_F32);
        w.model.nbr_kl = sg_load(w.mem, w.file, "nb_for_kl", FTH_I32);
        w.model.nbr_inf = sg_load(w.mem, w.file, "nb_inference", FTH_I32);
    } else {
        w.model.param[SP_P_MU] = sg_load(w.mem, w.file, "init_mu", real);
        w.model.param[SP_P_LU] = sg_load(w.mem, w.file, "init_Lu_raw", real);
        w.model.Z = sg_load(w.mem, w.file, "Z", FTH_F32);
    }
    const bool local = w.model.set.local;
    if (w.model.set.groups)
        w.model.groupsZ = sg_load(w.mem, local ? "data" : w.file, local ? "C" : "gZ", FTH_I32);
    w.data.xy = sg_load(w.mem, "data", "X", FTH_F32);
    w.data.group = sg_load(w.mem, "data", "C", FTH_I32);
    w.idx = sg_load(w.mem, w.file, "idx", FTH_I64);
    return w;
}

static inline void sg_close(sg_world *w)
{
    for (int i = 0; i < SP_PARAMS; i++) fth_tensor_release(w->model.param[i]);
    fth_tensor_release(w->model.Z);
    fth_tensor_release(w->model.groupsZ);
    fth_tensor_release(w->model.distance);
    fth_tensor_release(w->model.nbr_kl);
    fth_tensor_release(w->model.nbr_inf);
    fth_tensor_release(w->data.xy);
    fth_tensor_release(w->data.group);
    fth_tensor_release(w->idx);
}

static inline fth_tensor *sg_tensor(fth_mem *mem, const char *name, fth_dtype type, int n,
                                    const int64_t *size)
{
    fth_tensor *t = NULL;
    fth_err err = {0};
    OKE(fth_tensor_create(&t, mem, name, type, n, size, &err), &err);
    return t;
}

/* A tensor of the shape of a value. */
static inline fth_tensor *sg_like(fth_mem *mem, fth_val v)
{
    int64_t size[FTH_MAX_AXES];
    IS_TRUE(fth_val_ok(v));
    for (int i = 0; i < fth_val_axes(v); i++) size[i] = fth_val_size(v, i);
    return sg_tensor(mem, "result", fth_val_dtype(v), fth_val_axes(v), size);
}

/* Plan, run, and one new tensor for each value. */
static inline void sg_run(fth_mem *mem, fth_graph *g, const fth_val *v, int n, uint64_t memory,
                          fth_tensor **out)
{
    fth_sink sink[12];
    fth_err err = {0};
    for (int i = 0; i < n; i++) {
        out[i] = sg_like(mem, v[i]);
        sink[i] = fth_tensor_sink(out[i]);
    }
    fth_plan *p = fth_plan_make(g, v, n, &(fth_limits){.memory_bytes = memory}, &err);
    if (!p) t_status(err.status, FTH_OK, "plan", &err, T_AT);
    OKE(fth_run(p, sink, NULL, NULL, &err), &err);
    fth_plan_destroy(p);
}

/* Slopes of the loss in f and s, model 8.2a, mode expanded; a ELL. */
static inline double sg_slopes(sg_world *w, fth_tensor *f, fth_tensor *s, fth_tensor *gf,
                               fth_tensor *gs)
{
    fth_tensor *Y = sg_load(w->mem, "data", "Y", FTH_F64);
    fth_tensor *W = sg_load(w->mem, w->file, "W", FTH_F64);
    fth_tensor *idy = sg_load(w->mem, w->file, "idy", FTH_I64);
    fth_tensor *eps = sg_load(w->mem, w->file, "eps", FTH_F64);
    const double a = (double)SG_GENES / SG_GENEB * SG_CELLS / SG_BATCH;
    double ell = 0.0;
    for (int64_t n = 0; n < SG_BATCH; n++) {
        const int64_t cell = (int64_t)sg_at(w->idx, n);
        double df[SG_FACTORS] = {0}, ds[SG_FACTORS] = {0};
        for (int64_t d = 0; d < SG_GENEB; d++) {
            const int64_t gene = (int64_t)sg_at(idy, d);
            const double y = sg_at(Y, cell * SG_GENES + gene);
            for (int64_t e = 0; e < SG_DRAWS; e++) {
                double rho = 0.0, phi[SG_FACTORS], z[SG_FACTORS];
                for (int64_t l = 0; l < SG_FACTORS; l++) {
                    z[l] = sg_at(eps, (e * SG_FACTORS + l) * SG_BATCH + n);
                    phi[l] = exp(sg_at(f, l * SG_BATCH + n) + z[l] * sg_at(s, l * SG_BATCH + n));
                    rho += sg_at(W, gene * SG_FACTORS + l) * phi[l];
                }
                ell += y * log(fmax(rho, 1e-8)) / SG_DRAWS;
                for (int64_t l = 0; l < SG_FACTORS && y > 0.0 && rho >= 1e-8; l++) {
                    const double h = sg_at(W, gene * SG_FACTORS + l) * phi[l] * y / rho / SG_DRAWS;
                    df[l] += h;
                    ds[l] += z[l] * h;
                }
            }
            ell -= lgamma(y + 1.0);
            for (int64_t l = 0; l < SG_FACTORS; l++) {
                const double dev = sg_at(s, l * SG_BATCH + n);
                const double mhat = exp(sg_at(f, l * SG_BATCH + n) + 0.5 * dev * dev);
                const double linear = sg_at(W, gene * SG_FACTORS + l) * mhat;
                ell -= linear;
                df[l] -= linear;
                ds[l] -= linear * dev;
            }
        }
        for (int64_t l = 0; l < SG_FACTORS; l++) {
            const int64_t at = l * SG_BATCH + n;
            if (fth_tensor_dtype(gf) == FTH_F64) {
                ((double *)fth_tensor_data(gf))[at] = -a * df[l];
                ((double *)fth_tensor_data(gs))[at] = -a * ds[l];
            } else {
                ((float *)fth_tensor_data(gf))[at] = (float)(-a * df[l]);
                ((float *)fth_tensor_data(gs))[at] = (float)(-a * ds[l]);
            }
        }
    }
    fth_tensor_release(Y);
    fth_tensor_release(W);
    fth_tensor_release(idy);
    fth_tensor_release(eps);
    return a * ell;
}

/* A step of the prior: its graph with gf and gs as inputs. */
typedef struct sg_step {
    sp_prior prior;
    sp_model_graph net;
    fth_val f, s, kl, grad[SP_PARAMS];
    fth_tensor *gf, *gs;
} sg_step;

static inline void sg_step_open(sg_step *t, sg_world *w, double b)
{
    fth_err err = {0};
    const int64_t size[2] = {SG_FACTORS, SG_BATCH};
    *t = (sg_step){.prior = {.ops = sp_prior_of(w->model.set.kind),
                             .ctx = w->ctx,
                             .model = &w->model,
                             .data = &w->data}};
    OKE(t->prior.ops->open(&t->prior, &err), &err);
    OKE(sp_model_graph_create(&t->net, w->ctx, &w->model, true, w->model.set.cells, &err), &err);
    fth_axis(t->net.g, "cellb", SG_BATCH);
    t->net.idx = fth_input(t->net.g, "idx", FTH_I64, "cellb", fth_tensor_source(w->idx));
    OKE(t->prior.ops->marginals(&t->prior, &t->net, &t->f, &t->s, &err), &err);
    t->gf = sg_tensor(w->mem, "gf", w->model.real, 2, size);
    t->gs = sg_tensor(w->mem, "gs", w->model.real, 2, size);
    const fth_val gf =
        fth_input(t->net.g, "gf", w->model.real, "factor cellb", fth_tensor_source(t->gf));
    const fth_val gs =
        fth_input(t->net.g, "gs", w->model.real, "factor cellb", fth_tensor_source(t->gs));
    OKE(t->prior.ops->gradients(&t->prior, &t->net, gf, gs, b, &t->kl, t->grad, &err), &err);
    OKE(t->prior.ops->ask(&t->prior, fth_tensor_data(w->idx), SG_BATCH, &err), &err);
    OKE(t->prior.ops->take(&t->prior, &t->net, &err), &err);
}

static inline void sg_step_close(sg_step *t)
{
    sp_model_graph_destroy(&t->net);
    t->prior.ops->close(&t->prior);
    fth_tensor_release(t->gf);
    fth_tensor_release(t->gs);
}

/* Places as a model is asked for them: with groups or neighbours if it has such. */
static inline sp_query sg_query(const sg_world *w, const sp_model_graph *net, fth_tensor *xy,
                                fth_tensor *group, fth_tensor *nbr)
{
    sp_query q = {0};
    if (w->model.set.spatial)
        q.xy = fth_input(net->g, "query.xy", FTH_F32, "cell dim", fth_tensor_source(xy));
    if (w->model.set.groups)
        q.group = fth_input(net->g, "query.group", FTH_I32, "cell", fth_tensor_source(group));
    if (nbr) q.nbr = fth_input(net->g, "query.nbr", FTH_I32, "cell nbr", fth_tensor_source(nbr));
    return q;
}

/* f and s at places, as [factor cell] tensors; a local model is given their neighbours. */
static inline void sg_predict_given(sg_world *w, fth_tensor *xy, fth_tensor *group, fth_tensor *nbr,
                                    uint64_t memory, fth_tensor *out[2])
{
    sp_model_graph net;
    fth_err err = {0};
    fth_val v[2];
    OKE(sp_model_graph_create(&net, w->ctx, &w->model, false, fth_tensor_size(xy, 0), &err), &err);
    const sp_query q = sg_query(w, &net, xy, group, nbr);
    OKE(sp_predict(&net, &q, &v[0], &v[1], &err), &err);
    sg_run(w->mem, net.g, v, 2, memory, out);
    sp_model_graph_destroy(&net);
}

static inline void sg_predict(sg_world *w, fth_tensor *xy, fth_tensor *group, uint64_t memory,
                              fth_tensor *out[2])
{
    sg_predict_given(w, xy, group, w->model.nbr_inf, memory, out);
}

/* A prediction of means alone, at the cells. */
typedef fth_status sg_means_fn(sp_model_graph *net, const sp_query *q, fth_val *f, fth_err *err);
static inline fth_tensor *sg_means(sg_world *w, sg_means_fn *predict)
{
    sp_model_graph net;
    fth_err err = {0};
    fth_val f;
    fth_tensor *out;
    OKE(sp_model_graph_create(&net, w->ctx, &w->model, false, SG_CELLS, &err), &err);
    const sp_query q = sg_query(w, &net, w->data.xy, w->data.group, w->model.nbr_inf);
    OKE(predict(&net, &q, &f, &err), &err);
    sg_run(w->mem, net.g, &f, 1, 0, &out);
    sp_model_graph_destroy(&net);
    return out;
}

/* f [group factor cell], as if all cells were of each group. */
static inline fth_tensor *sg_as_groups(sg_world *w)
{
    return sg_means(w, sp_predict_groups);
}

#endif
