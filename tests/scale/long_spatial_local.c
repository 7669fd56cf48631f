/* long_spatial_local.c - the founding prediction of a local model, run whole: 73,655 cells, 50
 * neighbours, 50 columns, 12 factors inside 1 GiB, and what it took against what was planned.
 * seconds: 120
 */
#include "testing/test.h"

#include "instruments/spatial/neighbours/neighbours.h"
#include "instruments/spatial/prior/local.h"

#include <inttypes.h>
#include <math.h>

enum { CELLS = 73655, FACTORS = 12, K = 50, R = 50 };

static void fill(sp_model *m)
{
    t_random r = t_random_make(1);
    float *xy = fth_tensor_data(m->Z), *mu = fth_tensor_data(m->param[SP_P_MU]),
          *lam = fth_tensor_data(m->param[SP_P_LAM]);
    for (int64_t i = 0; i < 2 * CELLS; i++) xy[i] = (float)(200 * t_random_f64(&r) - 100);
    for (int64_t i = 0; i < (int64_t)FACTORS * CELLS; i++) /* smooth, a wave for each factor */
        mu[i] = cosf(0.04f * xy[2 * (i % CELLS)] + (float)(i / CELLS));
    for (int64_t i = 0; i < (int64_t)FACTORS * CELLS * R; i++)
        lam[i] = (float)(0.2 * t_random_f64(&r) - 0.1);
}

static void run(fth_context *ctx, sp_model *m, fth_tensor *to[2])
{
    fth_err err = {0};
    sp_model_graph net;
    fth_val out[2];
    OKE(sp_model_graph_create(&net, ctx, m, false, CELLS, &err), &err);
    const sp_query q = {
        .xy = fth_input(net.g, "xy", FTH_F32, "cell dim", fth_tensor_source(m->Z)),
        .nbr = fth_input(net.g, "nbr", FTH_I32, "cell nbr", fth_tensor_source(m->nbr_inf))};
    OKE(sp_predict(&net, &q, &out[0], &out[1], &err), &err);
    const fth_sink sink[2] = {fth_tensor_sink(to[0]), fth_tensor_sink(to[1])};
    fth_plan *p = fth_plan_make(net.g, out, 2, (&(fth_limits){.sinks = sink}), &err);
    OKE(p ? FTH_OK : err.status, &err);
    fth_run_report report;
    fth_mem_stats held;
    fth_mem_mark(fth_context_mem(ctx));
    OKE(fth_run(p, sink, NULL, &report, &err), &err);
    fth_mem_get_stats(fth_context_mem(ctx), &held);
    printf("planned %" PRIu64 ", touched %" PRIu64 ", growth %" PRIu64 ", all held %" PRIu64
           ", %.1f s\n",
           report.planned_bytes, report.touched_bytes, report.growth_bytes, held.peak_bytes,
           report.seconds);
    EQ_U64(report.ledger_bytes, report.planned_bytes);
    IS_TRUE(report.kept || T_SANITIZED);
    LE_F64(held.peak_bytes + report.allowance_bytes, (uint64_t)1 << 30);
    fth_plan_destroy(p);
    sp_model_graph_destroy(&net);
}

TEST(full_size_in_one_gib)
{
    fth_options opt;
    fth_context *ctx = NULL;
    fth_err err = {0};
    fth_options_default(&opt);
    opt.device = "cpu";
    opt.mem.budget_bytes = (uint64_t)1 << 30;
    OK(fth_context_create(&ctx, &opt, NULL));
    sp_settings set = {.cells = CELLS,
                       .genes = 161,
                       .n_groups = 1,
                       .n_components = FACTORS,
                       .spatial = true,
                       .local = true,
                       .loadings_mode = SP_MULTIPLICATIVE,
                       .sigma = 1,
                       .lengthscale = 8,
                       .jitter = 1e-5,
                       .M = CELLS,
                       .K = K,
                       .R = R,
                       .batch_size = 7000,
                       .y_batch_size = 161};
    sp_settings_derive(&set);
    sp_model m;
    OKE(sp_model_create(&m, fth_context_mem(ctx), &set, FTH_F32, false, &err), &err);
    fill(&m);
    sp_nbr_inference lists;
    OKE(sp_neighbours_inference(&lists, ctx, &m, fth_tensor_data(m.Z), NULL, &err), &err);
    fth_tensor *to[2] = {0};
    for (int o = 0; o < 2; o++)
        OKE(fth_tensor_create(&to[o], fth_context_mem(ctx), "result", FTH_F32, 2,
                              ((int64_t[]){FACTORS, CELLS}), &err),
            &err);
    run(ctx, &m, to);
    const float *f = fth_tensor_data(to[0]), *s = fth_tensor_data(to[1]),
                *mu = fth_tensor_data(m.param[SP_P_MU]);
    double off = 0;
    for (int64_t i = 0; i < (int64_t)FACTORS * CELLS; i++) {
        IS_TRUE(isfinite(f[i]) && s[i] > 0 && s[i] < 10);
        off = fmax(off, fabs((double)f[i] - (double)mu[i]));
    }
    LE_F64(off, 0.05); /* every cell is among its own neighbours: all but for the jitter */
    fth_tensor_release(to[0]);
    fth_tensor_release(to[1]);
    sp_model_clear(&m);
    OK(fth_context_destroy(ctx, NULL));
}

TEST_MAIN()
