/* test_splat_train.c - the n-th request for memory, or the n-th write, fails in a training of
 * splat: an error that says so, nothing held, no model that claims to be finished; and the same
 * command then ends with the bytes of a training that nothing happened to.
 *
 * seconds: 20
 */
#include "instruments/splat/toy/toy.h"
#include "instruments/splat/train/train.h"
#include "mem/inject.h"
#include "testing/engine/host_device.h"
#include "testing/full.h"
#include "testing/io/files.h"

#include <string.h>

static const char *const assignments[] = {"name=t",         "strategy=default",   "iterations=4",
                                          "sh_degree=1",    "start_refine=0",     "refine_every=2",
                                          "stop_refine=4",  "checkpoint_every=2", "save_steps=[2]",
                                          "max_cap=60",     "enable_eval=true",   "test_every=2",
                                          "eval_steps=[3]", "grad_threshold=0"};

/* Poses that are trained, and iterations of ADMM behind the others. */
static const char *const parts[] = {"enable_eval=false", "pose_optimization=mlp",
                                    "pose_lr=0.001",     "enable_sparsity=true",
                                    "sparsify_steps=3",  NULL};
/* The same long enough for an update of z and u. */
static const char *const longer[] = {"enable_eval=false",     "pose_optimization=direct",
                                     "pose_lr=0.001",         "enable_sparsity=true",
                                     "sparsify_steps=52",     "init_rho=0.1",
                                     "checkpoint_every=1000", NULL};

/* A grid for the colours of each image; with targets of their own size on a device, and under
 * masks and with alpha, which keep them on the host. */
static const char *const grids[] = {"use_bilateral_grid=true", "bilateral_grid_X=3",
                                    "bilateral_grid_Y=2", "bilateral_grid_W=3", NULL};
static const char *const masks[] = {"masks=images", "alpha=background", "bg=\"0.1,0.2,0.3\"",
                                    "use_bilateral_grid=true", NULL};

typedef struct attempt {
    const char *data, *out;
    const char *strategy;    /* NULL: default */
    const char *const *more; /* settings; NULL: none */
    bool device;
    int64_t fail_alloc, fail_write;
    int64_t allocs, writes; /* that there were */
} attempt;

static fth_status train(attempt *a, fth_err *err)
{
    fth_context *ctx = NULL;
    fth_config *cfg = NULL;
    fth_options opt;
    fth_options_default(&opt);
    opt.mem.budget_bytes = 1 << 26;
    opt.threads = 1;
    if (a->device) {
        opt.device = "cuda";
        opt.backend = &t_host_backend;
    }
    *err = (fth_err){0};
    OK(fth_context_create(&ctx, &opt, err));
    fth_mem *mem = fth_context_mem(ctx);
    OK(fth_config_create(&cfg, mem, err));
    for (size_t i = 0; i < sizeof assignments / sizeof assignments[0]; i++)
        OK(fth_config_set(cfg, assignments[i], err));
    if (a->strategy) OK(fth_config_set(cfg, a->strategy, err));
    for (int i = 0; a->more && a->more[i]; i++) OK(fth_config_set(cfg, a->more[i], err));
    OK(fth_config_check(cfg, &gs_schema, NULL, err));
    const gs_training job = {.ctx = ctx, .cfg = cfg, .data = a->data, .folder = a->out};
    fth__mem_inject(mem, a->fail_alloc, a->fail_write);
    const fth_status s = gs_train(&job, err);
    a->allocs = fth__mem_alloc_count(mem);
    a->writes = fth__mem_write_count(mem);
    fth__mem_inject(mem, 0, 0);
    OK(fth_config_destroy(cfg, NULL));
    OK(fth_context_destroy(ctx, NULL)); /* nothing stays allocated */
    return s;
}

static void make_toy(const char *dir)
{
    fth_context *ctx = NULL;
    fth_options opt;
    const gs_toy toy = {.gaussians = 40, .views = 4, .width = 24, .height = 20};
    fth_options_default(&opt);
    opt.threads = 1;
    OK(fth_context_create(&ctx, &opt, NULL));
    OK(gs_toy_write(ctx, &toy, dir, NULL));
    OK(fth_context_destroy(ctx, NULL));
}

