/* test_spatial_train_plans.c - what training of the largest dataset would take: 1,200,000 cells and
 * 492 genes, a twentieth of the counts stored. Nothing of it is made.
 *
 * seconds: 5
 */
#include "instruments/spatial/train/train.h"

#include "testing/engine/host_device.h"
#include "testing/spatial/spatial_training.h"

typedef struct wish {
    sp_kind kind;
    uint64_t gib;
    const char *moments;
    bool on_scratch; /* where they have to end up */
    bool device;     /* with so much of it, and as much again of the host's */
    sp_hold hold;    /* what has to stay there */
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
    if (w->device) {
        opt.backend = &t_host_backend;
        opt.device = "cuda";
        opt.device_memory_bytes = w->gib << 30;
        opt.mem.budget_bytes = 2 * (w->gib << 30);
    }
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
    printf("%-10s %s: %.2f GiB, %.2f GiB of files", sp_kinds[w->kind].name,
           t.on_scratch ? "scratch" : "memory ", (double)out.host_bytes / (1 << 30),
           (double)out.scratch_bytes / (1 << 30));
    printf(", %.2f GiB on the device\n", (double)out.device_bytes / (1 << 30));
    IS_TRUE(out.host_bytes > 0 && out.host_bytes <= opt.mem.budget_bytes);
    IS_TRUE(out.device_bytes <= w->gib << 30);
    IS_TRUE(t.on_scratch == w->on_scratch);
    IS_TRUE(t.hold == w->hold);
    if (t.on_scratch) /* two moments of mu and Lam */
        IS_TRUE(out.scratch_bytes >= (uint64_t)2 * 4 * 10 * 1200000 * 51);
    OK(fth_config_destroy(cfg, NULL));
    OKE(fth_context_destroy(ctx, &err), &err);
}

TEST(every_model_fits_into_eight_gibibytes)
{
    static const wish each[] = {
        {.kind = SP_PNMF, .gib = 8, .moments = ""},
        {.kind = SP_SVGP, .gib = 8, .moments = ""},
        {.kind = SP_MGGP_SVGP, .gib = 8, .moments = ""},
        {.kind = SP_LCGP, .gib = 8, .moments = ""},
        {.kind = SP_MGGP_LCGP, .gib = 8, .moments = ""},
        {.kind = SP_LCGP, .gib = 7, .moments = "", .on_scratch = true},
        {.kind = SP_MGGP_LCGP, .gib = 8, .moments = "  moments: scratch\n", .on_scratch = true}};
    for (size_t i = 0; i < sizeof each / sizeof each[0]; i++) plan(&each[i]);
}

TEST(moments_in_memory_fit_into_eleven)
{
    plan(&(wish){.kind = SP_LCGP, .gib = 11, .moments = ""});
    plan(&(wish){.kind = SP_MGGP_LCGP, .gib = 11, .moments = "  moments: memory\n"});
}

/* Parameters, moments and weights: the gradient is made piece by piece. With less, moments stay on
 * the host. */
TEST(a_device_of_eight_holds_all_of_a_local_model)
{
    static const wish each[] = {
        {.kind = SP_LCGP, .gib = 8, .moments = "", .device = true, .hold = SP_HOLD_ALL},
        {.kind = SP_MGGP_LCGP, .gib = 8, .moments = "", .device = true, .hold = SP_HOLD_ALL},
        {.kind = SP_LCGP, .gib = 6, .moments = "", .device = true, .hold = SP_HOLD_LEAST}};
    for (size_t i = 0; i < sizeof each / sizeof each[0]; i++) plan(&each[i]);
}

TEST_MAIN()
