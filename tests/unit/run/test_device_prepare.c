/* test_device_prepare.c - what kernels load or compile before a run: for all of a plan's steps
 * beside each other, and whoever prepares what, with the same results and the same error.
 * seconds: 3
 */
#include "testing/engine/host_device.h"
#include "testing/test.h"

#include <fathom/fathom.h>

#include <pthread.h>
#include <time.h>
#include <unistd.h>

enum { N = 40, STEPS = 12, RUNS = 9, MOST = 4, PATIENCE_S = 20 };

/* The host's device, whose kernels take their time to be prepared; each is known by the length of
 * what it computes. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t met;
    int64_t calls, of[STEPS]; /* in all, and of each step */
    int64_t runs;             /* what the last of them was told */
    int now, most;            /* at once */
    int wait_for;             /* the first ones wait until so many are there */
    bool fails[STEPS];
} seen = {.lock = PTHREAD_MUTEX_INITIALIZER, .met = PTHREAD_COND_INITIALIZER};

static void forget(int wait_for)
{
    seen.calls = seen.runs = 0;
    seen.now = seen.most = 0;
    seen.wait_for = wait_for;
    memset(seen.of, 0, sizeof seen.of);
    memset(seen.fails, 0, sizeof seen.fails);
}

/* Until `wait_for` were here at once. The lock is held. */
static void wait_for_others(void)
{
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += PATIENCE_S;
    if (seen.most >= seen.wait_for) pthread_cond_broadcast(&seen.met);
    while (seen.most < seen.wait_for)
        if (pthread_cond_timedwait(&seen.met, &seen.lock, &end) != 0) seen.wait_for = 0;
}

static fth_status prepare(const fth_node *node, fth_device *device, int64_t runs, fth_err *err)
{
    const int step = (int)(node->out[0].size[0] - N);
    (void)device;
    if (step < 0 || step >= STEPS) return FTH_OK; /* what joins them */
    pthread_mutex_lock(&seen.lock);
    seen.calls++;
    seen.of[step]++;
    seen.runs = runs;
    if (++seen.now > seen.most) seen.most = seen.now;
    wait_for_others();
    const bool fails = seen.fails[step];
    pthread_mutex_unlock(&seen.lock);
    if (fails) (void)usleep((unsigned)(STEPS - step) * 500); /* the first of them is the last */
    pthread_mutex_lock(&seen.lock);
    seen.now--;
    pthread_mutex_unlock(&seen.lock);
    return fails ? FTH_FAIL(err, FTH_E_DEVICE, "step %d does not compile", step) : FTH_OK;
}

static const fth_kernel *find(const fth_node *node)
{
    static fth_kernel slow;
    const fth_kernel *k = t_host_backend.find(node);
    if (!k) return NULL;
    slow = *k;
    slow.prepare = prepare;
    return &slow;
}

typedef struct program {
    fth_context *ctx;
    fth_graph *g;
    fth_plan *plan;
    fth_backend backend;
    fth_sink sink[STEPS];
    double sum[STEPS];
} program;

/* Sums of sorted values that share nothing: none is fused with another. */
static void open_program(program *c, int threads, bool keep)
{
    static char names[STEPS][8];
    fth_err err = {0};
    fth_options opt;
    fth_val out[STEPS];
    *c = (program){.backend = t_host_backend};
    c->backend.find = find;
    fth_options_default(&opt);
    opt.threads = threads;
    opt.device = "cuda";
    opt.backend = &c->backend;
    OKE(fth_context_create(&c->ctx, &opt, &err), &err);
    c->g = fth_graph_create(c->ctx);
    for (int i = 0; i < STEPS; i++) {
        snprintf(names[i], sizeof names[i], "row%d", i);
        fth_axis(c->g, names[i], N + i);
        const fth_val v = fth_cumsum(fth_cast(fth_index(c->g, names[i]), FTH_F64), names[i]);
        out[i] = fth_sum(fth_flip(v, names[i]), names[i]);
        c->sink[i] = fth_scalar_sink(FTH_F64, &c->sum[i]);
    }
    OKE(fth_graph_check(c->g, &err), &err);
    c->plan = fth_plan_make(c->g, out, STEPS, &(fth_limits){.sinks = c->sink, .keep = keep}, &err);
    if (!c->plan) FAIL("%s", err.text);
}

static void close_program(program *c)
{
    fth_plan_destroy(c->plan);
    fth_graph_destroy(c->g);
    OK(fth_context_destroy(c->ctx, NULL));
}

/* The sum of 0, 1, 3, 6, ..: n (n + 1) (n - 1) / 6 of n numbers. */
static void check_sums(const program *c)
{
    for (int i = 0; i < STEPS; i++) {
        const double n = N + i;
        EQ_F64(c->sum[i], n * (n + 1) * (n - 1) / 6);
    }
}

TEST(workers_prepare_beside_each_other)
{
    for (int threads = 1; threads <= MOST; threads++) {
        program c;
        fth_err err = {0};
        open_program(&c, threads, false);
        forget(threads);
        OKE(fth_run(c.plan, c.sink, NULL, NULL, &err), &err);
        check_sums(&c);
        EQ_I64(seen.most, threads); /* all of them at once, and nobody else */
        for (int i = 0; i < STEPS; i++) IS_TRUE(seen.of[i] > 0);
        close_program(&c);
    }
}

/* Before runs 0, 1, 2, 4, 8 of a plan; every step as often, and what was said before does not
 * change what is computed. */
TEST(a_plan_is_prepared_again_when_it_ran_twice_as_often)
{
    program c;
    fth_err err = {0};
    open_program(&c, 2, true);
    forget(1);
    int64_t times = 0, each[STEPS];
    for (int64_t run = 0; run < RUNS; run++) {
        const int64_t before = seen.calls;
        OKE(fth_run(c.plan, c.sink, NULL, NULL, &err), &err);
        check_sums(&c);
        const bool wanted = (run & (run - 1)) == 0;
        EQ_I64(seen.calls > before, wanted);
        times += wanted;
        if (wanted) EQ_I64(seen.runs, run);
        if (run == 0) memcpy(each, seen.of, sizeof each);
    }
    for (int i = 0; i < STEPS; i++) EQ_I64(seen.of[i], times * each[i]);
    close_program(&c);
}

/* The error is that of the first step that has one, though it is told last; later runs try again.
 */
TEST(the_first_failure_is_told)
{
    for (int threads = 1; threads <= MOST; threads++)
        for (int first = 0; first < STEPS; first += 3) {
            program c;
            fth_err err = {0}, again = {0};
            char wanted[40];
            open_program(&c, threads, false);
            forget(1);
            for (int i = first; i < STEPS; i += 2) seen.fails[i] = true;
            snprintf(wanted, sizeof wanted, "step %d does not compile", first);
            IS(fth_run(c.plan, c.sink, NULL, NULL, &err), FTH_E_DEVICE);
            HAS(err.text, wanted);
            IS_TRUE(err.origin.file != NULL);
            IS(fth_run(c.plan, c.sink, NULL, NULL, &again), FTH_E_DEVICE);
            HAS(again.text, wanted);
            IS(fth_run(c.plan, c.sink, NULL, NULL, NULL), FTH_E_DEVICE);
            forget(1);
            fth_err_clear(&err);
            OKE(fth_run(c.plan, c.sink, NULL, NULL, &err), &err);
            check_sums(&c);
            close_program(&c);
        }
}

TEST_MAIN()