static void same_file(const char *a, const char *b, const char *name)
{
    char path[2][FTH_PATH];
    size_t n[2];
    unsigned char *data[2];
    for (int i = 0; i < 2; i++) {
        snprintf(path[i], sizeof path[i], "%.3000s/%s", i ? b : a, name);
        data[i] = t_file_read(path[i], &n[i]);
    }
    EQ_I64((int64_t)n[0], (int64_t)n[1]);
    IS_TRUE(memcmp(data[0], data[1], n[0]) == 0);
    free(data[0]);
    free(data[1]);
}

static void survive(bool writes, int64_t stride, const char *const *more, const char *model)
{
    char data[FTH_PATH], whole[FTH_PATH], out[FTH_PATH], made[FTH_PATH + 32];
    fth_err err;
    snprintf(data, sizeof data, "%s", t_temp_path("toy"));
    snprintf(whole, sizeof whole, "%s", t_temp_path("whole"));
    snprintf(out, sizeof out, "%s", t_temp_path("out"));
    snprintf(made, sizeof made, "%s/%s", out, model);
    make_toy(data);
    OK(fth_folder_remove(NULL, whole, NULL));
    OKE(train(&(attempt){.data = data, .out = whole, .more = more}, &err), &err);
    int failed = 0;
    for (int64_t n = 1;; n += stride) {
        attempt a = {.data = data,
                     .out = out,
                     .more = more,
                     .fail_alloc = writes ? 0 : n,
                     .fail_write = writes ? n : 0};
        OK(fth_folder_remove(NULL, out, NULL));
        const fth_status s = train(&a, &err);
        if (s == FTH_OK) { /* an image that cannot be kept is decoded again */
            if ((writes ? a.writes : a.allocs) < n) break;
            continue;
        }
        failed++;
        IS_TRUE(err.text[0] != 0);
        if (writes)
            ONE_OF(s, FTH_E_FILE_WRITE, FTH_E_FILE_OPEN); /* loss.csv is made by opening it */
        else if (!strstr(err.text, "expected a capture")) /* a folder that could not be listed */
            ONE_OF(s, FTH_E_NOMEM, FTH_E_BUDGET);
        IS_TRUE(!fth_path_exists(made)); /* it comes last */
        if (failed % 5) continue;
        OKE(train(&(attempt){.data = data, .out = out, .more = more}, &err), &err);
        same_file(whole, out, model);
        same_file(whole, out, "checkpoints/model.safetensors");
        same_file(whole, out, "loss.csv");
    }
    IS_TRUE(failed > 10);
}

TEST(requests_that_fail)
{
    const int64_t wider = t_full() ? 1 : 2; /* a training for each */
    survive(false, 23 * wider, NULL, "splat_4.ply");
    survive(false, 61 * wider, parts, "splat_7.ply");
    survive(false, 67 * wider, masks, "splat_4.ply");
}

TEST(writes_that_fail)
{
    const int64_t wider = t_full() ? 1 : 3;
    survive(true, wider, NULL, "splat_4.ply");
    survive(true, 2 * wider, parts, "splat_7.ply");
}

TEST(a_device_gives_the_same_bytes)
{
    static const char *const strategies[] = {"strategy=default", "strategy=mcmc"};
    char data[FTH_PATH], out[2][FTH_PATH];
    fth_err err;
    snprintf(data, sizeof data, "%s", t_temp_path("toy"));
    make_toy(data);
    for (int k = 0; k < 2; k++) {
        for (int d = 0; d < 2; d++) {
            snprintf(out[d], sizeof out[d], "%s", t_temp_path(d ? "card" : "host"));
            OK(fth_folder_remove(NULL, out[d], NULL));
            attempt a = {.data = data, .out = out[d], .strategy = strategies[k], .device = d == 1};
            OKE(train(&a, &err), &err);
        }
        same_file(out[0], out[1], "splat_4.ply");
        same_file(out[0], out[1], "checkpoints/model.safetensors");
        same_file(out[0], out[1], "loss.csv");
    }
}

