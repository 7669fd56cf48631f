/* test_spatial_hybrid.c - factors without positions beside spatial ones: gradients through both
 * priors by central differences, predictions, files, and the bits of training.
 * seconds: 2
 */
#include "testing/spatial/spatial_priors.h"
#include "testing/spatial/spatial_training.h"

#include "instruments/spatial/statistics/moran.h"

enum { OTHERS = 2, ALL = SG_FACTORS + OTHERS };

static void set_at(fth_tensor *t, int64_t i, double v)
{
    if (fth_tensor_dtype(t) == FTH_F64)
        ((double *)fth_tensor_data(t))[i] = v;
    else
        ((float *)fth_tensor_data(t))[i] = (float)v;
}

/* The golden model of a kind with two further factors. */
static sg_world open_hybrid(sp_kind kind, fth_dtype real)
{
    sg_world w = sg_open(kind, sp_kinds[kind].name, real, sg_context(2, 0, NULL));
    t_random r = t_random_make(11);
    const int64_t size[2] = {OTHERS, SG_CELLS}, loadings[2] = {SG_GENES, ALL};
    w.model.set.nonspatial_components = OTHERS;
    fth_tensor *mean = sg_tensor(w.mem, "mean", real, 2, size),
               *raw = sg_tensor(w.mem, "raw", real, 2, size),
               *W = sg_tensor(w.mem, "W", real, 2, loadings);
    for (int64_t i = 0; i < OTHERS * SG_CELLS; i++) {
        set_at(mean, i, t_random_normal(&r));
        set_at(raw, i, -1.0 + 0.3 * t_random_normal(&r));
    }
    for (int64_t i = 0; i < SG_GENES * ALL; i++) set_at(W, i, 0.5 + t_random_f64(&r));
    fth_tensor_release(w.model.param[SP_P_W]);
    w.model.param[SP_P_W] = W;
    w.model.param[SP_P_MEAN] = mean;
    w.model.param[SP_P_RAW] = raw;
    return w;
}

static void close_hybrid(sg_world *w)
{
    fth_err err = {0};
    fth_context *ctx = w->ctx;
    sg_close(w);
    OKE(fth_context_destroy(ctx, &err), &err);
}

/* ---- a step of the prior ---- */

typedef struct step {
    sp_prior prior;
    sp_model_graph net;
    fth_val f, s, kl, grad[SP_PARAMS];
    fth_tensor *gf, *gs;
} step;

static void step_open(step *t, sg_world *w, double b)
{
    fth_err err = {0};
    t_random r = t_random_make(5);
    const int64_t size[2] = {ALL, SG_BATCH};
    *t = (step){.prior = {.ops = sp_prior_for(&w->model.set),
                          .ctx = w->ctx,
                          .model = &w->model,
                          .data = &w->data}};
    OKE(t->prior.ops->open(&t->prior, &err), &err);
    OKE(sp_model_graph_create(&t->net, w->ctx, &w->model, true, SG_CELLS, &err), &err);
    fth_axis(t->net.g, "cellb", SG_BATCH);
    t->net.idx = fth_input(t->net.g, "idx", FTH_I64, "cellb", fth_tensor_source(w->idx));
    OKE(t->prior.ops->marginals(&t->prior, &t->net, &t->f, &t->s, &err), &err);
    t->gf = sg_tensor(w->mem, "gf", w->model.real, 2, size);
    t->gs = sg_tensor(w->mem, "gs", w->model.real, 2, size);
    for (int64_t i = 0; i < ALL * SG_BATCH; i++) {
        set_at(t->gf, i, t_random_normal(&r));
        set_at(t->gs, i, t_random_normal(&r));
    }
    const fth_val gf =
        fth_input(t->net.g, "gf", w->model.real, "factor cellb", fth_tensor_source(t->gf));
    const fth_val gs =
        fth_input(t->net.g, "gs", w->model.real, "factor cellb", fth_tensor_source(t->gs));
    OKE(t->prior.ops->gradients(&t->prior, &t->net, gf, gs, b, &t->kl, t->grad, &err), &err);
    OKE(t->prior.ops->ask(&t->prior, fth_tensor_data(w->idx), SG_BATCH, &err), &err);
    OKE(t->prior.ops->take(&t->prior, &t->net, &err), &err);
}

