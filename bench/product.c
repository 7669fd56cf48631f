/* product.c - matrix product and Cholesky factor against OpenBLAS called directly. */
#include "bench.h"

#include <stdlib.h>
#include <string.h>

typedef struct matrices {
    bench_program p;
    const bench *b;
    fth_dtype dtype;
    int m, n, k, threads, peer_threads; /* a Cholesky factor has n alone */
    void *a, *right, *c, *other;
} matrices;

static uint64_t bytes_of(const matrices *m)
{
    return (uint64_t)m->n * (uint64_t)m->n * (uint64_t)fth_dtype_size(m->dtype);
}

static void fill(const matrices *m, void *v, int64_t n, uint64_t seed)
{
    if (m->dtype == FTH_F32)
        bench_fill_f32(v, n, seed, -1, 1);
    else
        bench_fill_f64(v, n, seed, -1, 1);
}

static void run_ours(void *arg)
{
    bench_go(&((matrices *)arg)->p);
}

static double difference(void *arg)
{
    const matrices *m = arg;
    const int64_t n = (int64_t)(m->m > 0 ? m->m : m->n) * m->n;
    return m->dtype == FTH_F32 ? bench_diff_f32(m->c, m->other, n)
                               : bench_diff_f64(m->c, m->other, n);
}

/* ---- product ---- */

static double run_gemm(void *arg)
{
    const matrices *m = arg;
    const double start = bench_now(m->b, m->peer_threads);
    peer_gemm(m->dtype, m->m, m->n, m->k, m->a, m->right, m->other, m->peer_threads);
    return bench_now(m->b, m->peer_threads) - start;
}

typedef struct product_case {
    const char *name;
    fth_dtype dtype;
    int m, n, k, threads, peer_threads;
} product_case;

static const product_case products[] = {
    {"dot_f32", FTH_F32, 2048, 2048, 2048, 1, 1},
    {"dot_f64", FTH_F64, 2048, 2048, 2048, 1, 1},
    {"dot_f32_2", FTH_F32, 2048, 2048, 2048, 2, 2},
    {"dot_f64_2", FTH_F64, 2048, 2048, 2048, 2, 2},
    /* Within a tile, against one thread: others of OpenBLAS wait for more work by spinning, 20 ms
     * long, and would take the processor from our second worker. */
    {"dot_tile_f32", FTH_F32, 1024, 256, 512, 1, 1},
    {"dot_tile_f32_2", FTH_F32, 1024, 256, 512, 2, 1},
    {"dot_tile_f64", FTH_F64, 1024, 256, 512, 1, 1},
    {"dot_tile_f64_2", FTH_F64, 1024, 256, 512, 2, 1},
    {"dot_tile_large_f32", FTH_F32, 1024, 1024, 1024, 1, 1},
    {"dot_tile_large_f32_2", FTH_F32, 1024, 1024, 1024, 2, 1},
    {"dot_tile_large_f64", FTH_F64, 1024, 1024, 1024, 1, 1},
    {"dot_tile_square_f32_2", FTH_F32, 512, 512, 512, 2, 1},
    {"dot_tile_small_f32_2", FTH_F32, 256, 256, 192, 2, 1},
    {"dot_tile_long_f32_2", FTH_F32, 256, 256, 16384, 2, 1},
    {"dot_tile_tall_f32_2", FTH_F32, 1024, 32, 512, 2, 1},
};

static void one_product(bench *b, const product_case *c)
{
    if (!bench_wants(b, c->name)) return;
    matrices m = {.b = b,
                  .dtype = c->dtype,
                  .m = c->m,
                  .n = c->n,
                  .k = c->k,
                  .threads = c->threads,
                  .peer_threads = c->peer_threads};
    const uint64_t size = (uint64_t)fth_dtype_size(c->dtype);
    const int64_t of_a = (int64_t)c->m * c->k, of_b = (int64_t)c->k * c->n,
                  of_c = (int64_t)c->m * c->n;
    m.a = bench_array((uint64_t)of_a * size);
    m.right = bench_array((uint64_t)of_b * size);
    m.c = bench_array((uint64_t)of_c * size);
    m.other = bench_array((uint64_t)of_c * size);
    fill(&m, m.a, of_a, 1);
    fill(&m, m.right, of_b, 2);
    bench_open(&m.p, c->threads);
    fth_axis(m.p.g, "i", c->m);
    fth_axis(m.p.g, "j", c->n);
    fth_axis(m.p.g, "k", c->k);
    const fth_val A = bench_input(&m.p, "A", c->dtype, "i k", m.a);
    const fth_val B = bench_input(&m.p, "B", c->dtype, "k j", m.right);
    bench_output(&m.p, fth_dot(A, B, "k"), m.c);
    bench_plan(&m.p, 0, true);
    char shape[48];
    if (c->m == c->n && c->n == c->k)
        snprintf(shape, sizeof shape, "%d^3 %s", c->n, fth_dtype_name(c->dtype));
    else
        snprintf(shape, sizeof shape, "%dx%dx%d %s", c->m, c->k, c->n, fth_dtype_name(c->dtype));
    const double flop = 2e-9 * c->m * c->n * c->k;
    const bench_pair pair = {.name = c->name,
                             .shape = shape,
                             .threads = c->threads,
                             .amount = flop,
                             .unit = "Gflop/s",
                             .limit = bench_gemm_rate(b, c->dtype, c->threads),
                             .ours = run_ours,
                             .peer = run_gemm,
                             .peer_name = c->peer_threads == 1 ? "OpenBLAS" : "OpenBLAS, 2 threads",
                             .residual = difference,
                             .bar = c->threads > c->peer_threads ? 1.5
                                    : c->threads == 1            ? 0.95
                                                                 : 0.85,
                             .arg = &m,
                             .planned = m.p.planned,
                             .measured = m.p.measured};
    if (m.p.status == FTH_OK) bench_pairs(b, &pair);
    bench_close(&m.p);
    free(m.a);
    free(m.right);
    free(m.c);
    free(m.other);
}

