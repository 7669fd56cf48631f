/* test_device_calls.c - what a run costs on a device beside its kernels, counted in calls of the
 * device: a plan that ran before takes and makes nothing, and waits once or twice.
 * seconds: 2
 */
#include "testing/engine/host_device.h"
#include "testing/test.h"

#include <fathom/fathom.h>

#include <unistd.h>

enum { N = 4096 };

typedef struct steady {
    fth_context *ctx;
    fth_graph *g;
    fth_tensor *x, *y;
    fth_val out[2];
    fth_sink sink[2];
    int n_out;
    fth_plan *plan;
} steady;

static void open_steady(steady *s)
{
    *s = (steady){0};
    fth_err err = {0};
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = 2;
    opt.device = "cuda";
    opt.backend = &t_host_backend;
    opt.mem.budget_bytes = (uint64_t)4 << 30;
    opt.device_memory_bytes = (uint64_t)4 << 30;
    OKE(fth_context_create(&s->ctx, &opt, &err), &err);
    fth_mem *mem = fth_context_mem(s->ctx);
    OKE(fth_tensor_create(&s->x, mem, "x", FTH_F32, 1, ((int64_t[]){N}), &err), &err);
    OKE(fth_tensor_create(&s->y, mem, "y", FTH_F32, 1, ((int64_t[]){N}), &err), &err);
    float *x = fth_tensor_data(s->x);
    for (int i = 0; i < N; i++) x[i] = (float)(N - i);
    s->g = fth_graph_create(s->ctx);
    fth_axis(s->g, "row", N);
}

static void close_steady(steady *s)
{
    fth_plan_destroy(s->plan);
    fth_graph_destroy(s->g);
    fth_tensor_release(s->x);
    fth_tensor_release(s->y);
    OK(fth_context_destroy(s->ctx, NULL));
    EQ_U64(t_host_device_seen().mapped, 0);
}

static void add_output(steady *s, fth_val v, fth_sink sink)
{
    s->out[s->n_out] = v;
    s->sink[s->n_out++] = sink;
}

static void plan(steady *s)
{
    fth_err err = {0};
    s->plan = fth_plan_make(s->g, s->out, s->n_out, NULL, &err);
    IS_TRUE(s->plan != NULL);
}

/* Calls of one run after three others: queued, recorded, replayed. */
static t_host_seen steady_run(steady *s, fth_run_report *report)
{
    fth_err err = {0};
    for (int i = 0; i < 3; i++) OKE(fth_run(s->plan, s->sink, NULL, report, &err), &err);
    const t_host_seen a = t_host_device_seen();
    OKE(fth_run(s->plan, s->sink, NULL, report, &err), &err);
    const t_host_seen b = t_host_device_seen();
    return (t_host_seen){.kernels = b.kernels - a.kernels,
                         .copies = b.copies - a.copies,
                         .recordings = b.recordings - a.recordings,
                         .replays = b.replays - a.replays,
                         .calls = b.calls - a.calls,
                         .marks = b.marks - a.marks,
                         .blocks = b.blocks - a.blocks,
                         .pins = b.pins - a.pins,
                         .questions = b.questions - a.questions,
                         .waits = b.waits - a.waits};
}

static void takes_nothing(const t_host_seen *run)
{
    EQ_I64(run->marks, 0);
    EQ_I64(run->blocks, 0);
    EQ_I64(run->pins, 0);
    EQ_I64(run->questions, 0);
    EQ_I64(run->recordings, 0);
}

/* y := sqrt(x): a kernel is launched and waited for, and that is all. */
TEST(parameters_take_a_launch_and_a_wait)
{
    steady s;
    open_steady(&s);
    const fth_val x = fth_param(s.g, "x", "row", s.x), y = fth_param(s.g, "y", "row", s.y);
    add_output(&s, fth_assign(y, fth_sqrt(x)), (fth_sink){0});
    plan(&s);
    const t_host_seen run = steady_run(&s, NULL);
    takes_nothing(&run);
    EQ_I64(run.kernels, 1);
    EQ_I64(run.waits, 1);
    EQ_I64(run.calls, 2);
    EQ_F64(((const float *)fth_tensor_view(s.y))[N - 4], 2.0);
    close_steady(&s);
}