static void step_close(step *t)
{
    sp_model_graph_destroy(&t->net);
    t->prior.ops->close(&t->prior);
    fth_tensor_release(t->gf);
    fth_tensor_release(t->gs);
}

/* gf.f + gs.s + b KL + N/Nb KL of the factors without positions, with its gradients if asked. */
static double loss_of(sg_world *w, double b, fth_tensor *grad[SP_PARAMS])
{
    step t;
    fth_tensor *out[4 + SP_PARAMS];
    fth_val v[4 + SP_PARAMS];
    int n = 4;
    step_open(&t, w, b);
    v[0] = t.f, v[1] = t.s, v[2] = t.kl, v[3] = t.prior.kl_cells;
    for (int p = 0; grad && p < SP_PARAMS; p++)
        if (p != SP_P_W && w->model.param[p]) v[n++] = t.grad[p];
    sg_run(w->mem, t.net.g, v, n, 0, out);
    double sum = b * sg_at(out[2], 0) + (double)SG_CELLS / SG_BATCH * sg_at(out[3], 0);
    for (int64_t i = 0; i < ALL * SG_BATCH; i++)
        sum += sg_at(t.gf, i) * sg_at(out[0], i) + sg_at(t.gs, i) * sg_at(out[1], i);
    for (int i = 0; i < 4; i++) fth_tensor_release(out[i]);
    n = 4;
    for (int p = 0; grad && p < SP_PARAMS; p++)
        grad[p] = p != SP_P_W && w->model.param[p] ? out[n++] : NULL;
    step_close(&t);
    return sum;
}

static void central_differences(sp_kind kind, bool whitened)
{
    sg_world w = open_hybrid(kind, FTH_F64);
    fth_tensor *grad[SP_PARAMS];
    const double b = 3.0, h = 1e-5;
    t_random r = t_random_make(3);
    w.model.set.parametrization = whitened ? SP_WHITENED : SP_RAW;
    (void)loss_of(&w, b, grad);
    int seen = 0;
    for (int p = 0; p < SP_PARAMS; p++) {
        fth_tensor *param = w.model.param[p];
        if (!grad[p]) continue;
        seen++;
        EQ_I64(sg_count(grad[p]), sg_count(param));
        for (int k = 0; k < 5; k++) {
            int64_t i = (int64_t)(t_random_f64(&r) * (double)sg_count(param));
            if (p == SP_P_LU) /* on the diagonal, and below it */
                i = k % 2 ? i / 900 * 900 + i % 30 * 31 : i / 900 * 900 + (1 + i % 29) * 30;
            if (p == SP_P_MEAN || p == SP_P_RAW || w.model.set.local) /* a cell of the batch */
                i = p == SP_P_LAM
                        ? (k % SG_FACTORS * SG_CELLS + (int64_t)sg_at(w.idx, 7 + k)) * 6 + k
                        : (int64_t)sg_at(w.idx, 3 * k) +
                              k % (p == SP_P_MU ? SG_FACTORS : OTHERS) * SG_CELLS;
            const double at = sg_at(param, i), want = sg_at(grad[p], i);
            set_at(param, i, at + h);
            const double up = loss_of(&w, b, NULL);
            set_at(param, i, at - h);
            const double down = loss_of(&w, b, NULL);
            set_at(param, i, at);
            const double found = (up - down) / (2 * h);
            if (fabs(found - want) > 2e-5 * (1 + fabs(want)))
                FAIL("%s: slope in %s[%lld] is %g, central differences give %g",
                     sp_kinds[kind].name, sp_param_name((sp_param)p), (long long)i, want, found);
        }
    }
    EQ_I64(seen, 4); /* two of each prior */
    for (int p = 0; p < SP_PARAMS; p++) fth_tensor_release(grad[p]);
    close_hybrid(&w);
}

