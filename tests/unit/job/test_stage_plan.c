/* test_stage_plan.c - what a stage says it takes: ledger, plans, pages of 2 MiB, libraries.
 * seconds: 2 */
#include "testing/test.h"

#include "job/stage/stage.h"
#include "mem/inject.h"

#include <fathom/fathom.h>

#include <stdatomic.h>
#include <string.h>

enum { MiB = 1 << 20, HUGE = 2 << 20 };

static fth_context *context_of(uint64_t budget)
{
    fth_options opt;
    fth_context *ctx = NULL;
    fth_options_default(&opt);
    opt.mem.budget_bytes = budget;
    opt.threads = 2;
    OK(fth_context_create(&ctx, &opt, NULL));
    return ctx;
}

/* n numbers that are read, squared and added up beside `t`, that is used in place. */
static fth_graph *build(fth_context *ctx, int64_t n, fth_tensor *t, fth_val *out)
{
    fth_graph *g = fth_graph_create(ctx);
    fth_axis(g, "n", n);
    const fth_val v = fth_input(g, "v", FTH_F64, "n", fth_source_planned(FTH_F64, 1, &n));
    *out = fth_sum(fth_sqr(v), "n");
    if (!t) return g;
    fth_axis(g, "m", fth_tensor_size(t, 0));
    const fth_val w = fth_input(g, "w", FTH_F64, "m", fth_tensor_source(t));
    *out = fth_add(*out, fth_sum(w, "m"));
    return g;
}

static uint64_t up(uint64_t bytes)
{
    return (bytes + HUGE - 1) / HUGE * HUGE;
}

TEST(needs_are_the_ledger_the_plan_and_what_comes_with_them)
{
    fth_context *ctx = context_of(256 * MiB);
    fth_tensor *t;
    fth_val out;
    fth_plan_info info;
    fth_plan_needs needs;
    const int64_t m = 3 * MiB / 8, n = 1000000;
    OK(fth_tensor_create(&t, fth_context_mem(ctx), "w", FTH_F64, 1, &m, NULL));
    fth_graph *g = build(ctx, n, t, &out);
    fth_plan *p = fth_plan_make(g, &out, 1, NULL, NULL);
    fth_plan_get_info(p, &info);
    fth_plan_get_needs(p, &needs);
    EQ_U64(needs.held_bytes, 3 * MiB); /* used in place: not counted again */
    EQ_U64(needs.arena_bytes, info.peak_bytes);
    EQ_U64(needs.allowance_bytes, info.allowance_bytes);
    EQ_U64(needs.rounding_bytes, MiB + up(info.peak_bytes) - info.peak_bytes);
    EQ_U64(needs.staging_bytes + needs.device_bytes + needs.scratch_bytes, 0);
    EQ_U64(needs.host_bytes, 4 * MiB + up(info.peak_bytes) + info.allowance_bytes);
    fth_plan_destroy(p);
    fth_graph_destroy(g);
    fth_tensor_release(t);
    OK(fth_context_destroy(ctx, NULL));
}

TEST(memory_that_no_ledger_knows_counts_too)
{
    fth_context *ctx = context_of(256 * MiB);
    static double data[1000];
    const int64_t n = 1000;
    fth_graph *g = fth_graph_create(ctx);
    fth_axis(g, "n", n);
    fth_source s = fth_source_zeros(FTH_F64, 1, &n);
    s.data = data;
    const fth_val out = fth_sum(fth_input(g, "v", FTH_F64, "n", s), "n");
    fth_plan *p = fth_plan_make(g, &out, 1, NULL, NULL);
    fth_plan_needs needs;
    fth_plan_get_needs(p, &needs);
    EQ_U64(needs.held_bytes, sizeof data);
    fth_plan_destroy(p);
    fth_graph_destroy(g);
    OK(fth_context_destroy(ctx, NULL));
}

TEST(where_the_budget_is_tight_the_exact_bytes_are_promised)
{
    const uint64_t budget = 9 * MiB + (1028 << 10); /* an arena of whole pages has no room in it */
    fth_context *ctx = context_of(budget);
    fth_val out;
    fth_plan_needs needs;
    fth_graph *g = build(ctx, 4000000, NULL, &out);
    fth_plan *p = fth_plan_make(g, &out, 1, NULL, NULL);
    fth_plan_get_needs(p, &needs);
    LE_F64(needs.host_bytes, budget);
    IS_TRUE(up(needs.arena_bytes) + needs.allowance_bytes > budget); /* it would not fit rounded */
    EQ_U64(needs.rounding_bytes, 0);
    EQ_U64(needs.host_bytes, needs.arena_bytes + needs.allowance_bytes);
    fth_plan_destroy(p);
    fth_graph_destroy(g);
    OK(fth_context_destroy(ctx, NULL));
}

