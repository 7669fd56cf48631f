/* test_release.c - objects released twice or in the wrong order, and the children of fork.
 * seconds: 1
 *
 * Every pair of context, graph, plan and tensor: the mistake is an error that names both lines,
 * what was released too early stays until nothing stands on it, and nothing is left behind.
 */
#include "testing/test.h"

#include <fathom/fathom.h>

#include <sys/wait.h>
#include <unistd.h>

enum { N = 100 };

typedef struct bench {
    fth_context *ctx;
    fth_graph *g;
    fth_plan *plan;
    fth_tensor *x, *out;
    char log[4096];
    int made[4]; /* lines: context, graph, plan, tensor */
} bench;
enum { CONTEXT, GRAPH, PLAN, TENSOR };

static void take_note(void *user, fth_log_level level, const char *line)
{
    bench *b = user;
    const size_t at = strlen(b->log);
    if (level == FTH_LOG_ERROR) snprintf(b->log + at, sizeof b->log - at, "%s\n", line);
}

static void open_bench(bench *b)
{
    fth_options opt;
    fth_err err = {0};
    const int64_t size[1] = {N};
    memset(b, 0, sizeof *b);
    fth_options_default(&opt);
    opt.threads = 3;
    opt.mem.budget_bytes = 16 << 20;
    opt.log = (fth_log){.write = take_note, .user = b, .level = FTH_LOG_ERROR};
    b->made[CONTEXT] = __LINE__ + 1;
    OKE(fth_context_create(&b->ctx, &opt, &err), &err);
    fth_mem *mem = fth_context_mem(b->ctx);
    b->made[TENSOR] = __LINE__ + 1;
    OKE(fth_tensor_create(&b->x, mem, "x", FTH_F32, 1, size, &err), &err);
    OKE(fth_tensor_create(&b->out, mem, "out", FTH_F32, 1, size, &err), &err);
    for (int i = 0; i < N; i++) ((float *)fth_tensor_data(b->x))[i] = (float)i;
    b->made[GRAPH] = __LINE__ + 1;
    b->g = fth_graph_create(b->ctx);
    fth_axis(b->g, "row", N);
    const fth_val x = fth_input(b->g, "x", FTH_F32, "row", fth_tensor_source(b->x));
    const fth_val two = fth_add(x, x);
    b->made[PLAN] = __LINE__ + 1;
    b->plan = fth_plan_make(b->g, &two, 1, NULL, &err);
    OKE(b->plan ? FTH_OK : err.status, &err);
}

static fth_status run(const bench *b, fth_err *err)
{
    const fth_sink sink = fth_tensor_sink(b->out);
    return fth_run(b->plan, &sink, NULL, NULL, err);
}

static void says_line(const char *text, int line)
{
    char place[64];
    snprintf(place, sizeof place, "test_release.c:%d", line);
    HAS(text, place);
}

TEST(the_right_order_is_silent)
{
    bench b;
    open_bench(&b);
    OK(run(&b, NULL));
    OK(fth_plan_destroy(b.plan));
    OK(fth_graph_destroy(b.g));
    OK(fth_tensor_release(b.x));
    OK(fth_tensor_release(b.out));
    OK(fth_context_destroy(b.ctx, NULL));
    EQ_STR(b.log, "");
}

/* ---- too early ---- */

TEST(a_graph_before_its_plan)
{
    bench b;
    fth_err err = {0}, last = {0};
    open_bench(&b);
    const int line = __LINE__ + 1;
    IS(fth_graph_destroy(b.g), FTH_E_ORDER);
    HAS(b.log, "the graph made at ");
    HAS(b.log, "while the plan made at ");
    says_line(b.log, b.made[GRAPH]);
    says_line(b.log, line);
    says_line(b.log, b.made[PLAN]);
    IS(run(&b, &err), FTH_E_ORDER); /* and not a crash */
    HAS(err.text, "a graph that was made at ");
    says_line(err.text, line);
    const fth_val value = {b.g, 2};
    IS_TRUE(fth_plan_make(b.g, &value, 1, NULL, NULL) == NULL);
    OK(fth_plan_destroy(b.plan)); /* the graph goes with it */
    OK(fth_tensor_release(b.x));
    OK(fth_tensor_release(b.out));
    IS(fth_context_destroy(b.ctx, &last), FTH_E_ORDER); /* the mistake is told again */
    HAS(last.text, "the graph made at ");
    says_line(last.text, line);
}

/* What was made last goes first, as it should; then the graph, under the plan before. */
TEST(a_graph_before_its_older_plan)
{
    bench b;
    fth_err last = {0};
    open_bench(&b);
    fth_tensor *newest = NULL;
    const int64_t size[1] = {N};
    OK(fth_tensor_create(&newest, fth_context_mem(b.ctx), "y", FTH_F32, 1, size, NULL));
    OK(fth_tensor_release(newest));
    IS(fth_graph_destroy(b.g), FTH_E_ORDER);
    HAS(b.log, "while the plan made at ");
    says_line(b.log, b.made[PLAN]);
    OK(fth_plan_destroy(b.plan));
    OK(fth_tensor_release(b.x));
    OK(fth_tensor_release(b.out));
    IS(fth_context_destroy(b.ctx, &last), FTH_E_ORDER);
}

