/* test_bragg_serial.c - counts and read-out with the reference's chain of random numbers: a device
 * gives the CPU's, however long rows are, whatever the chain began with, and however it is cut.
 *
 * A number too many or too few of the chain changes every pixel after it.
 * seconds: 10 labels: gpu
 */
#include "instruments/bragg/ops/detector/noise.h"
#include "instruments/bragg/ops/ops.h"
#include "testing/engine/op_device.h"

#include <fathom/fathom.h>
#include <math.h>

typedef struct scene {
    int64_t rows, cols;
    int64_t seed;
    int64_t roi[4];
    int kind; /* of image */
    double flicker, calibration;
    float mean; /* what the generator has kept */
} scene;

static fth_context *open_context(bool on_device)
{
    fth_options opt;
    fth_context *ctx = NULL;
    fth_err err = {0};
    fth_options_default(&opt);
    opt.threads = 1;
    opt.device = on_device ? "cuda" : "cpu";
    opt.backend_path = getenv("FATHOM_TEST_DEVICE");
    OKE(fth_context_create(&ctx, &opt, &err), &err);
    return ctx;
}

/* Small means; large ones; those that are drawn from a normal distribution; some of all, with what
 * no detector sees. */
static float mean_at(const scene *s, t_random *r)
{
    const double u = t_random_f64(r);
    switch (s->kind) {
    case 0: return (float)(0.3 * u);
    case 1: return (float)(3 + 20 * u);
    case 2: return (float)(2e6 * u);
    default: break;
    }
    if (u < 0.2) return -1;
    if (u < 0.3) return (float)(-40 * u);
    if (u < 0.4) return 0;
    if (u < 0.5) return 12;
    if (u < 0.52) return 3e6f;
    if (u < 0.53 && s->kind == 4) return NAN; /* a count of one set of bits */
    if (u < 0.54 && s->kind == 4) return INFINITY;
    return (float)(30 * u * u * u * u);
}

static fth_tensor *image_of(fth_context *ctx, const scene *s)
{
    fth_tensor *t = NULL;
    fth_err err = {0};
    const int64_t size[2] = {s->rows, s->cols};
    OKE(fth_tensor_create(&t, fth_context_mem(ctx), "image", FTH_F32, 2, size, &err), &err);
    t_random r = t_random_make(7);
    float *v = fth_tensor_data(t);
    for (int64_t i = 0; i < s->rows * s->cols; i++) v[i] = mean_at(s, &r);
    /* the mean that the generator has kept, with nothing else: takes up to thousands of numbers */
    if (s->kind >= 3) v[0] = s->mean != 0 ? s->mean : -1;
    return t;
}

static fth_graph *graph_of(fth_context *ctx, const scene *s, fth_tensor *image, fth_val *in)
{
    fth_graph *g = fth_graph_create(ctx);
    fth_axis(g, "slow", s->rows);
    fth_axis(g, "fast", s->cols);
    fth_source source = fth_tensor_source(image);
    source.data = NULL; /* so that it may be cut */
    *in = fth_input(g, "image", FTH_F32, "slow fast", source);
    return g;
}

static br_ran1 generator(const scene *s)
{
    br_ran1 r;
    br_ran1_clear(&r);
    r.seed = s->seed;
    if (s->mean != 0) r.mean = s->mean;
    return r;
}

/* Plans with at most so many bytes (0: all of them), runs, and leaves what came in `to`. */
static void run(fth_graph *g, fth_val v, fth_dtype dtype, const scene *s, uint64_t bytes, void *to)
{
    fth_err err = {0};
    fth_tensor *t = NULL;
    const int64_t size[2] = {s->rows, s->cols};
    OKE(fth_graph_check(g, &err), &err);
    fth_mem *mem;
    OKE(fth_mem_create(&mem, NULL, &err), &err);
    OKE(fth_tensor_create(&t, mem, "out", dtype, 2, size, &err), &err);
    const fth_sink sink = fth_tensor_sink(t);
    const fth_limits limits = {.memory_bytes = bytes, .device_bytes = bytes};
    fth_plan *p = fth_plan_make(g, &v, 1, &limits, &err);
    OKE(p ? FTH_OK : err.status, &err);
    OKE(fth_run(p, &sink, NULL, NULL, &err), &err);
    fth_plan_destroy(p);
    memcpy(to, fth_tensor_data(t), (size_t)(s->rows * s->cols * fth_dtype_size(dtype)));
    fth_tensor_release(t);
    OK(fth_mem_destroy(mem, NULL));
}

