/* test_splat_strategy.c - one densification of 96 Gaussians, families of relocated rows and six
 * steps of Adam, as golden/splat has them.
 *
 * seconds: 1
 */
#include "instruments/splat/strategy/adc.h"
#include "instruments/splat/strategy/mcmc.h"
#include "testing/splat/splat.h"

#include <fathom/optim.h>
#include <fathom/plan.h>
#include <math.h>

enum { N = 96, AFTER = 138 };

static fth_tensor *golden(fth_mem *mem, const char *name)
{
    char path[200];
    fth_tensor *t = NULL;
    snprintf(path, sizeof path, SPLAT("%s.npy"), name);
    OK(fth_npy_load(mem, path, name, &t, NULL));
    return t;
}

static fth_context *context(void)
{
    fth_context *ctx = NULL;
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = 2;
    opt.mem.budget_bytes = 64 << 20;
    OK(fth_context_create(&ctx, &opt, NULL));
    return ctx;
}

/* The scene, with statistics of `seen` looks at each row that have the golden mean. */
static void load_scene(gs_rows *rows, fth_context *ctx, float seen)
{
    static const char *const name[GS_ATTRIBUTES] = {"in_means",  "in_sh0",   "in_shN",
                                                    "in_scales", "in_quats", "in_opac"};
    fth_mem *mem = fth_context_mem(ctx);
    gs_rows_memory m;
    OK(gs_rows_create(rows, ctx, N, 3 * N, 3, GS_ROWS_ADAM | GS_ROWS_DENSIFY, NULL));
    OK(gs_rows_open(rows, &m, NULL));
    for (int a = 0; a < GS_ATTRIBUTES; a++) {
        fth_tensor *t = golden(mem, name[a]);
        EQ_U64(fth_tensor_bytes(t), fth_tensor_bytes(rows->tensor[GS_VALUE][a]));
        memcpy(m.at[GS_VALUE][a], fth_tensor_data(t), fth_tensor_bytes(t));
        fth_tensor_release(t);
        for (int64_t i = 0; i < N * gs_columns((gs_attribute)a, 3); i++)
            m.at[GS_FIRST][a][i] = m.at[GS_SECOND][a][i] = (float)(1 + i);
    }
    fth_tensor *t = golden(mem, "adc_grads");
    const double *grad = fth_tensor_data(t);
    for (int i = 0; i < N; i++) {
        m.densify[2 * i] = seen;
        m.densify[2 * i + 1] = (float)(grad[i] * (seen > 1 ? (double)seen : 1));
    }
    fth_tensor_release(t);
}

static gs_adc_rules rules_of(const double *noise)
{
    gs_adc_rules rules = gs_adc_default();
    rules.scene_scale = 20.4;
    rules.prune_opacity = 0.05;
    rules.canonical = true;
    rules.noise = noise;
    rules.noise_rows = N;
    return rules;
}

static void compare(fth_mem *mem, const float *found, const char *name, const uint8_t *gone,
                    int columns)
{
    fth_tensor *t = golden(mem, name);
    const double *want = fth_tensor_data(t);
    for (int i = 0; i < AFTER; i++) {
        if (gone[i]) continue;
        for (int k = 0; k < columns; k++, found++)
            NEAR(*found, want[i * columns + k], 2e-7 * (1 + fabs(want[i * columns + k])));
    }
    fth_tensor_release(t);
}

