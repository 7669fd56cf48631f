/* bragg.c - diffraction images: million steps (pixel x wavelength x spindle step x domain) per
 * second against what is asked for, and two threads against how bare arithmetic scales.
 *
 * The limit of a case is the rate at which registers alone could do the operations of one step; how
 * many those are is counted from the loop (instruments/bragg/ops/render_lanes.h) and written below.
 */
#include "bench.h"

#include "instruments/bragg/ops/ops.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PIXELS = 1024, STEPS = 20, REACH = 18 };

/* Operations of a step: three dot products 15; for each axis two roundings, the two polynomials of
 * eight terms and what they are multiplied by 40; the quotient, its square, the sum 4. A wavelength
 * adds its vector q, 18; a subpixel its direction and q, 50; a table the place in it, 23; the cubic
 * 13 for the weights of each axis, 20 multiply-adds of four, and the sum of four. Derivatives add
 * two polynomials of nine terms and the slope for each axis 46, products of the axes 21, the vector
 * in the frame of the crystal 15 and 18 sums. */
static const double PLAIN_FLOP = 15 + 3 * 40 + 4, WAVE_FLOP = 18, SUB_FLOP = 50, TABLE_FLOP = 23,
                    CUBIC_FLOP = 3 * 13 + 20 * 8 + 7, SLOPE_FLOP = 3 * 46 + 21 + 15 + 2 * 18;

typedef struct crystal {
    bench_program p;
    br_scene s;
    double param[BR_PARAMS];
    double *table, *source, *mosaic_rotation;
    float *image;
    int64_t latch;
    const struct crystal *single; /* the same on one thread */
    const bench *b;
    double flop, wanted;
    int64_t pixels, steps; /* along an edge; of the case */
    bool fit;              /* sums of a least-squares step, not an image */
} crystal;

static void vector(double *v, double x, double y, double z)
{
    v[0] = x, v[1] = y, v[2] = z;
}

/* A cell of 40 45 50 A, 5 x 5 x 5 of them, 250 mm from a detector of 0.1 mm pixels. */
static void make_scene(crystal *c)
{
    br_scene *s = &c->s;
    if (c->pixels == 0) c->pixels = PIXELS, c->steps = STEPS;
    s->fast = s->slow = c->pixels;
    s->roi[1] = s->roi[3] = c->pixels - 1;
    s->pixel = 1e-4 * PIXELS / (double)c->pixels;
    s->detsize[0] = s->detsize[1] = s->pixel * (double)c->pixels;
    vector(s->beam, 1, 0, 0);
    vector(s->fdet, 0, 0, 1);
    vector(s->sdet, 0, -1, 0);
    vector(s->odet, 1, 0, 0);
    vector(s->polar, 0, 0, 1);
    vector(s->vertical, 0, -1, 0);
    vector(s->spindle, 0, 0, 1);
    vector(s->twotheta_axis, 0, 0, -1);
    vector(s->cells, 5, 5, 5);
    s->convention = BR_MOSFLM;
    s->layers = s->oversample = s->phis = s->sources = s->mosaics = 1;
    s->fudge = 1;
    s->default_F = 100;
    s->cell_given = s->misset_given = 1;
    s->quirks = BR_QUIRKS_C;
    s->chain_start = -1;
    const double cell[6] = {40, 45, 50, 75, 85, 95}, misset[3] = {10, 20, 30};
    for (int k = 0; k < 6; k++) c->param[BR_A + k] = k < 3 ? cell[k] : br_radians(cell[k]);
    for (int k = 0; k < 3; k++) c->param[BR_MX + k] = br_radians(misset[k]);
    c->param[BR_LAM] = 1e-10;
    c->param[BR_DIST] = 0.25;
    c->param[BR_XB] = c->param[BR_YB] = (s->detsize[0] + s->pixel) / 2;
    c->param[BR_FLU] = BR_FLUENCE;
    c->param[BR_PHI] = br_radians(1);
    c->flop = PLAIN_FLOP;
    c->wanted = 60e6;
}

