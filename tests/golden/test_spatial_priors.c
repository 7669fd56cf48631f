/* test_spatial_priors.c - pnmf, svgp and mggp_svgp against the golden set: marginals, KL,
 * gradients, predictions; f64 to 1e-10, f32 to 2e-5.
 *
 * seconds: 2 */
#include "testing/spatial/spatial_priors.h"

static void near_golden(sg_world *w, const char *what, fth_tensor *got, double tol)
{
    fth_tensor *want = sg_load(w->mem, w->file, what, FTH_F64);
    sg_near(what, got, want, tol);
    fth_tensor_release(want);
}

/* Gradients of Lu are stored in f32. */
static double at_least(double tol, double stored)
{
    return tol < stored ? stored : tol;
}

static void check_step(sg_world *w, double tol)
{
    const bool pnmf = w->model.set.kind == SP_PNMF;
    const double b = pnmf ? (double)SG_CELLS / SG_BATCH : 10.0;
    sg_step t;
    sg_step_open(&t, w, b);
    fth_tensor *fs[2], *out[3];
    sg_run(w->mem, t.net.g, (fth_val[]){t.f, t.s}, 2, 0, fs);
    near_golden(w, "q_mean", fs[0], tol);
    near_golden(w, "q_sd", fs[1], tol);
    const double ell = sg_slopes(w, fs[0], fs[1], t.gf, t.gs);
    const double golden_ell = sg_scalar(w->mem, w->file, "expanded_ell");
    NEAR(ell, golden_ell, tol * fabs(golden_ell));
    const fth_val first = t.grad[pnmf ? SP_P_MEAN : SP_P_MU];
    const fth_val second = t.grad[pnmf ? SP_P_RAW : SP_P_LU];
    sg_run(w->mem, t.net.g, (fth_val[]){t.kl, first, second}, 3, 0, out);
    const double kl = sg_scalar(w->mem, w->file, "expanded_kl");
    NEAR(b * sg_at(out[0], 0), kl, tol * kl);
    near_golden(w, "expanded_g_mu", out[1], tol);
    near_golden(w, pnmf ? "expanded_g_sd_raw" : "expanded_g_Lu_raw", out[2],
                pnmf ? tol : at_least(tol, 6e-8));
    for (int i = 0; i < 3; i++) fth_tensor_release(out[i]);
    fth_tensor_release(fs[0]);
    fth_tensor_release(fs[1]);
    sg_step_close(&t);
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
        if (kind != SP_PNMF) {
            w.model.set.max_iter = 1; /* 120 of 300 cells: A is made in the step */
            check_step(&w, tol);
        }
        check_prediction(&w, tol);
        sg_close(&w);
        OK(fth_context_destroy(ctx, NULL));
    }
}

TEST(pnmf)
{
    check_model(SP_PNMF, "pnmf");
}

TEST(svgp)
{
    check_model(SP_SVGP, "svgp");
}

TEST(mggp_svgp)
{
    check_model(SP_MGGP_SVGP, "mggp_svgp");
}

static void compare_groups(sg_world *w, fth_tensor *got, double tol)
{
    const int64_t each = SG_FACTORS * SG_CELLS;
    for (int g = 0; g < 4; g++) {
        char name[40];
        snprintf(name, sizeof name, "predict_mean_as_group%d", g);
        fth_tensor *want = sg_load(w->mem, w->file, name, FTH_F64);
        for (int64_t i = 0; i < each; i++) NEAR(sg_at(got, g * each + i), sg_at(want, i), tol);
        fth_tensor_release(want);
    }
}

/* Stored in f32. Distances of one, given as a table, are the default by another way. */
TEST(as_if_of_each_group)
{
    for (int wide = 0; wide < 2; wide++) {
        fth_context *ctx = sg_context(2, 0, NULL);
        sg_world w = sg_open(SP_MGGP_SVGP, "mggp_svgp", wide ? FTH_F64 : FTH_F32, ctx);
        const double tol = wide ? 3e-7 : 2e-5;
        fth_tensor *equal = sg_as_groups(&w);
        compare_groups(&w, equal, tol);
        w.model.distance = sg_load(w.mem, "kernels", "group_d2", FTH_F64);
        fth_tensor *table = sg_as_groups(&w);
        compare_groups(&w, table, tol);
        sg_near("by table", table, equal, wide ? 1e-12 : 1e-6);
        fth_tensor_release(equal);
        fth_tensor_release(table);
        sg_close(&w);
        OK(fth_context_destroy(ctx, NULL));
    }
}

TEST(groups_of_a_model_without_them_are_refused)
{
    fth_context *ctx = sg_context(1, 0, NULL);
    sg_world w = sg_open(SP_SVGP, "svgp", FTH_F32, ctx);
    sp_model_graph net;
    fth_err err = {0};
    fth_val f;
    OKE(sp_model_graph_create(&net, ctx, &w.model, false, SG_CELLS, &err), &err);
    IS(sp_predict_groups(&net, &(sp_query){0}, &f, &err), FTH_E_USAGE);
    sp_model_graph_destroy(&net);
    sg_close(&w);
    OK(fth_context_destroy(ctx, NULL));
}

TEST_MAIN()