void bench_product(bench *b)
{
    for (size_t i = 0; i < sizeof products / sizeof products[0]; i++) one_product(b, &products[i]);
}

double bench_gemm_rate(bench *b, fth_dtype dtype, int threads)
{
    double *rate = &b->gemm_rate[dtype == FTH_F64][threads];
    if (*rate > 0) return *rate;
    enum { SIZE = 1536 };
    matrices m = {.b = b,
                  .dtype = dtype,
                  .m = SIZE,
                  .n = SIZE,
                  .k = SIZE,
                  .threads = threads,
                  .peer_threads = threads};
    m.a = bench_array(bytes_of(&m));
    m.other = bench_array(bytes_of(&m));
    m.right = m.a;
    fill(&m, m.a, (int64_t)SIZE * SIZE, 3);
    double best = 1e30;
    for (int i = 0; i < 5; i++) {
        const double s = run_gemm(&m);
        if (s < best) best = s;
    }
    free(m.a);
    free(m.other);
    return *rate = 2e-9 * SIZE * SIZE * SIZE / best;
}

/* ---- Cholesky: both keep their input, so the peer's copy of it is part of the job ---- */

static double run_potrf(void *arg)
{
    matrices *m = arg;
    memcpy(m->other, m->a, bytes_of(m));
    if (peer_potrf(m->dtype, m->n, m->other, m->threads) != 0) m->p.status = FTH_E_NUMERIC;
    return -1;
}

static double lower_difference(void *arg)
{
    matrices *m = arg; /* LAPACK leaves the other triangle as it was */
    for (int i = 0; i < m->n; i++)
        for (int j = i + 1; j < m->n; j++) {
            if (m->dtype == FTH_F32)
                ((float *)m->other)[(int64_t)i * m->n + j] = 0;
            else
                ((double *)m->other)[(int64_t)i * m->n + j] = 0;
        }
    return difference(arg);
}

static void one_cholesky(bench *b, const char *name, fth_dtype dtype, int n, int threads)
{
    if (!bench_wants(b, name)) return;
    matrices m = {.dtype = dtype, .n = n, .threads = threads};
    m.a = bench_array(bytes_of(&m));
    m.c = bench_array(bytes_of(&m));
    m.other = bench_array(bytes_of(&m));
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            const double d = (double)(i - j) * 0.01, v = 1.0 / (1.0 + d * d) + (i == j);
            if (dtype == FTH_F32)
                ((float *)m.a)[(int64_t)i * n + j] = (float)v;
            else
                ((double *)m.a)[(int64_t)i * n + j] = v;
        }
    bench_open(&m.p, threads);
    fth_axis(m.p.g, "i", n);
    fth_axis_like(m.p.g, "j", "i");
    bench_output(&m.p, fth_cholesky(bench_input(&m.p, "A", dtype, "i j", m.a), "i", "j"), m.c);
    bench_plan(&m.p, 0, true);
    char shape[32];
    snprintf(shape, sizeof shape, "%d %s", n, fth_dtype_name(dtype));
    const bench_pair pair = {.name = name,
                             .shape = shape,
                             .threads = threads,
                             .amount = 1e-9 * n * n * n / 3,
                             .unit = "Gflop/s",
                             .limit = bench_gemm_rate(b, dtype, threads),
                             .ours = run_ours,
                             .peer = run_potrf,
                             .peer_name = threads == 1 ? "LAPACK (OpenBLAS)" : "LAPACK, 2 threads",
                             .residual = lower_difference,
                             .bar = threads == 1 ? 0.95 : 0.85,
                             .arg = &m,
                             .planned = m.p.planned,
                             .measured = m.p.measured};
    if (m.p.status == FTH_OK) bench_pairs(b, &pair);
    bench_close(&m.p);
    free(m.a);
    free(m.c);
    free(m.other);
}

void bench_cholesky(bench *b)
{
    one_cholesky(b, "cholesky_f32", FTH_F32, 3000, 1);
    one_cholesky(b, "cholesky_f64", FTH_F64, 3000, 1);
    one_cholesky(b, "cholesky_f32_2", FTH_F32, 3000, 2);
    one_cholesky(b, "cholesky_f64_2", FTH_F64, 3000, 2);
}
