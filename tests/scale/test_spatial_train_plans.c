/* test_spatial_train_plans.c - what training of the largest dataset would take: 1,200,000 cells and
 * 492 genes, a twentieth of the counts stored. Nothing of it is made.
 *
 * seconds: 5
 */
#include "instruments/spatial/train.h"

#include "testing/spatial_training.h"

typedef struct wish {
    sp_kind kind;
    uint64_t gib;
    const char *moments;
    bool on_scratch; /* where they have to end up */
} wish;

static void plan(const wish *w)
{
    char text[4000];
    fth_err err = {0};
    fth_config *cfg = NULL;
    fth_context *ctx = NULL;
    fth_options opt;
    fth_options_default(&opt);
    opt.mem.budget_bytes = w->gib << 30;
    opt.threads = 2;
    opt.scratch_dir = t_temp_dir();
    OKE(fth_context_create(&ctx, &opt, &err), &err);
    fth_mem *mem = fth_context_mem(ctx);
    ss_config(text, sizeof text, w->kind, w->moments);
    OK(fth_config_create(&cfg, mem, NULL));
    OKE(fth_config_parse(cfg, "c.yaml", text, strlen(text), &err), &err);
    static const char *const set[] = {
        "model.n_components=10",    "model.num_inducing=3000",    "model.K=50",
        "training.batch_size=7000", "training.y_batch_size=2000", "training.max_iter=20000"};
    for (size_t i = 0; i < sizeof set / sizeof set[0]; i++)
        OKE(fth_config_set(cfg, set[i], &err), &err);
    OKE(fth_config_check(cfg, &sp_schema, NULL, &err), &err);
    const fth_stage_call call = {.config = cfg, .context = ctx, .model_dir = t_temp_dir()};
    const int64_t cells = 1200000, genes = 492;
    sp_train t = {.call = &call,
                  .ctx = ctx,
                  .mem = mem,
                  .planning = true,
                  .size = {.cells = cells,
                           .genes = genes,
                           .groups = 50,
                           .entries = cells * genes / 20,
                           .most_entries = 100}};
    OKE(sp_settings_from(&t.set, cfg, &t.size, 200.0, NULL, &err), &err);
    fth_stage_plan out = {0};
    OKE(sp_train_plan_step(&t, &out, NULL, &err), &err);
    printf("%-10s %s: %.2f GiB, %.2f GiB of files\n", sp_kinds[w->kind].name,
           t.on_scratch ? "scratch" : "memory ", (double)out.host_bytes / (1 << 30),
           (double)out.scratch_bytes / (1 << 30));
    IS_TRUE(out.host_bytes > 0 && out.host_bytes <= w->gib << 30);
    IS_TRUE(t.on_scratch == w->on_scratch);
    if (t.on_scratch) /* two moments of mu and Lam */
        IS_TRUE(out.scratch_bytes >= (uint64_t)2 * 4 * 10 * 1200000 * 51);
    OK(fth_config_destroy(cfg, NULL));
    OKE(fth_context_destroy(ctx, &err), &err);
}

TEST(every_model_fits_into_eight_gibibytes)
{
    static const wish each[] = {{SP_PNMF, 8, "", false},
                                {SP_SVGP, 8, "", false},
                                {SP_MGGP_SVGP, 8, "", false},
                                {SP_LCGP, 8, "", true},
                                {SP_MGGP_LCGP, 8, "  moments: scratch\n", true}};
    for (size_t i = 0; i < sizeof each / sizeof each[0]; i++) plan(&each[i]);
}

TEST(moments_in_memory_fit_into_eleven)
{
    plan(&(wish){SP_LCGP, 11, "", false});
    plan(&(wish){SP_MGGP_LCGP, 11, "  moments: memory\n", false});
}

TEST_MAIN()