TEST(gradients_of_both_priors_are_those_of_central_differences)
{
    central_differences(SP_SVGP, false);
    central_differences(SP_SVGP, true);
    central_differences(SP_MGGP_SVGP, false);
    central_differences(SP_LCGP, false);
    central_differences(SP_MGGP_LCGP, false);
}

/* Spatial factors first, with the bits they have alone; then those of pnmf. */
TEST(factors_of_a_step_are_joined)
{
    static const sp_kind kinds[] = {SP_SVGP, SP_MGGP_LCGP};
    for (int k = 0; k < 2; k++) {
        sg_world w = open_hybrid(kinds[k], FTH_F32);
        fth_tensor *out[2], *alone[2];
        step t;
        step_open(&t, &w, 2.0);
        sg_run(w.mem, t.net.g, (fth_val[]){t.f, t.s}, 2, 0, out);
        step_close(&t);
        sg_world one = sg_open(kinds[k], sp_kinds[kinds[k]].name, FTH_F32, w.ctx);
        sg_step s;
        sg_step_open(&s, &one, 2.0);
        sg_run(w.mem, s.net.g, (fth_val[]){s.f, s.s}, 2, 0, alone);
        sg_step_close(&s);
        for (int i = 0; i < 2; i++)
            SAME_BYTES(fth_tensor_data(out[i]), fth_tensor_data(alone[i]),
                       SG_FACTORS * SG_BATCH * sizeof(float));
        for (int64_t l = 0; l < OTHERS; l++)
            for (int64_t n = 0; n < SG_BATCH; n++) {
                const int64_t at = l * SG_CELLS + (int64_t)sg_at(w.idx, n),
                              to = (SG_FACTORS + l) * SG_BATCH + n;
                EQ_F64(sg_at(out[0], to), sg_at(w.model.param[SP_P_MEAN], at));
                NEAR(sg_at(out[1], to), log1p(exp(sg_at(w.model.param[SP_P_RAW], at))), 1e-6);
            }
        for (int i = 0; i < 2; i++) {
            fth_tensor_release(out[i]);
            fth_tensor_release(alone[i]);
        }
        sg_close(&one);
        close_hybrid(&w);
    }
}

/* ---- predictions ---- */

static void predict(sg_world *w, bool trained, fth_tensor *out[3])
{
    sp_model_graph net;
    fth_err err = {0};
    fth_val v[3] = {{0}};
    OKE(sp_model_graph_create(&net, w->ctx, &w->model, false, SG_CELLS, &err), &err);
    sp_query q = sg_query(w, &net, w->data.xy, w->data.group, w->model.nbr_inf);
    q.trained = trained;
    OKE(sp_predict(&net, &q, &v[0], &v[1], &err), &err);
    if (w->model.set.groups) OKE(sp_predict_groups(&net, &q, &v[2], &err), &err);
    sg_run(w->mem, net.g, v, w->model.set.groups ? 3 : 2, 0, out);
    sp_model_graph_destroy(&net);
}

/* The mean over the training cells of exp(f + half s^2) of one factor without positions. */
static double mean_of_training(const sg_world *w, int64_t l, double half)
{
    double sum = 0;
    for (int64_t i = l * SG_CELLS; i < (l + 1) * SG_CELLS; i++) {
        const double s = log1p(exp(sg_at(w->model.param[SP_P_RAW], i)));
        sum += exp(sg_at(w->model.param[SP_P_MEAN], i) + half * s * s);
    }
    return sum / SG_CELLS;
}