static void count_poisson(const scene *s, bool on_device, uint64_t bytes, float *to)
{
    fth_context *ctx = open_context(on_device);
    fth_tensor *image = image_of(ctx, s);
    fth_val in;
    fth_graph *g = graph_of(ctx, s, image, &in);
    br_scene all = {.slow = s->rows, .fast = s->cols};
    memcpy(all.roi, s->roi, sizeof all.roi);
    const br_ran1 start = generator(s);
    run(g, br_serial_poisson(&all, in, &start), FTH_F32, s, bytes, to);
    fth_graph_destroy(g);
    fth_tensor_release(image);
    OK(fth_context_destroy(ctx, NULL));
}

static void count_and_read(const scene *s, bool on_device, uint64_t bytes, double *to)
{
    fth_context *ctx = open_context(on_device);
    fth_tensor *image = image_of(ctx, s);
    fth_val in;
    fth_graph *g = graph_of(ctx, s, image, &in);
    br_counting c;
    memset(&c, 0, sizeof c);
    c.start = generator(s);
    c.scale = 1.5;
    c.flicker = s->flicker;
    c.calibration = s->calibration;
    c.seed = s->seed;
    c.calib_seed = -123;
    const fth_val counted = br_count(in, &c);
    run(g, br_read_out(fth_cast(counted, FTH_F64), br_count_end(counted), 3.0), FTH_F64, s, bytes,
        to);
    fth_graph_destroy(g);
    fth_tensor_release(image);
    OK(fth_context_destroy(ctx, NULL));
}

static void skip_without_device(void)
{
    if (!t_device()) SKIP("FATHOM_TEST_DEVICE names no backend");
}

enum { ALL = 1 << 20 };
static const scene scenes[] = {
    {37, 300, -42, {0, ALL, 0, ALL}, 0, 0, 0, 0},
    {9, 1000, -1, {0, ALL, 0, ALL}, 1, 0, 0, 0},
    {5, 257, -7, {0, ALL, 0, ALL}, 2, 0.1, 0, 0},
    {40, 256, -11, {17, 200, 3, 31}, 3, 0.1, 0.05, 0},
    {64, 31, 0, {0, ALL, 0, ALL}, 3, 0, 0.05, 0},
    {1, 1, -3, {0, ALL, 0, ALL}, 0, 0, 0, 0},
    {23, 100, INT64_C(5000000000), {0, ALL, 0, ALL}, 3, 0.2, 0, 12},
    {23, 100, INT64_MIN, {90, 20, 0, ALL}, 3, 0, 0, 0},
};
enum { SCENES = (int)(sizeof scenes / sizeof *scenes) };

TEST(counts_of_the_chain)
{
    skip_without_device();
    for (int i = 0; i < SCENES; i++) {
        scene s = scenes[i];
        if (s.kind == 3) s.kind = 4;
        const size_t n = (size_t)(s.rows * s.cols);
        float *want = malloc(4 * n), *whole = malloc(4 * n), *cut = malloc(4 * n);
        count_poisson(&s, false, 0, want);
        count_poisson(&s, true, 0, whole);
        count_poisson(&s, true, (uint64_t)(s.cols * 4 * 8) + 4096, cut);
        SAME_BYTES(whole, want, 4 * n);
        SAME_BYTES(cut, want, 4 * n);
        free(want);
        free(whole);
        free(cut);
    }
}

TEST(counting_and_reading_out)
{
    skip_without_device();
    for (int i = 0; i < SCENES; i++) {
        const scene *s = &scenes[i];
        const size_t n = (size_t)(s->rows * s->cols);
        double *want = malloc(8 * n), *whole = malloc(8 * n);
        count_and_read(s, false, 0, want);
        count_and_read(s, true, 0, whole);
        SAME_BYTES(whole, want, 8 * n);
        free(want);
        free(whole);
    }
}

TEST_MAIN()
