/* test_spatial_lengthscale.c - lengthscales of each factor that are trained: slopes by central
 * differences, predictions, files, and the bits of training.
 * seconds: 9
 */
#include "testing/spatial/spatial_priors.h"
#include "testing/spatial/spatial_training.h"

#include "instruments/spatial/model/kernel.h"

enum { OTHERS = 2 };

static void set_at(fth_tensor *t, int64_t i, double v)
{
    if (fth_tensor_dtype(t) == FTH_F64)
        ((double *)fth_tensor_data(t))[i] = v;
    else
        ((float *)fth_tensor_data(t))[i] = (float)v;
}

typedef struct variant {
    sp_kind kind;
    bool whitened, diagonal, softplus, hybrid, sections;
    sp_kernel kernel;
} variant;

/* Every other place lies in a second section, far away. */
static void move_apart(fth_tensor *xy)
{
    float *x = fth_tensor_data(xy);
    for (int64_t i = 1; i < fth_tensor_size(xy, 0); i += 2) x[2 * i] += 1000.0f;
}

/* The golden model of a kind with a lengthscale of each factor. */
static sg_world open_world(const variant *v, fth_dtype real)
{
    sg_world w = sg_open(v->kind, sp_kinds[v->kind].name, real, sg_context(2, 0, NULL));
    t_random r = t_random_make(11);
    const int64_t L = SG_FACTORS;
    sp_settings *s = &w.model.set;
    s->train_lengthscale = true;
    s->parametrization = v->whitened ? SP_WHITENED : SP_RAW;
    s->kernel = v->kernel;
    if (v->softplus) s->cholesky_mode = SP_CHOLESKY_SOFTPLUS;
    if (v->sections) {
        s->n_sections = 2;
        s->section_gap = 500;
        s->lengthscale = 200; /* beyond the gap it would still be felt */
        move_apart(w.model.Z);
        move_apart(w.data.xy);
    }
    w.model.param[SP_P_ELL] = sg_tensor(w.mem, "log_ell", real, 1, &L);
    for (int64_t l = 0; l < L; l++)
        set_at(w.model.param[SP_P_ELL], l, log(s->lengthscale) + 0.4 * t_random_normal(&r));
    if (v->diagonal) {
        const int64_t size[2] = {L, fth_tensor_size(w.model.param[SP_P_MU], 1)};
        s->diagonal_only = true;
        fth_tensor_release(w.model.param[SP_P_LU]);
        w.model.param[SP_P_LU] = sg_tensor(w.mem, "Lu_raw", real, 2, size);
        for (int64_t i = 0; i < size[0] * size[1]; i++)
            set_at(w.model.param[SP_P_LU], i, -0.5 + 0.3 * t_random_normal(&r));
    }
    if (!v->hybrid) return w;
    const int64_t size[2] = {OTHERS, SG_CELLS}, loadings[2] = {SG_GENES, L + OTHERS};
    s->nonspatial_components = OTHERS;
    w.model.param[SP_P_MEAN] = sg_tensor(w.mem, "mean", real, 2, size);
    w.model.param[SP_P_RAW] = sg_tensor(w.mem, "raw", real, 2, size);
    for (int64_t i = 0; i < OTHERS * SG_CELLS; i++) {
        set_at(w.model.param[SP_P_MEAN], i, t_random_normal(&r));
        set_at(w.model.param[SP_P_RAW], i, -1.0);
    }
    fth_tensor_release(w.model.param[SP_P_W]);
    w.model.param[SP_P_W] = sg_tensor(w.mem, "W", real, 2, loadings);
    for (int64_t i = 0; i < SG_GENES * (L + OTHERS); i++)
        set_at(w.model.param[SP_P_W], i, 0.5 + t_random_f64(&r));
    return w;
}

static void close_world(sg_world *w)
{
    fth_err err = {0};
    fth_context *ctx = w->ctx;
    sg_close(w);
    OKE(fth_context_destroy(ctx, &err), &err);
}

/* ---- slopes ---- */

