/* test_inner_progress.c - progress moves inside of a step, by what is done of it.
 * seconds: 5
 *
 * Kernels here sleep a millisecond per element and count, so what progress says can be compared
 * with what was done.
 */
#include "testing/test.h"

#include "plan/plan.h"
#include "run/team.h"

#include <fathom/fathom.h>

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

enum { ELEMENTS = 400, MOST = 1000 };

static atomic_int done;

static void element(const fth_call *call, int64_t i)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    ((float *)call->out[0].data)[i] = ((const float *)call->in[0].data)[i] + 1.0f;
    done++;
}

static fth_status infer(fth_node *node, fth_err *err)
{
    return fth_infer_like(node, FTH_F32, 1, err);
}

/* Worth the workers' while, although the elements are few. */
static double much(const fth_call *call)
{
    return 1e6 * (double)call->out[0].extent[0];
}

static fth_status slow_run(const fth_call *call)
{
    for (int64_t i = 0; i < call->out[0].extent[0]; i++) element(call, i);
    return FTH_OK;
}

static void one_index(void *arg, int64_t i, int worker)
{
    (void)worker;
    element(arg, i);
}

static fth_status team_run(const fth_call *call)
{
    fth_call copy = *call;
    fth_team_run(call->team, call->out[0].extent[0], one_index, &copy);
    return FTH_OK;
}

static void one_nested(void *arg, int64_t i, int worker)
{
    const fth_call *call = arg;
    (void)worker;
    fth_call part = *call;
    part.in[0].data = (float *)call->in[0].data + 10 * i;
    part.out[0].data = (float *)call->out[0].data + 10 * i;
    fth_team_run(call->team, 10, one_index, &part);
}

/* Loops inside of a loop are not loops of the kernel. */
static fth_status nested_run(const fth_call *call)
{
    fth_call copy = *call;
    fth_team_run(call->team, call->out[0].extent[0] / 10, one_nested, &copy);
    return FTH_OK;
}

/* A loop of its own over a quarter, then two of the team. */
static fth_status parts_run(const fth_call *call)
{
    const int64_t n = call->out[0].extent[0], quarter = n / 4;
    fth_call rest = *call;
    for (int64_t i = 0; i < quarter; i++) {
        fth_team_until(call->team, (double)(i + 1) / (double)n);
        if (fth_team_cancelled(call->team)) return FTH_OK;
        element(call, i);
    }
    for (int part = 1; part < 4; part += 2) {
        const int64_t some = part == 1 ? 2 * quarter : n - 3 * quarter;
        rest.in[0].data = (float *)call->in[0].data + part * quarter;
        rest.out[0].data = (float *)call->out[0].data + part * quarter;
        fth_team_until(call->team, part == 1 ? 0.75 : 1.0);
        fth_team_run(call->team, some, one_index, &rest);
    }
    return FTH_OK;
}

static const fth_op slow = {
    .name = "slow", .infer = infer, .relation = fth_relation_same, .flops = much, .run = slow_run};
#define WHOLE(op, kernel)                                                                          \
    static const fth_op op = {.name = #op,                                                         \
                              .flags = FTH_OP_TEAM | FTH_OP_NO_SPLIT,                              \
                              .infer = infer,                                                      \
                              .flops = much,                                                       \
                              .run = kernel}
WHOLE(crowd, team_run);
WHOLE(nested, nested_run);
WHOLE(parts, parts_run);

/* ---- a run that is followed ---- */

typedef struct seen {
    int n, limit;  /* calls; cancelled at so many, 0: never */
    int elsewhere; /* calls by another thread than the one that runs the plan */
    pthread_t thread;
    double fraction[MOST], done[MOST], left[MOST];
} seen;

static bool follow(void *user, const fth_progress *p)
{
    seen *s = user;
    s->elsewhere += !pthread_equal(s->thread, pthread_self());
    if (s->n == MOST) return true;
    s->fraction[s->n] = p->fraction;
    s->left[s->n] = p->remaining_s;
    s->done[s->n++] = (double)done / ELEMENTS;
    return s->n != s->limit;
}

