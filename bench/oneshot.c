/* oneshot.c - programs that run once: is the plan that is made without a limit the quickest?
 *
 * Each is run in a process of its own, planned without a limit and within a half, a quarter, a
 * sixteenth and a sixty-fourth of what everything at once needs: a run in a process that has run
 * before finds its memory in place. The budgets take turns, and the median of the rounds counts.
 */
#include "bench.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* `more`: an array of 1 MiB. */
typedef fth_val make_fn(bench_program *p, fth_val x, float *more);

/* A chain that products of the whole keep apart: several temporaries of the size of x. */
static fth_val make_chain(bench_program *p, fth_val x, float *more)
{
    (void)p, (void)more;
    fth_val v = x;
    for (int i = 0; i < 3; i++) {
        const fth_val scale = fth_rmax(fth_abs(v), "j");
        v = fth_mul(fth_tanh(fth_div(v, fth_expand(scale, "j"))), x);
    }
    return v;
}
/* Sums of exp(-|x - z|^2 / 2) over 2048 places. */
static fth_val make_kernel(bench_program *p, fth_val x, float *more)
{
    const fth_val z = bench_input(p, "z", FTH_F32, "mark j", more);
    const fth_val near = fth_dot(x, z, "j");
    (void)p, (void)more;
    const fth_val k = fth_exp(fth_mul(near, fth_const(x.graph, FTH_F32, -0.01)));
    return fth_sum(fth_mul(k, fth_sqr(k)), "mark");
}
static fth_val make_blur(bench_program *p, fth_val x, float *more)
{
    (void)more;
    fth_axis(p->g, "tap", 9);
    const fth_val w = fth_const(p->g, FTH_F32, 1.0 / 9.0);
    const fth_val rows = fth_mean(fth_window(x, "j", 4, "tap", FTH_BORDER_CLAMP), "tap");
    return fth_mul(fth_mean(fth_window(rows, "i", 4, "tap", FTH_BORDER_CLAMP), "tap"), w);
}
static fth_val make_reduction(bench_program *p, fth_val x, float *more)
{
    (void)p, (void)more;
    const fth_val e = fth_exp(fth_sub(x, fth_expand(fth_rmax(x, "j"), "j")));
    return fth_sum(fth_div(e, fth_expand(fth_sum(e, "j"), "j")), "i");
}
static fth_val make_standard(bench_program *p, fth_val x, float *more)
{
    (void)p, (void)more;
    const fth_val d = fth_sub(x, fth_expand(fth_mean(x, "i"), "i"));
    const fth_val scale =
        fth_sqrt(fth_add(fth_mean(fth_sqr(d), "i"), fth_const(x.graph, FTH_F32, 1e-3)));
    return fth_div(d, fth_expand(scale, "i"));
}
static fth_val make_products(bench_program *p, fth_val x, float *more)
{
    (void)p, (void)more;
    const fth_val w = bench_input(p, "w", FTH_F32, "k j", more);
    const fth_val a = fth_tanh(fth_dot(x, w, "j"));
    return fth_tanh(fth_dot(a, w, "k"));
}

typedef struct program {
    const char *name;
    make_fn *make;
    int64_t rows, columns;
} program;
static const program programs[] = {
    {"oneshot_chain", make_chain, 1 << 16, 512},
    {"oneshot_kernel", make_kernel, 1 << 16, 64},
    {"oneshot_blur", make_blur, 6144, 6144},
    {"oneshot_reduction", make_reduction, 1 << 16, 512},
    {"oneshot_standardise", make_standard, 1 << 16, 512},
    {"oneshot_products", make_products, 1 << 17, 256},
};

enum { BUDGETS = 5, ROUNDS = 7 };
static const int part[BUDGETS] = {0, 2, 4, 16, 64}; /* 0: no limit */

typedef struct told {
    bool fits;
    double seconds, predicted;
    int64_t chunks;
    uint64_t arena;
} told;

typedef struct arrays {
    float *x, *more; /* `more` has MORE floats */
    void *y;
} arrays;
enum { MORE = 1 << 18 };

static void open_program(bench_program *p, const program *o, int threads, const arrays *a)
{
    bench_open(p, threads);
    fth_axis(p->g, "i", o->rows);
    fth_axis(p->g, "j", o->columns);
    if (o->make == make_kernel) fth_axis(p->g, "mark", 2048);
    if (o->make == make_products) fth_axis(p->g, "k", 256);
    bench_output(p, o->make(p, bench_input(p, "x", FTH_F32, "i j", a->x), a->more), a->y);
}

