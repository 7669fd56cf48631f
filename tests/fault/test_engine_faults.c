/* seconds: 20
 * test_engine_faults.c - every allocation of a whole program fails once; nothing leaks or lies.
 *
 * The program builds a graph with gradients, plans it under a tight budget, runs it twice with an
 * optimiser and writes its outputs. The n-th request for memory fails: the status must say so, the
 * context must be empty when it is destroyed, and parameters must be as they were.
 */
#include "testing/test.h"

#include <fathom/fathom.h>
#include <string.h>

enum { ROWS = 4000, COLS = 3 };

static fth_status read_rows(void *self, const int64_t *lo, const int64_t *n, void *dst,
                            fth_err *err)
{
    (void)err;
    float *out = dst;
    const float scale = *(const float *)self;
    for (int64_t i = 0; i < n[0]; i++)
        for (int64_t j = 0; j < n[1]; j++)
            *out++ = scale * (float)(((lo[0] + i) * 31 + (lo[1] + j) * 17) % 101) / 101.0f;
    return FTH_OK;
}

static fth_status write_nowhere(void *self, const int64_t *lo, const int64_t *n, const void *src,
                                fth_err *err)
{
    (void)lo, (void)src, (void)err;
    *(int64_t *)self += n[0];
    return FTH_OK;
}

typedef struct program {
    fth_context *ctx;
    fth_graph *g;
    fth_tensor *w, *m, *v;
    fth_plan *plan;
    float scale;
    double rate;
    int64_t step, written;
} program;

static fth_status make_tensors(program *p, fth_err *err)
{
    const int64_t size[1] = {COLS};
    FTH_TRY(fth_tensor_create(&p->w, fth_context_mem(p->ctx), "w", FTH_F32, 1, size, err));
    FTH_TRY(fth_tensor_create(&p->m, fth_context_mem(p->ctx), "m", FTH_F32, 1, size, err));
    FTH_TRY(fth_tensor_create(&p->v, fth_context_mem(p->ctx), "v", FTH_F32, 1, size, err));
    for (int i = 0; i < COLS; i++) ((float *)fth_tensor_data(p->w))[i] = 0.25f;
    memset(fth_tensor_data(p->m), 0, COLS * sizeof(float));
    memset(fth_tensor_data(p->v), 0, COLS * sizeof(float));
    return FTH_OK;
}

static fth_status plan_program(program *p, fth_err *err)
{
    p->g = fth_graph_create(p->ctx);
    fth_graph *g = p->g;
    fth_axis(g, "row", ROWS);
    fth_axis(g, "col", COLS);
    const fth_source x = {.kind = "rows",
                          .self = &p->scale,
                          .dtype = FTH_F32,
                          .n_axes = 2,
                          .size = {ROWS, COLS},
                          .read = read_rows};
    const fth_val X = fth_input(g, "X", FTH_F32, "row col", x), w = fth_param(g, "w", "col", p->w);
    const fth_val m = fth_param(g, "m", "col", p->m), v = fth_param(g, "v", "col", p->v);
    const fth_val rate = fth_input(g, "rate", FTH_F64, "", fth_scalar_source(FTH_F64, &p->rate));
    const fth_val step = fth_input(g, "step", FTH_I64, "", fth_scalar_source(FTH_I64, &p->step));
    const fth_val y = fth_exp(fth_dot(w, X, "col"));
    const fth_val centred = fth_sub(y, fth_mean(y, "row"));
    const fth_val loss = fth_mean(fth_sqr(centred), "row");
    fth_val grad, outs[5];
    FTH_TRY(fth_grad(loss, 1, &w, &grad));
    const fth_adam adam = FTH_ADAM_DEFAULT;
    FTH_TRY(fth_adam_step(&adam, w, grad, m, v, rate, step, outs + 2));
    outs[0] = loss;
    outs[1] = centred;
    p->plan = fth_plan_make(g, outs, 5, &(fth_limits){.memory_bytes = 160 << 10}, err);
    if (p->plan) return FTH_OK;
    return err->status;
}

