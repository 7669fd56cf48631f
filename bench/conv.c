/* conv.c - a 3x3 convolution of a batch of images against oneDNN. */
#include "bench.h"

#include <stdlib.h>

typedef struct convolution {
    bench_program p;
    peer_conv c;
    peer_conv_plan *onednn;
    float *to;
} convolution;

static void run_ours(void *arg)
{
    bench_go(&((convolution *)arg)->p);
}
static double run_onednn(void *arg)
{
    peer_conv_run(((convolution *)arg)->onednn);
    return -1;
}
static double difference(void *arg)
{
    const convolution *v = arg;
    return bench_diff_f32(v->to, v->c.dst, (int64_t)v->c.batch * v->c.out * v->c.y * v->c.x);
}

static void one(bench *b, const char *name, int threads)
{
    if (!bench_wants(b, name)) return;
    convolution v = {.c = {.batch = 8, .in = 64, .out = 64, .y = 128, .x = 128, .k = 3, .pad = 1}};
    const int64_t image = (int64_t)v.c.batch * v.c.in * v.c.y * v.c.x,
                  weight = (int64_t)v.c.out * v.c.in * 9;
    v.c.src = bench_array(4ull * (uint64_t)image);
    v.c.dst = bench_array(4ull * (uint64_t)image);
    v.to = bench_array(4ull * (uint64_t)image);
    v.c.weight = bench_array(4ull * (uint64_t)weight);
    bench_fill_f32(v.c.src, image, 1, -1, 1);
    bench_fill_f32(v.c.weight, weight, 2, -1, 1);
    const char *why;
    v.onednn = peer_conv_make(&v.c, threads, &why);
    bench_open(&v.p, threads);
    fth_axis(v.p.g, "b", v.c.batch);
    fth_axis(v.p.g, "c", v.c.in);
    fth_axis(v.p.g, "o", v.c.out);
    fth_axis(v.p.g, "y", v.c.y);
    fth_axis(v.p.g, "x", v.c.x);
    fth_axis(v.p.g, "ky", 3);
    fth_axis(v.p.g, "kx", 3);
    const fth_conv conv = {.y = "y",
                           .x = "x",
                           .out_y = "y",
                           .out_x = "x",
                           .chan = "c",
                           .ky = "ky",
                           .kx = "kx",
                           .stride = 1,
                           .dilation = 1,
                           .pad_y = 1,
                           .pad_x = 1};
    const fth_val in = bench_input(&v.p, "in", FTH_F32, "b c y x", v.c.src);
    const fth_val w = bench_input(&v.p, "w", FTH_F32, "o c ky kx", v.c.weight);
    bench_output(&v.p, fth_conv2d(in, w, &conv), v.to);
    bench_plan(&v.p, 0, true);
    const bench_pair pair = {.name = name,
                             .shape = "8x64x128x128 3x3 f32",
                             .threads = threads,
                             .amount = 2e-9 * (double)image * v.c.out * 9,
                             .unit = "Gflop/s",
                             .limit = bench_gemm_rate(b, FTH_F32, threads),
                             .ours = run_ours,
                             .peer = run_onednn,
                             .peer_name = threads == 1 ? "oneDNN" : "oneDNN, 2 threads",
                             .residual = difference,
                             .bar = threads == 1 ? 0.95 : 0.85,
                             .arg = &v,
                             .planned = v.p.planned,
                             .measured = v.p.measured};
    if (v.p.status == FTH_OK && v.onednn) bench_pairs(b, &pair);
    if (!v.onednn) bench_note(b, "SKIP %s: %s", name, why);
    bench_close(&v.p);
    peer_conv_drop(v.onednn);
    free(v.c.src);
    free(v.c.dst);
    free(v.c.weight);
    free(v.to);
}

void bench_conv(bench *b)
{
    one(b, "conv2d", 1);
    one(b, "conv2d_2", 2);
}
