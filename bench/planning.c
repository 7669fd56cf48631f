/* planning.c - how long it takes to plan a thousand nodes, and to refuse what cannot fit. */
#include "bench.h"

#include <stdlib.h>

static fth_status no_read(void *self, const int64_t *lo, const int64_t *n, void *dst, fth_err *err)
{
    (void)lo, (void)n, (void)dst, (void)err;
    ++*(int64_t *)self;
    return FTH_OK;
}

static fth_val unread(fth_graph *g, const char *name, const char *axes, int64_t a, int64_t b,
                      int64_t c, int64_t *reads)
{
    const fth_source s = {.kind = "unread",
                          .self = reads,
                          .dtype = FTH_F32,
                          .n_axes = 2 + (c > 0),
                          .size = {a, b, c},
                          .read = no_read};
    return fth_input(g, name, FTH_F32, axes, s);
}

/* Layers of product, nonlinearity, residual and statistics: about eleven nodes each. */
static fth_val layers(fth_graph *g, fth_val x, fth_val w, int n)
{
    for (int i = 0; i < n; i++) {
        const fth_val h = fth_rename(fth_dot(w, x, "in"), "out", "in");
        const fth_val t = fth_tanh(fth_mul(h, fth_const(g, FTH_F32, 0.5)));
        const fth_val scale =
            fth_sqrt(fth_add(fth_mean(fth_sqr(t), "in"), fth_const(g, FTH_F32, 1e-3)));
        x = fth_add(x, fth_div(t, scale));
    }
    return x;
}

static fth_val chain(fth_graph *g, fth_val x, int n)
{
    for (int i = 0; i < n; i += 2) x = fth_tanh(fth_mul(x, fth_const(g, FTH_F32, 0.9)));
    return x;
}

/* One value that everybody reads. */
static fth_val star(fth_graph *g, fth_val x, int n)
{
    const fth_val s = fth_tanh(x);
    fth_val sum = fth_sum(s, "in");
    for (int i = 0; i < n; i++)
        sum = fth_add(sum, fth_sum(fth_mul(s, fth_const(g, FTH_F32, i)), "in"));
    return sum;
}

typedef enum kind { LAYERS, CHAIN, GRADIENT, MANY_LAYERS, MANY_GRADIENT, MANY_READERS } kind;

static fth_val make(fth_graph *g, kind what, fth_val x, fth_val w)
{
    switch (what) {
    case CHAIN: return chain(g, x, 667);
    case LAYERS: return layers(g, x, w, 91);
    case MANY_LAYERS: return layers(g, x, w, 10700);
    case MANY_READERS: return star(g, x, 37500);
    case GRADIENT:
    case MANY_GRADIENT: break;
    }
    const fth_val out = layers(g, x, w, what == GRADIENT ? 24 : 3150);
    fth_val grad;
    fth_grad(fth_mean(fth_sqr(out), "in row"), 1, &w, &grad);
    return grad;
}

/* One plan in a context of its own: a context remembers the decisions of earlier searches, and a
 * second plan of the same graph would measure that memory. False when it failed. */
static bool plan_once(const bench *b, kind what, uint64_t memory, double *seconds, double *nodes)
{
    bench_program p;
    bench_open(&p, 1);
    int64_t reads = 0;
    fth_axis(p.g, "row", 1 << 20);
    fth_axis(p.g, "in", 64);
    fth_axis_like(p.g, "out", "in");
    const fth_val x = unread(p.g, "x", "row in", 1 << 20, 64, 0, &reads);
    const fth_val w = unread(p.g, "w", "out in", 64, 64, 0, &reads);
    const fth_val out = make(p.g, what, x, w);
    *nodes = (double)out.id; /* ids count values from 1 */
    const fth_limits limits = {.memory_bytes = memory};
    const double start = bench_now(b, 1);
    fth_plan *plan = fth_plan_make(p.g, &out, 1, &limits, &p.err);
    *seconds = bench_now(b, 1) - start;
    if (!plan) p.status = p.err.status;
    fth_plan_destroy(plan);
    return bench_close(&p);
}

/* The budget is always given: the default depends on what is free just now, and with it whether
 * rows must be streamed. Nothing is allocated, so it may be larger than the machine. */
static const uint64_t ample = 1ull << 40, tight = 64u << 20;

static void one(bench *b, const char *name, kind what, uint64_t memory)
{
    if (!bench_wants(b, name)) return;
    double seconds[100], nodes = 0, first;
    if (!plan_once(b, what, memory, &first, &nodes)) return; /* warms up code and allocator */
    for (int i = 0; i < b->pairs; i++)
        if (!plan_once(b, what, memory, &seconds[i], &nodes)) return;
    char shape[32];
    snprintf(shape, sizeof shape, "%.0f values", nodes);
    bench_single(b, name, shape, seconds, b->pairs, 10e-3 * nodes / 1000, "10 ms per 1000");
}

/* SVGP of 310,000 cells with 3000 inducing points, in a hundredth of what it needs. */
static void refusal(bench *b)
{
    if (!bench_wants(b, "refusal")) return;
    bench_program p;
    bench_open(&p, 1);
    int64_t reads = 0;
    fth_axis(p.g, "cell", 310000);
    fth_axis(p.g, "induce", 3000);
    fth_axis_like(p.g, "induce2", "induce");
    fth_axis(p.g, "factor", 12);
    const fth_val K = unread(p.g, "K", "induce induce2", 3000, 3000, 0, &reads);
    const fth_val Kx = unread(p.g, "Kx", "induce cell", 3000, 310000, 0, &reads);
    const fth_val Lu = unread(p.g, "Lu", "factor induce induce2", 12, 3000, 3000, &reads);
    const fth_val L = fth_cholesky(K, "induce", "induce2");
    const fth_val W = fth_solve_t(L, fth_solve(L, Kx, "induce", "induce2"), "induce", "induce2");
    const fth_val S = fth_sum(fth_sqr(fth_dot(W, Lu, "induce")), "induce2");
    const fth_limits limits = {.memory_bytes = 4 << 20};
    fth_err err = {0};
    const double start = bench_now(b, 1);
    fth_plan *plan = fth_plan_make(p.g, &S, 1, &limits, &err);
    const double s = bench_now(b, 1) - start;
    if (plan || err.status != FTH_E_NO_FIT || reads > 0)
        bench_note(b, "refusal: planned %d, status %s, %lld reads", plan != NULL,
                   fth_status_get_info(err.status)->name, (long long)reads);
    const double found = plan || err.status != FTH_E_NO_FIT || reads ? 1e9 : s;
    bench_single(b, "refusal", "310000 cells in 4 MiB", &found, 1, 1.0, "1 s, nothing read");
    fth_plan_destroy(plan);
    bench_close(&p);
}

void bench_planning(bench *b)
{
    one(b, "plan_layers", LAYERS, ample);
    one(b, "plan_chain", CHAIN, ample);
    one(b, "plan_gradient", GRADIENT, ample);
    one(b, "plan_layers_tight", LAYERS, tight);
    one(b, "plan_gradient_tight", GRADIENT, tight);
    one(b, "plan_many_layers", MANY_LAYERS, ample);
    one(b, "plan_many_gradient", MANY_GRADIENT, ample);
    one(b, "plan_many_readers", MANY_READERS, ample);
    one(b, "plan_many_layers_tight", MANY_LAYERS, tight);
    refusal(b);
}
