/* seconds: 5
 * test_engine_faults.c - every request and every write of whole programs fails; nothing leaks or
 * lies.
 *
 * The programs are those of testing/engine_program.h.
 */
#include "testing/engine/engine_program.h"

#include <stdatomic.h>
#include <time.h>

enum { ROWS = 4000, COLS = 3 };

TEST(every_failure_of_training_is_survived)
{
    const int64_t requests = ep_fail_requests(ep_train), writes = ep_fail_writes(ep_train);
    IS_TRUE(requests > 100);
    IS_TRUE(writes >= 8);
}

TEST(every_failure_with_values_on_file_is_survived)
{
    const int64_t requests = ep_fail_requests(ep_spill), writes = ep_fail_writes(ep_spill);
    IS_TRUE(requests > 50);
    IS_TRUE(writes >= 6);
}

static fth_status read_ones(void *self, const int64_t *lo, const int64_t *n, void *dst,
                            fth_err *err)
{
    (void)self, (void)lo, (void)err;
    for (int64_t i = 0; i < n[0] * n[1]; i++) ((float *)dst)[i] = 1.0f;
    return FTH_OK;
}

static fth_status failing_read(void *self, const int64_t *lo, const int64_t *n, void *dst,
                               fth_err *err)
{
    (void)self;
    if (lo[0] + n[0] > ROWS / 2)
        return FTH_FAIL(err, FTH_E_FILE_READ, "rows.bin: offset %lld", (long long)lo[0]);
    memset(dst, 0, (size_t)(n[0] * n[1]) * sizeof(float));
    return FTH_OK;
}

/* Writes take a while, so that one is in hand when a run ends. */
typedef struct spy {
    int committed, abandoned;
    atomic_int writing, while_written; /* now; when it was abandoned, and later */
    atomic_bool over;
} spy;
static fth_status spy_write(void *self, const int64_t *lo, const int64_t *n, const void *src,
                            fth_err *err)
{
    (void)lo, (void)n, (void)src, (void)err;
    spy *s = self;
    atomic_fetch_add(&s->writing, 1);
    nanosleep(&(struct timespec){.tv_nsec = 20 * 1000 * 1000}, NULL);
    atomic_fetch_add(&s->writing, -1);
    if (atomic_load(&s->over)) atomic_fetch_add(&s->while_written, 1);
    return FTH_OK;
}
static fth_status spy_commit(void *self, fth_err *err)
{
    (void)err;
    ((spy *)self)->committed++;
    return FTH_OK;
}
static void spy_abandon(void *self)
{
    spy *s = self;
    s->abandoned++;
    atomic_store(&s->over, true);
    atomic_fetch_add(&s->while_written, atomic_load(&s->writing));
}

static bool cancel_at_once(void *user, const fth_progress *p)
{
    (void)p;
    return --*(int *)user > 0;
}

/* A source that fails in the middle, and a user who cancels: sinks are abandoned, parameters keep.
 */
static void run_that_stops(bool cancel, fth_status want)
{
    fth_err err = {0};
    fth_options opt;
    fth_options_default(&opt);
    fth_context *ctx;
    OKE(fth_context_create(&ctx, &opt, &err), &err);
    const int64_t size[1] = {COLS};
    fth_tensor *t;
    OKE(fth_tensor_create(&t, fth_context_mem(ctx), "w", FTH_F32, 1, size, &err), &err);
    for (int i = 0; i < COLS; i++) ((float *)fth_tensor_data(t))[i] = 1.0f;
    fth_graph *g = fth_graph_create(ctx);
    fth_axis(g, "row", ROWS);
    fth_axis(g, "col", COLS);
    const fth_source x = {.kind = "rows",
                          .dtype = FTH_F32,
                          .n_axes = 2,
                          .size = {ROWS, COLS},
                          .read = cancel ? read_ones : failing_read};
    const fth_val X = fth_input(g, "X", FTH_F32, "row col", x), w = fth_param(g, "w", "col", t);
    const fth_val y = fth_mul(X, w);
    const fth_val outs[2] = {y, fth_assign(w, fth_add(w, fth_sum(y, "row")))};
    fth_plan *plan =
        fth_plan_make(g, outs, 2, &(fth_limits){.memory_bytes = 200 << 10, .stream = "row"}, &err);
    if (!plan) OKE(err.status, &err);
    spy s = {.committed = 0};
    const fth_sink sinks[2] = {{.kind = "spy",
                                .self = &s,
                                .dtype = FTH_F32,
                                .n_axes = 2,
                                .size = {ROWS, COLS},
                                .write = spy_write,
                                .commit = spy_commit,
                                .abandon = spy_abandon}};
    int turns = 2;
    const fth_run_options ro = {.progress = cancel ? cancel_at_once : NULL, .user = &turns};
    IS(fth_run(plan, sinks, &ro, NULL, &err), want);
    EQ_I64(s.committed, 0);
    EQ_I64(s.abandoned, 1);
    EQ_I64(atomic_load(&s.while_written), 0); /* it may free what it writes with */
    for (int i = 0; i < COLS; i++) EQ_F64((double)((float *)fth_tensor_data(t))[i], 1.0);
    fth_plan_destroy(plan);
    fth_graph_destroy(g);
    fth_tensor_release(t);
    IS(fth_context_destroy(ctx, NULL), FTH_OK);
}

TEST(a_source_that_fails_loses_nothing)
{
    run_that_stops(false, FTH_E_FILE_READ);
}

TEST(a_cancelled_run_loses_nothing)
{
    run_that_stops(true, FTH_E_CANCELLED);
}

TEST_MAIN()
