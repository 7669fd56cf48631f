/* test_conv_units.c - convolutions of f32 on the matrix units: errors against f64 beside those of
 * the plain kernels, numbers that are not finite or very small, and the same bits within every
 * budget.
 *
 * seconds: 60
 * labels: gpu alone
 */
#include "graph/graph.h"
#include "ops/conv2d.h"
#include "testing/engine/op_device.h"
#include "testing/full.h"
#include "testing/test.h"

#include <fathom/fathom.h>
#include <fathom/products.h>
#include <math.h>

typedef enum face { FORWARD, INPUT, WEIGHT, FACES } face;
static const char *const names[FACES] = {"forward", "input", "weight"};

typedef struct problem {
    int64_t batch, chan, out_chan, y, x, k, dilation, pad;
    float *image, *weights, *bar;
} problem;

static int64_t out_y(const problem *p)
{
    return p->y + 2 * p->pad - (p->k - 1) * p->dilation;
}
static int64_t out_x(const problem *p)
{
    return p->x + 2 * p->pad - (p->k - 1) * p->dilation;
}
static int64_t image_size(const problem *p)
{
    return p->batch * p->chan * p->y * p->x;
}
static int64_t weights_size(const problem *p)
{
    return p->out_chan * p->chan * p->k * p->k;
}
static int64_t bar_size(const problem *p)
{
    return p->batch * p->out_chan * out_y(p) * out_x(p);
}

static float *numbers(t_random *r, int64_t n)
{
    float *v = calloc((size_t)n, sizeof *v);
    IS_TRUE(v != NULL);
    if (r) t_random_fill_f32(r, v, n);
    return v;
}

static problem make(problem p)
{
    t_random r = t_random_make((uint64_t)(p.chan * 100 + p.x));
    p.image = numbers(&r, image_size(&p));
    p.weights = numbers(&r, weights_size(&p));
    p.bar = numbers(&r, bar_size(&p));
    return p;
}

static void drop(problem *p)
{
    free(p->image);
    free(p->weights);
    free(p->bar);
}

static fth_context *open_within(uint64_t bytes, bool split)
{
    fth_options opt;
    fth_context *ctx = NULL;
    fth_err err = {0};
    if (!t_device()) SKIP("FATHOM_TEST_DEVICE names no backend");
    fth_options_default(&opt);
    opt.device = "cuda";
    opt.backend_path = getenv("FATHOM_TEST_DEVICE");
    opt.device_memory_bytes = bytes;
    OKE(fth_context_create(&ctx, &opt, &err), &err);
    fth_context_set_split_products(ctx, split);
    return ctx;
}

static fth_source memory(int64_t a, int64_t b, int64_t c, int64_t d, float *data)
{
    return (fth_source){
        .kind = "memory", .dtype = FTH_F32, .n_axes = 4, .size = {a, b, c, d}, .data = data};
}