/* What the inducing points leave of the variance at cell n of the batch, with this lengthscale. */
static double rest_at(const sg_world *w, int64_t n, double log_ell)
{
    enum { MOST = 64 };
    double L[MOST][MOST], k[MOST], rest;
    sp_cov cov = sp_cov_of(&w->model);
    const int64_t M = fth_tensor_size(w->model.Z, 0), cell = (int64_t)sg_at(w->idx, n);
    const float *Z = fth_tensor_data(w->model.Z), *xy = fth_tensor_data(w->data.xy);
    const int32_t *gz = w->model.groupsZ ? fth_tensor_data(w->model.groupsZ) : NULL,
                  *gx = fth_tensor_data(w->data.group);
    IS_TRUE(M <= MOST);
    cov.lengthscale = exp(log_ell);
    rest = cov.sigma * cov.sigma;
    for (int64_t i = 0; i < M; i++) {
        k[i] = sp_cov_at(&cov, xy + 2 * cell, gx[cell], Z + 2 * i, gz ? gz[i] : 0);
        for (int64_t j = 0; j <= i; j++) {
            double sum = sp_cov_at(&cov, Z + 2 * i, gz ? gz[i] : 0, Z + 2 * j, gz ? gz[j] : 0) +
                         (i == j ? w->model.set.jitter : 0);
            for (int64_t m = 0; m < j; m++) sum -= L[i][m] * L[j][m];
            L[i][j] = i == j ? sqrt(sum) : sum / L[j][j];
        }
    }
    for (int64_t i = 0; i < M; i++) {
        for (int64_t j = 0; j < i; j++) k[i] -= L[i][j] * k[j];
        k[i] /= L[i][i];
        rest -= k[i] * k[i];
    }
    return rest;
}

/* gf.f + gs.s + b KL of a step, and its slopes in log_ell if asked. Where `held` is a factor, c of
 * that factor is held at its value for log_ell = `at`: s^2 is made with it. */
static double loss_of(sg_world *w, double b, int64_t held, double at, fth_tensor **slope)
{
    fth_err err = {0};
    sp_model_graph net;
    fth_val f, s, kl, grad[SP_PARAMS] = {{0}};
    fth_tensor *out[4];
    t_random r = t_random_make(5);
    const int64_t L = sp_factors(&w->model.set), size[2] = {L, SG_BATCH};
    sp_prior prior = {
        .ops = sp_prior_for(&w->model.set), .ctx = w->ctx, .model = &w->model, .data = &w->data};
    fth_tensor *gf = sg_tensor(w->mem, "gf", w->model.real, 2, size),
               *gs = sg_tensor(w->mem, "gs", w->model.real, 2, size);
    for (int64_t i = 0; i < L * SG_BATCH; i++) {
        set_at(gf, i, t_random_normal(&r));
        set_at(gs, i, t_random_normal(&r));
    }
    OKE(prior.ops->open(&prior, &err), &err);
    OKE(sp_model_graph_create(&net, w->ctx, &w->model, true, SG_CELLS, &err), &err);
    fth_axis(net.g, "cellb", SG_BATCH);
    net.idx = fth_input(net.g, "idx", FTH_I64, "cellb", fth_tensor_source(w->idx));
    OKE(prior.ops->marginals(&prior, &net, &f, &s, &err), &err);
    const fth_val of = fth_input(net.g, "gf", w->model.real, "factor cellb", fth_tensor_source(gf)),
                  os = fth_input(net.g, "gs", w->model.real, "factor cellb", fth_tensor_source(gs));
    OKE(prior.ops->gradients(&prior, &net, of, os, b, &kl, grad, &err), &err);
    OKE(prior.ops->ask(&prior, fth_tensor_data(w->idx), SG_BATCH, &err), &err);
    OKE(prior.ops->take(&prior, &net, &err), &err);
    sg_run(w->mem, net.g, (fth_val[]){f, s, kl, grad[SP_P_ELL]}, slope ? 4 : 3, 0, out);
    double sum = b * sg_at(out[2], 0);
    for (int64_t i = 0; i < L * SG_BATCH; i++) {
        double deviation = sg_at(out[1], i);
        if (i / SG_BATCH == held)
            deviation = sqrt(deviation * deviation + rest_at(w, i % SG_BATCH, at) -
                             rest_at(w, i % SG_BATCH, sg_at(w->model.param[SP_P_ELL], held)));
        sum += sg_at(gf, i) * sg_at(out[0], i) + sg_at(gs, i) * deviation;
    }
    for (int i = 0; i < 3; i++) fth_tensor_release(out[i]);
    if (slope) *slope = out[3];
    sp_model_graph_destroy(&net);
    prior.ops->close(&prior);
    fth_tensor_release(gf);
    fth_tensor_release(gs);
    return sum;
}

enum { MOST_NEAR = 64 };

