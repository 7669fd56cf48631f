/* test_loop.c - plain loops on the workers of a context: all indices once, nested, cancelled.
 * seconds: 2 */
#include "testing/test.h"

#include "mem/inject.h"

#include <fathom/fathom.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { N = 1000 };

typedef struct counting {
    fth_context *ctx;
    atomic_int times[N], wrong, inner;
    int threads;
} counting;

static fth_context *context_of(int threads, fth_progress_fn *progress, void *user, fth_trace *trace)
{
    fth_options opt;
    fth_context *ctx = NULL;
    fth_options_default(&opt);
    opt.mem.budget_bytes = 64 << 20;
    opt.threads = threads;
    opt.progress = progress;
    opt.progress_user = user;
    opt.trace = trace;
    OK(fth_context_create(&ctx, &opt, NULL));
    return ctx;
}

static void count_one(void *arg, int64_t i, int worker)
{
    counting *c = arg;
    c->times[i]++;
    if (worker < 0 || worker >= c->threads) c->wrong++;
}

TEST(every_index_is_taken_once_by_a_worker_there_is)
{
    for (int threads = 1; threads <= 5; threads += 2) {
        fth_context *ctx = context_of(threads, NULL, NULL, NULL);
        for (int64_t n = 0; n <= N; n = n * 9 + 1) {
            counting *c = calloc(1, sizeof *c);
            c->threads = threads;
            OK(fth_context_loop(ctx, "counting", n, count_one, c, NULL));
            for (int64_t i = 0; i < N; i++) EQ_I64(c->times[i], i < n);
            EQ_I64(c->wrong, 0);
            free(c);
        }
        OK(fth_context_loop(ctx, "nothing", -3, count_one, NULL, NULL));
        OK(fth_context_destroy(ctx, NULL));
    }
}

static void find_stack(void *arg, int64_t i, int worker)
{
    atomic_uint_fast64_t *most = arg;
    pthread_attr_t attr;
    size_t bytes = SIZE_MAX;
    (void)i;
    if (worker == 0) { /* the caller, whose stack is not ours: leave some for others */
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        return;
    }
    if (pthread_getattr_np(pthread_self(), &attr) == 0) {
        (void)pthread_attr_getstacksize(&attr, &bytes);
        pthread_attr_destroy(&attr);
    }
    if (bytes > *most) *most = bytes;
}

/* Where huge pages are on for everything, a larger one takes 2 MiB as soon as it is touched. */
TEST(the_stack_of_a_worker_is_smaller_than_a_huge_page)
{
    fth_context *ctx = context_of(3, NULL, NULL, NULL);
    atomic_uint_fast64_t most = 0;
    OK(fth_context_loop(ctx, "stacks", 100, find_stack, &most, NULL));
    IS_TRUE(most > 0);
    LE_F64(most, (2 << 20) - 1);
    OK(fth_context_destroy(ctx, NULL));
}

static void add_inner(void *arg, int64_t i, int worker)
{
    counting *c = arg;
    (void)i;
    c->inner++;
    if (worker != 0) c->wrong++;
}

static void loop_inside(void *arg, int64_t i, int worker)
{
    counting *c = arg;
    (void)worker;
    c->times[i]++;
    if (fth_context_loop(c->ctx, "inner", 10, add_inner, c, NULL) != FTH_OK) c->wrong++;
}

TEST(a_loop_inside_a_loop_runs_on_the_thread_that_starts_it)
{
    fth_context *ctx = context_of(4, NULL, NULL, NULL);
    counting *c = calloc(1, sizeof *c);
    c->ctx = ctx;
    OK(fth_context_loop(ctx, "outer", N, loop_inside, c, NULL));
    for (int i = 0; i < N; i++) EQ_I64(c->times[i], 1);
    EQ_I64(c->inner, 10 * N);
    EQ_I64(c->wrong, 0);
    free(c);
    OK(fth_context_destroy(ctx, NULL));
}

static bool twice(void *user, const fth_progress *p)
{
    EQ_STR(p->what, "napping");
    LE_F64(p->fraction, 1);
    return ++*(int *)user < 3;
}

static void nap(void *arg, int64_t i, int worker)
{
    (void)i, (void)worker;
    atomic_fetch_add((atomic_int *)arg, 1);
    nanosleep(&(struct timespec){0, 2000000}, NULL);
}

static void nap_inside(void *arg, int64_t i, int worker)
{
    fth_context *ctx = *(fth_context **)arg;
    atomic_int naps = 0;
    (void)i, (void)worker;
    if (fth_context_loop(ctx, "napping", 3000, nap, &naps, NULL) == FTH_OK) EQ_I64(naps, 3000);
}