TEST(other_cells_have_the_means_of_factors_without_positions)
{
    static const sp_kind kinds[] = {SP_SVGP, SP_MGGP_SVGP, SP_LCGP, SP_MGGP_LCGP};
    for (int k = 0; k < 4; k++) {
        sg_world w = open_hybrid(kinds[k], FTH_F64);
        fth_tensor *own[3] = {0}, *other[3] = {0};
        predict(&w, true, own);
        predict(&w, false, other);
        SAME_BYTES(fth_tensor_data(own[0]), fth_tensor_data(other[0]),
                   SG_FACTORS * SG_CELLS * sizeof(double));
        for (int64_t i = 0; i < OTHERS * SG_CELLS; i++) {
            const int64_t at = SG_FACTORS * SG_CELLS + i;
            EQ_F64(sg_at(own[0], at), sg_at(w.model.param[SP_P_MEAN], i));
            NEAR(sg_at(own[1], at), log1p(exp(sg_at(w.model.param[SP_P_RAW], i))), 1e-12);
            const double f = sg_at(other[0], at), s = sg_at(other[1], at);
            NEAR(exp(f), mean_of_training(&w, i / SG_CELLS, 0.0), 1e-12);
            NEAR(exp(f + s * s / 2), mean_of_training(&w, i / SG_CELLS, 0.5), 1e-12);
        }
        for (int64_t g = 0; own[2] && g < 4; g++) /* whatever the group */
            for (int64_t i = 0; i < OTHERS * SG_CELLS; i++)
                EQ_F64(sg_at(own[2], (g * ALL + SG_FACTORS) * SG_CELLS + i),
                       sg_at(w.model.param[SP_P_MEAN], i));
        for (int i = 0; i < 3; i++) {
            fth_tensor_release(own[i]);
            fth_tensor_release(other[i]);
        }
        close_hybrid(&w);
    }
}

TEST(spatial_factors_come_first_each_kind_in_its_order)
{
    int64_t order[] = {4, 1, 3, 0, 2};
    sp_moran m = {.factors = 5, .order = order};
    sp_moran_split(&m, 3);
    const int64_t want[] = {1, 0, 2, 4, 3};
    SAME_BYTES(order, want, sizeof want);
    sp_moran_split(&m, 5);
    SAME_BYTES(order, want, sizeof want);
}

/* ---- training ---- */

