/* sharpest.c - of every pixel of a stack the plane where it is sharpest: against SciPy, and in
 * little memory.
 *
 * Eight planes of 1024 x 1024 u16. Each is blurred by nine taps along both axes; the square of what
 * the blur takes away, smoothed by five, is largest in one plane, whose pixel is taken. Every
 * element is read where it lies: of what is between the stack and the image there are some rows.
 */
#include "bench.h"

#include <stdlib.h>

enum { PLANES = 8, SIDE = 1024, TAPS = 9, SMOOTH = 5 };

typedef struct sharpest {
    bench_program p;
    uint16_t *in, *out;
    float *taps, *smooth;
    peer_python *scipy;
} sharpest;

static void run_ours(void *arg)
{
    bench_go(&((sharpest *)arg)->p);
}

static double run_scipy(void *arg)
{
    return peer_python_run(((sharpest *)arg)->scipy);
}

static fth_val both_ways(fth_val v, fth_val w, const char *tap, fth_border border)
{
    return fth_correlate(fth_correlate(v, "x", w, tap, border), "y", w, tap, border);
}

static void open_sharpest(sharpest *s, fth_border border, uint64_t memory_bytes)
{
    bench_open(&s->p, 1);
    fth_graph *g = s->p.g;
    fth_axis(g, "z", PLANES);
    fth_axis(g, "y", SIDE);
    fth_axis(g, "x", SIDE);
    fth_axis(g, "t", TAPS);
    fth_axis(g, "s", SMOOTH);
    const fth_val v = bench_input(&s->p, "v", FTH_U16, "z y x", s->in),
                  taps = bench_input(&s->p, "taps", FTH_F32, "t", s->taps),
                  smooth = bench_input(&s->p, "smooth", FTH_F32, "s", s->smooth),
                  f = fth_cast(v, FTH_F32),
                  sharp = fth_sqr(fth_sub(f, both_ways(f, taps, "t", border))),
                  at = fth_argmax(both_ways(sharp, smooth, "s", border), "z");
    bench_output(&s->p, fth_gather(v, "z", at), s->out);
    bench_plan(&s->p, memory_bytes, true);
}

static void run_case(bench *b, sharpest *s, const char *name, fth_border border, const char *mode,
                     uint64_t memory_bytes)
{
    if (!bench_wants(b, name)) return;
    const char *why = NULL;
    const char *const args[] = {mode, b->cpu_clock ? "cpu" : "wall", NULL};
    open_sharpest(s, border, memory_bytes);
    s->scipy = peer_python_start(b->peers, "peer_sharpest.py", args, &why);
    const bench_pair pair = {.name = name,
                             .shape = "8 x 1024^2 u16, 9 and 5 taps",
                             .threads = 1,
                             .amount = 1e-9 * (double)PLANES * SIDE * SIDE,
                             .unit = "Gpixel/s",
                             .ours = run_ours,
                             .peer = run_scipy,
                             .peer_name = "SciPy correlate1d",
                             .bar = 2.0,
                             .arg = s,
                             .planned = s->p.planned,
                             .measured = s->p.measured};
    if (s->p.status == FTH_OK && s->scipy) bench_pairs(b, &pair);
    if (s->scipy)
        peer_python_stop(s->scipy);
    else
        bench_note(b, "SKIP %s: %s", name, why);
    bench_close(&s->p);
}

void bench_sharpest(bench *b)
{
    const int64_t pixels = (int64_t)SIDE * SIDE, n = PLANES * pixels;
    const uint64_t arrays = (uint64_t)(n + pixels) * sizeof(uint16_t);
    if (!bench_wants(b, "sharpest") && !bench_wants(b, "sharpest_little")) return;
    sharpest s = {.in = bench_array((uint64_t)n * 2),
                  .out = bench_array((uint64_t)pixels * 2),
                  .taps = bench_array(4096),
                  .smooth = bench_array(4096)};
    for (int64_t i = 0; i < n; i++) s.in[i] = (uint16_t)(((uint64_t)i * 0x9E3779B97F4A7C15u) >> 50);
    bench_fill_f32(s.taps, TAPS, 2, 0.0f, 0.2f);
    bench_fill_f32(s.smooth, SMOOTH, 3, 0.0f, 0.2f);
    run_case(b, &s, "sharpest", FTH_BORDER_ZERO, "constant", 0);
    run_case(b, &s, "sharpest_little", FTH_BORDER_REFLECT, "reflect", arrays + arrays * 3 / 10);
    free(s.in);
    free(s.out);
    free(s.taps);
    free(s.smooth);
}
