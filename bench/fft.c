/* fft.c - batches of transforms over one to three axes, against FFTW with the plan that it measures
 * to be the fastest, MKL, and PyTorch. Peers that are not there are named and left out.
 */
#include "bench.h"

#include <math.h>
#include <stdlib.h>

typedef struct fft_case {
    const char *name;
    peer_fft_shape shape;
} fft_case;

static const fft_case cases[] = {
    {"fft_1d", {1, {4096}, 2048, .threads = 1}},
    {"fft_2d_64", {2, {64, 64}, 2048, .threads = 1}},
    {"fft_2d_128", {2, {128, 128}, 512, .threads = 1}},
    {"fft_2d_256", {2, {256, 256}, 128, .threads = 1}},
    {"fft_2d", {2, {512, 512}, 32, .threads = 1}},
    {"fft_1d_f64", {1, {4096}, 1024, .wide = true, .threads = 1}},
    {"fft_2d_64_f64", {2, {64, 64}, 1024, .wide = true, .threads = 1}},
    {"fft_2d_128_f64", {2, {128, 128}, 256, .wide = true, .threads = 1}},
    {"fft_2d_256_f64", {2, {256, 256}, 64, .wide = true, .threads = 1}},
    {"fft_2d_512_f64", {2, {512, 512}, 16, .wide = true, .threads = 1}},
    {"rfft_2d_64", {2, {64, 64}, 4096, .real = true, .threads = 1}},
    {"rfft_2d_128", {2, {128, 128}, 1024, .real = true, .threads = 1}},
    {"rfft_2d_256", {2, {256, 256}, 256, .real = true, .threads = 1}},
    {"rfft_2d_512", {2, {512, 512}, 64, .real = true, .threads = 1}},
    {"fft_3d_64", {3, {64, 64, 64}, 32, .threads = 1}},
    {"fft_3d_128", {3, {128, 128, 128}, 4, .threads = 1}},
    {"fft_3d_256", {3, {256, 256, 256}, 1, .threads = 1}},
    {"fft_3d_128_f64", {3, {128, 128, 128}, 2, .wide = true, .threads = 1}},
    {"rfft_3d_128", {3, {128, 128, 128}, 8, .real = true, .threads = 1}},
    {"fft_1d_2", {1, {4096}, 2048, .threads = 2}},
    {"fft_2d_64_2", {2, {64, 64}, 2048, .threads = 2}},
    {"fft_2d_2", {2, {512, 512}, 32, .threads = 2}},
    {"fft_3d_256_2", {3, {256, 256, 256}, 1, .threads = 2}},
};

/* Lengths that are not powers of two: products of 2, 3, 5 and 7, and primes. FFTW alone is asked,
 * for four fifths of its rate. */
static const int lengths[] = {96, 100, 120, 210, 240, 360, 384, 500, 729, 1000, 101, 251, 257, 509};
/* Sides of square images that are not powers of two: FFTW alone is asked, for its rate. */
static const int sides[] = {80, 96, 100, 120, 160, 192, 200, 240, 320, 360, 384, 480, 500};

typedef struct transform {
    bench_program p;
    const fft_case *c;
    int64_t in, out; /* real numbers on either side */
    void *from, *to, *other;
    peer_fft *library;
    peer_python *torch;
} transform;

static void run_ours(void *arg)
{
    bench_go(&((transform *)arg)->p);
}
static double run_library(void *arg)
{
    peer_fft_run(((transform *)arg)->library);
    return -1;
}
static double run_torch(void *arg)
{
    return peer_python_run(((transform *)arg)->torch);
}
static double difference(void *arg)
{
    const transform *t = arg;
    return t->c->shape.wide ? bench_diff_f64(t->to, t->other, t->out)
                            : bench_diff_f32(t->to, t->other, t->out);
}

static void fill(const transform *t)
{
    if (t->c->shape.wide)
        bench_fill_f64(t->from, t->in, 1, -1, 1);
    else
        bench_fill_f32(t->from, t->in, 1, -1, 1);
}

static const char *dtype_of(const peer_fft_shape *s)
{
    return s->real ? (s->wide ? "f64" : "f32") : s->wide ? "c128" : "c64";
}

static void plan(transform *t)
{
    static const char *const all_from[] = {"x", "y x", "z y x"},
                             *const all_to[] = {"u", "v u", "w v u"},
                             *const axis[] = {"z", "y", "x"}, *const into[] = {"w", "v", "u"};
    const peer_fft_shape *s = &t->c->shape;
    const fth_dtype dtype = s->real ? (s->wide ? FTH_F64 : FTH_F32) : s->wide ? FTH_C128 : FTH_C64;
    char axes[16];
    bench_open(&t->p, s->threads);
    fth_axis(t->p.g, "image", s->batch);
    for (int i = 0; i < s->rank; i++) {
        const int at = 3 - s->rank + i;
        fth_axis(t->p.g, axis[at], s->n[i]);
        fth_axis(t->p.g, into[at], s->real && at == 2 ? s->n[i] / 2 + 1 : s->n[i]);
    }
    snprintf(axes, sizeof axes, "image %s", all_from[s->rank - 1]);
    const fth_val in = bench_input(&t->p, "in", dtype, axes, t->from);
    bench_output(&t->p,
                 fth_fft_(FTH_HERE, s->real ? FTH_FFT_REAL : FTH_FFT_FORWARD, in,
                          all_from[s->rank - 1], all_to[s->rank - 1]),
                 t->to);
    bench_plan(&t->p, 0, true);
}