/* One face; chunks of the plan. */
static int64_t convolve(const problem *p, face f, uint64_t bytes, bool split, float *out)
{
    fth_err err = {0};
    fth_context *ctx = open_within(bytes, split);
    fth_graph *g = fth_graph_create(ctx);
    fth_axis(g, "b", p->batch);
    fth_axis(g, "c", p->chan);
    fth_axis(g, "o", p->out_chan);
    fth_axis(g, "y", p->y);
    fth_axis(g, "x", p->x);
    fth_axis(g, "oy", out_y(p));
    fth_axis(g, "ox", out_x(p));
    fth_axis(g, "ky", p->k);
    fth_axis(g, "kx", p->k);
    const fth_source image = memory(p->batch, p->chan, p->y, p->x, p->image),
                     weights = memory(p->out_chan, p->chan, p->k, p->k, p->weights),
                     result = memory(p->batch, p->out_chan, out_y(p), out_x(p),
                                     f == FORWARD ? out : p->bar);
    const fth_val v = fth_input(g, "v", FTH_F32, "b c y x", image),
                  w = fth_input(g, "w", FTH_F32, "o c ky kx", weights);
    const fth_conv conv = {.y = "y",
                           .x = "x",
                           .out_y = "oy",
                           .out_x = "ox",
                           .chan = "c",
                           .ky = "ky",
                           .kx = "kx",
                           .stride = 1,
                           .dilation = p->dilation,
                           .pad_y = p->pad,
                           .pad_x = p->pad};
    fth_val made = fth_conv2d(v, w, &conv);
    fth_source to = result;
    if (f != FORWARD) {
        const fth_val bar = fth_input(g, "bar", FTH_F32, "b o oy ox", result);
        fth_val in_bar[2] = {{0}};
        const fth_node *node = fth__val_node(made);
        OKE(node->op->vjp(node, &bar, in_bar, &err), &err);
        made = in_bar[f == INPUT ? 0 : 1];
        to = f == INPUT ? image : weights;
    }
    fth_sink sink = {.kind = "memory", .dtype = FTH_F32, .n_axes = 4, .data = out};
    memcpy(sink.size, to.size, sizeof *to.size * 4);
    OKE(fth_graph_check(g, &err), &err);
    fth_plan *plan = fth_plan_make(g, &made, 1, (&(fth_limits){.sinks = &sink}), &err);
    OKE(plan ? FTH_OK : err.status, &err);
    fth_plan_info info;
    fth_plan_get_info(plan, &info);
    OKE(fth_run(plan, &sink, NULL, NULL, &err), &err);
    fth_plan_destroy(plan);
    fth_graph_destroy(g);
    OK(fth_context_destroy(ctx, NULL));
    return info.chunks;
}

static int64_t size_of(const problem *p, face f)
{
    return f == FORWARD ? bar_size(p) : f == INPUT ? image_size(p) : weights_size(p);
}

/* The sum of a face over the terms with these indices; those that stay at -1 are summed over. */
typedef struct term {
    int64_t b, o, c, y, x, ky, kx; /* y, x: of the result */
} term;

static void add_term(const problem *p, face f, const term *t, double *sum, double *size)
{
    const int64_t y = t->y + t->ky * p->dilation - p->pad, x = t->x + t->kx * p->dilation - p->pad;
    if (y < 0 || y >= p->y || x < 0 || x >= p->x || t->y < 0 || t->y >= out_y(p) || t->x < 0 ||
        t->x >= out_x(p))
        return;
    const double v = (double)p->image[((t->b * p->chan + t->c) * p->y + y) * p->x + x],
                 w = (double)p->weights[((t->o * p->chan + t->c) * p->k + t->ky) * p->k + t->kx],
                 r = (double)
                         p->bar[((t->b * p->out_chan + t->o) * out_y(p) + t->y) * out_x(p) + t->x];
    const double one = f == FORWARD ? v * w : f == INPUT ? r * w : r * v;
    *sum += one;
    *size += fabs(one);
}

/* An element in f64, and what its terms add up to without signs. */
static double exact(const problem *p, face f, int64_t i, double *size)
{
    const int64_t across = f == FORWARD ? out_x(p)
                           : f == INPUT ? p->x
                                        : p->k,
                  down = f == FORWARD ? out_y(p)
                         : f == INPUT ? p->y
                                      : p->k,
                  mid = f == FORWARD ? p->out_chan : p->chan;
    const int64_t x = i % across, y = i / across % down, m = i / across / down % mid,
                  b = i / across / down / mid;
    double sum = 0;
    *size = 0;
    if (f == WEIGHT) {
        for (int64_t n = 0; n < p->batch; n++)
            for (int64_t oy = 0; oy < out_y(p); oy++)
                for (int64_t ox = 0; ox < out_x(p); ox++)
                    add_term(p, f, &(term){n, b, m, oy, ox, y, x}, &sum, size);
        return sum;
    }
    for (int64_t c = 0; c < (f == FORWARD ? p->chan : p->out_chan); c++)
        for (int64_t ky = 0; ky < p->k; ky++)
            for (int64_t kx = 0; kx < p->k; kx++)
                add_term(p, f,
                         f == FORWARD ? &(term){b, m, c, y, x, ky, kx}
                                      : &(term){b, c, m, y + p->pad - ky * p->dilation,
                                                x + p->pad - kx * p->dilation, ky, kx},
                         &sum, size);
    return sum;
}

