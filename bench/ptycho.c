/* ptycho.c - epochs of the iterative solvers on one thread, against the same rules in PyTorch.
 *
 * 240 patterns of 128 x 128 in memory. The limit is a forward and an inverse transform of each
 * pattern by FFTW.
 */
#include "bench.h"

#include "../instruments/ptycho/solve/solver.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PATTERNS = 240, N = 128, NN = N * N, SPAN = 200, FEW_PAIRS = 7 };

typedef struct solving {
    fth_context *ctx;
    fth_tensor *tensor;
    pt_solver *solver;
    peer_python *peer;
    float *patterns;
    double x[PATTERNS], y[PATTERNS];
    fth_c128 *probe;
    fth_err err;
    fth_status status;
} solving;

static void fill(solving *c)
{
    c->patterns = bench_array(4ull * PATTERNS * NN);
    c->probe = bench_array(sizeof(fth_c128) * NN);
    bench_fill_f64(c->x, PATTERNS, 1, N / 2, N / 2 + SPAN);
    bench_fill_f64(c->y, PATTERNS, 2, N / 2, N / 2 + SPAN);
    for (int j = 0; j < PATTERNS; j++) {
        c->x[j] = rint(c->x[j]);
        c->y[j] = rint(c->y[j]);
    }
    for (int i = 0; i < NN; i++) {
        const double r = hypot(i / N - N / 2, i % N - N / 2);
        c->probe[i] =
            (fth_c128){exp(-r * r / 700) * cos(r * r / 500), exp(-r * r / 700) * sin(r * r / 500)};
    }
    /* what is measured does not matter to the clock */
    bench_fill_f32(c->patterns, (int64_t)PATTERNS * NN, 3, 0, 10);
}

static fth_status open_case(solving *c, pt_algorithm algorithm, int64_t batch, int threads)
{
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = threads;
    fill(c);
    FTH_TRY(fth_context_create(&c->ctx, &opt, &c->err));
    const pt_solve_options o = {.algorithm = algorithm,
                                .iterations = 100000,
                                .batch = batch,
                                .modes = 1,
                                .object_alpha = 0.5,
                                .probe_alpha = 0.5,
                                .position_start = -1,
                                .subpixel = true,
                                .power_bound = -1,
                                .clip_low = (double)NAN,
                                .clip_high = (double)NAN,
                                .probe_power = (double)NAN,
                                .seed = 1};
    const int64_t size[3] = {PATTERNS, N, N};
    FTH_TRY(fth_tensor_wrap(&c->tensor, fth_context_mem(c->ctx), "patterns", FTH_F32, 3, size,
                            c->patterns, &c->err));
    const pt_solve_data d = {.patterns = PATTERNS,
                             .n = N,
                             .source = fth_tensor_source(c->tensor),
                             .centred = true,
                             .x = c->x,
                             .y = c->y,
                             .probe = c->probe,
                             .modes = 1};
    FTH_TRY(pt_solver_create(&c->solver, c->ctx, NULL, &o, &d, &c->err));
    return pt_solver_begin(c->solver, &c->err);
}

static void ours(void *arg)
{
    solving *c = arg;
    if (c->status == FTH_OK) c->status = pt_solver_step(c->solver, &c->err);
}

static double peer(void *arg)
{
    return peer_python_run(((solving *)arg)->peer);
}

/* Pairs of transforms that FFTW makes in a second. */
static double pairs_rate(const bench *b)
{
    const int n[] = {N, N};
    enum { IMAGES = 24, TIMES = 20 };
    float *from = bench_array(8ull * IMAGES * NN), *to = bench_array(8ull * IMAGES * NN);
    peer_fft *f = peer_fft_make(2, n, IMAGES, from, to, 1);
    peer_fft_run(f);
    double best = HUGE_VAL;
    for (int i = 0; i < TIMES; i++) {
        const double start = bench_now(b, 1);
        peer_fft_run(f);
        best = fmin(best, bench_now(b, 1) - start);
    }
    peer_fft_drop(f);
    free(from);
    free(to);
    return IMAGES / (2 * best);
}

static void one(bench *b, const char *name, pt_algorithm algorithm, int batch, int threads,
                double bar)
{
    if (!bench_wants(b, name)) return;
    char of_batch[16], of_threads[16];
    const char *why = NULL;
    solving *c = calloc(1, sizeof *c);
    if (!c) abort();
    snprintf(of_batch, sizeof of_batch, "%d", batch);
    snprintf(of_threads, sizeof of_threads, "%d", threads);
    const char *const args[] = {pt_algorithm_names[algorithm], "240", "128", of_batch, of_threads,
                                b->cpu_clock ? "cpu" : "wall", NULL};
    c->status = open_case(c, algorithm, batch, threads);
    ours(c);
    if (c->status == FTH_OK) c->peer = peer_python_start(b->peers, "peer_ptycho.py", args, &why);
    if (c->peer) {
        const int pairs = b->pairs;
        if (b->pairs > FEW_PAIRS) b->pairs = FEW_PAIRS;
        bench_pairs(b, &(bench_pair){.name = name,
                                     .shape = batch == 1 ? "240x128x128" : "240x128x128 by 24",
                                     .peer_name = "PyTorch",
                                     .threads = threads,
                                     .amount = PATTERNS,
                                     .unit = "pattern/s",
                                     .limit = pairs_rate(b) * threads,
                                     .bar = bar,
                                     .ours = ours,
                                     .peer = peer,
                                     .arg = c});
        b->pairs = pairs;
        peer_python_stop(c->peer);
    } else if (c->status == FTH_OK) {
        bench_note(b, "SKIP %s: %s", name, why);
    }
    pt_solver_destroy(c->solver);
    fth_tensor_release(c->tensor);
    const fth_status end = fth_context_destroy(c->ctx, &c->err);
    if (c->status != FTH_OK || end != FTH_OK) {
        char text[4096];
        fth_err_format(&c->err, text, sizeof text);
        bench_note(b, "%s: %s", name, text);
        b->failed++;
    }
    free(c->patterns);
    free(c->probe);
    free(c);
}

void bench_ptycho(bench *b)
{
    one(b, "ptycho_lsqml", PT_SOLVE_LSQML, 24, 1, 1.7);
    one(b, "ptycho_lsqml_2", PT_SOLVE_LSQML, 24, 2, 1.7);
    one(b, "ptycho_epie", PT_SOLVE_EPIE, 1, 1, 2);
}
