/* test_spatial_analyze.c - plans of analyze at the founding sizes: nothing is read or touched.
 *
 * The founding failure asked for 9.88 and 8.23 GiB at 73,655 cells; here all of the stage is
 * planned inside --memory 1G, and 1.2 million cells inside 8 GiB.
 * seconds: 10 */
#include "testing/test.h"

#include "instruments/spatial/analyze/analyze.h"

#include <fathom/config.h>

typedef struct scene {
    sp_kind kind;
    int64_t cells, genes, groups;
    double density;
    uint64_t budget;
    const char *more; /* lines of the config */
} scene;

static const char *const model_text[SP_KIND_COUNT] = {
    [SP_PNMF] = "spatial: false",
    [SP_SVGP] = "spatial: true, num_inducing: 3000",
    [SP_MGGP_SVGP] = "spatial: true, groups: true, num_inducing: 3000",
    [SP_LCGP] = "spatial: true, local: true, K: 50",
    [SP_MGGP_LCGP] = "spatial: true, local: true, groups: true, K: 50"};

static fth_status plan(const scene *s, fth_stage_plan *out, fth_err *err)
{
    fth_options opt;
    fth_context *ctx = NULL;
    fth_config *cfg = NULL;
    char text[1000];
    fth_options_default(&opt);
    opt.threads = 2;
    opt.mem.budget_bytes = s->budget;
    OK(fth_context_create(&ctx, &opt, NULL));
    snprintf(text, sizeof text,
             "name: x\ndataset: arrays\npreprocessing: {path: nowhere}\n"
             "model: {n_components: 12, lengthscale: 8.0, %s}\n%s",
             model_text[s->kind], s->more ? s->more : "");
    OK(fth_config_create(&cfg, fth_context_mem(ctx), NULL));
    OK(fth_config_parse(cfg, "x", text, strlen(text), NULL));
    OK(fth_config_check(cfg, &sp_schema, NULL, NULL));
    const fth_stage_call call = {.config = cfg,
                                 .model = sp_kinds[s->kind].name,
                                 .output_dir = "/nowhere",
                                 .model_dir = "/nowhere/model",
                                 .context = ctx,
                                 .job = "",
                                 .attempt = ""};
    const sp_sizes sizes = {.cells = s->cells,
                            .genes = s->genes,
                            .groups = s->groups,
                            .entries = (int64_t)((double)(s->cells * s->genes) * s->density),
                            .most_entries = s->genes};
    *out = (fth_stage_plan){0};
    const fth_status status = sp_analyze_plan_for(&call, &sizes, out, NULL, err);
    OK(fth_config_destroy(cfg, NULL));
    OK(fth_context_destroy(ctx, NULL));
    return status;
}

#define GIB ((uint64_t)1 << 30)

TEST(founding_cells_fit_into_one_gibibyte)
{
    for (int kind = 0; kind < SP_KIND_COUNT; kind++) {
        fth_stage_plan p;
        fth_err err = {0};
        const scene s = {(sp_kind)kind, 73655, 161, 16, 0.3, GIB, NULL};
        OKE(plan(&s, &p, &err), &err);
        printf("%s: %.0f MiB, %s\n", sp_kinds[kind].name, (double)p.host_bytes / 1048576, p.text);
        IS_TRUE(p.host_bytes <= GIB);
    }
}

TEST(a_million_cells_fit_into_eight)
{
    for (int kind = 0; kind < SP_KIND_COUNT; kind++) {
        fth_stage_plan p;
        fth_err err = {0};
        const scene s = {(sp_kind)kind, 1200000, 492, 50, 0.05, 8 * GIB, NULL};
        OKE(plan(&s, &p, &err), &err);
        printf("%s: %.0f MiB, %s\n", sp_kinds[kind].name, (double)p.host_bytes / 1048576, p.text);
        IS_TRUE(p.host_bytes <= 8 * GIB);
    }
}

TEST(held_out_cells_and_many_neighbours_are_planned_too)
{
    for (int kind = 0; kind < SP_KIND_COUNT; kind++) {
        fth_stage_plan p;
        fth_err err = {0};
        const scene s = {
            (sp_kind)kind,
            119906,
            492,
            50,
            0.05,
            2 * GIB,
            "training: {holdout_fraction: 0.05}\nanalyze: {group_loadings: poisson}\n"};
        OKE(plan(&s, &p, &err), &err);
        IS_TRUE(p.host_bytes <= 2 * GIB);
    }
}

TEST(what_does_not_fit_is_refused)
{
    fth_stage_plan p;
    fth_err err = {0};
    const scene s = {SP_SVGP, 73655, 161, 16, 0.3, 450 << 20, NULL};
    IS(plan(&s, &p, &err), FTH_E_NO_FIT);
    HAS(err.hint, "would fit: mem.budget_bytes = ");
}

TEST_MAIN()
