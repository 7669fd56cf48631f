/* test_cut.c - how long calls of kernels are cut for cancellation (run/cut.c).
 * seconds: 2
 *
 * The kernel of a plan is replaced by one that counts its calls.
 */
#include "testing/test.h"

#include "plan/plan.h"
#include "run/team.h"

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

typedef struct space {
    fth_context *ctx;
    fth_graph *g;
    fth_tensor *t[3];
    int n;
} space;

static fth_tensor *untouched(space *s, int n_axes, const int64_t *size)
{
    fth_err err = {0};
    fth_tensor **t = &s->t[s->n++];
    OKE(fth_tensor_create(t, fth_context_mem(s->ctx), "t", FTH_F32, n_axes, size, &err), &err);
    return *t;
}

static void space_open(space *s)
{
    fth_err err = {0};
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = 1;
    opt.mem.budget_bytes = (uint64_t)4 << 30;
    *s = (space){0};
    OKE(fth_context_create(&s->ctx, &opt, &err), &err);
    s->g = fth_graph_create(s->ctx);
}

static void run_and_close(space *s, fth_val v, fth_sink sink)
{
    const fth_kernel counting = {.op = "counts its calls", .run = count_run};
    fth_err err = {0};
    const fth_limits limits = {.sinks = &sink, .stream = ""};
    fth_plan *p = fth_plan_make(s->g, &v, 1, &limits, &err);
    if (!p) OKE(err.status, &err);
    for (int64_t i = 0; i < p->n_units; i++) p->unit[i].kernel = &counting;
    calls = 0;
    OKE(fth_run(p, &sink, NULL, NULL, &err), &err);
    fth_plan_destroy(p);
    fth_graph_destroy(s->g);
    for (int i = 0; i < s->n; i++) fth_tensor_release(s->t[i]);
    OKE(fth_context_destroy(s->ctx, &err), &err);
}

/* An addition asks nothing, so its calls are cut, through the rows of an operand as well. */
TEST(what_does_not_ask_is_cut_through_rows)
{
    enum { N = 1 << 13 };
    const int64_t size[] = {N, N};
    space s;
    space_open(&s);
    fth_axis(s.g, "i", N);
    fth_axis(s.g, "j", N);
    const fth_val x = fth_input(s.g, "x", FTH_F32, "i j",
                                fth_tensor_source(untouched(&s, 2, size))),
                  y = fth_input(s.g, "y", FTH_F32, "j i",
                                fth_tensor_source(untouched(&s, 2, size)));
    run_and_close(&s, fth_add(x, y), fth_tensor_sink(untouched(&s, 2, size)));
    IS_TRUE(calls > 1);
}

/* Between tables, whose rows stay whole, what asks is cut too. */
TEST(reductions_are_cut_between_tables)
{
    enum { TABLES = 64, ROWS = 1 << 16, COLUMNS = 16 };
    const int64_t size[] = {TABLES, ROWS, COLUMNS}, found_size[] = {TABLES, COLUMNS};
    space s;
    space_open(&s);
    fth_axis(s.g, "b", TABLES);
    fth_axis(s.g, "i", ROWS);
    fth_axis(s.g, "j", COLUMNS);
    const fth_val x =
        fth_input(s.g, "x", FTH_F32, "b i j", fth_tensor_source(untouched(&s, 3, size)));
    run_and_close(&s, fth_rmax(x, "i"), fth_tensor_sink(untouched(&s, 2, found_size)));
    IS_TRUE(calls > 1);
    EQ_I64(narrowest, COLUMNS);
}

/* ---- reductions that ask ---- */

typedef struct asker {
    const fth_kernel *kernel; /* of the plan */
    fth_mem *mem;
    int agreed; /* how many times yet */
} asker;

static asker asks;

static bool agree(void *user)
{
    (void)user;
    return asks.agreed-- > 0;
}

/* A call whose run is cancelled while it lasts. */
static fth_status run_cancelled(const fth_call *call)
{
    fth_call one = *call;
    fth_team *team = NULL;
    OK(fth__team_share(&team, asks.mem, call->team, agree, NULL, NULL));
    one.team = team;
    const fth_status s = asks.kernel->run(&one);
    fth_team_destroy(team);
    return s;
}

