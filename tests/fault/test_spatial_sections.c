/* test_spatial_sections.c - training and analysis of two sections without memory and without room
 * on the disk.
 * seconds: 40 */
#include "testing/job/stage_faults.h"
#include "testing/test.h"

#include "instruments/spatial/toy/toy.h"

extern const fth_instrument fth_instrument_spatial;

static void make_toy(const char *dir)
{
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = 1;
    opt.device = "cpu";
    fth_context *ctx = NULL;
    fth_err err = {0};
    OKE(fth_context_create(&ctx, &opt, &err), &err);
    sp_toy t = {.ctx = ctx,
                .mem = fth_context_mem(ctx),
                .cells = 50,
                .side = 5,
                .sections = 2,
                .genes = 7,
                .factors = 2,
                .groups = 2,
                .seed = 1,
                .lengthscale = 50,
                .alpha = 1,
                .jitter = 1e-4,
                .exact = true};
    OKE(sp_toy_make(&t, dir, NULL, &err), &err);
    OKE(fth_context_destroy(ctx, &err), &err);
}

static void fail_stage(int stage, int64_t requests, int64_t writes)
{
    char dir[4096], config[9000];
    snprintf(dir, sizeof dir, "%s", t_temp_path("toy"));
    make_toy(dir);
    snprintf(config, sizeof config,
             "name: faults\ndataset: toy\npreprocessing: {path: '%s', min_group_size: 1}\n"
             "model: {spatial: true, groups: true, n_components: 2, num_inducing: 10}\n"
             "training: {max_iter: 2, holdout_fraction: 0.2, device: cpu}\n"
             "analyze: {export: false}\n",
             dir);
    const t_stage_faults of = {.instrument = &fth_instrument_spatial,
                               .model = "mggp_svgp",
                               .config = config,
                               .budget = 1 << 27,
                               .request_step = 60,
                               .write_step = 20,
                               .except = " metrics.json training.json config.yaml "};
    t_stage_fail(&of, stage, requests, writes);
}

TEST(training_of_sections)
{
    fail_stage(1, 60, 5);
}

TEST(numbers_of_sections)
{
    fail_stage(2, 60, 10);
}

TEST_MAIN()