TEST(one_refinement_gives_the_golden_rows)
{
    for (int run = 0; run < 3; run++) {
        fth_context *ctx = context();
        fth_mem *mem = fth_context_mem(ctx);
        fth_tensor *noise = golden(mem, "adc_noise"), *mask = golden(mem, "adc_prune_mask_0.05");
        gs_rows rows;
        gs_adc_counts counts;
        gs_rows_memory m;
        fth_err err = {0};
        load_scene(&rows, ctx, (float)run * 2); /* 0 looks count as one */
        const gs_adc_rules rules = rules_of(fth_tensor_data(noise));
        OKE(gs_adc_refine(&rows, &rules, 600, &counts, &err), &err);
        EQ_I64(counts.dup, 23);
        EQ_I64(counts.split, 19);
        EQ_I64(counts.pruned, 3);
        EQ_I64(counts.wanted, 42);
        EQ_I64(counts.cap, 0);
        EQ_I64(rows.n, AFTER - 3);
        EQ_I64(counts.n, rows.n);
        OK(gs_rows_open(&rows, &m, NULL));
        const uint8_t *gone = fth_tensor_data(mask);
        compare(mem, m.at[GS_VALUE][GS_MEANS], "adc_out_means", gone, 3);
        compare(mem, m.at[GS_VALUE][GS_SCALING], "adc_out_scales", gone, 3);
        compare(mem, m.at[GS_VALUE][GS_OPACITY], "adc_out_opac", gone, 1);
        for (int64_t i = 0; i < 2 * rows.n; i++) EQ_F64(m.densify[i], 0);
        gs_rows_free(&rows);
        fth_tensor_release(noise);
        fth_tensor_release(mask);
        OK(fth_context_destroy(ctx, NULL));
    }
}

/* Which rows: moments of those that stay are what they were, 0 of all others. */
TEST(rows_that_stay_keep_their_moments)
{
    fth_context *ctx = context();
    fth_mem *mem = fth_context_mem(ctx);
    fth_tensor *noise = golden(mem, "adc_noise"), *split = golden(mem, "adc_mask_split");
    const uint8_t *is_split = fth_tensor_data(split);
    gs_rows rows;
    gs_adc_counts counts;
    gs_rows_memory m;
    load_scene(&rows, ctx, 1);
    const gs_adc_rules rules = rules_of(fth_tensor_data(noise));
    OK(gs_adc_refine(&rows, &rules, 600, &counts, NULL));
    OK(gs_rows_open(&rows, &m, NULL));
    for (int a = 0; a < GS_ATTRIBUTES; a++) {
        const int64_t columns = gs_columns((gs_attribute)a, 3);
        int64_t at = 0;
        for (int64_t i = 3; i < N; i++) { /* of the first three, one is split and two are pruned */
            if (is_split[i]) continue;
            for (int64_t k = 0; k < columns; k++, at++) {
                EQ_F64(m.at[GS_FIRST][a][at], 1 + i * columns + k);
                EQ_F64(m.at[GS_SECOND][a][at], 1 + i * columns + k);
            }
        }
        for (; at < rows.n * columns; at++) EQ_F64(m.at[GS_FIRST][a][at], 0);
    }
    gs_rows_free(&rows);
    fth_tensor_release(noise);
    fth_tensor_release(split);
    OK(fth_context_destroy(ctx, NULL));
}

/* In place the same rows come in another order: a parent's place has its first child. */
TEST(first_children_lie_where_their_parents_were)
{
    fth_context *ctx = context();
    fth_mem *mem = fth_context_mem(ctx);
    fth_tensor *noise = golden(mem, "adc_noise"), *split = golden(mem, "adc_mask_split"),
               *means = golden(mem, "adc_out_means");
    const uint8_t *is_split = fth_tensor_data(split);
    const double *want = fth_tensor_data(means);
    gs_rows rows;
    gs_adc_counts counts;
    gs_rows_memory m;
    load_scene(&rows, ctx, 1);
    gs_adc_rules rules = rules_of(fth_tensor_data(noise));
    rules.canonical = false;
    rules.prune_opacity = 0; /* only the row without rotation goes */
    OK(gs_adc_refine(&rows, &rules, 600, &counts, NULL));
    EQ_I64(counts.pruned, 1);
    EQ_I64(rows.n, AFTER - 1);
    OK(gs_rows_open(&rows, &m, NULL));
    const float *at = m.at[GS_VALUE][GS_MEANS];
    int64_t kept = 0, child = AFTER - 2 * 19;
    for (int64_t i = 0; i < N; i++) {
        const int64_t from = is_split[i] ? child++ : kept++;
        if (i == 2) continue;
        for (int k = 0; k < 3; k++, at++)
            NEAR(*at, want[3 * from + k], 2e-7 * (1 + fabs(want[3 * from + k])));
    }
    gs_rows_free(&rows);
    fth_tensor_release(noise);
    fth_tensor_release(split);
    fth_tensor_release(means);
    OK(fth_context_destroy(ctx, NULL));
}

