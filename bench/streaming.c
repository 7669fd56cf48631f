/* streaming.c - the analysis of a sparse GP in four times its smallest budget, against no limit.
 *
 * The same graph as examples/svgp_analysis.c. The smallest budget is found by asking the planner.
 */
#include "bench.h"

#include <stdlib.h>
#include <string.h>

enum { CELLS = 24000, INDUCE = 500, FACTORS = 12 };

typedef struct analysis {
    bench_program p;
    float *x, *z, *lu, *mu, *f, *s;
} analysis;

static fth_val kernel(fth_val a, const char *a_axis, fth_val b, const char *b_axis)
{
    const fth_val d = fth_sub(fth_expand(b, a_axis), fth_expand(a, b_axis));
    return fth_exp(fth_mul(fth_sum(fth_sqr(d), "dim"), fth_const(a.graph, FTH_F32, -0.5)));
}

static void build(analysis *a, int threads)
{
    bench_open(&a->p, threads);
    fth_graph *g = a->p.g;
    fth_axis(g, "cell", CELLS);
    fth_axis(g, "induce", INDUCE);
    fth_axis_like(g, "induce2", "induce");
    fth_axis(g, "factor", FACTORS);
    fth_axis(g, "dim", 2);
    const fth_val X = bench_input(&a->p, "X", FTH_F32, "cell dim", a->x);
    const fth_val Z = bench_input(&a->p, "Z", FTH_F32, "induce dim", a->z);
    const fth_val Lu = bench_input(&a->p, "Lu", FTH_F32, "factor induce induce2", a->lu);
    const fth_val Mu = bench_input(&a->p, "mu", FTH_F32, "factor induce", a->mu);
    const fth_val diagonal = fth_eq(fth_expand(fth_index(g, "induce2"), "induce"),
                                    fth_expand(fth_index(g, "induce"), "induce2"));
    const fth_val jitter = fth_mul(fth_cast(diagonal, FTH_F32), fth_const(g, FTH_F32, 1e-2));
    const fth_val Kzz =
        fth_add(kernel(Z, "induce", fth_rename(Z, "induce", "induce2"), "induce2"), jitter);
    const fth_val L = fth_cholesky(Kzz, "induce", "induce2");
    const fth_val Y = fth_solve(L, kernel(Z, "induce", X, "cell"), "induce", "induce2");
    const fth_val W = fth_solve_t(L, Y, "induce", "induce2");
    bench_output(&a->p, fth_dot(W, Mu, "induce"), a->f);
    bench_output(&a->p, fth_sum(fth_sqr(fth_dot(W, Lu, "induce")), "induce2"), a->s);
}

static bool fits(analysis *a, uint64_t bytes)
{
    const fth_limits limits = {.memory_bytes = bytes, .no_spill = true};
    fth_err err = {0};
    fth_plan *p = fth_plan_make(a->p.g, a->p.out, a->p.n_out, &limits, &err);
    fth_plan_destroy(p);
    return p != NULL;
}

static uint64_t smallest(analysis *a)
{
    uint64_t no = 0, yes = 1;
    while (!fits(a, yes)) {
        no = yes;
        yes *= 2;
    }
    while (yes - no > yes / 100 + 1) {
        const uint64_t middle = no + (yes - no) / 2;
        *(fits(a, middle) ? &yes : &no) = middle;
    }
    return yes;
}

typedef struct both {
    analysis streamed, whole;
} both;

static void run_streamed(void *arg)
{
    bench_go(&((both *)arg)->streamed.p);
}
static double run_whole(void *arg)
{
    bench_go(&((both *)arg)->whole.p);
    return -1;
}
static double difference(void *arg)
{
    const both *v = arg;
    const size_t bytes = sizeof(float) * CELLS * FACTORS;
    return memcmp(v->streamed.f, v->whole.f, bytes) != 0 ||
           memcmp(v->streamed.s, v->whole.s, bytes) != 0;
}

static void one(bench *b, const char *name, int threads)
{
    if (!bench_wants(b, name)) return;
    both v = {.streamed = {.x = bench_array(8ull * CELLS),
                           .z = bench_array(8ull * INDUCE),
                           .lu = bench_array(4ull * FACTORS * INDUCE * INDUCE),
                           .mu = bench_array(4ull * FACTORS * INDUCE)}};
    bench_fill_f32(v.streamed.x, 2ll * CELLS, 1, -3, 3); /* no denormals: they slow BLAS tenfold */
    bench_fill_f32(v.streamed.z, 2ll * INDUCE, 2, -3, 3);
    bench_fill_f32(v.streamed.lu, (int64_t)FACTORS * INDUCE * INDUCE, 3, -0.05f, 0.05f);
    bench_fill_f32(v.streamed.mu, (int64_t)FACTORS * INDUCE, 4, -1, 1);
    v.whole = v.streamed;
    v.streamed.f = bench_array(4ull * CELLS * FACTORS);
    v.streamed.s = bench_array(4ull * CELLS * FACTORS);
    v.whole.f = bench_array(4ull * CELLS * FACTORS);
    v.whole.s = bench_array(4ull * CELLS * FACTORS);
    build(&v.streamed, threads);
    build(&v.whole, threads);
    const uint64_t least = v.streamed.p.status == FTH_OK ? smallest(&v.streamed) : 0;
    bench_plan(&v.streamed.p, 4 * least, false);
    bench_plan(&v.whole.p, 0, false);
    char shape[48], peer[48], size[24];
    snprintf(shape, sizeof shape, "%d cells %d ind.", CELLS, INDUCE);
    snprintf(peer, sizeof peer, "no limit (least %s)",
             fth_mem_format_size(least, size, sizeof size));
    const bench_pair pair = {.name = name,
                             .shape = shape,
                             .threads = threads,
                             .amount = 2e-9 * FACTORS * (double)INDUCE * INDUCE * CELLS,
                             .unit = "Gflop/s",
                             .limit = bench_gemm_rate(b, FTH_F32, threads),
                             .ours = run_streamed,
                             .peer = run_whole,
                             .peer_name = peer,
                             .residual = difference,
                             .bar = 1 / 1.05,
                             .arg = &v,
                             .planned = v.streamed.p.planned,
                             .measured = v.streamed.p.measured};
    if (v.streamed.p.status == FTH_OK && v.whole.p.status == FTH_OK) bench_pairs(b, &pair);
    bench_close(&v.streamed.p);
    bench_close(&v.whole.p);
    free(v.streamed.x);
    free(v.streamed.z);
    free(v.streamed.lu);
    free(v.streamed.mu);
    free(v.streamed.f);
    free(v.streamed.s);
    free(v.whole.f);
    free(v.whole.s);
}

void bench_streaming(bench *b)
{
    one(b, "stream", 1);
    one(b, "stream_2", 2);
}