static fth_status run_program(program *p, fth_err *err)
{
    float loss;
    const fth_sink sinks[5] = {fth_scalar_sink(FTH_F32, &loss),
                               {.kind = "nowhere",
                                .self = &p->written,
                                .dtype = FTH_F32,
                                .n_axes = 1,
                                .size = {ROWS},
                                .write = write_nowhere}};
    FTH_TRY(fth_run(p->plan, sinks, NULL, NULL, err));
    p->step++;
    return fth_run(p->plan, sinks, NULL, NULL, err);
}

/* Everything, with the n-th request failing; 0: none. *moved: did the parameter change? */
static fth_status whole_program(int64_t fail_at, bool *moved, fth_err *err)
{
    program p = {.scale = 1.0f, .rate = 0.01, .step = 1};
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = 2;
    opt.mem.budget_bytes = 64u << 20;
    opt.mem.fail_alloc = fail_at;
    *moved = false;
    fth_status s = fth_context_create(&p.ctx, &opt, err);
    if (s == FTH_OK) s = make_tensors(&p, err);
    if (s == FTH_OK) s = plan_program(&p, err);
    if (s == FTH_OK) s = run_program(&p, err);
    if (p.w) *moved = ((float *)fth_tensor_data(p.w))[0] != 0.25f;
    fth_plan_destroy(p.plan);
    fth_graph_destroy(p.g);
    fth_tensor_release(p.w);
    fth_tensor_release(p.m);
    fth_tensor_release(p.v);
    const fth_status leak = fth_context_destroy(p.ctx, s == FTH_OK ? err : NULL);
    IS(leak, FTH_OK);
    return s;
}

TEST(the_program_works_when_nothing_fails)
{
    fth_err err = {0};
    bool moved;
    OKE(whole_program(0, &moved, &err), &err);
    IS_TRUE(moved);
}

/* All of the first 200, then every 7th, until the program succeeds. */
TEST(every_allocation_failure_is_survived)
{
    int64_t survived = 0;
    for (int64_t n = 1;; n += n < 200 ? 1 : 7) {
        fth_err err = {0};
        bool moved;
        const fth_status s = whole_program(n, &moved, &err);
        if (s == FTH_OK) break;
        IS(s, FTH_E_NOMEM);
        survived++;
    }
    IS_TRUE(survived > 100);
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

typedef struct spy {
    int committed, abandoned;
} spy;
static fth_status spy_write(void *self, const int64_t *lo, const int64_t *n, const void *src,
                            fth_err *err)
{
    (void)self, (void)lo, (void)n, (void)src, (void)err;
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
    ((spy *)self)->abandoned++;
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
    float scale = 1.0f;
    fth_tensor *t;
    OKE(fth_tensor_create(&t, fth_context_mem(ctx), "w", FTH_F32, 1, size, &err), &err);
    for (int i = 0; i < COLS; i++) ((float *)fth_tensor_data(t))[i] = 1.0f;
    fth_graph *g = fth_graph_create(ctx);
    fth_axis(g, "row", ROWS);
    fth_axis(g, "col", COLS);
    const fth_source x = {.kind = "rows",
                          .self = &scale,
                          .dtype = FTH_F32,
                          .n_axes = 2,
                          .size = {ROWS, COLS},
                          .read = cancel ? read_rows : failing_read};
    const fth_val X = fth_input(g, "X", FTH_F32, "row col", x), w = fth_param(g, "w", "col", t);
    const fth_val y = fth_mul(X, w);
    const fth_val outs[2] = {y, fth_assign(w, fth_add(w, fth_sum(y, "row")))};
    fth_plan *plan =
        fth_plan_make(g, outs, 2, &(fth_limits){.memory_bytes = 200 << 10, .stream = "row"}, &err);
    if (!plan) OKE(err.status, &err);
    spy s = {0};
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