static void make_arrays(crystal *c)
{
    br_scene *s = &c->s;
    c->source = bench_array(8ull * BR_SRC_COLUMNS * (uint64_t)s->sources);
    for (int64_t j = 0; j < s->sources; j++) {
        double *src = c->source + j * BR_SRC_COLUMNS;
        vector(src, -1, 0, 0);
        src[BR_SRC_PART] = 1 + 0.001 * (double)j;
        src[BR_SRC_WEIGHT] = 1;
    }
    s->weight_sum = (double)s->sources;
    c->mosaic_rotation = bench_array(72ull * (uint64_t)s->mosaics);
    for (int64_t m = 0; m < s->mosaics; m++)
        for (int k = 0; k < 3; k++) {
            double e[3] = {k == 0, k == 1, k == 2};
            br_rotate(e, 1e-3 * (double)m, 2e-3 * (double)(m % 7), 0, e);
            for (int i = 0; i < 3; i++) c->mosaic_rotation[9 * m + 3 * i + k] = e[i];
        }
    const int64_t n = s->hkls ? 2 * REACH + 2 : 1;
    c->table = bench_array(8ull * (uint64_t)(n * n * n));
    bench_fill_f64(c->table, n * n * n, 1, 10, 300);
    c->image = bench_array(4ull * (uint64_t)(c->pixels * c->pixels));
    s->steps = (double)(s->sources * s->mosaics * s->phis * s->oversample * s->oversample);
}

static void want_table(crystal *c, bool cubic)
{
    br_scene *s = &c->s;
    s->h_min = s->k_min = s->l_min = -REACH;
    s->h_max = s->k_max = s->l_max = REACH;
    s->hkls = (2 * REACH + 1) * (2 * REACH + 1) * (2 * REACH + 1);
    s->interpolate = cubic;
    c->flop += cubic ? CUBIC_FLOP : TABLE_FLOP;
}

static void build(crystal *c, int threads, const char *device)
{
    const br_scene *s = &c->s;
    bench_open_on(&c->p, threads, device);
    fth_graph *g = c->p.g;
    fth_axis(g, "slow", s->slow);
    fth_axis(g, "fast", s->fast);
    fth_axis(g, "param", BR_PARAMS);
    fth_axis(g, "h", s->hkls ? 2 * REACH + 2 : 1);
    fth_axis_like(g, "k", "h");
    fth_axis_like(g, "l", "h");
    fth_axis(g, "source", s->sources);
    fth_axis(g, "source_column", BR_SRC_COLUMNS);
    fth_axis(g, "mosaic", s->mosaics);
    fth_axis(g, "nine", 9);
    br_inputs in = {
        .param = bench_input(&c->p, "param", FTH_F64, "param", c->param),
        .table = bench_input(&c->p, "table", FTH_F64, "h k l", c->table),
        .source = bench_input(&c->p, "source", FTH_F64, "source source_column", c->source),
        .mosaic_rotation =
            bench_input(&c->p, "mosaic_rotation", FTH_F64, "mosaic nine", c->mosaic_rotation)};
    in.latch = br_latch(s, &in);
    if (c->fit) {
        const fth_val one = fth_expand(fth_const(g, FTH_F64, 1), "slow fast");
        fth_axis_like(g, "param2", "param");
        bench_output(&c->p, br_normal(s, &in, one, one), c->image);
    } else {
        bench_output(&c->p, br_render(s, &in, FTH_F32), c->image);
    }
    bench_plan(&c->p, 0, true);
}

static void drop(crystal *c)
{
    bench_close(&c->p);
    free(c->table);
    free(c->source);
    free(c->mosaic_rotation);
    free(c->image);
}

static double steps_of(const crystal *c)
{
    return c->s.steps * (double)c->pixels * (double)c->pixels;
}

static void render(void *arg)
{
    bench_go(&((crystal *)arg)->p);
}