static fth_val along(fth_val x)
{
    return fth_sum(x, "j");
}
static fth_val across(fth_val x)
{
    return fth_sum(x, "i");
}
static fth_val computed(fth_val x)
{
    return fth_sum(fth_mul(x, x), "i");
}
static fth_val largest_along(fth_val x)
{
    return fth_rmax(x, "j");
}

/* Of ones, and twos at the end: the sum of all results of a kernel that is told to go on so many
 * times. */
static double found(fth_val (*make)(fth_val x), int64_t rows, int64_t columns, int agreed)
{
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
    float *ones = fth_tensor_data(x);
    const bool by_rows = make == along || make == largest_along;
    for (int64_t i = 0; i < rows * columns; i++)
        ones[i] = (by_rows ? i % columns == columns - 1 : i / columns == rows - 1) ? 2.0F : 1.0F;
    fth_graph *g = fth_graph_create(ctx);
    fth_axis(g, "i", rows);
    fth_axis(g, "j", columns);
    const fth_val v = make(fth_input(g, "x", FTH_F32, "i j", fth_tensor_source(x)));
    const int64_t n = fth_val_size(v, 0);
    OKE(fth_tensor_create(&y, fth_context_mem(ctx), "y", fth_val_dtype(v), 1, &n, &err), &err);
    const fth_sink sink = fth_tensor_sink(y);
    const fth_limits limits = {.sinks = &sink, .stream = ""};
    fth_plan *p = fth_plan_make(g, &v, 1, &limits, &err);
    if (!p) OKE(err.status, &err);
    EQ_I64(p->n_units, 1);
    const fth_kernel *own = p->unit[0].kernel;
    fth_kernel asking = *own;
    asks = (asker){own, fth_context_mem(ctx), agreed};
    asking.run = run_cancelled;
    p->unit[0].kernel = &asking;
    OKE(fth_run(p, &sink, NULL, NULL, &err), &err);
    double sum = 0.0;
    const float *results = fth_tensor_data(y);
    for (int64_t i = 0; i < n; i++) sum += (double)results[i];
    fth_plan_destroy(p);
    fth_graph_destroy(g);
    fth_tensor_release(x);
    fth_tensor_release(y);
    OKE(fth_context_destroy(ctx, &err), &err);
    return sum;
}

/* Of half of it at most, whatever the walk: in one row and in several, in an operand and in values
 * that are computed, of extremes in a few columns and in many. */
TEST(reductions_stop_when_a_run_is_cancelled)
{
    static const struct {
        fth_val (*make)(fth_val x);
        int64_t rows, columns, results;
        int agreed;
    } some[] = {
        {along, 1, 1 << 22, 1, 0},
        {along, 4, 1 << 20, 4, 0},
        {along, 4, 1 << 20, 4, 1},
        {across, 1 << 20, 4, 4, 0},
        {across, 1 << 13, 1 << 9, 1 << 9, 1},
        {computed, 1 << 13, 1 << 9, 1 << 9, 0},
    };
    for (size_t k = 0; k < sizeof some / sizeof some[0]; k++) {
        const double all = (double)(some[k].rows * some[k].columns + some[k].results);
        LE_F64(found(some[k].make, some[k].rows, some[k].columns, some[k].agreed), 0.5 * all);
    }
    /* of few rows, or short ones, too: what lies behind the loop that asks is left as well */
    enum { MOST = 1 << 18 };
    LE_F64(found(computed, 2, 1 << 21, 0), MOST);
    LE_F64(found(computed, 100, 1 << 16, 0), MOST);
    LE_F64(found(across, 100, 1 << 16, 0), MOST);
    LE_F64(found(along, 1 << 16, 1 << 6, 0), MOST);
    LE_F64(found(largest, 2, 1 << 21, 0), 1 << 14);
    EQ_F64(found(largest, 1 << 18, 16, 1), 16.0); /* the last row has the largest ones */
    LE_F64(found(largest_along, 1 << 14, 1 << 8, 0), 1 << 14);
}

TEST_MAIN()