/* Root of the mean square error of some elements, each against the size of its terms. */
static double error_of(const problem *p, face f, const float *c)
{
    t_random r = t_random_make(77);
    const int samples = f == WEIGHT ? 200 : 600;
    double squares = 0;
    int n = 0;
    for (int i = 0; i < samples; i++) {
        const int64_t at = t_random_i64(&r, 0, size_of(p, f) - 1);
        double size;
        const double e = (double)c[at] - exact(p, f, at, &size);
        if (size == 0) continue;
        squares += e / size * (e / size);
        n++;
    }
    return sqrt(squares / n);
}

/* By parts against plain: other bits, and no larger an error. Gradients of weights that are short
 * sums, or sums over wide rows, stay plain. */
enum { SHORT = 3500, WIDE = 128 };
static bool stays_plain(const problem *p)
{
    return p->batch * out_y(p) * out_x(p) < SHORT || out_x(p) > WIDE;
}
static void compare(const char *what, const problem *p)
{
    for (face f = FORWARD; f < FACES; f++) {
        const int64_t n = size_of(p, f);
        float *split = numbers(NULL, n), *plain = numbers(NULL, n);
        (void)convolve(p, f, 0, true, split);
        (void)convolve(p, f, 0, false, plain);
        const double ours = error_of(p, f, split), theirs = error_of(p, f, plain);
        printf("%-20s %-8s %lld x %lld -> %lld, %lld x %lld: split %.3g, plain %.3g\n", what,
               names[f], (long long)p->batch, (long long)p->chan, (long long)p->out_chan,
               (long long)p->y, (long long)p->x, ours, theirs);
        const bool is_plain = f == WEIGHT && !t_slowed() && stays_plain(p);
        IS_TRUE((memcmp(split, plain, (size_t)n * sizeof *split) == 0) == is_plain);
        LE_F64(ours, theirs);
        free(split);
        free(plain);
    }
}

/* Sizes of a network; odd ones, wide rows that are cut into strips, large windows. */
static const problem problems[] = {
    {4, 64, 64, 64, 64, 3, 1, 1, 0, 0, 0},  {16, 128, 128, 32, 32, 3, 1, 1, 0, 0, 0},
    {16, 256, 128, 8, 8, 3, 1, 1, 0, 0, 0}, {3, 70, 200, 33, 37, 3, 1, 1, 0, 0, 0},
    {2, 40, 60, 50, 300, 3, 1, 1, 0, 0, 0}, {2, 33, 65, 30, 29, 5, 1, 2, 0, 0, 0},
    {2, 64, 70, 20, 150, 3, 2, 0, 0, 0, 0}, {5, 140, 150, 17, 16, 1, 1, 0, 0, 0, 0},
};
static const problem small_problems[] = {
    {2, 34, 6, 9, 11, 3, 1, 1, 0, 0, 0},
    {1, 5, 70, 6, 150, 3, 1, 1, 0, 0, 0},
    {1, 6, 5, 12, 13, 3, 2, 0, 0, 0, 0},
};

TEST(errors_of_random_numbers)
{
    const size_t n = t_slowed() ? (size_t)(4 - t_one_in(1, 2)) : sizeof problems / sizeof *problems;
    for (size_t i = 0; i < n; i++) {
        problem p = make(t_slowed() ? small_problems[i] : problems[i]);
        compare("both signs", &p);
        for (int64_t j = 0; j < image_size(&p); j++) p.image[j] = fabsf(p.image[j]);
        for (int64_t j = 0; j < weights_size(&p); j++) p.weights[j] = fabsf(p.weights[j]);
        for (int64_t j = 0; j < bar_size(&p); j++) p.bar[j] = fabsf(p.bar[j]);
        compare("positive", &p);
        drop(&p);
    }
}

static problem ordinary(void)
{
    return make(t_slowed() ? small_problems[0] : problems[3]);
}