TEST(of_plans_one_after_another_the_largest_counts_and_seconds_add_up)
{
    fth_context *ctx = context_of(256 * MiB);
    const fth_stage_call call = {.context = ctx};
    fth_stage_plan one = {0}, both = {0}, more = {.beside_bytes = 5000};
    fth_val a, b;
    char text[30000] = "";
    FILE *show = fmemopen(text, sizeof text, "w");
    fth_graph *large = build(ctx, 2000000, NULL, &a), *small = build(ctx, 10, NULL, &b);
    OK(fth_stage_plan_graph(&call, &one, large, &a, 1, 1, NULL, NULL));
    OK(fth_stage_plan_graph(&call, &both, small, &b, 1, 1, show, NULL));
    const double seconds = both.seconds;
    OK(fth_stage_plan_graph(&call, &both, large, &a, 1, 3, show, NULL));
    OK(fth_stage_plan_graph(&call, &both, small, &b, 1, 1, show, NULL));
    OK(fth_stage_plan_graph(&call, &more, large, &a, 1, 1, NULL, NULL));
    fclose(show);
    EQ_U64(both.host_bytes, one.host_bytes);
    EQ_U64(more.host_bytes, one.host_bytes + 5000);
    NEAR(both.seconds, 3 * one.seconds + 2 * seconds, 1e-12);
    IS_TRUE(one.seconds > 0);
    HAS(text, "stream n"); /* in pieces: it is read while it is summed */
    HAS(text, "n=10");
    fth_graph_destroy(large);
    fth_graph_destroy(small);
    OK(fth_context_destroy(ctx, NULL));
}

TEST(no_plan_is_the_error_of_making_it)
{
    fth_context *ctx = context_of(16 * MiB);
    const fth_stage_call call = {.context = ctx};
    fth_stage_plan out = {0};
    fth_err err = {0};
    IS(fth_stage_plan_add(&call, &out, NULL, 1, NULL, NULL), FTH_E_NO_FIT);
    err.status = FTH_E_ALIAS;
    IS(fth_stage_plan_add(&call, &out, NULL, 1, NULL, &err), FTH_E_ALIAS);
    EQ_U64(out.host_bytes, 0);
    OK(fth_context_destroy(ctx, NULL));
}

TEST(what_a_stage_holds_by_itself_counts_with_the_ledger_and_libraries)
{
    fth_context *ctx = context_of(64 * MiB);
    const fth_stage_call call = {.context = ctx};
    const uint32_t both = 1u << FTH_LIB_FATHOM | 1u << FTH_LIB_HDF5;
    const uint64_t allowed = fth_library_allowance(both, 2);
    fth_stage_plan out = {.beside_bytes = 100};
    void *block;
    OK(fth_mem_take(fth_context_mem(ctx), FTH_MEM_ANY, 4096, "held", &block, NULL));
    EQ_U64(fth_stage_plan_hold(&call, &out, 3 * MiB, both), 4096 + 100 + 4 * MiB + allowed);
    EQ_U64(out.host_bytes, 4096 + 100 + 4 * MiB + allowed);
    (void)fth_stage_plan_hold(&call, &out, 1, 0);
    EQ_U64(out.host_bytes, 4096 + 100 + 4 * MiB + allowed);
    const uint64_t tight = 64 * MiB - 8192 - allowed; /* with its pages, too much */
    EQ_U64(fth_stage_plan_hold(&call, &out, tight, both), 4096 + 100 + tight + allowed);
    OK(fth_mem_release(fth_context_mem(ctx), block, NULL));
    OK(fth_context_destroy(ctx, NULL));
}

/* ---- running ---- */

TEST(a_stage_computes_a_graph_in_one_line)
{
    fth_context *ctx = context_of(64 * MiB);
    const fth_stage_call call = {.context = ctx};
    fth_graph *g = fth_graph_create(ctx);
    fth_axis(g, "n", 5);
    const fth_val out = fth_sum(fth_index(g, "n"), "n");
    int64_t sum = 0;
    const fth_sink sink = fth_scalar_sink(FTH_I64, &sum);
    OK(fth_stage_compute(&call, g, &out, 1, &sink, NULL));
    EQ_I64(sum, 10);
    OK(fth_stage_compute(NULL, g, &out, 1, &sink, NULL));
    fth_plan *p = fth_plan_make(g, &out, 1, NULL, NULL);
    fth_run_report report = {0};
    OK(fth_stage_run(&call, p, &sink, &report, NULL));
    IS_TRUE(report.seconds > 0);
    fth_plan_destroy(p);
    const fth_sink wrong = fth_scalar_sink(FTH_F32, &(float){0});
    IS_TRUE(fth_stage_compute(&call, g, &out, 1, &wrong, NULL) != FTH_OK);
    fth_graph_destroy(g);
    OK(fth_context_destroy(ctx, NULL));
}