/* Weights of cell j's neighbours for this lengthscale; the conditional variance, clamped. */
static double weights_at(const sg_world *w, int64_t j, double log_ell, double *a)
{
    double L[MOST_NEAR][MOST_NEAR], k[MOST_NEAR];
    sp_cov cov = sp_cov_of(&w->model);
    const int64_t K = fth_tensor_size(w->model.nbr_kl, 1);
    const int32_t *n = (const int32_t *)fth_tensor_data(w->model.nbr_kl) + j * K,
                  *g = w->model.groupsZ ? fth_tensor_data(w->model.groupsZ) : NULL;
    const float *Z = fth_tensor_data(w->model.Z);
    IS_TRUE(K <= MOST_NEAR);
    cov.lengthscale = exp(log_ell);
    double rest = cov.sigma * cov.sigma;
    for (int64_t i = 0; i < K; i++) {
        const float *x = Z + 2 * n[i];
        const int32_t gx = g ? g[n[i]] : 0;
        a[i] = k[i] = sp_cov_at(&cov, x, gx, Z + 2 * j, g ? g[j] : 0);
        for (int64_t m = 0; m <= i; m++) {
            double sum = sp_cov_at(&cov, x, gx, Z + 2 * n[m], g ? g[n[m]] : 0) +
                         (i == m ? w->model.set.jitter : 0);
            for (int64_t q = 0; q < m; q++) sum -= L[i][q] * L[m][q];
            L[i][m] = i == m ? sqrt(sum) : sum / L[m][m];
        }
    }
    for (int64_t i = 0; i < K; i++) {
        for (int64_t m = 0; m < i; m++) a[i] -= L[i][m] * a[m];
        a[i] /= L[i][i];
    }
    for (int64_t i = K - 1; i >= 0; i--) {
        for (int64_t m = i + 1; m < K; m++) a[i] -= L[m][i] * a[m];
        a[i] /= L[i][i];
    }
    for (int64_t i = 0; i < K; i++) rest -= k[i] * a[i];
    return fmin(fmax(rest, 1e-6), 100);
}

/* What of KL depends on the lengthscale of factor l, with cp held at that of log_ell = `at`: the
 * sum of (dj^2 + |ep|^2 + jitter |a|^2) / (2 cp). */
static double local_loss(const sg_world *w, int64_t l, double at)
{
    const sp_model *m = &w->model;
    fth_tensor *mu = m->param[SP_P_MU], *lam = m->param[SP_P_LAM];
    const int64_t K = fth_tensor_size(m->nbr_kl, 1), R = fth_tensor_size(lam, 2);
    double sum = 0, a[MOST_NEAR];
    for (int64_t t = 0; t < SG_BATCH; t++) {
        const int64_t j = (int64_t)sg_at(w->idx, t);
        const int32_t *n = (const int32_t *)fth_tensor_data(m->nbr_kl) + j * K;
        const double cp = weights_at(w, j, at, a);
        (void)weights_at(w, j, sg_at(m->param[SP_P_ELL], l), a);
        double d = sg_at(mu, l * SG_CELLS + j), squares = 0;
        for (int64_t i = 0; i < K; i++) {
            d -= a[i] * sg_at(mu, l * SG_CELLS + n[i]);
            squares += m->set.jitter * a[i] * a[i];
        }
        for (int64_t r = 0; r < R; r++) {
            double ep = sg_at(lam, (l * SG_CELLS + j) * R + r);
            for (int64_t i = 0; i < K; i++) ep -= a[i] * sg_at(lam, (l * SG_CELLS + n[i]) * R + r);
            squares += ep * ep;
        }
        sum += (d * d + squares) / (2 * cp);
    }
    return sum;
}

static double worst;

static void central_differences(const variant *v)
{
    sg_world w = open_world(v, FTH_F64);
    fth_tensor *slope = NULL, *ell = w.model.param[SP_P_ELL];
    const double b = 3.0, h = 1e-4;
    (void)loss_of(&w, b, -1, 0, &slope);
    EQ_I64(sg_count(slope), SG_FACTORS);
    for (int64_t l = 0; l < SG_FACTORS; l++) {
        const double at = sg_at(ell, l), want = sg_at(slope, l);
        double y[4]; /* of fourth order */
        for (int k = 0; k < 4; k++) {
            set_at(ell, l, at + h * (double[]){-2, -1, 1, 2}[k]);
            y[k] = w.model.set.local ? b * local_loss(&w, l, at) : loss_of(&w, b, l, at, NULL);
        }
        set_at(ell, l, at);
        const double found = (y[0] - 8 * y[1] + 8 * y[2] - y[3]) / (12 * h),
                     error = fabs(found - want) / (1 + fabs(want));
        if (error > worst) worst = error;
        if (error > 1e-7)
            FAIL("%s%s%s%s%s, kernel %d: slope in log_ell[%lld] is %.10g, differences give %.10g",
                 sp_kinds[v->kind].name, v->whitened ? " whitened" : "",
                 v->diagonal ? " diagonal" : "", v->softplus ? " softplus" : "",
                 v->hybrid ? " hybrid" : "", (int)v->kernel, (long long)l, want, found);
    }
    fth_tensor_release(slope);
    close_world(&w);
}

