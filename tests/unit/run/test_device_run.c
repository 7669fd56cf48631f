/* test_device_run.c - runs on a device with memory of its own: parameters, recordings, complaints,
 * refusals, and a device that fails at every single call.
 * seconds: 6
 */
#include "testing/engine/host_device.h"
#include "testing/test.h"

#include <fathom/fathom.h>

enum { N = 1000 };

typedef struct bench {
    fth_context *ctx;
    fth_graph *g;
    fth_tensor *weight;
    float step, sum;
    fth_val next, total;
} bench;

static fth_status open_bench(bench *b, uint64_t device_bytes, fth_err *err)
{
    memset(b, 0, sizeof *b);
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = 1;
    opt.device = "cuda";
    opt.backend = &t_host_backend;
    opt.mem.budget_bytes = (uint64_t)256 << 20;
    opt.device_memory_bytes = device_bytes;
    return fth_context_create(&b->ctx, &opt, err);
}

/* As a file does: a thread reads it, and it is staged. */
static fth_status read_step(void *self, const int64_t *lo, const int64_t *n, void *dst,
                            fth_err *err)
{
    (void)lo, (void)n, (void)err;
    memcpy(dst, self, sizeof(float));
    return FTH_OK;
}

/* weight := weight + step, and the sum of weight times x before that; whole numbers, so exact. */
static fth_status build(bench *b, fth_err *err)
{
    const int64_t size[1] = {N};
    FTH_TRY(
        fth_tensor_create(&b->weight, fth_context_mem(b->ctx), "weight", FTH_F32, 1, size, err));
    float *w = fth_tensor_data(b->weight);
    for (int i = 0; i < N; i++) w[i] = (float)(i % 7);
    b->step = 1.0f;
    b->g = fth_graph_create(b->ctx);
    fth_axis(b->g, "row", N);
    const fth_val weight = fth_param(b->g, "weight", "row", b->weight);
    const fth_source made = {.kind = "made", .self = &b->step, .dtype = FTH_F32, .read = read_step};
    const fth_val step = fth_input(b->g, "step", FTH_F32, "", made);
    const fth_val twice = fth_add(weight, weight);
    b->total = fth_sum(fth_sort(twice, "row", false), "row");
    b->next = fth_assign(weight, fth_add(weight, step));
    return fth_graph_check(b->g, err);
}

static void close_bench(bench *b)
{
    fth_graph_destroy(b->g);
    fth_tensor_release(b->weight);
    OK(fth_context_destroy(b->ctx, NULL));
}

static fth_plan *plan(bench *b, fth_sink *sinks, fth_err *err)
{
    const fth_val outs[2] = {b->total, b->next};
    sinks[0] = fth_scalar_sink(FTH_F32, &b->sum);
    sinks[1] = (fth_sink){0};
    const fth_limits limits = {.sinks = sinks};
    return fth_plan_make(b->g, outs, 2, &limits, err);
}

/* A plan of the small program on a device without a limit. */
static fth_plan *open_and_plan(bench *b, fth_sink *sinks)
{
    fth_err err = {0};
    OKE(open_bench(b, 0, &err), &err);
    OKE(build(b, &err), &err);
    fth_plan *p = plan(b, sinks, &err);
    if (!p) FAIL("%s", err.text);
    return p;
}

static double sum_of_start(void)
{
    double s = 0.0;
    for (int i = 0; i < N; i++) s += 2.0 * (i % 7);
    return s;
}

TEST(parameters_stay_on_the_device)
{
    bench b;
    fth_err err = {0};
    fth_sink sinks[2];
    fth_plan *p = open_and_plan(&b, sinks);
    fth_run_report report;
    for (int i = 0; i < 5; i++) {
        OKE(fth_run(p, sinks, NULL, &report, &err), &err);
        EQ_F64(b.sum, sum_of_start() + 2.0 * N * i);
        IS_TRUE(report.kept && report.on_device && report.device_seconds > 0.0);
        IS_TRUE(report.device_seconds <= report.seconds);
        HAS_NOT(report.bound_by, "?");
    }
    const t_host_seen seen = t_host_device_seen();
    EQ_I64(seen.recordings, 1); /* what can fail; the update at the end is short */
    EQ_I64(seen.replays, 4);
    float *w = fth_tensor_data(b.weight);
    for (int i = 0; i < N; i++) EQ_F64(w[i], i % 7 + 5);
    for (int i = 0; i < N; i++) w[i] = 0.0f; /* and what the host writes is seen */
    OKE(fth_run(p, sinks, NULL, NULL, &err), &err);
    EQ_F64(b.sum, 0.0);
    fth_plan_destroy(p);
    close_bench(&b);
    EQ_U64(t_host_device_seen().mapped, 0);
}

