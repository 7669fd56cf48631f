/* filter.c - filters as they are written with windows: against SciPy, and in little memory.
 *
 * A blur of two passes, nine taps along each axis of an image of 2048 x 2048 floats: the bytes are
 * those of one array between the passes, whatever the border. Correlations of 5 x 5 and 9 x 9 taps:
 * there is nothing in between. A dilation, the largest of 15 neighbours, and an erosion of truths,
 * all of 3 x 3.
 */
#include "bench.h"

#include <stdlib.h>

enum { SIDE = 2048, TAPS = 9 };

typedef struct filter {
    bench_program p;
    float *in, *out, *taps;
    bool *truths; /* nine of ten */
    peer_python *scipy;
} filter;

static void run_ours(void *arg)
{
    bench_go(&((filter *)arg)->p);
}

static double run_scipy(void *arg)
{
    return peer_python_run(((filter *)arg)->scipy);
}

/* memory_bytes 0: no limit. */
static void open_square(filter *f, int taps)
{
    bench_open(&f->p, 1);
    fth_graph *g = f->p.g;
    fth_axis(g, "y", SIDE);
    fth_axis(g, "x", SIDE);
    fth_axis(g, "ty", taps);
    fth_axis(g, "tx", taps);
    const fth_val v = bench_input(&f->p, "v", FTH_F32, "y x", f->in),
                  w = bench_input(&f->p, "w", FTH_F32, "ty tx", f->taps);
    bench_output(&f->p, fth_correlate(v, "y x", w, "ty tx", FTH_BORDER_REFLECT), f->out);
    bench_plan(&f->p, 0, true);
}

static void open_filter(filter *f, fth_border border, uint64_t memory_bytes)
{
    bench_open(&f->p, 1);
    fth_graph *g = f->p.g;
    fth_axis(g, "y", SIDE);
    fth_axis(g, "x", SIDE);
    fth_axis(g, "tap", TAPS);
    const fth_val v = bench_input(&f->p, "v", FTH_F32, "y x", f->in),
                  w = bench_input(&f->p, "w", FTH_F32, "tap", f->taps);
    const fth_val lines = fth_correlate(v, "x", w, "tap", border);
    bench_output(&f->p, fth_correlate(lines, "y", w, "tap", border), f->out);
    bench_plan(&f->p, memory_bytes, true);
}

/* The extreme of taps: of floats along an axis, or of truths over both. */
static void open_extreme(filter *f, int taps, bool truths)
{
    bench_open(&f->p, 1);
    fth_graph *g = f->p.g;
    fth_axis(g, "y", SIDE);
    fth_axis(g, "x", SIDE);
    fth_axis(g, "ty", taps);
    fth_axis(g, "tx", taps);
    const fth_border border = FTH_BORDER_REFLECT;
    const fth_val v = bench_input(&f->p, "v", truths ? FTH_BOOL : FTH_F32, "y x",
                                  truths ? (void *)f->truths : f->in);
    const fth_val lines = fth_window(v, "x", taps / 2, "tx", border);
    bench_output(&f->p,
                 truths ? fth_all(fth_window(lines, "y", taps / 2, "ty", border), "ty tx")
                        : fth_rmax(lines, "tx"),
                 f->out);
    bench_plan(&f->p, 0, true);
}

