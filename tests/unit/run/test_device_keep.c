/* test_device_keep.c - loops of short runs on a device: what is kept from run to run, parameters
 * with two buffers, and a device that fails at every single call of such a loop.
 * seconds: 6
 */
#include "testing/engine/host_device.h"
#include "testing/test.h"

#include <fathom/fathom.h>

enum { N = 16384, BLOCK = 64 }; /* enough to be pinned; a number takes a block of the ledger */

/* weight := weight + batch; seen := sum of the sorted weight before that. All are parameters. */
typedef struct loop {
    fth_context *ctx;
    fth_graph *g;
    fth_tensor *weight, *batch[2], *seen;
    fth_val out[2];
    fth_plan *plan;
} loop;

static fth_status take(loop *l, fth_tensor **out, const char *name, int n_axes, fth_err *err)
{
    return fth_tensor_create(out, fth_context_mem(l->ctx), name, FTH_F32, n_axes, (int64_t[]){N},
                             err);
}

static void fill(fth_tensor *t, float with)
{
    float *v = fth_tensor_data(t);
    for (int i = 0; i < N; i++) v[i] = with;
}

static fth_status build(loop *l, bool keep, fth_err *err)
{
    FTH_TRY(take(l, &l->weight, "weight", 1, err));
    FTH_TRY(take(l, &l->batch[0], "batch", 1, err));
    FTH_TRY(take(l, &l->batch[1], "batch", 1, err));
    FTH_TRY(take(l, &l->seen, "seen", 0, err));
    fill(l->weight, 0.0f);
    l->g = fth_graph_create(l->ctx);
    fth_axis(l->g, "row", N);
    const fth_val weight = fth_param(l->g, "weight", "row", l->weight),
                  batch = fth_param(l->g, "batch", "row", l->batch[0]),
                  seen = fth_param(l->g, "seen", "", l->seen);
    l->out[0] = fth_assign(seen, fth_sum(fth_sort(weight, "row", false), "row"));
    l->out[1] = fth_assign(weight, fth_add(weight, batch));
    l->plan = fth_plan_make(l->g, l->out, 2, &(fth_limits){.keep = keep}, err);
    return l->plan ? FTH_OK : err->status;
}

static fth_status open_loop(loop *l, bool keep, fth_err *err)
{
    *l = (loop){0};
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = 1;
    opt.device = "cuda";
    opt.backend = &t_host_backend;
    opt.mem.budget_bytes = (uint64_t)256 << 20;
    FTH_TRY(fth_context_create(&l->ctx, &opt, err));
    return build(l, keep, err);
}

static void close_loop(loop *l)
{
    fth_plan_destroy(l->plan);
    fth_graph_destroy(l->g);
    fth_tensor *const held[] = {l->weight, l->batch[0], l->batch[1], l->seen};
    for (int i = 0; i < 4; i++) fth_tensor_release(held[i]);
    if (l->ctx) OK(fth_context_destroy(l->ctx, NULL));
}

static uint64_t held_there(const loop *l)
{
    fth_mem_stats stats;
    fth_mem_get_stats(fth_context_device_mem(l->ctx), &stats);
    return stats.used_bytes;
}

/* Run i is on the buffer that was filled while run i - 1 had the other. */
static fth_status step(loop *l, int i, fth_run_report *report, fth_err *err)
{
    fill(l->batch[i & 1], (float)i);
    FTH_TRY(fth_param_set(l->g, "batch", l->batch[i & 1], err));
    return fth_run(l->plan, NULL, NULL, report, err);
}

TEST(a_loop_keeps_its_arena_until_it_rests)
{
    loop l;
    fth_err err = {0};
    OKE(open_loop(&l, true, &err), &err);
    fth_plan_info info;
    fth_plan_get_info(l.plan, &info);
    const uint64_t parameters = 2 * N * sizeof(float) + BLOCK;
    for (int i = 0; i < 8; i++) {
        fth_run_report report;
        OKE(step(&l, i, &report, &err), &err);
        EQ_U64(report.ledger_bytes, info.peak_bytes);
        IS_TRUE(report.kept && report.growth_known && report.device_seconds > 0.0);
        EQ_U64(held_there(&l), info.peak_bytes + parameters);
    }
    fth_plan_rest(l.plan);
    EQ_U64(held_there(&l), parameters);
    fth_plan_rest(l.plan);
    const t_host_seen seen = t_host_device_seen();
    EQ_I64(seen.recordings, 1); /* what can fail; the update at the end is short */
    EQ_I64(seen.replays, 7);
    OKE(step(&l, 8, NULL, &err), &err);
    EQ_F64(((float *)fth_tensor_data(l.weight))[N - 1], 36.0);
    EQ_F64(*(float *)fth_tensor_data(l.seen), 28.0 * N);
    close_loop(&l);
    EQ_U64(t_host_device_seen().mapped, 0);
}