/* A step that reads parameters alone writes straight into another one; not into one that it reads
 * itself, nor into one that another step still reads. */
TEST(results_go_straight_into_parameters)
{
    enum { ROWS = 40 };
    static const struct {
        const char *from, *and_from; /* of "x" and of "y", turned round; NULL: not assigned */
        bool straight;
    } cases[] = {{NULL, "x", true}, {"x", NULL, false}, {"y", "x", false}};
    for (int i = 0; i < 3; i++) {
        bench b;
        fth_err err = {0};
        fth_tensor *t[2];
        fth_val v[2], outs[2];
        const int64_t size[2] = {ROWS, N / ROWS};
        int n = 0;
        OKE(open_bench(&b, 0, &err), &err);
        b.g = fth_graph_create(b.ctx);
        fth_axis(b.g, "row", ROWS);
        fth_axis(b.g, "col", N / ROWS);
        for (int k = 0; k < 2; k++) {
            const char *name = k ? "y" : "x";
            OKE(fth_tensor_create(&t[k], fth_context_mem(b.ctx), name, FTH_F32, 2, size, &err),
                &err);
            for (int j = 0; j < N; j++) ((float *)fth_tensor_data(t[k]))[j] = (float)(k * N + j);
            v[k] = fth_param(b.g, name, "row col", t[k]);
        }
        const char *const from[2] = {cases[i].from, cases[i].and_from};
        for (int k = 0; k < 2; k++)
            if (from[k]) outs[n++] = fth_assign(v[k], fth_flip(v[from[k][0] == 'y'], "row"));
        const fth_sink none[2] = {{0}};
        fth_plan *p = fth_plan_make(b.g, outs, n, &(fth_limits){.sinks = none}, &err);
        if (!p) FAIL("%s", err.text);
        fth_plan_info info;
        fth_plan_get_info(p, &info);
        EQ_I64(info.peak_bytes < N * sizeof(float), cases[i].straight);
        OKE(fth_run(p, none, NULL, NULL, &err), &err);
        for (int k = 0; k < 2; k++)
            for (int j = 0; j < N; j++) {
                const int turned = (ROWS - 1 - j / (N / ROWS)) * (N / ROWS) + j % (N / ROWS);
                const int want = !from[k] ? k * N + j : (from[k][0] == 'y') * N + turned;
                EQ_F64(((float *)fth_tensor_data(t[k]))[j], want);
            }
        fth_plan_destroy(p);
        fth_graph_destroy(b.g);
        for (int k = 0; k < 2; k++) fth_tensor_release(t[k]);
        OK(fth_context_destroy(b.ctx, NULL));
    }
}

/* What the host takes to queue a recording is not the device's time. */
TEST(a_slow_host_is_no_slow_device)
{
    bench b;
    fth_err err = {0};
    fth_sink sinks[2];
    fth_plan *p = open_and_plan(&b, sinks);
    fth_run_report report;
    for (int i = 0; i < 3; i++) OKE(fth_run(p, sinks, NULL, NULL, &err), &err);
    t_host_device_slow_replay(200000);
    const fth_status s = fth_run(p, sinks, NULL, &report, &err);
    t_host_device_slow_replay(0);
    OKE(s, &err);
    IS_TRUE(report.seconds >= 0.2 && report.device_seconds < 0.2);
    fth_plan_destroy(p);
    close_bench(&b);
}

