/* test_spatial_local.c - lcgp and mggp_lcgp against the golden set: marginals, KL of every cell,
 * gradients, predictions, means as if of each group; f64 to 1e-10, f32 to 2e-5.
 * seconds: 2
 */
#include "testing/spatial/spatial_priors.h"

#include "instruments/spatial/prior/local.h"

static void near_golden(sg_world *w, const char *what, fth_tensor *got, double tol)
{
    fth_tensor *want = sg_load(w->mem, w->file, what, FTH_F64);
    sg_near(what, got, want, tol);
    fth_tensor_release(want);
}

static void check_step(sg_world *w, double tol)
{
    const double b = (double)SG_CELLS / SG_BATCH;
    sg_step t;
    sg_step_open(&t, w, b);
    fth_tensor *fs[2], *out[3];
    sg_run(w->mem, t.net.g, (fth_val[]){t.f, t.s}, 2, 0, fs);
    near_golden(w, "q_mean", fs[0], tol);
    near_golden(w, "q_sd", fs[1], tol);
    const double ell = sg_slopes(w, fs[0], fs[1], t.gf, t.gs);
    const double golden_ell = sg_scalar(w->mem, w->file, "expanded_ell");
    NEAR(ell, golden_ell, tol * fabs(golden_ell));
    sg_run(w->mem, t.net.g, (fth_val[]){t.kl, t.grad[SP_P_MU], t.grad[SP_P_LAM]}, 3, 0, out);
    const double kl = sg_scalar(w->mem, w->file, "expanded_kl");
    NEAR(b * sg_at(out[0], 0), kl, tol * kl);
    near_golden(w, "expanded_g_mu", out[1], tol);
    near_golden(w, "expanded_g_Lu", out[2], tol < 6e-8 ? 6e-8 : tol); /* stored in f32 */
    for (int i = 0; i < 3; i++) fth_tensor_release(out[i]);
    fth_tensor_release(fs[0]);
    fth_tensor_release(fs[1]);
    sg_step_close(&t);
}

/* KL of every cell, all factors, with a batch of all cells. */
static void check_points(sg_world *w, double tol)
{
    fth_tensor *batch = w->idx, *all = sg_tensor(w->mem, "all", FTH_I64, 1, (int64_t[]){SG_CELLS});
    for (int64_t i = 0; i < SG_CELLS; i++) ((int64_t *)fth_tensor_data(all))[i] = i;
    fth_err err = {0};
    sp_model_graph net;
    sp_prior prior = {.ops = sp_prior_of(w->model.set.kind), .ctx = w->ctx, .model = &w->model};
    w->model.set.batch_size = SG_CELLS;
    OKE(prior.ops->open(&prior, &err), &err);
    OKE(sp_model_graph_create(&net, w->ctx, &w->model, true, SG_CELLS, &err), &err);
    fth_axis(net.g, "cellb", SG_CELLS);
    net.idx = fth_input(net.g, "idx", FTH_I64, "cellb", fth_tensor_source(all));
    fth_val f, s;
    OKE(prior.ops->marginals(&prior, &net, &f, &s, &err), &err);
    const fth_val terms = sp_local_terms(sp_local_batch_of(&prior));
    const fth_val each = fth_sum(fth_out(terms, SP_TERM_KL), "factor");
    fth_tensor *out;
    sg_run(w->mem, net.g, &each, 1, 0, &out);
    near_golden(w, "kl_per_point", out, tol);
    fth_tensor_release(out);
    fth_tensor_release(all);
    sp_model_graph_destroy(&net);
    prior.ops->close(&prior);
    w->model.set.batch_size = SG_BATCH;
    w->idx = batch;
}

static void check_prediction(sg_world *w, double tol)
{
    fth_tensor *out[2];
    sg_predict(w, w->data.xy, w->data.group, 0, out);
    near_golden(w, "predict_mean", out[0], tol);
    near_golden(w, "predict_sd", out[1], tol);
    fth_tensor_release(out[0]);
    fth_tensor_release(out[1]);
}

static void check_model(sp_kind kind, const char *name)
{
    for (int wide = 0; wide < 2; wide++) {
        fth_context *ctx = sg_context(2, 0, NULL);
        sg_world w = sg_open(kind, name, wide ? FTH_F64 : FTH_F32, ctx);
        const double tol = wide ? 1e-10 : 2e-5;
        check_step(&w, tol);
        check_points(&w, tol);
        check_prediction(&w, tol);
        sg_close(&w);
        OK(fth_context_destroy(ctx, NULL));
    }
}

TEST(lcgp)
{
    check_model(SP_LCGP, "lcgp");
}

