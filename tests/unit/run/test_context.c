/* test_context.c - the device is chosen once and said aloud; the log tells what was decided.
 * seconds: 2 */
#include "testing/test.h"

#include <fathom/fathom.h>

/* ---- a log that remembers ---- */

typedef struct notes {
    char text[8192];
    int lines[4]; /* per level */
} notes;

static void take_note(void *user, fth_log_level level, const char *line)
{
    notes *n = user;
    const size_t at = strlen(n->text);
    snprintf(n->text + at, sizeof n->text - at, "%s\n", line);
    n->lines[level]++;
}

static fth_status open_context(fth_context **ctx, notes *n, const char *device, fth_err *err)
{
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = 2;
    opt.device = device;
    opt.backend_path = "/nowhere/backend.so"; /* the same on machines that have one */
    opt.mem.budget_bytes = 64 << 20;
    if (n) opt.log = (fth_log){.write = take_note, .user = n, .level = FTH_LOG_INFO};
    return fth_context_create(ctx, &opt, err);
}

static void device_is(const char *asked, const char *reason)
{
    fth_context *ctx;
    fth_err err = {0};
    notes n = {0};
    char line[256];
    OKE(open_context(&ctx, &n, asked, &err), &err);
    EQ_STR(fth_context_device(ctx), "cpu");
    EQ_STR(fth_context_device_reason(ctx), reason);
    snprintf(line, sizeof line, "device cpu (%s), 2 workers", reason);
    HAS(n.text, line);
    OKE(fth_context_destroy(ctx, &err), &err);
}

TEST(the_device_comes_with_a_reason)
{
    device_is(NULL, "asked for");
    device_is("auto", "auto: no CUDA backend: /nowhere/backend.so is not there");
    device_is("cpu", "asked for");
}

static void device_is_refused(const char *asked, const char *text, const char *hint)
{
    fth_context *ctx;
    fth_err err = {0};
    IS(open_context(&ctx, NULL, asked, &err), FTH_E_DEVICE);
    EQ_PTR(ctx, NULL);
    HAS(err.text, asked);
    HAS(err.text, text);
    HAS(err.hint, hint);
    EQ_I64(fth_status_get_info(err.status)->exit_code, 5);
}

TEST(asking_for_a_gpu_never_falls_back)
{
    device_is_refused("cuda", "was asked for: no CUDA backend: /nowhere/backend.so", "ask for cpu");
    device_is_refused("cuda:0", "was asked for: no CUDA backend: /nowhere/backend.so",
                      "ask for cpu");
    device_is_refused("cuda:17", "was asked for: no CUDA backend: /nowhere/backend.so",
                      "ask for cpu");
}