TEST(a_report_says_what_the_device_did)
{
    bench b;
    fth_err err = {0};
    fth_sink sinks[2];
    fth_plan *p = open_and_plan(&b, sinks);
    fth_run_report report;
    OKE(fth_run(p, sinks, NULL, &report, &err), &err);
    char text[1024];
    fth_run_report_format(&report, text, sizeof text);
    HAS(text, "device  ");
    HAS(text, "of kernels");
    HAS(text, "bound by");
    HAS_NOT(text, "NOT AS PLANNED");
    EQ_STR(fth_context_device(b.ctx), "host:0");
    IS_TRUE(fth_context_device_mem(b.ctx) != NULL);
    fth_plan_destroy(p);
    close_bench(&b);
}

TEST(an_operation_without_a_kernel_is_refused_while_planning)
{
    bench b;
    fth_err err = {0};
    OKE(open_bench(&b, 0, &err), &err);
    OKE(build(&b, &err), &err);
    fth_sink sinks[2];
    t_host_device_lacks("sort");
    fth_plan *p = plan(&b, sinks, &err);
    t_host_device_lacks(NULL);
    IS_TRUE(p == NULL);
    EQ_I64(err.status, FTH_E_NO_KERNEL);
    HAS(err.text, "host:0 has no kernel for operation sort on f32");
    close_bench(&b);
}

TEST(a_budget_of_the_device_is_refused_with_what_would_fit)
{
    bench b;
    fth_err err = {0};
    OKE(open_bench(&b, 5000, &err), &err);
    OKE(build(&b, &err), &err);
    fth_sink sinks[2];
    IS_TRUE(plan(&b, sinks, &err) == NULL);
    EQ_I64(err.status, FTH_E_NO_FIT);
    HAS(err.hint, "would fit: device_memory_bytes = ");
    close_bench(&b);
}

TEST(complaints_of_kernels_become_errors_and_nothing_changes)
{
    bench b;
    fth_err err = {0};
    OKE(open_bench(&b, 0, &err), &err);
    OKE(build(&b, &err), &err);
    fth_axis(b.g, "pick", 1);
    static const int64_t beyond = N;
    fth_source s = fth_scalar_source(FTH_I64, &beyond);
    s.n_axes = 1;
    s.size[0] = 1;
    const fth_val index = fth_input(b.g, "index", FTH_I64, "pick", s);
    const fth_val weight = fth_param(b.g, "again", "row", b.weight);
    const fth_val outs[2] = {fth_gather(weight, "row", index), b.next};
    OKE(fth_graph_check(b.g, &err), &err);
    float got = 0.0f;
    fth_sink sinks[2] = {fth_scalar_sink(FTH_F32, &got), {0}};
    sinks[0].n_axes = 1;
    sinks[0].size[0] = 1;
    fth_plan *p = fth_plan_make(b.g, outs, 2, &(fth_limits){.sinks = sinks}, &err);
    IS_TRUE(p != NULL);
    IS(fth_run(p, sinks, NULL, NULL, &err), FTH_E_INDEX_RANGE);
    HAS(err.text, "gather");
    const float *w = fth_tensor_data(b.weight);
    for (int i = 0; i < N; i++) EQ_F64(w[i], i % 7);
    fth_plan_destroy(p);
    close_bench(&b);
}

/* The first half of every 64 rows has no entries, but for some chunks in the middle, which
 * therefore need more rows than those that a plan looks at. */
TEST(workspace_is_planned_for_rows_that_all_have_entries)
{
    enum { ROWS = 4096 };
    static int64_t row_ptr[ROWS + 1];
    static double in[ROWS], out[ROWS];
    for (int i = 0; i < ROWS; i++) {
        const bool all = i >= 1024 && i < 1280, many = i >= 3072 && i < 3328;
        row_ptr[i + 1] = row_ptr[i] + (i % 64 < 32 ? all : many ? 8 : 1);
        in[i] = i;
    }
    int chunked = 0;
    for (uint64_t bytes = 8 << 10; bytes <= 256 << 10; bytes += 4 << 10) {
        bench b;
        fth_err err = {0};
        OKE(open_bench(&b, bytes, &err), &err);
        b.g = fth_graph_create(b.ctx);
        fth_axis(b.g, "row", ROWS);
        IS_TRUE(fth_axis_ragged(b.g, "entry", "row", row_ptr));
        const fth_source s = {
            .kind = "memory", .dtype = FTH_F64, .n_axes = 1, .size = {ROWS}, .data = in};
        const fth_val x = fth_exp(fth_neg(fth_input(b.g, "x", FTH_F64, "row", s)));
        const fth_val y = fth_collect(fth_spread(x, "entry"), "entry");
        fth_sink sink = {
            .kind = "memory", .dtype = FTH_F64, .n_axes = 1, .size = {ROWS}, .data = out};
        fth_plan *p = fth_plan_make(b.g, &y, 1, &(fth_limits){.sinks = &sink}, &err);
        if (!p) EQ_I64(err.status, FTH_E_NO_FIT);
        fth_plan_info info = {0};
        if (p) {
            fth_plan_get_info(p, &info);
            OKE(fth_run(p, &sink, NULL, NULL, &err), &err);
        }
        chunked += info.chunks > 8;
        fth_plan_destroy(p);
        close_bench(&b);
    }
    IS_TRUE(chunked > 3);
}