static double asked_for(void *arg)
{
    const crystal *c = arg;
    return steps_of(c) / c->wanted;
}

/* Gflop/s of registers alone. */
static double fma_rate(const bench *b, int threads)
{
    double best = 1e30;
    for (int i = 0; i < 5; i++) {
        const double start = bench_now(b, threads);
        volatile double keep = peer_fma(2, threads);
        (void)keep;
        const double s = bench_now(b, threads) - start;
        if (s < best) best = s;
    }
    return 2 * threads / best;
}

static void one(bench *b, const char *name, void (*change)(crystal *c))
{
    if (!bench_wants(b, name)) return;
    crystal c = {0};
    make_scene(&c);
    change(&c);
    make_arrays(&c);
    build(&c, 1, NULL);
    char shape[48], peer[48];
    snprintf(shape, sizeof shape, "%d^2 x %.0f", PIXELS, c.s.steps);
    snprintf(peer, sizeof peer, "%.0f million/s", 1e-6 * c.wanted);
    const bench_pair pair = {.name = name,
                             .shape = shape,
                             .threads = 1,
                             .amount = 1e-6 * steps_of(&c),
                             .unit = "Mstep/s",
                             .limit = 1e3 * fma_rate(b, 1) / c.flop,
                             .ours = render,
                             .peer = asked_for,
                             .peer_name = peer,
                             .bar = 1,
                             .arg = &c,
                             .planned = c.p.planned,
                             .measured = c.p.measured};
    if (c.p.status == FTH_OK) bench_pairs(b, &pair);
    drop(&c);
}

static void domains(crystal *c)
{
    c->s.mosaics = c->steps;
    c->s.mosaic_given = 1;
}
static void spindle(crystal *c)
{
    c->s.phis = c->steps;
    c->s.phi_step = br_radians(0.05);
}
static void wavelengths(crystal *c)
{
    c->s.sources = c->steps;
    c->flop += WAVE_FLOP;
}
static void subpixels(crystal *c)
{
    c->s.oversample = 4;
    c->flop += SUB_FLOP;
}
static void nearest(crystal *c)
{
    domains(c);
    want_table(c, false);
}
static void tricubic(crystal *c)
{
    domains(c);
    want_table(c, true);
    c->wanted = 20e6;
}
static void ball(crystal *c)
{
    domains(c);
    c->s.shape = BR_ROUND;
}
static void single_precision(crystal *c)
{
    domains(c);
    c->s.precision = BR_F32;
}
/* A quarter of what is asked of an image. */
static void fit(crystal *c)
{
    domains(c);
    c->fit = true;
    c->flop += SLOPE_FLOP;
    c->wanted /= 4;
}

/* ---- two threads ---- */

/* What two threads would take if the render scaled as registers do, all measured just now. */
static double scaled_like_registers(void *arg)
{
    const crystal *c = arg;
    double start = bench_now(c->b, 1);
    render((void *)(uintptr_t)c->single);
    const double alone = bench_now(c->b, 1) - start;
    start = bench_now(c->b, 1);
    volatile double keep = peer_fma(2, 1);
    const double one_thread = bench_now(c->b, 1) - start;
    start = bench_now(c->b, 2);
    keep = peer_fma(2, 2);
    (void)keep;
    return alone * (bench_now(c->b, 2) - start) / one_thread / 2;
}

static double difference(void *arg)
{
    const crystal *c = arg;
    return memcmp(c->image, c->single->image, 4ull * PIXELS * PIXELS) != 0;
}