TEST(families_have_the_golden_opacity_and_scale)
{
    fth_mem *mem = t_mem(16 << 20);
    fth_tensor *table = golden(mem, "relocation_table");
    const double *row = fth_tensor_data(table);
    for (int64_t i = 0; i < fth_tensor_size(table, 0); i++, row += 6) {
        double opacity, scale;
        gs_family(row[0], (int)row[1], &opacity, &scale);
        NEAR(opacity / row[2], 1, 1e-12);
        NEAR(scale / row[3], 1, 1e-9);
    }
    fth_tensor_release(table);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(six_steps_of_adam_are_the_golden_ones)
{
    enum { PARAMS = 7, STEPS = 6 };
    fth_context *ctx = context();
    fth_mem *mem = fth_context_mem(ctx);
    fth_tensor *grads = golden(mem, "adam_grads"), *params = golden(mem, "adam_params");
    const float *want = fth_tensor_data(params);
    const int64_t size[1] = {PARAMS};
    const double rate = 0.0025;
    int64_t step = 0;
    fth_tensor *t[4] = {0};
    for (int k = 0; k < 4; k++) {
        OK(fth_tensor_create(&t[k], mem, "adam", FTH_F32, 1, size, NULL));
        memset(fth_tensor_data(t[k]), 0, sizeof(float) * PARAMS);
    }
    memcpy(fth_tensor_data(t[0]), want, sizeof(float) * PARAMS);
    fth_graph *g = fth_graph_create(ctx);
    fth_val outs[3];
    IS_TRUE(fth_axis(g, "p", PARAMS));
    const fth_val p = fth_param(g, "p", "p", t[0]), first = fth_param(g, "m", "p", t[1]),
                  second = fth_param(g, "v", "p", t[2]),
                  grad = fth_input(g, "grad", FTH_F32, "p", fth_tensor_source(t[3])),
                  lr = fth_input(g, "lr", FTH_F64, "", fth_scalar_source(FTH_F64, &rate)),
                  at = fth_input(g, "step", FTH_I64, "", fth_scalar_source(FTH_I64, &step));
    OK(fth_adam_step(&((fth_adam){0.9, 0.999, 1e-15, 0}), p, grad, first, second, lr, at, outs));
    fth_err err = {0};
    fth_plan *plan = fth_plan_make(g, outs, 3, &(fth_limits){0}, &err);
    if (!plan) FAIL("%s", err.text);
    fth_sink sinks[3] = {0};
    for (step = 1; step <= STEPS; step++) {
        memcpy(fth_tensor_data(t[3]), (const float *)fth_tensor_data(grads) + (step - 1) * PARAMS,
               sizeof(float) * PARAMS);
        OKE(fth_run(plan, sinks, NULL, NULL, &err), &err);
        const float *found = fth_tensor_data(t[0]);
        for (int k = 0; k < PARAMS; k++)
            NEAR(found[k], want[step * PARAMS + k], 3e-7 * (1 + fabs((double)found[k])));
    }
    fth_plan_destroy(plan);
    fth_graph_destroy(g);
    for (int k = 0; k < 4; k++) fth_tensor_release(t[k]);
    fth_tensor_release(grads);
    fth_tensor_release(params);
    OK(fth_context_destroy(ctx, NULL));
}

TEST_MAIN()