static fth_status run_op(const fth_op *op, int steps, int threads, seen *s)
{
    float in[ELEMENTS] = {0}, out[ELEMENTS];
    fth_options opt;
    fth_err err = {0};
    fth_context *ctx;
    fth_options_default(&opt);
    opt.threads = threads;
    opt.mem.budget_bytes = 64 << 20;
    OKE(fth_context_create(&ctx, &opt, &err), &err);
    fth_graph *g = fth_graph_create(ctx);
    fth_axis(g, "row", ELEMENTS);
    const fth_source source = {
        .kind = "test", .dtype = FTH_F32, .n_axes = 1, .size = {ELEMENTS}, .data = in};
    const fth_sink sink = {
        .kind = "test", .dtype = FTH_F32, .n_axes = 1, .size = {ELEMENTS}, .data = out};
    fth_val v = fth_input(g, "in", FTH_F32, "row", source);
    for (int i = 0; i < steps; i++) v = fth_custom(g, op, 1, &v, NULL, 0);
    fth_plan *p = fth_plan_make(g, &v, 1, &(fth_limits){.sinks = &sink}, &err);
    OKE(p ? FTH_OK : err.status, &err);
    done = 0;
    s->thread = pthread_self();
    const fth_status status = fth_run(p, &sink, &(fth_run_options){follow, s}, NULL, &err);
    EQ_I64(s->elsewhere, 0);
    if (status == FTH_OK)
        for (int i = 0; i < ELEMENTS; i++) EQ_F64(out[i], steps);
    OK(fth_plan_destroy(p));
    OK(fth_graph_destroy(g));
    OK(fth_context_destroy(ctx, NULL));
    return status;
}

static int inner_of(const seen *s)
{
    int inner = 0;
    for (int i = 0; i < s->n; i++) inner += s->fraction[i] > 0.0 && s->fraction[i] < 1.0;
    return inner;
}

/* `behind`: what may be done already and is not told yet, of the step. */
static void check_run(const fth_op *op, int threads, double behind)
{
    seen s = {0};
    OK(run_op(op, 1, threads, &s));
    IS_TRUE(inner_of(&s) >= 2);
    for (int i = 0; i < s.n - 1; i++) {
        LE_F64(s.fraction[i], s.fraction[i + 1]);
        LE_F64(s.fraction[i], s.done[i] + 1e-9);
        LE_F64(s.done[i] - behind, s.fraction[i] + 2e-6); /* 1 is said at the end */
        IS_TRUE(s.fraction[i] < 1.0 && s.left[i] > 0.0);
    }
    EQ_F64(s.fraction[s.n - 1], 1.0);
    EQ_F64(s.left[s.n - 1], 0.0);
}

/* Tiles take 50 ms at most, so 50 elements and more on a machine that sleeps too long. */
TEST(by_the_tiles_of_a_step)
{
    check_run(&slow, 1, 0.0);
}

TEST(by_the_tiles_of_the_pieces_of_workers)
{
    for (int threads = 2; threads <= 3; threads++)
        check_run(&slow, threads, threads * 55.0 / ELEMENTS);
}

TEST(by_the_indices_of_a_team)
{
    for (int threads = 1; threads <= 3; threads++)
        check_run(&crowd, threads, (threads > 1 ? threads : 0.0) / ELEMENTS);
}

TEST(by_the_indices_of_the_outer_of_two_loops)
{
    for (int threads = 1; threads <= 3; threads++)
        check_run(&nested, threads, 10.0 * threads / ELEMENTS);
}

TEST(by_what_a_kernel_says)
{
    for (int threads = 1; threads <= 3; threads++)
        check_run(&parts, threads, (threads > 1 ? threads : 0.0) / ELEMENTS);
}

/* Three steps of the same work: a third each. */
TEST(steps_count_as_long_as_they_are_predicted_to_take)
{
    seen s = {0};
    OK(run_op(&crowd, 3, 1, &s));
    for (int i = 0; i < s.n - 1; i++) {
        LE_F64(s.fraction[i], s.done[i] / 3 + 1e-9);
        LE_F64(s.done[i] / 3 - 2.0 / ELEMENTS, s.fraction[i]);
    }
    EQ_F64(s.fraction[s.n - 1], 1.0);
}

TEST(nothing_runs_after_the_answer_but_what_has_begun)
{
    static const fth_op *const ops[] = {&slow, &crowd, &nested, &parts};
    for (int k = 0; k < 4; k++)
        for (int threads = 1; threads <= 3; threads++) {
            seen s = {.limit = 3};
            IS(run_op(ops[k], 1, threads, &s), FTH_E_CANCELLED);
            EQ_I64(s.n, 3); /* it is not asked again */
            const double more = ops[k] == &slow ? 55 : ops[k] == &nested ? 10 : 1;
            LE_F64(done, s.done[2] * ELEMENTS + more * threads);
        }
}

TEST_MAIN()