TEST(other_runs_give_it_back)
{
    loop l;
    fth_err err = {0};
    OKE(open_loop(&l, false, &err), &err);
    for (int i = 0; i < 4; i++) OKE(step(&l, i, NULL, &err), &err);
    EQ_U64(held_there(&l), 2 * N * sizeof(float) + BLOCK);
    EQ_F64(*(float *)fth_tensor_data(l.seen), 3.0 * N);
    close_loop(&l);
}

/* Reading what the host has does not make it newer than what the device has. */
TEST(a_view_is_no_change)
{
    loop l;
    fth_err err = {0};
    OKE(open_loop(&l, true, &err), &err);
    for (int i = 0; i < 3; i++) OKE(step(&l, 1, NULL, &err), &err);
    const int64_t before = t_host_device_seen().copies;
    const float *w = fth_tensor_view(l.weight);
    EQ_F64(w[0], 3.0);
    const int64_t viewed = t_host_device_seen().copies;
    EQ_I64(viewed, before + 1);
    OKE(fth_run(l.plan, NULL, NULL, NULL, &err), &err);
    const int64_t run = t_host_device_seen().copies - viewed;
    (void)fth_tensor_data(l.weight); /* and this says that it may be changed */
    const int64_t again = t_host_device_seen().copies;
    OKE(fth_run(l.plan, NULL, NULL, NULL, &err), &err);
    EQ_I64(t_host_device_seen().copies - again, run + 1);
    close_loop(&l);
}

/* What lies behind the used part on the device is what was there before. */
TEST(only_what_is_used_is_copied)
{
    loop l;
    fth_err err = {0};
    OKE(open_loop(&l, true, &err), &err);
    OKE(step(&l, 1, NULL, &err), &err);
    fth_tensor_set_used(l.batch[0], N / 2 * sizeof(float));
    OKE(step(&l, 2, NULL, &err), &err);
    const float *w = fth_tensor_view(l.weight);
    EQ_F64(w[N / 2 - 1], 1.0 + 2.0);
    EQ_F64(w[N / 2], 1.0 + 1.0);
    fth_tensor_set_used(l.batch[0], UINT64_MAX);
    OKE(step(&l, 4, NULL, &err), &err);
    w = fth_tensor_view(l.weight);
    EQ_F64(w[N / 2 - 1], 1.0 + 2.0 + 4.0);
    EQ_F64(w[N / 2], 1.0 + 1.0 + 4.0);
    close_loop(&l);
}

TEST(other_storage_must_be_alike)
{
    loop l;
    fth_err err = {0};
    OKE(open_loop(&l, true, &err), &err);
    IS(fth_param_set(l.g, "batch", l.seen, &err), FTH_E_AXIS_SIZE);
    err = (fth_err){0};
    IS(fth_param_set(l.g, "nothing", l.seen, &err), FTH_E_GRAPH_NAME);
    HAS(err.text, "the graph has no parameter 'nothing'");
    err = (fth_err){0};
    IS(fth_param_set(l.g, "batch", NULL, &err), FTH_E_GRAPH_VALUE);
    static const float x = 1.0f;
    (void)fth_input(l.g, "x", FTH_F32, "", fth_scalar_source(FTH_F32, &x));
    err = (fth_err){0};
    IS(fth_param_set(l.g, "x", l.seen, &err), FTH_E_USAGE);
    HAS(err.text, "'x' is an input, not a parameter");
    close_loop(&l);
}

/* On the CPU as well: storage is exchanged there too. */
TEST(storage_is_exchanged_on_the_cpu)
{
    loop l = {0};
    fth_err err = {0};
    OKE(fth_context_create(&l.ctx, NULL, &err), &err);
    OKE(build(&l, true, &err), &err);
    for (int i = 0; i < 4; i++) OKE(step(&l, i, NULL, &err), &err);
    EQ_F64(((float *)fth_tensor_data(l.weight))[0], 6.0);
    EQ_F64(*(float *)fth_tensor_data(l.seen), 3.0 * N);
    close_loop(&l);
}

/* One attempt; the n-th call of the device fails. True: it came through. */
static bool attempt(int64_t n)
{
    loop l;
    fth_err err = {0};
    t_host_device_fail(n);
    fth_status s = open_loop(&l, true, &err);
    for (int i = 0; s == FTH_OK && i < 4; i++) s = step(&l, i, NULL, &err);
    t_host_device_fail(0);
    if (s != FTH_OK) IS_TRUE(s == FTH_E_DEVICE || s == FTH_E_NOMEM);
    if (s == FTH_OK) EQ_F64(*(float *)fth_tensor_data(l.seen), 3.0 * N);
    close_loop(&l);
    EQ_U64(t_host_device_seen().mapped, 0);
    return s == FTH_OK;
}

TEST(every_call_of_the_device_may_fail)
{
    int64_t n = 1, came_through = 0;
    for (; n < 20000 && came_through < 30; n++) came_through += attempt(n);
    IS_TRUE(n > 45 && n < 20000);
}

TEST_MAIN()