/* The config of the bench with two further factors, and another start. */
static ss_bench *open_training(const char *name, sp_kind kind, const char *more, const char *start)
{
    ss_bench *b = ss_open(name, kind, more);
    char before[4000], text[4200];
    char *model = strstr((char *)(uintptr_t)ss_config(before, sizeof before, kind, more), "model:");
    model[6] = '\0'; /* the end of its line */
    snprintf(text, sizeof text, "%s\n  nonspatial_components: 2\n  init: %s\n%s", before, start,
             model + 7);
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

TEST(budget_and_threads_do_not_matter)
{
    static const sp_kind kinds[] = {SP_SVGP, SP_MGGP_SVGP, SP_LCGP, SP_MGGP_LCGP};
    static const char *const start[] = {"nmf", "random", "nndsvd", "nmf"};
    for (int k = 0; k < 4; k++) {
        char one[32], two[32];
        snprintf(one, sizeof one, "one_%d", k);
        snprintf(two, sizeof two, "two_%d", k);
        ss_bench *a = open_training(one, kinds[k], "  moments: memory\n", start[k]),
                 *b = open_training(two, kinds[k], "  moments: memory\n", start[k]);
        a->budget = (uint64_t)8 << 30;
        a->threads = 1;
        b->budget = (uint64_t)96 << 20;
        OKE(ss_train(a), &a->err);
        OKE(ss_train(b), &b->err);
        same_results(a, b);
        IS_TRUE(b->result.held_bytes > 0);
        IS_TRUE(b->result.held_bytes <= b->result.plan.host_bytes);
        ss_close(a);
        ss_close(b);
    }
}

TEST(a_cancelled_run_of_a_hybrid_goes_on_to_the_same_bytes)
{
    static const sp_kind kinds[] = {SP_SVGP, SP_MGGP_LCGP};
    static const char *const video[] = {"video", NULL};
    for (int k = 0; k < 2; k++) {
        char one[32], two[32];
        snprintf(one, sizeof one, "whole_%d", k);
        snprintf(two, sizeof two, "parts_%d", k);
        ss_bench *a = open_training(one, kinds[k], "  moments: scratch\n", "nmf"),
                 *b = open_training(two, kinds[k], "  moments: scratch\n", "nmf");
        a->flags = b->flags = video;
        OKE(ss_train(a), &a->err);
        b->stop_after = 5;
        IS(ss_train(b), FTH_E_CANCELLED);
        b->stop_after = 0;
        OKE(ss_train(b), &b->err);
        HAS(b->said, "continuing after iteration 5 of 12");
        same_results(a, b);
        ss_same(a, b, SP_FRAMES);
        ss_close(a);
        ss_close(b);
    }
}

static void read_file(sp_model *m, const ss_bench *b, fth_status want, fth_err *err)
{
    char path[PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/%s/" SP_CHECKPOINT, b->dir, b->job.model);
    IS(sp_model_read(m, b->mem, path, NULL, true, true, err), want);
}

/* A model without such factors has a file as before: neither setting nor axis is new. */
TEST(files_of_other_models_are_as_before)
{
    size_t n;
    sp_model m;
    fth_err err = {0};
    ss_bench *b = ss_open("plain", SP_SVGP, NULL);
    OKE(ss_train(b), &b->err);
    char *file = (char *)ss_file(b, SP_CHECKPOINT, &n), *json = (char *)ss_file(b, SP_TRAINING, &n);
    uint64_t header;
    memcpy(&header, file, sizeof header);
    file[8 + header] = '\0';
    IS_TRUE(strstr(file + 8, "nonspatial") == NULL);
    IS_TRUE(strstr(file + 8, "sfactor") == NULL);
    IS_TRUE(memmem(json, n, "nonspatial", strlen("nonspatial")) == NULL);
    read_file(&m, b, FTH_OK, &err);
    EQ_I64(m.set.nonspatial_components, 0);
    EQ_I64(sp_factors(&m.set), 3);
    sp_model_clear(&m);
    free(file);
    free(json);
    ss_close(b);
}

TEST(the_file_of_a_hybrid_holds_both_priors)
{
    sp_model m;
    fth_err err = {0};
    ss_bench *b = open_training("hybrid", SP_LCGP, NULL, "random");
    OKE(ss_train(b), &b->err);
    read_file(&m, b, FTH_OK, &err);
    EQ_I64(m.set.n_components, 3);
    EQ_I64(m.set.nonspatial_components, 2);
    EQ_I64(fth_tensor_size(m.param[SP_P_W], 1), 5);
    EQ_I64(fth_tensor_size(m.param[SP_P_MU], 0), 3);
    EQ_I64(fth_tensor_size(m.param[SP_P_LAM], 0), 3);
    EQ_I64(fth_tensor_size(m.param[SP_P_MEAN], 0), 2);
    EQ_I64(fth_tensor_size(m.first[SP_P_RAW], 0), 2);
    m.set.spatial = m.set.local = false; /* a file that contradicts itself */
    m.set.M = m.set.K = m.set.R = 0;
    sp_settings_derive(&m.set);
    m.set.kind = SP_PNMF;
    char path[PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/%s/" SP_CHECKPOINT, b->dir, b->job.model);
    fth_tensor *const gone[] = {m.param[SP_P_MU], m.param[SP_P_LAM]};
    m.param[SP_P_MU] = m.param[SP_P_LAM] = NULL;
    OKE(sp_model_write(&m, path, false, NULL, 0, &err), &err);
    for (int i = 0; i < 2; i++) fth_tensor_release(gone[i]);
    sp_model_clear(&m);
    read_file(&m, b, FTH_E_FILE_KEY, &err);
    HAS(err.text, "nonspatial_components is 2, but pnmf has no spatial factors beside them");
    ss_close(b);
}

TEST(pnmf_has_no_factors_beside_its_own)
{
    ss_bench *b = open_training("pnmf", SP_PNMF, NULL, "random");
    OKE(ss_train(b), &b->err);
    HAS(b->said, "note: nonspatial_components 2 -> 0 (pnmf has no spatial factors");
    ss_close(b);
}

TEST_MAIN()
