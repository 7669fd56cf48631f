/* ptycho.c - epochs of the iterative solvers, against the same rules in PyTorch.
 *
 * Patterns of 128 x 128 in memory: 240 on the processors, thousands on a device. The limit is a
 * forward and an inverse transform of each pattern, by FFTW and on a device by the engine.
 */
#include "bench.h"

#include "../instruments/ptycho/solve/solver.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 128, NN = N * N, FEW_PAIRS = 7 };

typedef struct solver_case {
    const char *name;
    pt_algorithm algorithm;
    int patterns, batch, threads;
    double bar;
    bool against_one_thread;
} solver_case;

typedef struct solving {
    const solver_case *of;
    fth_context *ctx;
    fth_tensor *tensor;
    pt_solver *solver;
    peer_python *peer;
    struct solving *alone; /* the same on one thread, in the place of a peer */
    float *patterns;
    double *x, *y;
    fth_c128 *probe;
    fth_err err;
    fth_status status;
} solving;

/* Positions lie in a square of this many pixels: 8 from one to the next in a large scan. */
static int span_of(int patterns)
{
    const int span = (int)(8 * sqrt((double)patterns));
    return span > 200 ? span : 200;
}

static void fill(solving *c)
{
    const int patterns = c->of->patterns;
    c->patterns = bench_array(sizeof(float) * NN * (uint64_t)patterns);
    c->probe = bench_array(sizeof(fth_c128) * NN);
    c->x = bench_array(sizeof(double) * (uint64_t)patterns);
    c->y = bench_array(sizeof(double) * (uint64_t)patterns);
    bench_fill_f64(c->x, patterns, 1, N / 2, N / 2 + span_of(patterns));
    bench_fill_f64(c->y, patterns, 2, N / 2, N / 2 + span_of(patterns));
    for (int j = 0; j < patterns; j++) {
        c->x[j] = rint(c->x[j]);
        c->y[j] = rint(c->y[j]);
    }
    for (int i = 0; i < NN; i++) {
        const double r = hypot(i / N - N / 2, i % N - N / 2);
        c->probe[i] =
            (fth_c128){exp(-r * r / 700) * cos(r * r / 500), exp(-r * r / 700) * sin(r * r / 500)};
    }
    /* what is measured does not matter to the clock */
    bench_fill_f32(c->patterns, (int64_t)patterns * NN, 3, 0, 10);
}

