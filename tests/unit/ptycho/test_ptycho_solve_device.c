/* test_ptycho_solve_device.c - a solver stays on a device inside what was foreseen for it.
 * seconds: 10
 */
#include "instruments/ptycho/settings/settings.h"
#include "instruments/ptycho/simulate/simulate.h"
#include "instruments/ptycho/solve/job.h"
#include "testing/engine/host_device.h"
#include "testing/io/files.h"

#include <string.h>

static char scan[FTH_PATH];

/* Settings of a small scan with this algorithm, in a context with so much of a device. */
static void open_job(pt_solving *job, fth_config **cfg, uint64_t device, const char *algorithm)
{
    char text[300];
    fth_context *ctx = NULL;
    fth_options opt;
    fth_err err = {0};
    fth_options_default(&opt);
    opt.threads = 1;
    opt.mem.budget_bytes = (uint64_t)1 << 28;
    opt.device = "cuda";
    opt.backend = &t_host_backend;
    opt.device_memory_bytes = device;
    OKE(fth_context_create(&ctx, &opt, &err), &err);
    snprintf(text, sizeof text,
             "name: x\nN: 16\nn_images: 12\nsize: 40\niterations: 2\nalgorithm: %s\n", algorithm);
    OKE(fth_config_create(cfg, fth_context_mem(ctx), &err), &err);
    OKE(fth_config_parse(*cfg, "test", text, strlen(text), &err), &err);
    OKE(fth_config_check(*cfg, &pt_schema, NULL, &err), &err);
    *job = (pt_solving){.ctx = ctx, .cfg = *cfg, .scan = scan, .folder = t_temp_path(algorithm)};
}

static void close_job(pt_solving *job, fth_config *cfg)
{
    OK(fth_config_destroy(cfg, NULL));
    OK(fth_context_destroy(job->ctx, NULL));
}

TEST(solvers_take_what_was_foreseen)
{
    static const char *const algorithms[] = {"lsqml", "rpie", "dm", "raar"};
    snprintf(scan, sizeof scan, "%s", t_temp_path("scan.npz"));
    for (int i = 0; i < 4; i++) {
        pt_solving job;
        fth_config *cfg = NULL;
        fth_err err = {0};
        fth_stage_plan plan = {0};
        open_job(&job, &cfg, (uint64_t)1 << 28, algorithms[i]);
        if (i == 0) OKE(pt_simulation_write(job.ctx, NULL, cfg, false, scan, &err), &err);
        const fth_stage_call call = {.context = job.ctx, .config = cfg};
        job.call = &call;
        job.foresee = &plan;
        OKE(pt_solve(&job, &err), &err);
        close_job(&job, cfg);
        IS_TRUE(plan.device_bytes > 0);
        open_job(&job, &cfg, plan.device_bytes, algorithms[i]);
        job.notes = tmpfile();
        OKE(pt_solve(&job, &err), &err);
        fclose(job.notes);
        close_job(&job, cfg);
    }
}

TEST_MAIN()