/* The program is planned already; `passes` of so many taps. */
static void run_pair(bench *b, filter *f, const char *name, const char *shape, const char *mode,
                     int n_taps, const char *passes)
{
    const char *why = NULL;
    char side[16], taps[16];
    snprintf(side, sizeof side, "%d", SIDE);
    snprintf(taps, sizeof taps, "%d", n_taps);
    const char *const args[] = {side, taps, mode, b->cpu_clock ? "cpu" : "wall", passes, NULL};
    const bool square = passes[0] == 's' || passes[0] == 'e';
    const double work = square ? (double)n_taps * n_taps : passes[0] == 'd' ? n_taps : 2.0 * n_taps;
    f->scipy = peer_python_start(b->peers, "peer_filter.py", args, &why);
    const bench_pair pair = {.name = name,
                             .shape = shape,
                             .threads = 1,
                             .amount = 1e-9 * work * (double)SIDE * SIDE,
                             .unit = "Gtap/s",
                             .ours = run_ours,
                             .peer = run_scipy,
                             .peer_name = passes[0] == 's'   ? "SciPy correlate"
                                          : passes[0] == 'd' ? "SciPy maximum_filter1d"
                                          : passes[0] == 'e' ? "SciPy binary_erosion"
                                                             : "SciPy correlate1d",
                             .bar = 2.0,
                             .arg = f,
                             .planned = f->p.planned,
                             .measured = f->p.measured};
    if (f->p.status == FTH_OK && f->scipy) bench_pairs(b, &pair);
    if (f->scipy)
        peer_python_stop(f->scipy);
    else
        bench_note(b, "SKIP %s: %s", name, why);
    bench_close(&f->p);
}

static void run_case(bench *b, filter *f, const char *name, fth_border border, const char *mode,
                     uint64_t memory_bytes)
{
    if (!bench_wants(b, name)) return;
    open_filter(f, border, memory_bytes);
    run_pair(b, f, name, "2048^2 f32, 9 + 9 taps", mode, TAPS, "lines");
}

static void run_square(bench *b, filter *f, const char *name, const char *shape, int taps)
{
    if (!bench_wants(b, name)) return;
    open_square(f, taps);
    run_pair(b, f, name, shape, "reflect", taps, "square");
}

static void run_extreme(bench *b, filter *f, const char *name, const char *shape, int taps,
                        bool truths)
{
    if (!bench_wants(b, name)) return;
    open_extreme(f, taps, truths);
    run_pair(b, f, name, shape, "reflect", taps, truths ? "erosion" : "dilation");
}

void bench_filter(bench *b)
{
    const uint64_t array = (uint64_t)SIDE * SIDE * sizeof(float);
    bool wanted = false;
    static const char *const cases[] = {"filter_blur",   "filter_blur_little", "filter_reflect",
                                        "filter_wrap",   "filter_5x5",         "filter_9x9",
                                        "filter_dilate", "filter_erode"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) wanted |= bench_wants(b, cases[i]);
    if (!wanted) return;
    filter f = {.in = bench_array(array),
                .out = bench_array(array),
                .taps = bench_array(4096),
                .truths = bench_array((uint64_t)SIDE * SIDE)};
    bench_fill_f32(f.in, (int64_t)SIDE * SIDE, 1, 0.0f, 1.0f);
    bench_fill_f32(f.taps, (int64_t)TAPS * TAPS, 2, 0.0f, 0.2f);
    run_case(b, &f, "filter_blur", FTH_BORDER_ZERO, "constant", 0);
    run_case(b, &f, "filter_blur_little", FTH_BORDER_REFLECT, "reflect", 2 * array + (8u << 20));
    run_case(b, &f, "filter_reflect", FTH_BORDER_REFLECT, "reflect", 0);
    run_case(b, &f, "filter_wrap", FTH_BORDER_WRAP, "wrap", 0);
    run_square(b, &f, "filter_5x5", "2048^2 f32, 5 x 5 taps", 5);
    run_square(b, &f, "filter_9x9", "2048^2 f32, 9 x 9 taps", 9);
    for (int64_t i = 0; i < (int64_t)SIDE * SIDE; i++) f.truths[i] = f.in[i] < 0.9f;
    run_extreme(b, &f, "filter_dilate", "2048^2 f32, 15 taps", 15, false);
    run_extreme(b, &f, "filter_erode", "2048^2 bool, 3 x 3 taps", 3, true);
    free(f.in);
    free(f.out);
    free(f.truths);
    free(f.taps);
}