TEST(mggp_lcgp)
{
    check_model(SP_MGGP_LCGP, "mggp_lcgp");
}

/* The golden means are stored in f32. Distances given as a table are the default by another way. */
TEST(as_if_of_each_group)
{
    const int64_t each = SG_FACTORS * SG_CELLS;
    for (int wide = 0; wide < 2; wide++) {
        fth_context *ctx = sg_context(2, 0, NULL);
        sg_world w = sg_open(SP_MGGP_LCGP, "mggp_lcgp", wide ? FTH_F64 : FTH_F32, ctx);
        const double tol = wide ? 3e-7 : 2e-5;
        fth_tensor *equal = sg_as_groups(&w);
        for (int g = 0; g < 4; g++) {
            char name[40];
            snprintf(name, sizeof name, "predict_mean_as_group%d", g);
            fth_tensor *want = sg_load(w.mem, w.file, name, FTH_F64);
            for (int64_t i = 0; i < each; i++)
                NEAR(sg_at(equal, g * each + i), sg_at(want, i), tol);
            fth_tensor_release(want);
        }
        w.model.distance = sg_load(w.mem, "kernels", "group_d2", FTH_F64);
        fth_tensor *table = sg_as_groups(&w);
        sg_near("by table", table, equal, wide ? 1e-12 : 1e-6);
        fth_tensor_release(equal);
        fth_tensor_release(table);
        sg_close(&w);
        OK(fth_context_destroy(ctx, NULL));
    }
}

TEST(the_mean_alone)
{
    fth_context *ctx = sg_context(1, 0, NULL);
    sg_world w = sg_open(SP_MGGP_LCGP, "mggp_lcgp", FTH_F64, ctx);
    fth_tensor *f = sg_means(&w, sp_predict_mean_local);
    near_golden(&w, "predict_mean", f, 1e-10);
    fth_tensor_release(f);
    sg_close(&w);
    OK(fth_context_destroy(ctx, NULL));
}

/* ---- the same bits however cells are cut ---- */

/* Rows [from, from + n) of the golden cells. */
static fth_tensor *rows(fth_mem *mem, fth_tensor *t, int64_t from, int64_t n)
{
    const int64_t size[2] = {n, fth_tensor_axes(t) > 1 ? fth_tensor_size(t, 1) : 1};
    fth_tensor *some = sg_tensor(mem, "rows", fth_tensor_dtype(t), fth_tensor_axes(t), size);
    const int64_t each = size[1] * fth_dtype_size(fth_tensor_dtype(t));
    memcpy(fth_tensor_data(some), (char *)fth_tensor_data(t) + from * each, (size_t)(n * each));
    return some;
}

static void predict_in_pieces(sg_world *w, int64_t piece, float *to[2])
{
    for (int64_t at = 0; at < SG_CELLS; at += piece) {
        const int64_t n = SG_CELLS - at < piece ? SG_CELLS - at : piece;
        fth_tensor *xy = rows(w->mem, w->data.xy, at, n),
                   *group = rows(w->mem, w->data.group, at, n),
                   *nbr = rows(w->mem, w->model.nbr_inf, at, n), *out[2];
        sg_predict_given(w, xy, group, nbr, 0, out);
        for (int o = 0; o < 2; o++) {
            for (int64_t i = 0; i < SG_FACTORS * n; i++)
                to[o][i / n * SG_CELLS + at + i % n] = ((float *)fth_tensor_data(out[o]))[i];
            fth_tensor_release(out[o]);
        }
        fth_tensor_release(xy);
        fth_tensor_release(group);
        fth_tensor_release(nbr);
    }
}

TEST(pieces_and_workers_do_not_change_a_bit)
{
    static float whole[2][SG_FACTORS * SG_CELLS], part[2][SG_FACTORS * SG_CELLS];
    static const int64_t piece[] = {1, 7, SG_CELLS};
    for (int threads = 1; threads <= 2; threads++)
        for (int i = 2; i >= 0; i--) {
            fth_context *ctx = sg_context(threads, 0, NULL);
            sg_world w = sg_open(SP_MGGP_LCGP, "mggp_lcgp", FTH_F32, ctx);
            const bool first = threads == 1 && i == 2;
            predict_in_pieces(&w, piece[i],
                              first ? (float *[2]){whole[0], whole[1]}
                                    : (float *[2]){part[0], part[1]});
            for (int o = 0; !first && o < 2; o++) SAME_BYTES(part[o], whole[o], sizeof whole[o]);
            sg_close(&w);
            OK(fth_context_destroy(ctx, NULL));
        }
}

