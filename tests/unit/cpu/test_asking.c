/* test_asking.c - kernels with long loops ask whether to go on, and say how far they are.
 * seconds: 40
 *
 * Each is run whole, by one call (among workers those that share a call), for a team that writes
 * down every question and how much of the work was done by then, then once more until the first
 * question, which is answered with no.
 */
#include "testing/test.h"

#include "plan/plan.h"
#include "run/team.h"

#include <fathom/fathom.h>

#include <string.h>
#include <time.h>

enum { MOST = 1 << 16, SMALL = 1 << 16 };
/* Passes over a line that are not needed count as done: a median says 0.45 more than it took. */
static const double EARLY = 0.7;

typedef struct asked {
    const fth_kernel *own; /* NULL: the operation's loop */
    fth_mem *mem;
    fth_team *team;
    int calls, n, limit;            /* questions; answered with no from so many on, 0: never */
    double share[MOST], took[MOST]; /* seconds of the processor until then */
    double seconds;                 /* of all */
    double
        written; /* share of the bytes of the output; -1: it is small, and may be cleared first */
} asked;

static asked a;

static double seconds_of_thread(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool answer(void *user)
{
    (void)user;
    if (a.n < MOST) {
        a.share[a.n] = fth__team_share_done(a.team);
        a.took[a.n] = seconds_of_thread() - a.seconds;
    }
    return ++a.n != a.limit;
}

static fth_status run_asked(const fth_call *call)
{
    fth_call one = *call;
    OK(fth__team_share(&a.team, a.mem, call->team, answer, NULL, NULL));
    fth__team_begin(a.team);
    one.team = a.team;
    a.calls++;
    a.seconds = seconds_of_thread();
    const fth_status s = a.own ? a.own->run(&one) : call->node->op->run(&one);
    a.seconds = seconds_of_thread() - a.seconds;
    if (a.limit > 0) IS_TRUE(!fth__team_goes_on(a.team));
    fth_team_destroy(a.team);
    return a.limit > 0 ? FTH_OK : s; /* half a factor is not positive definite */
}

/* ---- programs: of x [i j], of more rows than columns ---- */

typedef struct program {
    fth_graph *g;
    fth_val x;
    int64_t rows, columns;
} program;

static fth_val product(const program *p)
{
    fth_axis_like(p->g, "i2", "i");
    return fth_dot(p->x, fth_rename(p->x, "i", "i2"), "j");
}
/* Ones on the diagonal of (axis, other). */
static fth_val unit_of(const program *p, const char *axis, const char *other)
{
    const fth_val row = fth_expand(fth_index(p->g, axis), other);
    return fth_cast(fth_eq(row, fth_index(p->g, other)), FTH_F32);
}
static fth_val factor(const program *p)
{
    fth_axis_like(p->g, "i2", "i");
    const fth_val square = fth_dot(p->x, fth_rename(p->x, "i", "i2"), "j"),
                  rows = fth_const(p->g, FTH_F32, (double)p->rows);
    return fth_cholesky(fth_add(square, fth_mul(unit_of(p, "i", "i2"), rows)), "i", "i2");
}
/* Of every row a matrix of its own. */
static fth_val factors(const program *p)
{
    fth_axis_like(p->g, "j2", "j");
    const fth_val square = fth_mul(fth_expand(p->x, "j2"), fth_rename(p->x, "j", "j2")),
                  one = fth_const(p->g, FTH_F32, (double)p->columns);
    return fth_cholesky(fth_add(square, fth_mul(unit_of(p, "j", "j2"), one)), "j", "j2");
}
static fth_val solution(const program *p)
{
    fth_axis_like(p->g, "j2", "j");
    return fth_solve(fth_mark(unit_of(p, "j", "j2"), FTH_LOWER, "j", "j2"), p->x, "j", "j2");
}
static fth_val sum_along(const program *p)
{
    return fth_sum(fth_exp(p->x), "j");
}
static fth_val sum_across(const program *p)
{
    return fth_sum(fth_exp(p->x), "i");
}
static fth_val largest(const program *p)
{
    return fth_rmax(p->x, "i");
}
static fth_val logsumexp_along(const program *p)
{
    return fth_logsumexp(p->x, "j");
}
static fth_val logsumexp_across(const program *p)
{
    return fth_logsumexp(p->x, "i");
}
static fth_val variance(const program *p)
{
    return fth_variance(p->x, "i");
}
static fth_val variance_along(const program *p)
{
    return fth_variance(p->x, "j");
}
static fth_val running(const program *p)
{
    return fth_cumsum(p->x, "j");
}
static fth_val running_across(const program *p)
{
    return fth_cumsum(p->x, "i");
}
static fth_val sorted(const program *p)
{
    return fth_sort(p->x, "j", false);
}
static fth_val order(const program *p)
{
    return fth_out(fth_sort(p->x, "j", false), 1);
}
static fth_val middle(const program *p)
{
    return fth_median(p->x, "j");
}
static fth_val counted(const program *p)
{
    fth_axis(p->g, "bin", 100);
    return fth_histogram(p->x, "j", "bin", 0.0, 1.0);
}
static fth_val added(const program *p)
{
    fth_axis(p->g, "place", 1000);
    const fth_val index = fth_cast(fth_mul(p->x, fth_const(p->g, FTH_F32, 999.0)), FTH_I32);
    return fth_scatter_add(p->x, "i j", index, "place");
}
static fth_val rows_added(const program *p)
{
    fth_axis(p->g, "place", 1000);
    const fth_val index = fth_mod(fth_index(p->g, "i"), fth_const(p->g, FTH_I64, 1000));
    return fth_scatter_add(p->x, "i", index, "place");
}
static fth_val put(const program *p)
{
    fth_axis(p->g, "place", 1000);
    const fth_val index = fth_cast(fth_mul(p->x, fth_const(p->g, FTH_F32, 999.0)), FTH_I32);
    return fth_scatter(FTH_SCATTER_MAX, p->x, "i j", index, "place", 0.0);
}
static fth_val chosen(const program *p)
{
    fth_axis(p->g, "some", p->columns);
    const fth_val all = fth_ge(fth_index(p->g, "j"), fth_const(p->g, FTH_I64, 0));
    return fth_compact(p->x, "j", all, "some");
}
static fth_val spectrum(const program *p)
{
    fth_axis_like(p->g, "k", "i");
    fth_axis_like(p->g, "l", "j");
    return p->rows > 1 ? fth_fft(fth_cast(p->x, FTH_C64), "i j", "k l")
                       : fth_fft(fth_cast(p->x, FTH_C64), "j", "l");
}
static fth_val volume(const program *p)
{
    fth_axis_like(p->g, "k", "i");
    fth_axis_like(p->g, "l", "j");
    fth_axis(p->g, "z", 32);
    fth_axis_like(p->g, "m", "z");
    const fth_val v = fth_expand(fth_cast(p->x, FTH_C64), "z");
    return fth_fft(fth_layout(v, "z i j"), "z i j", "m k l");
}

static const struct {
    const char *name;
    fth_val (*make)(const program *p);
    const char *op;
    int64_t rows, columns;
    double most; /* of the work between two questions */
} all[] = {
    {"a product", product, "dot", 2048, 2048, 0.26},
    {"a product in strips", product, "dot", 512, 16384, 0.3},
    {"a factor", factor, "cholesky", 3000, 64, 0.4},
    {"factors of rows", factors, "cholesky", 2048, 64, 0.1},
    {"a solution", solution, "solve", 8192, 256, 0.15},
    {"a sum along", sum_along, "fused", 2, 1 << 20, 0.1},
    {"a sum across", sum_across, "fused", 1 << 17, 16, 0.1},
    {"the largest", largest, "fused", 1 << 17, 16, 0.1},
    {"logsumexp along", logsumexp_along, "reduce", 2, 1 << 20, 0.1},
    {"logsumexp across", logsumexp_across, "reduce", 1 << 17, 16, 0.1},
    {"variance", variance, "variance", 1 << 17, 16, 0.1},
    {"variance along", variance_along, "variance", 2, 1 << 20, 0.1},
    {"running sums", running, "scan", 1, 1 << 21, 0.1},
    {"running sums across", running_across, "scan", 1 << 17, 16, 0.1},
    {"a sort", sorted, "sort", 1, 1 << 21, 0.1},
    {"an order", order, "sort", 1, 1 << 21, 0.1},
    {"lines sorted", sorted, "sort", 1 << 12, 1 << 9, 0.1},
    {"a median", middle, "ranked", 1, 1 << 21, 0.1},
    {"medians of lines", middle, "ranked", 1 << 12, 1 << 9, 0.1},
    {"a histogram", counted, "histogram", 1, 1 << 21, 0.1},
    {"sums by places", added, "scatter_add", 1 << 10, 1 << 11, 0.1},
    {"sums of rows by places", rows_added, "scatter_add", 1 << 17, 1 << 4, 0.1},
    {"the largest by places", put, "scatter", 1 << 10, 1 << 11, 0.1},
    {"rows chosen", chosen, "compact", 1, 1 << 21, 0.1},
    {"an image's spectrum", spectrum, "fft", 2048, 1024, 0.2},
    {"a volume's spectrum", volume, "fft", 256, 256, 0.2},
    {"a row's spectrum", spectrum, "fft", 1, 1 << 22, 0.2},
    {"a row's of a prime", spectrum, "fft", 1, 1048573, 0.2},
};

/* The step is one call, for all workers that there are. */
static bool is_one_call(const fth_plan *p, int64_t unit)
{
    for (int64_t t = 0; t < p->n_items; t++)
        if (p->item[t].kind == FTH__STEP && p->item[t].unit == unit)
            return p->threads == 1 || p->item[t].team;
    return false;
}

/* False: it is no such step. */
static bool run_program(int k, int threads, int limit)
{
    fth_err err = {0};
    fth_options opt;
    fth_context *ctx;
    fth_tensor *x;
    const int64_t size[2] = {all[k].rows, all[k].columns};
    fth_options_default(&opt);
    opt.threads = threads;
    opt.mem.budget_bytes = (uint64_t)2 << 30;
    OKE(fth_context_create(&ctx, &opt, &err), &err);
    OKE(fth_tensor_create(&x, fth_context_mem(ctx), "x", FTH_F32, 2, size, &err), &err);
    uint32_t state = 1;
    for (int64_t i = 0; i < size[0] * size[1]; i++) {
        state = state * 1664525u + 1013904223u;
        ((float *)fth_tensor_data(x))[i] = (float)(state >> 8) / (1 << 24);
    }
    program p = {.g = fth_graph_create(ctx), .rows = size[0], .columns = size[1]};
    fth_axis(p.g, "i", size[0]);
    fth_axis(p.g, "j", size[1]);
    p.x = fth_input(p.g, "x", FTH_F32, "i j", fth_tensor_source(x));
    const fth_val v = all[k].make(&p);
    if (!fth_val_ok(v)) OKE(fth_plan_make(p.g, &v, 1, NULL, &err) ? FTH_OK : err.status, &err);
    fth_tensor *y;
    int64_t out[FTH_MAX_AXES];
    const int n_axes = fth_val_axes(v);
    for (int d = 0; d < n_axes; d++) out[d] = fth_val_size(v, d);
    OKE(fth_tensor_create(&y, fth_context_mem(ctx), "y", fth_val_dtype(v), n_axes, out, &err),
        &err);
    const fth_sink sink = fth_tensor_sink(y);
    fth_plan *plan = fth_plan_make(p.g, &v, 1, &(fth_limits){.sinks = &sink, .stream = ""}, &err);
    if (!plan) OKE(err.status, &err);
    a = (asked){.mem = fth_context_mem(ctx), .limit = limit};
    fth_kernel asking;
    int found = 0;
    bool one = false;
    for (int64_t u = 0; u < plan->n_units; u++) {
        const fth_op *op = plan->unit[u].node->op;
        if (strcmp(op->name, all[k].op) != 0) continue;
        a.own = plan->unit[u].kernel;
        one = is_one_call(plan, u);
        asking = a.own ? *a.own : (fth_kernel){.op = op->name, .scratch = op->scratch};
        asking.run = run_asked;
        asking.flags |= FTH_OP_NO_SPLIT;
        if (one) plan->unit[u].kernel = &asking;
        found++;
    }
    EQ_I64(found, 1);
    if (one) {
        unsigned char *bytes = fth_tensor_data(y);
        const uint64_t n_bytes = fth_tensor_bytes(y);
        memset(bytes, 0xA5, n_bytes);
        OKE(fth_run(plan, &sink, NULL, NULL, &err), &err);
        for (uint64_t i = 0; i < n_bytes; i++) a.written += bytes[i] != 0xA5;
        a.written = n_bytes < SMALL ? -1.0 : a.written / (double)n_bytes;
        EQ_I64(a.calls, 1);
    }
    OK(fth_plan_destroy(plan));
    OK(fth_graph_destroy(p.g));
    fth_tensor_release(x);
    fth_tensor_release(y);
    OKE(fth_context_destroy(ctx, &err), &err);
    return one;
}

static bool check_program(int k, int threads)
{
    if (!run_program(k, threads, 0)) return false;
    if (a.written >= 0.0) IS_TRUE(a.written > 0.5);
    double last = 0.0, most = 0.0;
    int bad = 0;
    for (int i = 0; i < a.n && i < MOST; i++) {
        bad += a.share[i] < last || a.share[i] > 1.0;
        if (a.share[i] - last > most) most = a.share[i] - last;
        last = a.share[i];
    }
    if (1.0 - last > most) most = 1.0 - last;
    double early = 0.0; /* beside the time that it took */
    for (int i = 0; i < a.n && i < MOST; i++)
        if (a.share[i] - a.took[i] / a.seconds > early) early = a.share[i] - a.took[i] / a.seconds;
    if (threads == 1 && early > EARLY) printf("%s: %.3f too early\n", all[k].name, early);
    if (threads == 1) LE_F64(early, EARLY);
    /* while the one who asks is off the processor, the others go on */
    const double allowed = threads > 1 ? 1.0 : all[k].most;
    if (bad > 0 || most > allowed)
        printf("%s, %d threads: %d questions, at most %.3f between two\n", all[k].name, threads,
               a.n, most);
    EQ_I64(bad, 0);
    LE_F64(most, allowed);
    IS_TRUE(run_program(k, threads, 1));
    EQ_I64(a.n, 1); /* not asked again */
    if (threads > 1)
        return true; /* others may have begun meanwhile, and more the busier the machine */
    if (a.written > 0.25) printf("%s: %.3f of the output\n", all[k].name, a.written);
    LE_F64(a.written, 0.25);
    return true;
}

TEST(alone)
{
    for (int k = 0; k < (int)(sizeof all / sizeof *all); k++) IS_TRUE(check_program(k, 1));
}

TEST(among_workers)
{
    int shared = 0;
    for (int k = 0; k < (int)(sizeof all / sizeof *all); k++) shared += check_program(k, 2);
    IS_TRUE(shared >= 4);
}

TEST_MAIN()