/* Channels and pixels over many powers of ten. */
TEST(errors_of_badly_scaled_numbers)
{
    problem p = ordinary();
    const int64_t pixels = p.y * p.x, seen = out_y(&p) * out_x(&p);
    for (int64_t i = 0; i < image_size(&p); i++)
        p.image[i] *= powf(10.0f, (float)(i % pixels % 13 * 5 - 30));
    for (int64_t i = 0; i < weights_size(&p); i++)
        p.weights[i] *= powf(10.0f, (float)(i / (p.chan * p.k * p.k) % 3 - 1));
    for (int64_t i = 0; i < bar_size(&p); i++)
        p.bar[i] *= powf(2.0f, (float)(i / seen % 7 * 4 - 12));
    compare("pixels of many sizes", &p);
    drop(&p);
}

/* Below the normal numbers they count as much as in f64. */
TEST(numbers_below_the_normal_ones)
{
    problem p = ordinary();
    for (int64_t i = 0; i < image_size(&p); i++) p.image[i] *= 1e-41f;
    for (int64_t i = 0; i < weights_size(&p); i++) p.weights[i] *= 1e30f;
    for (int64_t i = 0; i < bar_size(&p); i++) p.bar[i] *= 1e25f;
    for (face f = FORWARD; f < FACES; f += 2) {
        float *c = numbers(NULL, size_of(&p, f));
        (void)convolve(&p, f, 0, true, c);
        LE_F64(error_of(&p, f, c), 1e-6);
        free(c);
    }
    drop(&p);
}

static void same_kinds(const problem *p, face f)
{
    const int64_t n = size_of(p, f);
    float *split = numbers(NULL, n), *plain = numbers(NULL, n);
    (void)convolve(p, f, 0, true, split);
    (void)convolve(p, f, 0, false, plain);
    int64_t odd = 0;
    for (int64_t i = 0; i < n; i++) {
        EQ_I64(isnan(split[i]) != 0, isnan(plain[i]) != 0);
        EQ_I64(isinf(split[i]) != 0, isinf(plain[i]) != 0);
        if (isinf(plain[i])) EQ_F64(split[i], plain[i]);
        if (isfinite(plain[i])) NEAR(split[i], plain[i], 1e-3);
        odd += !isfinite(plain[i]);
    }
    IS_TRUE(odd > 0 && odd < n);
    free(split);
    free(plain);
}

TEST(infinities_and_nans)
{
    problem p = ordinary();
    const float inf = (float)INFINITY;
    const int64_t pixels = p.y * p.x, seen = out_y(&p) * out_x(&p);
    p.image[3 * p.x + 5] = inf;
    p.image[2 * pixels + 3 * p.x + 6] = -inf; /* windows that have both are not a number */
    p.image[p.chan * pixels + 5] = (float)NAN;
    p.bar[seen + 2 * out_x(&p) + 4] = -inf;
    for (face f = FORWARD; f < FACES; f++) same_kinds(&p, f);
    drop(&p);
}

/* Budgets that hold all of it, and pieces alone. */
TEST(same_bits_within_every_budget)
{
    problem p = make(t_slowed() ? (problem){9, 34, 6, 9, 11, 3, 1, 1, 0, 0, 0}
                                : (problem){48, 64, 192, 40, 48, 3, 1, 1, 0, 0, 0});
    for (face f = FORWARD; f < FACES; f++) {
        const int64_t n = size_of(&p, f);
        float *whole = numbers(NULL, n), *cut = numbers(NULL, n);
        const int64_t chunks = convolve(&p, f, (uint64_t)4 << 30, true, whole);
        const uint64_t budget = t_slowed() ? (uint64_t)1 << 20 : (uint64_t)24 << 20;
        const int64_t pieces = convolve(&p, f, budget, true, cut);
        printf("%s: %lld chunks, %lld within less\n", names[f], (long long)chunks,
               (long long)pieces);
        if (!t_slowed()) IS_TRUE(pieces > chunks);
        SAME_BYTES(whole, cut, (size_t)n * sizeof *cut);
        free(whole);
        free(cut);
    }
    drop(&p);
}

TEST_MAIN()