TEST(the_progress_of_the_context_stops_it)
{
    int asked = 0;
    atomic_int naps = 0;
    fth_err err = {0};
    fth_context *ctx = context_of(3, twice, &asked, NULL);
    IS(fth_context_loop(ctx, "napping", 10000, nap, &naps, &err), FTH_E_CANCELLED);
    EQ_I64(asked, 3);
    HAS(err.text, "napping: the loop was cancelled at ");
    IS_TRUE(naps > 3 && naps < 5000);
    asked = 0;
    OK(fth_context_loop(ctx, "napping", 1, nap, &naps, &err)); /* asked at its end, too */
    EQ_I64(asked, 1);
    OK(fth_context_destroy(ctx, NULL));
}

TEST(a_loop_that_is_stopped_stops_those_inside_it)
{
    int asked = 0;
    fth_context *ctx = context_of(3, twice, &asked, NULL);
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    IS(fth_context_loop(ctx, "napping", 100, nap_inside, &ctx, NULL), FTH_E_CANCELLED);
    clock_gettime(CLOCK_MONOTONIC, &b);
    LE_F64((double)(b.tv_sec - a.tv_sec), 3); /* one inner loop would nap for 6 s */
    OK(fth_context_destroy(ctx, NULL));
}

TEST(a_loop_stands_in_the_timeline)
{
    fth_trace *trace = NULL;
    fth_mem *mem = NULL;
    fth_mem_options mo;
    fth_mem_options_default(&mo);
    mo.budget_bytes = 64 << 20;
    OK(fth_mem_create(&mem, &mo, NULL));
    OK(fth_trace_create(&trace, mem, 1 << 20, NULL));
    fth_context *ctx = context_of(2, NULL, NULL, trace);
    atomic_int naps = 0;
    OK(fth_context_loop(ctx, "napping", 3, nap, &naps, NULL));
    static char text[20000];
    (void)fth_trace_format(trace, text, sizeof text);
    HAS(text, "napping");
    OK(fth_context_destroy(ctx, NULL));
    fth_trace_destroy(trace);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(no_memory_is_an_error)
{
    fth_context *ctx = context_of(2, NULL, NULL, NULL);
    atomic_int naps = 0;
    fth__mem_inject(fth_context_mem(ctx), 1, 0);
    IS(fth_context_loop(ctx, "napping", 3, nap, &naps, NULL), FTH_E_NOMEM);
    EQ_I64(naps, 0);
    fth__mem_inject(fth_context_mem(ctx), 0, 0);
    OK(fth_context_destroy(ctx, NULL));
}

TEST(a_team_beside_a_context_takes_every_index_once)
{
    fth_context *ctx = context_of(1, NULL, NULL, NULL);
    fth_mem *mem = fth_context_mem(ctx);
    fth_team *team = NULL;
    IS(fth_team_create(&team, mem, 0, NULL), FTH_E_USAGE);
    EQ_I64(team == NULL, true);
    for (int threads = 1; threads <= 4; threads++) {
        counting *c = calloc(1, sizeof *c);
        c->threads = threads;
        OK(fth_team_create(&team, mem, threads, NULL));
        for (int turn = 1; turn <= 20; turn++) {
            fth_team_run(team, N, count_one, c);
            for (int64_t i = 0; i < N; i++) EQ_I64(c->times[i], turn);
        }
        EQ_I64(c->wrong, 0);
        fth_team_destroy(team);
        free(c);
    }
    for (int n = 1; n <= 3; n++) { /* the team, its workers, their list */
        fth__mem_inject(mem, n, 0);
        IS(fth_team_create(&team, mem, 2, NULL), FTH_E_NOMEM);
        EQ_I64(team == NULL, true);
    }
    fth__mem_inject(mem, 0, 0);
    OK(fth_context_destroy(ctx, NULL));
}

typedef struct questions {
    int64_t asked;
    fth_progress last;
} questions;

static bool count_questions(void *user, const fth_progress *p)
{
    questions *q = user;
    q->asked++;
    q->last = *p;
    return true;
}

static void sleep_some(void *arg, int64_t i, int worker)
{
    (void)arg, (void)i, (void)worker;
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
}

TEST(a_loop_asks_now_and_then_and_at_its_end)
{
    questions q = {0};
    fth_context *ctx = context_of(1, count_questions, &q, NULL);
    OK(fth_context_loop(ctx, "nothing", 0, sleep_some, NULL, NULL));
    EQ_I64(q.asked, 0);
    OK(fth_context_loop(ctx, "sleeping", 40, sleep_some, NULL, NULL));
    LE_F64(q.asked, q.last.elapsed_s / 0.025 + 1);
    EQ_F64(q.last.fraction, 1);
    EQ_F64(q.last.remaining_s, 0);
    OK(fth_context_destroy(ctx, NULL));
}

TEST_MAIN()