static fth_tensor *copy_of(fth_mem *mem, fth_tensor *t)
{
    int64_t size[FTH_MAX_AXES];
    for (int d = 0; d < fth_tensor_axes(t); d++) size[d] = fth_tensor_size(t, d);
    fth_tensor *c = sg_tensor(mem, "copy", fth_tensor_dtype(t), fth_tensor_axes(t), size);
    memcpy(fth_tensor_data(c), fth_tensor_data(t), (size_t)fth_tensor_bytes(t));
    return c;
}

/* The gradient in any number of pieces of the cells. */
TEST(gradients_have_the_same_bits_in_any_memory)
{
    fth_tensor *first[3] = {0}, *out[3];
    fth_context *keep = sg_context(1, 0, NULL);
    for (int how = 0; how < 4; how++) {
        fth_context *ctx = sg_context(1 + how % 2, 0, NULL);
        sg_world w = sg_open(SP_LCGP, "lcgp", FTH_F32, ctx);
        sg_step t;
        sg_step_open(&t, &w, 2.5);
        for (int i = 0; i < SG_FACTORS * SG_BATCH; i++) {
            ((float *)fth_tensor_data(t.gf))[i] = (float)(i % 7) - 3;
            ((float *)fth_tensor_data(t.gs))[i] = (float)(i % 5) - 2;
        }
        sg_run(w.mem, t.net.g, (fth_val[]){t.kl, t.grad[SP_P_MU], t.grad[SP_P_LAM]}, 3,
               how < 2 ? 0 : (uint64_t)(150 + 20 * how) << 10, out);
        for (int i = 0; i < 3; i++) {
            if (how == 0) first[i] = copy_of(fth_context_mem(keep), out[i]);
            SAME_BYTES(fth_tensor_data(out[i]), fth_tensor_data(first[i]),
                       fth_tensor_bytes(out[i]));
            fth_tensor_release(out[i]);
        }
        sg_step_close(&t);
        sg_close(&w);
        OK(fth_context_destroy(ctx, NULL));
    }
    for (int i = 0; i < 3; i++) fth_tensor_release(first[i]);
    OK(fth_context_destroy(keep, NULL));
}

/* While a batch is in use the next one is asked for: neither disturbs the other. */
TEST(batches_asked_for_ahead)
{
    fth_context *ctx = sg_context(2, 0, NULL);
    sg_world w = sg_open(SP_LCGP, "lcgp", FTH_F64, ctx);
    int64_t *idx = fth_tensor_data(w.idx), other[SG_BATCH];
    fth_tensor *out[2][2];
    sg_step t;
    fth_err err = {0};
    sg_step_open(&t, &w, 2.5);
    memset(fth_tensor_data(t.gf), 0, (size_t)fth_tensor_bytes(t.gf));
    memset(fth_tensor_data(t.gs), 0, (size_t)fth_tensor_bytes(t.gs));
    IS(t.prior.ops->ask(&t.prior, idx, SG_BATCH - 1, &err), FTH_E_USAGE);
    for (int64_t i = 0; i < SG_BATCH; i++) other[i] = 2 * i + 1;
    const fth_val grad[2] = {t.grad[SP_P_MU], t.grad[SP_P_LAM]};
    sg_run(w.mem, t.net.g, grad, 2, 0, out[0]);
    OKE(t.prior.ops->ask(&t.prior, other, SG_BATCH, &err), &err);
    sg_run(w.mem, t.net.g, grad, 2, 0, out[1]);
    for (int i = 0; i < 2; i++)
        SAME_BYTES(fth_tensor_data(out[0][i]), fth_tensor_data(out[1][i]),
                   fth_tensor_bytes(out[0][i]));
    for (int i = 0; i < 2; i++) fth_tensor_release(out[1][i]);
    OKE(t.prior.ops->take(&t.prior, &t.net, &err), &err);
    IS(t.prior.ops->take(&t.prior, &t.net, &err), FTH_E_STATE);
    memcpy(idx, other, sizeof other);
    sg_run(w.mem, t.net.g, grad, 2, 0, out[1]);
    double apart = 0;
    for (int64_t i = 0; i < sg_count(out[0][0]); i++)
        apart = fmax(apart, fabs(sg_at(out[0][0], i) - sg_at(out[1][0], i)));
    IS_TRUE(apart > 0.1);
    for (int i = 0; i < 4; i++) fth_tensor_release(out[i / 2][i % 2]);
    sg_step_close(&t);
    sg_close(&w);
    OK(fth_context_destroy(ctx, NULL));
}

TEST_MAIN()