/* One attempt; the n-th call of the device fails. True: it came through. */
static bool attempt(int64_t n)
{
    bench b;
    fth_err err = {0};
    fth_sink sinks[2];
    t_host_device_fail(n);
    fth_status s = open_bench(&b, 0, &err);
    if (s == FTH_OK) s = build(&b, &err);
    fth_plan *p = s == FTH_OK ? plan(&b, sinks, &err) : NULL;
    for (int i = 0; p && s == FTH_OK && i < 3; i++) s = fth_run(p, sinks, NULL, NULL, &err);
    t_host_device_fail(0);
    if (s != FTH_OK) IS_TRUE(s == FTH_E_DEVICE || s == FTH_E_NOMEM);
    if (s == FTH_OK) EQ_F64(b.sum, sum_of_start() + 4.0 * N);
    fth_plan_destroy(p);
    if (b.ctx) close_bench(&b);
    EQ_U64(t_host_device_seen().mapped, 0);
    return s == FTH_OK;
}

TEST(every_call_of_the_device_may_fail)
{
    int64_t n = 1, came_through = 0;
    for (; n < 20000 && came_through < 30; n++) came_through += attempt(n);
    IS_TRUE(n > 45 && n < 20000);
}

TEST(devices_that_are_not_there_are_errors)
{
    fth_context *ctx;
    fth_err err = {0};
    fth_options opt;
    fth_options_default(&opt);
    opt.backend = &t_host_backend;
    opt.device = "cuda:3";
    IS(fth_context_create(&ctx, &opt, &err), FTH_E_DEVICE);
    HAS(err.text, "there is no device 3");
    err = (fth_err){0};
    opt.device = "gpu";
    IS(fth_context_create(&ctx, &opt, &err), FTH_E_DEVICE);
    HAS(err.text, "'gpu' is not a device");
    err = (fth_err){0};
    opt.backend = NULL;
    opt.backend_path = "/nowhere/libfathom_none.so";
    opt.device = "cuda";
    IS(fth_context_create(&ctx, &opt, &err), FTH_E_DEVICE);
    HAS(err.text, "/nowhere/libfathom_none.so");
}

TEST(a_timeline_has_the_kernels_on_a_track_of_the_device)
{
    bench b;
    fth_err err = {0};
    fth_options opt;
    fth_options_default(&opt);
    fth_trace *trace;
    fth_mem *mem;
    OKE(fth_mem_create(&mem, NULL, &err), &err);
    OKE(fth_trace_create(&trace, mem, 1 << 20, &err), &err);
    memset(&b, 0, sizeof b);
    opt.device = "cuda";
    opt.backend = &t_host_backend;
    opt.trace = trace;
    OKE(fth_context_create(&b.ctx, &opt, &err), &err);
    OKE(build(&b, &err), &err);
    fth_sink sinks[2];
    fth_plan *p = plan(&b, sinks, &err);
    OKE(fth_run(p, sinks, NULL, NULL, &err), &err);
    fth_plan_destroy(p);
    close_bench(&b);
    const char *path = t_temp_path("trace.json");
    OKE(fth_trace_write(trace, path, &err), &err);
    char text[1 << 16] = "";
    FILE *f = fopen(path, "r");
    IS_TRUE(f != NULL);
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    HAS(text, "host:0");
    HAS(text, "sort ");
    fth_trace_destroy(trace);
    OK(fth_mem_destroy(mem, NULL));
}

TEST_MAIN()