/* y := x sorted four times: what is longer is recorded, and launched at once. */
TEST(several_steps_are_one_launch)
{
    steady s;
    open_steady(&s);
    const fth_val x = fth_param(s.g, "x", "row", s.x), y = fth_param(s.g, "y", "row", s.y);
    fth_val v = x;
    for (int i = 0; i < 4; i++) v = fth_sort(v, "row", i % 2 == 1);
    add_output(&s, fth_assign(y, v), (fth_sink){0});
    plan(&s);
    const t_host_seen run = steady_run(&s, NULL);
    takes_nothing(&run);
    EQ_I64(run.kernels, 4);
    EQ_I64(run.replays, 1);
    IS_TRUE(run.waits <= 2);
    IS_TRUE(run.calls <= 4);
    EQ_F64(((const float *)fth_tensor_view(s.y))[0], N);
    close_steady(&s);
}

/* A report has marks before and behind the launch, and asks how long it was. */
TEST(a_report_takes_a_mark)
{
    steady s;
    fth_run_report report;
    open_steady(&s);
    const fth_val x = fth_param(s.g, "x", "row", s.x), y = fth_param(s.g, "y", "row", s.y);
    add_output(&s, fth_assign(y, fth_sqrt(x)), (fth_sink){0});
    plan(&s);
    const t_host_seen run = steady_run(&s, &report);
    takes_nothing(&run);
    IS_TRUE(run.calls <= 6);
    IS_TRUE(report.growth_known && report.kept && report.device_seconds > 0.0);
    close_steady(&s);
}

/* What can fail is asked whether it did, numbers go in and come out, an arena is needed: still a
 * handful of calls. */
TEST(numbers_and_complaints_come_with_the_steps)
{
    steady s;
    double rate = 2.0, sum = 0.0;
    open_steady(&s);
    fth_axis(s.g, "pick", 3);
    int64_t index[3] = {0, 5, N - 1};
    const fth_source rows = {
        .kind = "memory", .dtype = FTH_I64, .n_axes = 1, .size = {3}, .data = index};
    const fth_val x = fth_param(s.g, "x", "row", s.x), y = fth_param(s.g, "y", "row", s.y);
    const fth_val r = fth_input(s.g, "rate", FTH_F64, "", fth_scalar_source(FTH_F64, &rate));
    const fth_val at = fth_input(s.g, "at", FTH_I64, "pick", rows);
    const fth_val picked = fth_cast(fth_gather(fth_sort(x, "row", false), "row", at), FTH_F64);
    add_output(&s, fth_mul(fth_sum(picked, "pick"), r), fth_scalar_sink(FTH_F64, &sum));
    add_output(&s, fth_assign(y, fth_add(x, y)), (fth_sink){0});
    plan(&s);
    const t_host_seen run = steady_run(&s, NULL);
    takes_nothing(&run);
    EQ_F64(sum, 2.0 * (1 + 6 + N));
    EQ_F64(((const float *)fth_tensor_view(s.y))[0], 4.0 * N);
    IS_TRUE(run.waits <= 2);
    IS_TRUE(run.calls <= 11);
    rate = 3.0;
    index[1] = N;
    fth_err err = {0};
    IS(fth_run(s.plan, s.sink, NULL, NULL, &err), FTH_E_INDEX_RANGE);
    EQ_F64(((const float *)fth_tensor_view(s.y))[0], 4.0 * N);
    index[1] = 7;
    err = (fth_err){0};
    OKE(fth_run(s.plan, s.sink, NULL, NULL, &err), &err);
    EQ_F64(sum, 3.0 * (1 + 8 + N));
    close_steady(&s);
}

