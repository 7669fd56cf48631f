/* test_cut.c - how long calls of kernels are cut for cancellation (run/cut.c).
 * seconds: 1
 *
 * The kernel of a plan is replaced by one that counts its calls.
 */
#include "testing/test.h"

#include "plan/plan.h"

#include <fathom/fathom.h>
#include <stdlib.h>

static int calls;
static int64_t narrowest;

static fth_status count_run(const fth_call *call)
{
    const int last = call->node->in[0].n_axes - 1;
    const int64_t columns = call->in[0].extent[last];
    if (calls++ == 0 || columns < narrowest) narrowest = columns;
    return FTH_OK;
}

static fth_val furthest(fth_val x)
{
    return fth_argmax(x, "i");
}
static fth_val largest(fth_val x)
{
    return fth_rmax(x, "i");
}

/* Of each column of x [rows columns]. */
static void run_columns(fth_val (*make)(fth_val x), int64_t rows, int64_t columns)
{
    const fth_kernel counting = {.op = "counts its calls", .run = count_run};
    fth_err err = {0};
    fth_options opt;
    fth_context *ctx;
    fth_options_default(&opt);
    opt.threads = 1;
    opt.mem.budget_bytes = (uint64_t)4 << 30;
    OKE(fth_context_create(&ctx, &opt, &err), &err);
    const int64_t size[2] = {rows, columns};
    fth_tensor *x = NULL, *y = NULL;
    OKE(fth_tensor_create(&x, fth_context_mem(ctx), "x", FTH_F32, 2, size, &err), &err);
    fth_graph *g = fth_graph_create(ctx);
    fth_axis(g, "i", rows);
    fth_axis(g, "j", columns);
    const fth_val v = make(fth_input(g, "x", FTH_F32, "i j", fth_tensor_source(x)));
    OKE(fth_tensor_create(&y, fth_context_mem(ctx), "y", fth_val_dtype(v), 1, &columns, &err),
        &err);
    const fth_sink sink = fth_tensor_sink(y);
    const fth_limits limits = {.sinks = &sink, .stream = ""};
    fth_plan *p = fth_plan_make(g, &v, 1, &limits, &err);
    if (!p) OKE(err.status, &err);
    for (int64_t i = 0; i < p->n_units; i++) p->unit[i].kernel = &counting;
    calls = 0;
    OKE(fth_run(p, &sink, NULL, NULL, &err), &err);
    fth_plan_destroy(p);
    fth_graph_destroy(g);
    fth_tensor_release(x);
    fth_tensor_release(y);
    OKE(fth_context_destroy(ctx, &err), &err);
}

TEST(columns_that_share_lines_of_memory_stay_together)
{
    run_columns(furthest, 1 << 20, 16);
    EQ_I64(calls, 1);
}

TEST(wide_rows_are_cut)
{
    run_columns(furthest, 1 << 10, 1 << 14);
    IS_TRUE(calls > 1);
    IS_TRUE(narrowest >= 256);
}

TEST(what_takes_too_long_is_cut_into_columns_all_the_same)
{
    run_columns(furthest, (int64_t)1 << 23, 16); /* 512 MiB that nobody touches */
    IS_TRUE(calls > 1);
}

TEST(rows_of_what_asks_whether_to_go_on_stay_whole)
{
    run_columns(largest, 1 << 10, 1 << 14);
    EQ_I64(calls, 1);
}

TEST_MAIN()
