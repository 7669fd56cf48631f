/* fft.c - batches of complex transforms, 1-D and 2-D, against FFTW called directly, with the plan
 * it measures to be the fastest.
 */
#include "bench.h"

#include <math.h>
#include <stdlib.h>

typedef struct transform {
    bench_program p;
    int64_t count;
    float *from, *to, *other;
    peer_fft *fftw;
} transform;

static void run_ours(void *arg)
{
    bench_go(&((transform *)arg)->p);
}
static double run_fftw(void *arg)
{
    peer_fft_run(((transform *)arg)->fftw);
    return -1;
}
static double difference(void *arg)
{
    const transform *t = arg;
    return bench_diff_f32(t->to, t->other, 2 * t->count);
}

static void one(bench *b, const char *name, int rank, const int *n, int batch, int threads)
{
    if (!bench_wants(b, name)) return;
    const int64_t points = rank == 2 ? (int64_t)n[0] * n[1] : n[0];
    transform t = {.count = points * batch};
    t.from = bench_array(8ull * (uint64_t)t.count);
    t.to = bench_array(8ull * (uint64_t)t.count);
    t.other = bench_array(8ull * (uint64_t)t.count);
    t.fftw = peer_fft_make(rank, n, batch, t.from, t.other, threads);
    bench_fill_f32(t.from, 2 * t.count, 1, -1, 1);
    bench_open(&t.p, threads);
    fth_axis(t.p.g, "image", batch);
    fth_axis(t.p.g, "x", n[rank - 1]);
    fth_axis_like(t.p.g, "u", "x");
    if (rank == 2) fth_axis(t.p.g, "y", n[0]);
    if (rank == 2) fth_axis_like(t.p.g, "v", "y");
    const fth_val in =
        bench_input(&t.p, "in", FTH_C64, rank == 2 ? "image y x" : "image x", t.from);
    bench_output(&t.p, fth_fft(in, rank == 2 ? "y x" : "x", rank == 2 ? "v u" : "u"), t.to);
    bench_plan(&t.p, 0, true);
    char shape[32];
    if (rank == 2)
        snprintf(shape, sizeof shape, "%dx%dx%d c64", batch, n[0], n[1]);
    else
        snprintf(shape, sizeof shape, "%dx%d c64", batch, n[0]);
    const double flop = 5e-9 * (double)t.count * log2((double)points);
    const bench_pair pair = {.name = name,
                             .shape = shape,
                             .threads = threads,
                             .amount = flop,
                             .unit = "Gflop/s",
                             .limit = bench_gemm_rate(b, FTH_F32, threads),
                             .ours = run_ours,
                             .peer = run_fftw,
                             .peer_name = threads == 1 ? "FFTW" : "FFTW, 2 threads",
                             .residual = difference,
                             .bar = threads == 1 ? 0.95 : 0.85,
                             .arg = &t,
                             .planned = t.p.planned,
                             .measured = t.p.measured};
    if (!t.fftw)
        fprintf(stderr, "%s: no FFTW to compare with: install libfftw3-single3\n", name);
    else if (t.p.status == FTH_OK)
        bench_pairs(b, &pair);
    bench_close(&t.p);
    peer_fft_drop(t.fftw);
    free(t.from);
    free(t.to);
    free(t.other);
}

void bench_fft(bench *b)
{
    const int line[] = {4096};
    one(b, "fft_1d", 1, line, 2048, 1);
    one(b, "fft_2d_64", 2, (int[]){64, 64}, 2048, 1);
    one(b, "fft_2d_128", 2, (int[]){128, 128}, 512, 1);
    one(b, "fft_2d_256", 2, (int[]){256, 256}, 128, 1);
    one(b, "fft_2d", 2, (int[]){512, 512}, 32, 1);
    one(b, "fft_1d_2", 1, line, 2048, 2);
    one(b, "fft_2d_2", 2, (int[]){512, 512}, 32, 2);
}