/* A tensor that is a sink holds what was written, also when a device had it before. */
TEST(a_tensor_has_what_came_last)
{
    steady s;
    fth_err err = {0};
    open_steady(&s);
    const fth_val x = fth_param(s.g, "x", "row", s.x), y = fth_param(s.g, "y", "row", s.y);
    add_output(&s, fth_assign(y, fth_neg(x)), (fth_sink){0});
    plan(&s);
    OKE(fth_run(s.plan, s.sink, NULL, NULL, &err), &err); /* y is newer on the device */
    fth_graph *g = fth_graph_create(s.ctx);
    fth_axis(g, "row", N);
    const fth_val twice = fth_mul(fth_param(g, "x", "row", s.x), fth_const(g, FTH_F32, 2.0));
    const fth_sink sink = fth_tensor_sink(s.y);
    fth_plan *p = fth_plan_make(g, &twice, 1, NULL, &err);
    OKE(fth_run(p, &sink, NULL, NULL, &err), &err);
    EQ_F64(((const float *)fth_tensor_view(s.y))[0], 2.0 * N);
    fth_plan_destroy(p);
    fth_graph_destroy(g);
    g = fth_graph_create(s.ctx); /* and a run that reads it there sees the same */
    fth_axis(g, "row", N);
    float most = 0.0f;
    const fth_val all = fth_rmax(fth_param(g, "y", "row", s.y), "row");
    const fth_sink number = fth_scalar_sink(FTH_F32, &most);
    p = fth_plan_make(g, &all, 1, NULL, &err);
    OKE(fth_run(p, &number, NULL, NULL, &err), &err);
    EQ_F64(most, 2.0 * N);
    fth_plan_destroy(p);
    fth_graph_destroy(g);
    close_steady(&s);
}

/* Blocks of any size are there again, and make room when others need it. */
TEST(large_blocks_are_not_taken_anew)
{
    steady s;
    void *block;
    fth_err err = {0};
    open_steady(&s);
    fth_mem *there = fth_context_device_mem(s.ctx);
    const uint64_t gigabyte = (uint64_t)1 << 30;
    OKE(fth_mem_take(there, FTH_MEM_ANY, 2 * gigabyte, "large", &block, &err), &err);
    OKE(fth_mem_release(there, block, &err), &err);
    const int64_t blocks = t_host_device_seen().blocks;
    OKE(fth_mem_take(there, FTH_MEM_ANY, 2 * gigabyte, "large", &block, &err), &err);
    EQ_I64(t_host_device_seen().blocks, blocks);
    OKE(fth_mem_release(there, block, &err), &err);
    OKE(fth_mem_take(there, FTH_MEM_ANY, 3 * gigabyte, "all", &block, &err), &err);
    IS_TRUE(t_host_device_seen().mapped <= 4 * gigabyte);
    OKE(fth_mem_release(there, block, &err), &err);
    close_steady(&s);
}

/* ---- files ---- */

static pid_t reader;

static fth_status read_ones(void *self, const int64_t *lo, const int64_t *n, void *dst,
                            fth_err *err)
{
    (void)self, (void)lo, (void)err;
    for (int64_t i = 0; i < n[0]; i++) ((float *)dst)[i] = 1.0f;
    reader = gettid();
    return FTH_OK;
}

/* On both kinds of device: the thread that reads is the one of the run before. */
static void same_reader(const char *device)
{
    fth_err err = {0};
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = 1;
    opt.device = device;
    if (device) opt.backend = &t_host_backend;
    fth_context *ctx;
    OKE(fth_context_create(&ctx, &opt, &err), &err);
    fth_graph *g = fth_graph_create(ctx);
    fth_axis(g, "row", N);
    const fth_source ones = {
        .kind = "ones", .dtype = FTH_F32, .n_axes = 1, .size = {N}, .read = read_ones};
    const fth_val x = fth_sum(fth_input(g, "x", FTH_F32, "row", ones), "row");
    float sum = 0.0f;
    const fth_sink sink = fth_scalar_sink(FTH_F32, &sum);
    fth_plan *p = fth_plan_make(g, &x, 1, NULL, &err);
    OKE(fth_run(p, &sink, NULL, NULL, &err), &err);
    const pid_t first = reader;
    for (int i = 0; i < 20; i++) {
        sum = 0.0f;
        OKE(fth_run(p, &sink, NULL, NULL, &err), &err);
        EQ_F64(sum, N);
        EQ_I64(reader, first);
        if (i != 9) continue;
        fth_plan_destroy(p); /* another plan has it too */
        p = fth_plan_make(g, &x, 1, NULL, &err);
    }
    fth_plan_destroy(p);
    fth_graph_destroy(g);
    OK(fth_context_destroy(ctx, NULL));
}

TEST(the_thread_for_files_waits_for_the_next_run)
{
    same_reader(NULL);
    same_reader("cuda");
}

TEST_MAIN()