static void two(bench *b, const char *name)
{
    if (!bench_wants(b, name)) return;
    crystal c = {0}, single = {0};
    crystal *both[2] = {&single, &c};
    for (int i = 0; i < 2; i++) {
        make_scene(both[i]);
        domains(both[i]);
        make_arrays(both[i]);
        build(both[i], i + 1, NULL);
    }
    c.single = &single;
    c.b = b;
    const bench_pair pair = {.name = name,
                             .shape = "1024^2 x 20",
                             .threads = 2,
                             .amount = 1e-6 * steps_of(&c),
                             .unit = "Mstep/s",
                             .limit = 1e3 * fma_rate(b, 2) / c.flop,
                             .ours = render,
                             .peer = scaled_like_registers,
                             .peer_name = "1 thread, scaled as FMA",
                             .residual = difference,
                             .bar = 0.95,
                             .arg = &c,
                             .planned = c.p.planned,
                             .measured = c.p.measured};
    if (c.p.status == FTH_OK && single.p.status == FTH_OK) bench_pairs(b, &pair);
    drop(&c);
    drop(&single);
}

/* ---- a device ---- */

/* What the fast loop of a device does in a step (instruments/bragg/ops/render.cu), fused ones
 * counted twice: 58 multiply-adds, 20 products and 12 sums in f64; 46, 20 and 12 in f32. */
static const double F64_FLOP = 2 * 58 + 20 + 12, F32_FLOP = 2 * 46 + 20 + 12;
/* Peaks that are given for the H200, flop/s outside of its matrix units. */
static const double F64_PEAK = 34e12, F32_PEAK = 67e12;

/* Seconds of the host against those of `bar` steps per second; those of the kernels beside them. */
static void on_device(bench *b, const char *name, int64_t pixels, int64_t steps,
                      br_precision precision, double bar)
{
    enum { TIMES = 9 };
    double seconds[TIMES], best = 1e30, kernels = 1e30;
    char shape[48], what[48];
    if (!bench_wants(b, name)) return;
    crystal c = {.pixels = pixels, .steps = steps};
    make_scene(&c);
    domains(&c);
    c.s.precision = (int32_t)precision;
    make_arrays(&c);
    build(&c, 1, b->device);
    for (int i = 0; i < TIMES; i++) {
        seconds[i] = bench_go_timed(&c.p, b);
        if (seconds[i] < best) best = seconds[i];
        if (c.p.report.device_seconds < kernels) kernels = c.p.report.device_seconds;
    }
    const bool single = precision == BR_F32;
    const double rate = steps_of(&c) / best, flop = single ? F32_FLOP : F64_FLOP;
    snprintf(shape, sizeof shape, "%lld^2 x %lld", (long long)pixels, (long long)steps);
    snprintf(what, sizeof what, "%.2g steps/s", bar);
    if (c.p.status == FTH_OK) {
        bench_single(b, name, shape, seconds, TIMES, steps_of(&c) / bar, what);
        bench_note(b,
                   "%s: %.3g pixel-steps/s, %.0f %% of %.0f Tflop/s; kernels alone %.6f s, %.3g "
                   "pixel-steps/s; planned %.1f MiB",
                   name, rate, 100 * rate * flop / (single ? F32_PEAK : F64_PEAK),
                   1e-12 * (single ? F32_PEAK : F64_PEAK), kernels, steps_of(&c) / kernels,
                   (double)c.p.planned / (1 << 20));
    }
    drop(&c);
}

void bench_bragg_device(bench *b)
{
    on_device(b, "bragg_device_f64", 4096, 1000, BR_F64, 1.0e11);
    on_device(b, "bragg_device_f32", 4096, 1000, BR_F32, 1.5e11);
    on_device(b, "bragg_device_small", 1024, 20, BR_F64, 3e10);
}

void bench_bragg(bench *b)
{
    one(b, "bragg_domains", domains);
    one(b, "bragg_spindle", spindle);
    one(b, "bragg_wavelengths", wavelengths);
    one(b, "bragg_subpixels", subpixels);
    one(b, "bragg_nearest", nearest);
    one(b, "bragg_tricubic", tricubic);
    one(b, "bragg_round", ball);
    one(b, "bragg_f32", single_precision);
    one(b, "bragg_fit", fit);
    two(b, "bragg_domains_2");
}