/* Its rows are on the device alone: the checkpoint has been streamed from there, and fills them. */
TEST(a_device_resumes_to_the_same_bytes)
{
    char data[FTH_PATH], whole[FTH_PATH], out[FTH_PATH];
    fth_err err;
    snprintf(data, sizeof data, "%s", t_temp_path("toy"));
    snprintf(whole, sizeof whole, "%s", t_temp_path("whole"));
    snprintf(out, sizeof out, "%s", t_temp_path("out"));
    make_toy(data);
    OK(fth_folder_remove(NULL, whole, NULL));
    attempt all = {.data = data, .out = whole, .device = true};
    OKE(train(&all, &err), &err);
    int failed = 0;
    const int64_t wider = t_full() ? 1 : 3;
    for (int64_t n = 1; n <= all.writes; n += 5 * wider) {
        attempt a = {.data = data, .out = out, .device = true, .fail_write = n};
        OK(fth_folder_remove(NULL, out, NULL));
        failed += train(&a, &err) != FTH_OK;
        OKE(train(&(attempt){.data = data, .out = out, .device = true}, &err), &err);
        same_file(whole, out, "splat_4.ply");
        same_file(whole, out, "checkpoints/model.safetensors");
    }
    IS_TRUE(failed > 3 / wider);
}

/* Also between growing and pruning: rows that a device has changed in part are not written. */
TEST(a_device_that_stops_leaves_a_state_to_resume)
{
    static const char *const strategies[] = {"strategy=default", "strategy=mcmc"};
    char data[FTH_PATH], whole[FTH_PATH], out[FTH_PATH], made[FTH_PATH + 32];
    fth_err err;
    snprintf(data, sizeof data, "%s", t_temp_path("toy"));
    snprintf(whole, sizeof whole, "%s", t_temp_path("whole"));
    snprintf(out, sizeof out, "%s", t_temp_path("out"));
    snprintf(made, sizeof made, "%s/splat_4.ply", out);
    make_toy(data);
    for (int k = 0; k < 2; k++) {
        attempt all = {.data = data, .out = whole, .strategy = strategies[k], .device = true};
        OK(fth_folder_remove(NULL, whole, NULL));
        OKE(train(&all, &err), &err);
        const int64_t calls = t_host_device_seen().calls;
        int failed = 0;
        const int64_t stops = t_full() ? 40 : 12;
        for (int64_t n = 3; n < calls; n += 1 + calls / stops) {
            attempt a = {.data = data, .out = out, .strategy = strategies[k], .device = true};
            OK(fth_folder_remove(NULL, out, NULL));
            t_host_device_fail(n);
            const fth_status s = train(&a, &err);
            t_host_device_fail(0);
            if (s != FTH_OK) {
                failed++;
                ONE_OF(s, FTH_E_DEVICE, FTH_E_NOMEM); /* pages of a range */
                IS_TRUE(!fth_path_exists(made));
                OKE(train(&a, &err), &err);
            }
            same_file(whole, out, "splat_4.ply");
            same_file(whole, out, "checkpoints/model.safetensors");
            same_file(whole, out, "loss.csv");
        }
        IS_TRUE(failed > stops / 4);
    }
}

static void same_on_a_device(const char *const *more, const char *const *files)
{
    char data[FTH_PATH], out[2][FTH_PATH];
    fth_err err;
    snprintf(data, sizeof data, "%s", t_temp_path("toy"));
    make_toy(data);
    for (int d = 0; d < 2; d++) {
        snprintf(out[d], sizeof out[d], "%s", t_temp_path(d ? "card" : "host"));
        OK(fth_folder_remove(NULL, out[d], NULL));
        attempt a = {.data = data, .out = out[d], .more = more, .device = d == 1};
        OKE(train(&a, &err), &err);
    }
    for (int k = 0; files[k]; k++) same_file(out[0], out[1], files[k]);
}

TEST(a_device_trains_poses_and_sparsity_to_the_same_bytes)
{
    static const char *const files[] = {"splat_56.ply", "cameras_56.json",
                                        "checkpoints/model.safetensors", "loss.csv", NULL};
    same_on_a_device(longer, files);
}

TEST(a_device_trains_grids_under_masks_to_the_same_bytes)
{
    static const char *const files[] = {"splat_4.ply", "checkpoints/model.safetensors", "loss.csv",
                                        NULL};
    same_on_a_device(grids, files);
    same_on_a_device(masks, files);
}

TEST_MAIN()