TEST(slopes_in_lengthscales_are_those_of_differences)
{
    static const variant all[] = {
        {.kind = SP_SVGP},
        {.kind = SP_SVGP, .whitened = true},
        {.kind = SP_SVGP, .diagonal = true},
        {.kind = SP_SVGP, .diagonal = true, .whitened = true},
        {.kind = SP_SVGP, .softplus = true},
        {.kind = SP_SVGP, .softplus = true, .whitened = true, .hybrid = true},
        {.kind = SP_SVGP, .hybrid = true},
        {.kind = SP_MGGP_SVGP},
        {.kind = SP_MGGP_SVGP, .whitened = true},
        {.kind = SP_MGGP_SVGP, .whitened = true, .hybrid = true},
        {.kind = SP_MGGP_SVGP, .hybrid = true, .diagonal = true},
        {.kind = SP_SVGP, .kernel = SP_MATERN52},
        {.kind = SP_MGGP_SVGP, .whitened = true, .kernel = SP_MATERN52},
        {.kind = SP_SVGP, .whitened = true, .kernel = SP_RBF},
        {.kind = SP_MGGP_SVGP, .kernel = SP_RBF},
        {.kind = SP_SVGP, .whitened = true, .sections = true},
        {.kind = SP_MGGP_SVGP, .sections = true},
        {.kind = SP_LCGP},
        {.kind = SP_LCGP, .hybrid = true},
        {.kind = SP_LCGP, .kernel = SP_MATERN52},
        {.kind = SP_LCGP, .kernel = SP_RBF},
        {.kind = SP_MGGP_LCGP},
        {.kind = SP_MGGP_LCGP, .hybrid = true, .kernel = SP_MATERN52},
        {.kind = SP_MGGP_LCGP, .kernel = SP_RBF},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) central_differences(&all[i]);
    printf("largest relative difference %.2g\n", worst);
}

/* ---- predictions ---- */

static void predict(sg_world *w, fth_tensor *out[3])
{
    sp_model_graph net;
    fth_err err = {0};
    fth_val v[3] = {{0}};
    OKE(sp_model_graph_create(&net, w->ctx, &w->model, false, SG_CELLS, &err), &err);
    sp_query q = sg_query(w, &net, w->data.xy, w->data.group, w->model.nbr_inf);
    q.trained = true;
    OKE(sp_predict(&net, &q, &v[0], &v[1], &err), &err);
    if (w->model.set.groups) OKE(sp_predict_groups(&net, &q, &v[2], &err), &err);
    sg_run(w->mem, net.g, v, w->model.set.groups ? 3 : 2, 0, out);
    sp_model_graph_destroy(&net);
}