/* Work a second when nothing but arithmetic, or nothing but reading and writing, takes time. */
static double limit_of(bench *b, const transform *t, double flop)
{
    const peer_fft_shape *s = &t->c->shape;
    const double number = s->wide ? 8e-9 : 4e-9;
    const double compute = flop / bench_gemm_rate(b, s->wide ? FTH_F64 : FTH_F32, s->threads),
                 memory = (double)(t->in + t->out) * number / bench_add_rate(b, s->threads);
    return flop / fmax(compute, memory);
}

static void against(bench *b, transform *t, const char *shape, const char *peer, double bar)
{
    const peer_fft_shape *s = &t->c->shape;
    double points = 1;
    for (int i = 0; i < s->rank; i++) points *= s->n[i];
    const double flop = (s->real ? 2.5e-9 : 5e-9) * points * s->batch * log2(points);
    const bench_pair pair = {.name = t->c->name,
                             .shape = shape,
                             .threads = s->threads,
                             .amount = flop,
                             .unit = "Gflop/s",
                             .limit = limit_of(b, t, flop),
                             .ours = run_ours,
                             .peer = t->torch ? run_torch : run_library,
                             .peer_name = peer,
                             .residual = t->torch ? NULL : difference,
                             .bar = bar,
                             .arg = t,
                             .planned = t->p.planned,
                             .measured = t->p.measured};
    if (t->p.status == FTH_OK) bench_pairs(b, &pair);
}

static void against_fftw(bench *b, transform *t, const char *shape)
{
    const char *why = NULL;
    t->library = peer_fftw_make(&t->c->shape, t->from, t->other, &why);
    fill(t);
    if (t->library)
        against(b, t, shape, "FFTW", t->c->shape.rank == 1 ? 0.8 : 1.0);
    else
        bench_note(b, "SKIP %s against FFTW: %s", t->c->name, why);
    peer_fft_drop(t->library);
}

static void against_all(bench *b, transform *t, const char *shape)
{
    static peer_fft *(*const make[])(const peer_fft_shape *, void *, void *,
                                     const char **) = {peer_fftw_make, peer_mkl_make};
    static const char *const name[] = {"FFTW", "MKL"};
    /* of MKL's rate four fifths are asked for; two threads share what they read from */
    static const double bar[] = {1.0, 0.8};
    const peer_fft_shape *s = &t->c->shape;
    const double share = s->threads == 1 ? 1.0 : 0.85;
    const char *why = NULL;
    for (int i = 0; i < 2; i++) {
        t->library = make[i](s, t->from, t->other, &why);
        fill(t);
        if (t->library)
            against(b, t, shape, name[i], bar[i] * share);
        else
            bench_note(b, "SKIP %s against %s: %s", t->c->name, name[i], why);
        peer_fft_drop(t->library);
    }
    char sizes[48], threads[12];
    int at = snprintf(sizes, sizeof sizes, "%d", s->batch);
    for (int i = 0; i < s->rank; i++)
        at += snprintf(sizes + at, sizeof sizes - (size_t)at, "x%d", s->n[i]);
    snprintf(threads, sizeof threads, "%d", s->threads);
    const char *const args[] = {sizes, dtype_of(s), threads, b->cpu_clock ? "cpu" : "wall", NULL};
    t->torch = peer_python_start_any(b->peers, "peer_fft.py", args, &why);
    if (t->torch) {
        against(b, t, shape, "PyTorch", 0.8 * share);
        peer_python_stop(t->torch);
    } else {
        bench_note(b, "SKIP %s against PyTorch: %s", t->c->name, why);
    }
}

static void one(bench *b, const fft_case *c,
                void (*peers)(bench *b, transform *t, const char *shape))
{
    const peer_fft_shape *s = &c->shape;
    const uint64_t size = s->wide ? 8 : 4;
    int64_t before = s->batch;
    for (int i = 0; i + 1 < s->rank; i++) before *= s->n[i];
    const int64_t last = s->n[s->rank - 1];
    transform t = {.c = c,
                   .in = before * last * (s->real ? 1 : 2),
                   .out = before * (s->real ? last / 2 + 1 : last) * 2};
    t.from = bench_array(size * (uint64_t)t.in);
    t.to = bench_array(size * (uint64_t)t.out);
    t.other = bench_array(size * (uint64_t)t.out);
    fill(&t);
    plan(&t);
    char shape[48];
    int at = snprintf(shape, sizeof shape, "%d", s->batch);
    for (int i = 0; i < s->rank; i++)
        at += snprintf(shape + at, sizeof shape - (size_t)at, "x%d", s->n[i]);
    snprintf(shape + at, sizeof shape - (size_t)at, " %s", dtype_of(s));
    peers(b, &t, shape);
    bench_close(&t.p);
    free(t.from);
    free(t.to);
    free(t.other);
}

/* Lines of n numbers, or images of n x n: about 4 MiB, or 32 MiB. */
static void other_length(bench *b, int rank, int n, bool wide)
{
    char name[24];
    snprintf(name, sizeof name, "fft_%s%d%s", rank == 2 ? "2d_" : "", n, wide ? "_f64" : "");
    const int points = rank == 2 ? n * n : n, most = rank == 2 ? 1 << 22 : 1 << 19;
    const fft_case c = {name, {rank, {n, n}, (most >> wide) / points, .wide = wide, .threads = 1}};
    if (bench_wants(b, name)) one(b, &c, against_fftw);
}

void bench_fft(bench *b)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (bench_wants(b, cases[i].name)) one(b, &cases[i], against_all);
    for (int wide = 0; wide < 2; wide++) {
        for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++)
            other_length(b, 1, lengths[i], wide);
        for (size_t i = 0; i < sizeof sides / sizeof sides[0]; i++)
            other_length(b, 2, sides[i], wide);
    }
}