/* The context goes first; the others in the order given. */
static void context_first(const int order[4])
{
    bench b;
    fth_err err = {0};
    open_bench(&b);
    const int line = __LINE__ + 1;
    IS(fth_context_destroy(b.ctx, &err), FTH_E_ORDER);
    HAS(err.text, "the context made at ");
    HAS(err.text, "while the ");
    says_line(err.text, b.made[CONTEXT]);
    says_line(err.text, line);
    says_line(err.text, b.made[TENSOR]); /* the oldest that lives */
    err = (fth_err){0};
    IS(run(&b, &err), FTH_E_ORDER);
    HAS(err.text, "this runs a plan of a context that was made at ");
    EQ_PTR(fth_graph_create(b.ctx), NULL);
    err = (fth_err){0};
    IS(fth_context_destroy(b.ctx, &err), FTH_E_ORDER);
    HAS(err.text, "a context is released twice");
    says_line(err.text, line);
    for (int i = 0; i < 4; i++) {
        if (order[i] == GRAPH) ONE_OF(fth_graph_destroy(b.g), FTH_OK, FTH_E_ORDER);
        if (order[i] == PLAN) OK(fth_plan_destroy(b.plan));
        if (order[i] == TENSOR) OK(fth_tensor_release(b.x));
        if (order[i] == CONTEXT) OK(fth_tensor_release(b.out));
    }
}

TEST(a_context_before_all_that_stands_on_it)
{
    static const int order[][4] = {{PLAN, GRAPH, TENSOR, CONTEXT},
                                   {TENSOR, CONTEXT, PLAN, GRAPH},
                                   {GRAPH, PLAN, TENSOR, CONTEXT},
                                   {CONTEXT, GRAPH, TENSOR, PLAN}};
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) context_first(order[i]);
}

TEST(a_tensor_before_the_plan_that_reads_it)
{
    bench b;
    fth_err err = {0};
    open_bench(&b);
    OK(run(&b, NULL));
    const int line = __LINE__ + 1;
    OK(fth_tensor_release(b.x)); /* allowed: its bytes are given back, the graph may go unused */
    IS(run(&b, &err), FTH_E_ORDER);
    HAS(err.text, "input 'x' reads a tensor that was made at ");
    says_line(err.text, b.made[TENSOR]);
    says_line(err.text, line);
    /* another one in its place, and the plan runs again */
    const int64_t size[1] = {N};
    OK(fth_tensor_create(&b.x, fth_context_mem(b.ctx), "x", FTH_F32, 1, size, NULL));
    memset(fth_tensor_data(b.x), 0, N * sizeof(float));
    OK(fth_input_set(b.g, "x", fth_tensor_source(b.x), NULL));
    OK(run(&b, NULL));
    EQ_F64(((float *)fth_tensor_data(b.out))[7], 0);
    OK(fth_tensor_release(b.x));
    const fth_sink sink = fth_tensor_sink(b.out);
    OK(fth_tensor_release(b.out));
    err = (fth_err){0};
    IS(fth_input_set(b.g, "x", fth_tensor_source(b.x), &err), FTH_E_ORDER);
    IS(fth_run(b.plan, &sink, NULL, NULL, &err), FTH_E_ORDER);
    OK(fth_plan_destroy(b.plan));
    OK(fth_graph_destroy(b.g));
    OK(fth_context_destroy(b.ctx, NULL));
}

TEST(a_memory_before_its_tensor)
{
    fth_mem *mem;
    fth_mem_options opt;
    fth_tensor *t;
    fth_err err = {0};
    const int64_t size[1] = {N};
    fth_mem_options_default(&opt);
    opt.budget_bytes = 1 << 20;
    OK(fth_mem_create(&mem, &opt, NULL));
    const int made = __LINE__ + 1;
    OK(fth_tensor_create(&t, mem, "t", FTH_F32, 1, size, NULL));
    IS(fth_mem_destroy(mem, &err), FTH_E_ORDER);
    says_line(err.text, made);
    err = (fth_err){0};
    IS(fth_mem_destroy(mem, &err), FTH_E_ORDER);
    HAS(err.text, "released twice");
    memset(fth_tensor_data(t), 1, N * sizeof(float)); /* it is still there */
    OK(fth_tensor_release(t));                        /* and now the memory is gone too */
}

/* ---- twice ---- */