static fth_status open_case(solving *c, const bench *b)
{
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = c->of->threads;
    if (b->device) { /* else the processors */
        opt.device = b->device;
        opt.backend_path = b->backend;
    }
    fill(c);
    FTH_TRY(fth_context_create(&c->ctx, &opt, &c->err));
    const pt_solve_options o = {.algorithm = c->of->algorithm,
                                .iterations = 100000,
                                .batch = c->of->batch,
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
    const int64_t size[3] = {c->of->patterns, N, N};
    FTH_TRY(fth_tensor_wrap(&c->tensor, fth_context_mem(c->ctx), "patterns", FTH_F32, 3, size,
                            c->patterns, &c->err));
    const pt_solve_data d = {.patterns = c->of->patterns,
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

static double one_thread(void *arg)
{
    ours(((solving *)arg)->alone);
    return -1; /* timed from outside */
}

/* Pairs of transforms that FFTW makes in a second. */
static double pairs_rate(const bench *b)
{
    enum { IMAGES = 24, TIMES = 20 };
    float *from = bench_array(8ull * IMAGES * NN), *to = bench_array(8ull * IMAGES * NN);
    const char *why;
    peer_fft *f = peer_fftw_make(
        &(peer_fft_shape){.rank = 2, .n = {N, N}, .batch = IMAGES, .threads = 1}, from, to, &why);
    if (!f) return 0;
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

/* And the engine on a device, with the time of its kernels alone. */
static double device_pairs_rate(bench *b)
{
    enum { IMAGES = 1000, TIMES = 10 };
    bench_program p;
    bench_open_within(&p, b, 0);
    if (p.status != FTH_OK) return 0;
    fth_axis(p.g, "i", IMAGES);
    fth_axis(p.g, "y", N);
    fth_axis(p.g, "x", N);
    fth_axis(p.g, "v", N);
    fth_axis(p.g, "u", N);
    const fth_val from = bench_param(&p, "from", FTH_C64, "i y x", FTH_FULL),
                  to = bench_param(&p, "to", FTH_C64, "i y x", FTH_FULL);
    bench_assign(&p, to, fth_ifft(fth_fft(from, "y x", "v u"), "v u", "y x"));
    bench_plan(&p, 0, false);
    double best = HUGE_VAL;
    for (int i = 0; i < TIMES && p.status == FTH_OK; i++) {
        (void)bench_go_timed(&p, b);
        if (p.report.device_seconds > 0) best = fmin(best, p.report.device_seconds);
    }
    (void)bench_close(&p);
    return best < HUGE_VAL ? IMAGES / best : 0;
}

static void start_peer(bench *b, solving *c)
{
    const solver_case *of = c->of;
    char patterns[16], batch[16], threads[16], span[16];
    const char *why = NULL;
    snprintf(patterns, sizeof patterns, "%d", of->patterns);
    snprintf(batch, sizeof batch, "%d", of->batch);
    snprintf(threads, sizeof threads, "%d", of->threads);
    snprintf(span, sizeof span, "%d", span_of(of->patterns));
    const char *const args[] = {pt_algorithm_names[of->algorithm],
                                patterns,
                                "128",
                                batch,
                                threads,
                                b->cpu_clock ? "cpu" : "wall",
                                span,
                                b->device ? "--device" : NULL,
                                "cuda",
                                NULL};
    c->peer = (b->device ? peer_python_start_any : peer_python_start)(b->peers, "peer_ptycho.py",
                                                                      args, &why);
    if (!c->peer) bench_note(b, "SKIP %s: %s", of->name, why);
}

static void compare(bench *b, solving *c)
{
    const solver_case *of = c->of;
    char shape[48];
    snprintf(shape, sizeof shape, "%dx128x128 by %d", of->patterns, of->batch);
    for (int i = 0; i < (b->device ? 4 : 1); i++) ours(c); /* recordings are made */
    if (c->status != FTH_OK) return;
    if (!c->alone) start_peer(b, c);
    if (!c->alone && !c->peer) return;
    const int pairs = b->pairs;
    if (b->pairs > FEW_PAIRS) b->pairs = FEW_PAIRS;
    bench_pairs(
        b, &(bench_pair){.name = of->name,
                         .shape = shape,
                         .peer_name = c->alone ? "one thread" : "PyTorch",
                         .threads = of->threads,
                         .amount = of->patterns,
                         .unit = "pattern/s",
                         .limit = b->device ? device_pairs_rate(b) : pairs_rate(b) * of->threads,
                         .bar = of->bar,
                         .device = b->device,
                         .ours = ours,
                         .peer = c->alone ? one_thread : peer,
                         .arg = c});
    b->pairs = pairs;
    if (c->peer) peer_python_stop(c->peer);
}

static solving *open_solving(const bench *b, const solver_case *of)
{
    solving *c = calloc(1, sizeof *c);
    if (!c) abort();
    c->of = of;
    c->status = open_case(c, b);
    return c;
}

static void close_solving(bench *b, solving *c)
{
    pt_solver_destroy(c->solver);
    fth_tensor_release(c->tensor);
    const fth_status end = fth_context_destroy(c->ctx, &c->err);
    if (c->status != FTH_OK || end != FTH_OK) {
        char text[4096];
        fth_err_format(&c->err, text, sizeof text);
        bench_note(b, "%s: %s", c->of->name, text);
        b->failed++;
    }
    free(c->patterns);
    free(c->probe);
    free(c->x);
    free(c->y);
    free(c);
}

static void one(bench *b, const solver_case *of)
{
    if (!bench_wants(b, of->name)) return;
    solver_case single = *of;
    single.threads = 1;
    solving *c = open_solving(b, of);
    if (of->against_one_thread) c->alone = open_solving(b, &single);
    compare(b, c);
    if (c->alone) close_solving(b, c->alone);
    close_solving(b, c);
}

void bench_ptycho(bench *b)
{
    static const solver_case cases[] = {{"ptycho_lsqml", PT_SOLVE_LSQML, 240, 24, 1, 1.7, false},
                                        {"ptycho_lsqml_2", PT_SOLVE_LSQML, 240, 24, 2, 1.7, false},
                                        {"ptycho_threads", PT_SOLVE_LSQML, 240, 24, 2, 1.8, true},
                                        {"ptycho_epie", PT_SOLVE_EPIE, 240, 1, 1, 2, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) one(b, &cases[i]);
}

/* Bars are the rates that are wanted over what PyTorch was seen to do on an H200: 400,000 and a
 * million patterns a second, and 20,000. */
void bench_ptycho_device(bench *b)
{
    static const solver_case cases[] = {
        {"ptycho_device_lsqml_100", PT_SOLVE_LSQML, 10000, 100, 1, 4.8, false},
        {"ptycho_device_lsqml_1000", PT_SOLVE_LSQML, 10000, 1000, 1, 3.5, false},
        {"ptycho_device_epie", PT_SOLVE_EPIE, 500, 1, 1, 9, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) one(b, &cases[i]);
}