/* Each factor is that of a model in which all have its lengthscale. */
TEST(predictions_have_the_lengthscale_of_their_factor)
{
    static const variant all[] = {{.kind = SP_SVGP},
                                  {.kind = SP_SVGP, .whitened = true, .hybrid = true},
                                  {.kind = SP_MGGP_SVGP},
                                  {.kind = SP_MGGP_SVGP, .whitened = true, .diagonal = true},
                                  {.kind = SP_LCGP, .hybrid = true},
                                  {.kind = SP_MGGP_LCGP},
                                  {.kind = SP_MGGP_LCGP, .hybrid = true}};
    for (size_t k = 0; k < sizeof all / sizeof all[0]; k++) {
        sg_world w = open_world(&all[k], FTH_F64);
        fth_tensor *own[3] = {0}, *ell = w.model.param[SP_P_ELL];
        const double before = w.model.set.lengthscale;
        predict(&w, own);
        w.model.param[SP_P_ELL] = NULL;
        w.model.set.train_lengthscale = false;
        for (int64_t l = 0; l < SG_FACTORS; l++) {
            fth_tensor *one[3] = {0};
            w.model.set.lengthscale = exp(sg_at(ell, l));
            predict(&w, one);
            const int64_t factors = sp_factors(&w.model.set),
                          blocks = own[2] ? w.model.set.n_groups : 0;
            for (int64_t n = 0; n < SG_CELLS; n++) {
                const int64_t at = l * SG_CELLS + n;
                NEAR(sg_at(own[0], at), sg_at(one[0], at), 1e-9);
                NEAR(sg_at(own[1], at), sg_at(one[1], at), 1e-9);
                for (int64_t g = 0; g < blocks; g++)
                    NEAR(sg_at(own[2], g * factors * SG_CELLS + at),
                         sg_at(one[2], g * factors * SG_CELLS + at), 1e-8);
            }
            for (int i = 0; i < 3; i++) fth_tensor_release(one[i]);
        }
        for (int i = 0; i < 3; i++) fth_tensor_release(own[i]);
        w.model.param[SP_P_ELL] = ell;
        w.model.set.lengthscale = before;
        close_world(&w);
    }
}

/* ---- training ---- */

/* The config of the bench with trained lengthscales. */
static ss_bench *open_training(const char *name, sp_kind kind, const char *model, const char *more)
{
    ss_bench *b = ss_open(name, kind, more);
    char before[4000], text[4400];
    char *at = strstr((char *)(uintptr_t)ss_config(before, sizeof before, kind, more), "model:");
    at[6] = '\0'; /* the end of its line */
    snprintf(text, sizeof text, "%s\n  train_lengthscale: true\n%s%s", before, model, at + 7);
    OK(fth_config_destroy(b->cfg, NULL));
    OK(fth_config_create(&b->cfg, b->mem, NULL));
    OKE(fth_config_parse(b->cfg, "c.yaml", text, strlen(text), &b->err), &b->err);
    OKE(fth_config_check(b->cfg, &sp_schema, NULL, &b->err), &b->err);
    b->job.config = b->cfg;
    return b;
}

static void same_results(const ss_bench *a, const ss_bench *b)
{
    ss_same(a, b, SP_CHECKPOINT);
    ss_same(a, b, SP_ELBO_NPY);
    ss_same(a, b, SP_TRAINING);
}