static uint64_t whole_bytes(const program *o, int threads, const arrays *a)
{
    bench_program p;
    uint64_t bytes = 0;
    open_program(&p, o, threads, a);
    const fth_limits limits = {.sinks = p.sink, .stream = ""};
    if (p.status == FTH_OK) {
        p.plan = fth_plan_make(p.g, p.out, p.n_out, &limits, &p.err);
        p.status = p.err.status;
    }
    if (p.plan) {
        fth_plan_get_info(p.plan, &p.info);
        bytes = p.info.peak_bytes;
    }
    bench_close(&p);
    return bytes;
}

/* In the child: plan and run once. */
static told run_once(const bench *b, const program *o, int threads, const arrays *a, uint64_t arena)
{
    bench_program p;
    told t = {0};
    open_program(&p, o, threads, a);
    fth_limits limits = {.sinks = p.sink};
    if (arena > 0) { /* what the caller holds is counted too */
        fth_plan *plan = fth_plan_make(p.g, p.out, p.n_out, &limits, &p.err);
        if (!plan) return t;
        fth_plan_get_info(plan, &p.info);
        fth_plan_destroy(plan);
        limits.memory_bytes = arena + p.info.foreign_bytes;
    }
    p.plan = p.status == FTH_OK ? fth_plan_make(p.g, p.out, p.n_out, &limits, &p.err) : NULL;
    if (!p.plan) return t;
    fth_plan_get_info(p.plan, &p.info);
    const double start = bench_now(b, threads);
    t.fits = fth_run(p.plan, p.sink, NULL, &p.report, &p.err) == FTH_OK;
    t.seconds = bench_now(b, threads) - start;
    t.predicted = p.report.predicted_seconds;
    t.chunks = p.info.chunks;
    t.arena = p.info.peak_bytes;
    return t;
}

static told in_a_process(const bench *b, const program *o, int threads, const arrays *a,
                         uint64_t arena)
{
    told t = {0};
    told *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) return t;
    const pid_t child = fork();
    if (child == 0) {
        *shared = run_once(b, o, threads, a, arena);
        _exit(0);
    }
    int status = 0;
    if (child > 0 && waitpid(child, &status, 0) == child && status == 0) t = *shared;
    munmap(shared, sizeof *shared);
    return t;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void one(bench *b, const program *o, int threads)
{
    char name[64], size[24];
    snprintf(name, sizeof name, "%s%s", o->name, threads > 1 ? "_2" : "");
    if (!bench_wants(b, name)) return;
    const uint64_t bytes = 4 * (uint64_t)o->rows * (uint64_t)o->columns;
    arrays a = {.x = bench_array(bytes), .more = bench_array(sizeof(float) * MORE)};
    /* shared with the children, so that writing it copies no page */
    a.y = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (a.y == MAP_FAILED) exit(4);
    memset(a.y, 0, bytes);
    bench_fill_f32(a.x, (int64_t)(bytes / 4), 1, 0.1F, 1);
    bench_fill_f32(a.more, MORE, 2, -0.1F, 0.1F);
    const uint64_t whole = whole_bytes(o, threads, &a);
    double seconds[BUDGETS][ROUNDS] = {{0}}, median[BUDGETS], best = 1e30;
    told t[BUDGETS] = {{0}};
    for (int r = -1; r < ROUNDS; r++)
        for (int k = 0; k < BUDGETS; k++) {
            const uint64_t arena = part[k] > 0 ? whole / (uint64_t)part[k] : 0;
            t[k] = in_a_process(b, o, threads, &a, arena);
            if (r >= 0) seconds[k][r] = t[k].fits ? t[k].seconds : 1e30;
        }
    for (int k = 0; k < BUDGETS; k++) {
        qsort(seconds[k], ROUNDS, sizeof **seconds, by_size);
        median[k] = seconds[k][ROUNDS / 2];
        if (median[k] < best) best = median[k];
    }
    bench_note(b, "%s: everything at once takes %s", name,
               fth_mem_format_size(whole, size, sizeof size));
    for (int k = 0; k < BUDGETS; k++) {
        if (!t[k].fits)
            bench_note(b, "  1/%-3d does not fit", part[k]);
        else
            bench_note(b,
                       "  1/%-3d arena %11s, %6lld chunks: %.5f s (predicted %.5f), %.2f of best",
                       part[k], fth_mem_format_size(t[k].arena, size, sizeof size),
                       (long long)t[k].chunks, median[k], t[k].predicted, median[k] / best);
    }
    bench_single(b, name, "without a limit", &median[0], 1, 1.1 * best, "best of five budgets");
    free(a.x);
    free(a.more);
    munmap(a.y, bytes);
}

void bench_oneshot(bench *b)
{
    for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++)
        for (int threads = 1; threads <= 2; threads++) one(b, &programs[i], threads);
}