TEST(what_is_no_device_is_said)
{
    static const char *const wrong[] = {"gpu",    "CPU",     "cuda:",   "cuda:x", "cuda:-1",
                                        "cuda0",  "cuda:1x", "cpu:0",   "auto ",  "cuda:99999",
                                        "cudart", "cuda: 1", "cuda:1:2"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        device_is_refused(wrong[i], "is not a device", "auto, cpu, cuda and cuda:N");
}

TEST(the_budget_says_where_it_came_from)
{
    fth_mem *mem;
    notes n = {0};
    const fth_log log = {.write = take_note, .user = &n, .level = FTH_LOG_INFO};
    fth_mem_options opt;
    fth_mem_options_default(&opt);
    opt.log = &log;
    opt.budget_bytes = 3 << 20;
    OK(fth_mem_create(&mem, &opt, NULL));
    OK(fth_mem_destroy(mem, NULL));
    EQ_STR(n.text, "memory budget 3.00 MiB: as asked\n");
    n = (notes){0};
    opt.budget_bytes = 0;
    OK(fth_mem_create(&mem, &opt, NULL));
    OK(fth_mem_destroy(mem, NULL));
    HAS(n.text, "memory budget ");
    HAS(n.text, ": 90 % of the ");
}

/* One line per thing that was asked for; a refusal and a lost run at their own levels. */
TEST(plans_and_runs_are_logged)
{
    fth_context *ctx;
    fth_err err = {0};
    notes n = {0};
    OKE(open_context(&ctx, &n, "cpu", &err), &err);
    HAS(n.text, "memory budget 64.00 MiB: as asked\n");
    EQ_I64(n.lines[FTH_LOG_INFO], 2);
    fth_graph *g = fth_graph_create(ctx);
    fth_axis(g, "i", 1000);
    const fth_val last = fth_rmax(fth_index(g, "i"), "i");
    int64_t got = 0;
    const fth_sink sink = fth_scalar_sink(FTH_I64, &got);
    n = (notes){0};
    fth_plan *p = fth_plan_make(g, &last, 1, NULL, &err);
    OKE(p ? FTH_OK : err.status, &err);
    HAS(n.text, "plan at ");
    HAS(n.text, "test_context.c:");
    HAS(n.text, "of 64.00 MiB");
    OKE(fth_run(p, &sink, NULL, NULL, &err), &err);
    HAS(n.text, "run of the plan at ");
    EQ_I64(n.lines[FTH_LOG_INFO], 2);
    EQ_I64(got, 999);
    fth_plan_destroy(p);

    n = (notes){0};
    const fth_val order = fth_sort(fth_index(g, "i"), "i", true);
    IS_TRUE(fth_plan_make(g, &order, 1, (&(fth_limits){.memory_bytes = 100}), &err) == NULL);
    EQ_I64(n.lines[FTH_LOG_WARN], 1);
    HAS(n.text, "FTH-PLAN-002: the smallest plan needs");
    fth_graph_destroy(g);
    OKE(fth_context_destroy(ctx, NULL), &err);
}

static fth_status cannot_write(void *self, const int64_t *lo, const int64_t *k, const void *src,
                               fth_err *err)
{
    (void)self, (void)lo, (void)k, (void)src;
    return FTH_FAIL(err, FTH_E_FILE_WRITE, "the tape is full");
}

TEST(a_lost_run_is_an_error_line)
{
    fth_context *ctx;
    fth_err err = {0};
    notes n = {0};
    OKE(open_context(&ctx, &n, "cpu", &err), &err);
    fth_graph *g = fth_graph_create(ctx);
    fth_axis(g, "i", 1000);
    const fth_val v = fth_sqr(fth_index(g, "i"));
    fth_plan *p = fth_plan_make(g, &v, 1, NULL, &err);
    OKE(p ? FTH_OK : err.status, &err);
    const fth_sink sink = {
        .kind = "tape", .dtype = FTH_I64, .n_axes = 1, .size = {1000}, .write = cannot_write};
    n = (notes){0};
    IS(fth_run(p, &sink, NULL, NULL, NULL), FTH_E_FILE_WRITE); /* logged without an fth_err too */
    EQ_I64(n.lines[FTH_LOG_ERROR], 1);
    HAS(n.text, "FTH-FILE-003: output 'map.2' [i 0:1000]: the tape is full");
    fth_plan_destroy(p);
    fth_graph_destroy(g);
    OKE(fth_context_destroy(ctx, &err), &err);
}

/* Levels above the one asked for are not even made. */
TEST(a_quiet_log_stays_quiet)
{
    fth_context *ctx;
    fth_err err = {0};
    notes n = {0};
    fth_options opt;
    fth_options_default(&opt);
    opt.log = (fth_log){.write = take_note, .user = &n, .level = FTH_LOG_WARN};
    OKE(fth_context_create(&ctx, &opt, &err), &err);
    OKE(fth_context_destroy(ctx, &err), &err);
    EQ_STR(n.text, "");
}

/* A path that is cut short would be another folder. */
TEST(a_long_scratch_directory_is_kept_whole_or_refused)
{
    char dir[5000];
    memset(dir, 'd', sizeof dir);
    dir[0] = '/', dir[1000] = '\0';
    fth_options opt;
    fth_options_default(&opt);
    opt.device = "cpu";
    opt.scratch_dir = dir;
    fth_context *ctx = NULL;
    OK(fth_context_create(&ctx, &opt, NULL));
    EQ_STR(fth_context_scratch_dir(ctx), dir);
    OK(fth_context_destroy(ctx, NULL));
    dir[1000] = 'd', dir[4999] = '\0';
    IS(fth_context_create(&ctx, &opt, NULL), FTH_E_SCRATCH);
}

TEST_MAIN()