static void read_model(sp_model *m, const ss_bench *b)
{
    fth_err err = {0};
    char path[PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/%s/" SP_CHECKPOINT, b->dir, b->job.model);
    OKE(sp_model_read(m, b->mem, path, NULL, true, true, &err), &err);
}

static const struct {
    sp_kind kind;
    const char *model;
} trained[] = {{SP_SVGP, "  parametrization: whitened\n"},
               {SP_SVGP, "  diagonal_only: true\n  likelihood: nb\n"},
               {SP_MGGP_SVGP, "  nonspatial_components: 2\n  init: nmf\n"},
               {SP_MGGP_SVGP, "  parametrization: whitened\n  cholesky_mode: softplus\n"},
               {SP_LCGP, "  likelihood: nb\n"},
               {SP_MGGP_LCGP, "  nonspatial_components: 2\n"}};
enum { TRAINED = sizeof trained / sizeof trained[0] };

TEST(budget_and_threads_do_not_matter)
{
    for (int k = 0; k < TRAINED; k++) {
        char one[32], two[32];
        sp_model m;
        snprintf(one, sizeof one, "one_%d", k);
        snprintf(two, sizeof two, "two_%d", k);
        ss_bench *a = open_training(one, trained[k].kind, trained[k].model, "  moments: memory\n"),
                 *b = open_training(two, trained[k].kind, trained[k].model, "  moments: memory\n");
        a->budget = (uint64_t)8 << 30;
        a->threads = 1;
        b->budget = (uint64_t)96 << 20;
        OKE(ss_train(a), &a->err);
        OKE(ss_train(b), &b->err);
        same_results(a, b);
        IS_TRUE(b->result.held_bytes > 0);
        IS_TRUE(b->result.held_bytes <= b->result.plan.host_bytes);
        read_model(&m, a);
        EQ_I64(fth_tensor_size(m.param[SP_P_ELL], 0), 3);
        EQ_I64(m.ell_steps, 9); /* of 12: 0.3 of them are a warm-up */
        EQ_I64(m.optimizer_steps, 12);
        for (int64_t l = 0; l < 3; l++) {
            IS_TRUE(sp_model_lengthscale(&m, l) != 8.0);
            IS_TRUE(fabs(log(sp_model_lengthscale(&m, l) / 8.0)) < 9 * 0.02 * 1.5);
        }
        sp_model_clear(&m);
        ss_close(a);
        ss_close(b);
    }
}

/* Before lengthscales start to move, in the step in which they do, and after it. */
TEST(a_cancelled_run_goes_on_to_the_same_bytes)
{
    static const char *const video[] = {"video", NULL};
    static const int some[] = {0, 1, TRAINED - 1};
    for (int i = 0; i < 3; i++) {
        const int k = some[i];
        char name[32];
        snprintf(name, sizeof name, "whole_%d", k);
        ss_bench *a =
            open_training(name, trained[k].kind, trained[k].model, "  moments: scratch\n");
        a->flags = video;
        OKE(ss_train(a), &a->err);
        for (int64_t stop = 2; stop < 6; stop++) {
            snprintf(name, sizeof name, "parts_%d_%d", k, (int)stop);
            ss_bench *b =
                open_training(name, trained[k].kind, trained[k].model, "  moments: scratch\n");
            b->flags = video;
            b->stop_after = stop;
            IS(ss_train(b), FTH_E_CANCELLED);
            b->stop_after = 0;
            OKE(ss_train(b), &b->err);
            same_results(a, b);
            ss_same(a, b, SP_FRAMES);
            ss_close(b);
        }
        ss_close(a);
    }
}

/* Another cycle starts with the lengthscales of the last: there is no warm-up. */
TEST(another_cycle_moves_lengthscales_from_its_first_step)
{
    static const char *const fresh[] = {"resume", NULL}, *const stored[] = {"resume-optimizer",
                                                                            NULL};
    for (int k = 0; k < 2; k++) {
        sp_model m;
        ss_bench *b = open_training(k ? "stored" : "fresh", SP_SVGP, trained[0].model, NULL);
        OKE(ss_train(b), &b->err);
        b->flags = k ? stored : fresh;
        OKE(ss_train(b), &b->err);
        read_model(&m, b);
        EQ_I64(m.iterations, 24);
        EQ_I64(m.ell_steps, k ? 21 : 12);
        sp_model_clear(&m);
        ss_close(b);
    }
}

/* The steps before are those of a model that does not train them. */
TEST(a_warm_up_is_the_training_of_a_model_with_one_lengthscale)
{
    ss_bench *a = open_training("warm", SP_SVGP, "",
                                "  scheduler: none\n  lengthscale_warmup: 0.99\n"
                                "  lengthscale_rate: 1.5\n"),
             *b = ss_open("plain", SP_SVGP, "  scheduler: none\n");
    OKE(ss_train(a), &a->err);
    OKE(ss_train(b), &b->err);
    sp_model one, two;
    read_model(&one, a);
    read_model(&two, b);
    EQ_I64(one.ell_steps, 1);
    for (int64_t l = 0; l < 3; l++) /* Adam's first step has the size of the rate */
        NEAR(fabs(log(sp_model_lengthscale(&one, l) / 8.0)), 1.5 * 0.02, 1e-6);
    SAME_BYTES(fth_tensor_data(one.history), fth_tensor_data(two.history), 11 * sizeof(double));
    IS_TRUE(!two.param[SP_P_ELL]);
    sp_model_clear(&one);
    sp_model_clear(&two);
    ss_close(a);
    ss_close(b);
}

/* A model without them has a file as before. */
TEST(files_of_other_models_are_as_before)
{
    size_t n;
    ss_bench *b = ss_open("off", SP_SVGP, NULL);
    OKE(ss_train(b), &b->err);
    char *file = (char *)ss_file(b, SP_CHECKPOINT, &n), *json = (char *)ss_file(b, SP_TRAINING, &n);
    uint64_t header;
    memcpy(&header, file, sizeof header);
    file[8 + header] = '\0';
    IS_TRUE(strstr(file + 8, "lengthscale_") == NULL);
    IS_TRUE(strstr(file + 8, "train_lengthscale") == NULL);
    IS_TRUE(strstr(file + 8, "log_ell") == NULL);
    IS_TRUE(memmem(json, n, "lengthscale_", strlen("lengthscale_")) == NULL);
    IS_TRUE(memmem(json, n, "train_lengthscale", strlen("train_lengthscale")) == NULL);
    free(file);
    free(json);
    ss_close(b);
}

TEST_MAIN()