TEST(a_stage_without_memory_fails_cleanly)
{
    fth_status s = FTH_E_NOMEM;
    int64_t n = 1;
    for (; s == FTH_E_NOMEM; n++) {
        fth_context *ctx = context_of(64 * MiB);
        const fth_stage_call call = {.context = ctx};
        fth_graph *g = fth_graph_create(ctx);
        fth_axis(g, "n", 5);
        const fth_val out = fth_sum(fth_index(g, "n"), "n");
        int64_t sum = 0;
        const fth_sink sink = fth_scalar_sink(FTH_I64, &sum);
        fth_stage_plan plan = {0};
        fth__mem_inject(fth_context_mem(ctx), n, 0);
        s = fth_stage_plan_graph(&call, &plan, g, &out, 1, 1, NULL, NULL);
        if (s == FTH_OK) s = fth_stage_compute(&call, g, &out, 1, &sink, NULL);
        if (s == FTH_OK) EQ_I64(sum, 10);
        fth__mem_inject(fth_context_mem(ctx), 0, 0);
        fth_graph_destroy(g);
        OK(fth_context_destroy(ctx, NULL));
    }
    OK(s);
    IS_TRUE(n > 10);
}

static void add(void *arg, int64_t i, int worker)
{
    (void)worker;
    atomic_fetch_add((atomic_int *)arg, (int)i);
}

TEST(a_stage_loops_on_its_workers)
{
    fth_context *ctx = context_of(64 * MiB);
    const fth_stage_call call = {.context = ctx};
    atomic_int sum = 0;
    OK(fth_stage_loop(&call, "adding", 101, add, &sum, NULL));
    EQ_I64(sum, 5050);
    OK(fth_context_destroy(ctx, NULL));
}

static bool stop(void *user)
{
    return *(const bool *)user;
}

TEST(a_stage_is_told_to_stop_and_told_of_runs)
{
    fth_context *ctx = context_of(64 * MiB);
    bool stops = false;
    const fth_stage_options opt = {.stop = stop, .user = &stops};
    fth__stage_link link = {.opt = &opt, .sent_at = 1e300}; /* nothing is sent */
    const fth_stage_call call = {.context = ctx, .link = &link};
    EQ_I64(pthread_mutex_init(&link.lock, NULL), 0);
    fth_graph *g = fth_graph_create(ctx);
    fth_axis(g, "n", 5);
    const fth_val out = fth_sum(fth_index(g, "n"), "n");
    int64_t total = 0;
    const fth_sink sink = fth_scalar_sink(FTH_I64, &total);
    atomic_int sum = 0;
    OK(fth_stage_compute(&call, g, &out, 1, &sink, NULL));
    OK(fth_stage_loop(&call, "adding", 101, add, &sum, NULL));
    EQ_I64(link.runs, 1);
    stops = true;
    IS(fth_stage_compute(&call, g, &out, 1, &sink, NULL), FTH_E_CANCELLED);
    IS(fth_stage_loop(&call, "adding", 101, add, &sum, NULL), FTH_E_CANCELLED);
    EQ_I64(link.runs, 1);
    pthread_mutex_destroy(&link.lock);
    fth_graph_destroy(g);
    OK(fth_context_destroy(ctx, NULL));
}

TEST(a_plan_that_cannot_be_shown_is_an_error)
{
    fth_context *ctx = context_of(64 * MiB);
    const fth_stage_call call = {.context = ctx};
    fth_stage_plan plan = {0};
    fth_err err = {0};
    fth_val out;
    fth_graph *g = build(ctx, 10, NULL, &out);
    FILE *full = fopen("/dev/full", "w");
    if (!full) SKIP("there is no /dev/full");
    setvbuf(full, NULL, _IONBF, 0);
    IS(fth_stage_plan_graph(&call, &plan, g, &out, 1, 1, full, &err), FTH_E_FILE_WRITE);
    HAS(err.text, "the plan could not be written");
    fclose(full);
    fth_graph_destroy(g);
    OK(fth_context_destroy(ctx, NULL));
}

TEST_MAIN()
