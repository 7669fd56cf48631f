/* elementwise.c - a chain of eight operations on 64 Mi floats, and the bandwidth of this machine.
 */
#include "bench.h"

#include <stdlib.h>

enum { N = 64 << 20 };

typedef struct chain {
    bench_program p;
    float *x, *y, *z, *other;
    peer_python *numpy;
    int threads;
} chain;

static void run_ours(void *arg)
{
    bench_go(&((chain *)arg)->p);
}
static double run_fused(void *arg)
{
    chain *c = arg;
    peer_chain(c->x, c->y, c->other, N);
    return -1;
}
static void run_fused_as_ours(void *arg)
{
    (void)run_fused(arg);
}
static double run_add(void *arg)
{
    chain *c = arg;
    peer_add(c->x, c->y, c->other, N, c->threads);
    return -1;
}
static double run_numpy(void *arg)
{
    return peer_python_run(((chain *)arg)->numpy);
}
static double against_fused(void *arg)
{
    chain *c = arg;
    peer_chain(c->x, c->y, c->other, N);
    return bench_diff_f32(c->z, c->other, N);
}

static fth_val build(chain *c)
{
    fth_graph *g = c->p.g;
    fth_axis(g, "i", N);
    const fth_val x = bench_input(&c->p, "x", FTH_F32, "i", c->x);
    const fth_val y = bench_input(&c->p, "y", FTH_F32, "i", c->y);
    fth_val t = fth_add(fth_mul(x, y), fth_const(g, FTH_F32, 0.5));
    t = fth_mul(fth_mul(t, t), fth_const(g, FTH_F32, -0.5));
    t = fth_add(fth_mul(fth_exp(t), x), y);
    return fth_max(t, fth_const(g, FTH_F32, 0.0));
}

static void open_chain(chain *c, int threads)
{
    c->threads = threads;
    bench_open(&c->p, threads);
    bench_output(&c->p, build(c), c->z);
    bench_plan(&c->p, 0, true);
}

static void one_thread(bench *b, chain *c)
{
    open_chain(c, 1);
    bench_pair pair = {.name = "chain",
                       .shape = "64Mi f32",
                       .threads = 1,
                       .amount = 12e-9 * N,
                       .unit = "GB/s",
                       .ours = run_ours,
                       .arg = c,
                       .planned = c->p.planned,
                       .measured = c->p.measured};
    pair.limit = bench_add_rate(b, 1);
    if (c->p.status == FTH_OK && bench_wants(b, "chain")) {
        pair.peer_name = "fused C loop";
        pair.peer = run_fused;
        pair.residual = against_fused;
        pair.bar = 0.75;
        bench_pairs(b, &pair);
    }
    const char *why = NULL;
    if (c->p.status == FTH_OK && bench_wants(b, "chain_numpy")) {
        char count[24];
        snprintf(count, sizeof count, "%lld", (long long)N);
        const char *const args[] = {count, b->cpu_clock ? "cpu" : "wall", NULL};
        c->numpy = peer_python_start(b->peers, "peer_numpy.py", args, &why);
        pair.name = "chain_numpy";
        pair.peer_name = "NumPy out=";
        pair.peer = run_numpy;
        pair.residual = NULL;
        pair.bar = 2.0;
        if (c->numpy) {
            bench_pairs(b, &pair);
            peer_python_stop(c->numpy);
        } else
            bench_note(b, "SKIP chain_numpy: %s", why);
    }
    bench_close(&c->p);
    if (bench_wants(b, "chain_by_hand")) {
        const bench_pair hand = {.name = "chain_by_hand",
                                 .shape = "64Mi f32",
                                 .threads = 1,
                                 .amount = 12e-9 * N,
                                 .unit = "GB/s",
                                 .limit = pair.limit,
                                 .ours = run_fused_as_ours,
                                 .peer = run_add,
                                 .peer_name = "z = x + y",
                                 .bar = 0.40,
                                 .arg = c};
        bench_pairs(b, &hand);
    }
}

/* No bar: two cores share one memory. */
static void two_threads(bench *b, chain *c)
{
    open_chain(c, 2);
    const bench_pair pair = {.name = "chain_2",
                             .shape = "64Mi f32",
                             .threads = 2,
                             .amount = 12e-9 * N,
                             .unit = "GB/s",
                             .limit = bench_add_rate(b, 2),
                             .ours = run_ours,
                             .peer = run_add,
                             .peer_name = "z = x + y, 2 threads",
                             .bar = 0.0,
                             .arg = c,
                             .planned = c->p.planned,
                             .measured = c->p.measured,
                             .residual = against_fused};
    if (c->p.status == FTH_OK) bench_pairs(b, &pair);
    bench_close(&c->p);
}

void bench_elementwise(bench *b)
{
    static const char *const names[] = {"chain", "chain_numpy", "chain_by_hand", "chain_2"};
    bool any = false;
    for (int i = 0; i < 4; i++) any |= bench_wants(b, names[i]);
    if (!any) return;
    chain c = {.x = bench_array(4ull * N),
               .y = bench_array(4ull * N),
               .z = bench_array(4ull * N),
               .other = bench_array(4ull * N)};
    bench_fill_f32(c.x, N, 1, 0, 1);
    bench_fill_f32(c.y, N, 2, 0, 1);
    one_thread(b, &c);
    if (bench_wants(b, "chain_2")) two_threads(b, &c);
    free(c.x);
    free(c.y);
    free(c.z);
    free(c.other);
}

double bench_add_rate(bench *b, int threads)
{
    if (b->add_rate[threads] > 0) return b->add_rate[threads];
    float *v = bench_array(12ull * N);
    double best = 1e30;
    for (int i = 0; i < 7; i++) {
        const double start = bench_now(b, threads);
        peer_add(v, v + N, v + 2 * (int64_t)N, N, threads);
        const double s = bench_now(b, threads) - start;
        if (s < best) best = s;
    }
    free(v);
    return b->add_rate[threads] = 12e-9 * N / best;
}