TEST(everything_released_twice)
{
    bench b;
    fth_err err = {0};
    open_bench(&b);
    OK(fth_plan_destroy(b.plan));
    IS(fth_plan_destroy(b.plan), FTH_E_ORDER);
    HAS(b.log, "a plan is released twice");
    says_line(b.log, b.made[PLAN]);
    says_line(b.log, __LINE__ - 4);
    says_line(b.log, __LINE__ - 4);
    IS(run(&b, &err), FTH_E_ORDER);
    HAS(err.text, "this runs a plan that was made at ");
    OK(fth_graph_destroy(b.g));
    IS(fth_graph_destroy(b.g), FTH_E_ORDER);
    HAS(b.log, "a graph is released twice");
    IS(fth_graph_check(b.g, NULL), FTH_E_ORDER);
    fth_tensor_retain(b.x);
    OK(fth_tensor_release(b.x));
    OK(fth_tensor_release(b.x));
    IS(fth_tensor_release(b.x), FTH_E_ORDER);
    HAS(b.log, "a tensor is released twice");
    EQ_PTR(fth_tensor_data(b.x), NULL);
    OK(fth_tensor_release(b.out));
    err = (fth_err){0};
    IS(fth_context_destroy(b.ctx, &err), FTH_E_ORDER);
    HAS(err.text, "a plan is released twice"); /* the first mistake */
    err = (fth_err){0};
    IS(fth_context_destroy(b.ctx, &err), FTH_E_ORDER);
    HAS(err.text, "a context is released twice");
    says_line(err.text, b.made[CONTEXT]);
    says_line(err.text, __LINE__ - 6);
}

/* Remembering the dead is bounded, and a new object at an old address is not taken for one. */
TEST(many_objects_come_and_go)
{
    fth_context *ctx;
    OK(fth_context_create(&ctx, NULL, NULL));
    fth_mem_stats before, after;
    for (int i = 0; i < 1000; i++) {
        if (i == 200) fth_mem_get_stats(fth_context_mem(ctx), &before);
        fth_graph *g = fth_graph_create(ctx);
        const fth_val one = fth_const(g, FTH_F32, 1.0);
        fth_plan *p = fth_plan_make(g, &one, 1, NULL, NULL);
        IS_TRUE(p != NULL);
        OK(fth_plan_destroy(p));
        OK(fth_graph_destroy(g));
    }
    fth_mem_get_stats(fth_context_mem(ctx), &after);
    IS_TRUE(after.meta_bytes <= before.meta_bytes + 4096);
    OK(fth_context_destroy(ctx, NULL));
    for (int i = 0; i < 100; i++) {
        OK(fth_context_create(&ctx, NULL, NULL));
        OK(fth_context_destroy(ctx, NULL));
    }
}

/* ---- fork ---- */

/* What a child finds; 0: all is as it should be. */
static int in_child(bench *b)
{
    fth_err err = {0};
    const int64_t size[1] = {N};
    fth_tensor *t = NULL;
    if (run(b, &err) != FTH_E_STATE || !strstr(err.text, "fork")) return 1;
    if (!strstr(err.hint, "create a context in the child")) return 2;
    if (fth_graph_create(b->ctx)) return 3;
    const fth_val value = {b->g, 2};
    if (fth_plan_make(b->g, &value, 1, NULL, NULL)) return 4;
    if (fth_graph_check(b->g, NULL) != FTH_E_STATE) return 5;
    fth_mem *mem = fth_context_mem(b->ctx);
    if (fth_tensor_create(&t, mem, "t", FTH_F32, 1, size, NULL) == FTH_OK) return 6;
    if (fth_plan_destroy(b->plan) != FTH_E_STATE) return 7;
    if (fth_graph_destroy(b->g) != FTH_E_STATE) return 8;
    if (fth_tensor_release(b->x) != FTH_E_STATE) return 9;
    if (fth_context_destroy(b->ctx, NULL) != FTH_E_STATE) return 10;
    fth_context *own; /* one of its own works */
    if (fth_context_create(&own, NULL, &err) != FTH_OK) return 11;
    fth_graph *g = fth_graph_create(own);
    int64_t got = 0;
    if (fth_fetch_i64(fth_const_i64(g, FTH_I64, 42), &got, &err) != FTH_OK || got != 42) return 12;
    if (fth_graph_destroy(g) != FTH_OK || fth_context_destroy(own, NULL) != FTH_OK) return 13;
    return 0;
}

TEST(a_child_of_fork_is_told_and_never_hangs)
{
    bench b;
    open_bench(&b);
    OK(run(&b, NULL));
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        alarm(20); /* a hang is a failure, not a wait */
        _exit(in_child(&b));
    }
    int status = 0;
    EQ_I64(waitpid(child, &status, 0), child);
    IS_TRUE(WIFEXITED(status));
    EQ_I64(WEXITSTATUS(status), 0);
    OK(run(&b, NULL)); /* the parent goes on */
    EQ_F64(((float *)fth_tensor_data(b.out))[21], 42);
    OK(fth_plan_destroy(b.plan));
    OK(fth_graph_destroy(b.g));
    OK(fth_tensor_release(b.x));
    OK(fth_tensor_release(b.out));
    OK(fth_context_destroy(b.ctx, NULL));
    EQ_STR(b.log, "");
}

TEST_MAIN()
