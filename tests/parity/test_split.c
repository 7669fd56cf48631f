/* test_split.c - products of f32 on the matrix units: errors against f64 beside those of the plain
 * product, numbers that are not finite or very small, and the same bits within every budget.
 *
 * seconds: 60
 * labels: gpu alone
 */
#include "testing/engine/op_device.h"
#include "testing/test.h"

#include <fathom/fathom.h>
#include <fathom/products.h>
#include <math.h>

typedef struct matrices {
    int64_t m, n, k;
    bool turned;  /* both operands lie the other way round */
    float *a, *b; /* m by k, k by n */
} matrices;

/* Large enough to go this way on a card; where kernels are emulated far less is. */
static matrices make(int64_t k)
{
    matrices x = {.m = 2048, .n = 2300, .k = k};
    if (t_slowed()) x.m = 150, x.n = 70, x.k = k / 16;
    x.a = calloc((size_t)(x.m * x.k), sizeof *x.a);
    x.b = calloc((size_t)(x.k * x.n), sizeof *x.b);
    IS_TRUE(x.a && x.b);
    t_random r = t_random_make((uint64_t)k);
    t_random_fill_f32(&r, x.a, x.m * x.k);
    t_random_fill_f32(&r, x.b, x.k * x.n);
    return x;
}

static void drop(matrices *x)
{
    free(x->a);
    free(x->b);
}

static int64_t at_a(const matrices *x, int64_t m, int64_t k)
{
    return x->turned ? k * x->m + m : m * x->k + k;
}
static int64_t at_b(const matrices *x, int64_t k, int64_t n)
{
    return x->turned ? n * x->k + k : k * x->n + n;
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
    IS_TRUE(fth_context_split_products(ctx) == split);
    return ctx;
}

static fth_tensor *wrap(fth_context *ctx, int64_t rows, int64_t cols, float *data)
{
    fth_err err = {0};
    fth_tensor *t = NULL;
    const int64_t size[2] = {rows, cols};
    OKE(fth_tensor_wrap(&t, fth_context_mem(ctx), "matrix", FTH_F32, 2, size, data, &err), &err);
    return t;
}

/* The product; chunks of the plan. */
static int64_t multiply(const matrices *x, uint64_t bytes, bool split, float *out)
{
    fth_err err = {0};
    fth_context *ctx = open_within(bytes, split);
    fth_graph *g = fth_graph_create(ctx);
    fth_axis(g, "m", x->m);
    fth_axis(g, "n", x->n);
    fth_axis(g, "k", x->k);
    fth_tensor *t[3] = {
        x->turned ? wrap(ctx, x->k, x->m, x->a) : wrap(ctx, x->m, x->k, x->a),
        x->turned ? wrap(ctx, x->n, x->k, x->b) : wrap(ctx, x->k, x->n, x->b),
        wrap(ctx, x->m, x->n, out),
    };
    const fth_val a = fth_input(g, "a", FTH_F32, x->turned ? "k m" : "m k",
                                fth_tensor_source(t[0])),
                  b = fth_input(g, "b", FTH_F32, x->turned ? "n k" : "k n",
                                fth_tensor_source(t[1])),
                  c = fth_layout(fth_dot(a, b, "k"), "m n");
    const fth_sink sink = fth_tensor_sink(t[2]);
    OKE(fth_graph_check(g, &err), &err);
    fth_plan *p = fth_plan_make(g, &c, 1, (&(fth_limits){0}), &err);
    OKE(p ? FTH_OK : err.status, &err);
    fth_plan_info info;
    fth_plan_get_info(p, &info);
    OKE(fth_run(p, &sink, NULL, NULL, &err), &err);
    fth_plan_destroy(p);
    fth_graph_destroy(g);
    for (int i = 0; i < 3; i++) fth_tensor_release(t[i]);
    OK(fth_context_destroy(ctx, NULL));
    return info.chunks;
}

static float *room(const matrices *x)
{
    float *c = calloc((size_t)(x->m * x->n), sizeof *c);
    IS_TRUE(c != NULL);
    return c;
}

/* Of an element in f64, and what its terms add up to without signs. */
static double exact(const matrices *x, int64_t m, int64_t n, double *size)
{
    double sum = 0;
    *size = 0;
    for (int64_t k = 0; k < x->k; k++) {
        const double term = (double)x->a[at_a(x, m, k)] * (double)x->b[at_b(x, k, n)];
        sum += term;
        *size += fabs(term);
    }
    return sum;
}

/* Root of the mean square error of some elements, each against the size of its terms. */
static double error_of(const matrices *x, const float *c)
{
    enum { SAMPLES = 400 };
    t_random r = t_random_make(77);
    double squares = 0;
    for (int i = 0; i < SAMPLES; i++) {
        const int64_t m = t_random_i64(&r, 0, x->m - 1), n = t_random_i64(&r, 0, x->n - 1);
        double size;
        const double e = ((double)c[m * x->n + n] - exact(x, m, n, &size)) / size;
        squares += e * e;
    }
    return sqrt(squares / SAMPLES);
}

/* Split against plain: another product, and no larger an error. */
static void compare(const char *what, const matrices *x)
{
    float *split = room(x), *plain = room(x);
    (void)multiply(x, 0, true, split);
    (void)multiply(x, 0, false, plain);
    const double ours = error_of(x, split), theirs = error_of(x, plain);
    printf("%-24s k %5lld: split %.3g, plain %.3g\n", what, (long long)x->k, ours, theirs);
    IS_TRUE(memcmp(split, plain, (size_t)(x->m * x->n) * sizeof *split) != 0); /* or it was not */
    LE_F64(ours, theirs);
    free(split);
    free(plain);
}

TEST(errors_of_random_numbers)
{
    for (int64_t k = 1024; k <= 8192; k *= 8) {
        matrices x = make(k);
        compare("both signs", &x);
        x.turned = true;
        compare("both signs, turned", &x);
        for (int64_t i = 0; i < x.m * x.k; i++) x.a[i] = fabsf(x.a[i]);
        for (int64_t i = 0; i < x.k * x.n; i++) x.b[i] = fabsf(x.b[i]);
        compare("positive", &x);
        drop(&x);
    }
}

/* Rows and columns over 60 powers of ten, and numbers of very different sizes in one sum. */
TEST(errors_of_badly_scaled_numbers)
{
    matrices x = make(1024);
    for (int64_t m = 0; m < x.m; m++)
        for (int64_t k = 0; k < x.k; k++)
            x.a[at_a(&x, m, k)] *= powf(10.0f, (float)(m % 13 * 5 - 30));
    for (int64_t k = 0; k < x.k; k++)
        for (int64_t n = 0; n < x.n; n++) x.b[at_b(&x, k, n)] *= powf(10.0f, (float)(n % 3 - 1));
    compare("rows of many sizes", &x);
    drop(&x);
    x = make(1024);
    t_random r = t_random_make(5);
    for (int64_t i = 0; i < x.m * x.k; i++) x.a[i] *= powf(2.0f, (float)t_random_i64(&r, -60, 10));
    compare("terms of many sizes", &x);
    drop(&x);
    x = make(1024); /* lines of both sides have terms that are next to nothing, and are scaled */
    for (int64_t i = 0; i < x.m * x.k; i += 5) x.a[i] *= 0x1p-110f;
    for (int64_t i = 0; i < x.k * x.n; i += 7) x.b[i] *= 0x1p-110f;
    compare("both sides of many sizes", &x);
    drop(&x);
}

/* Terms below the normal numbers count as much as in f64. */
TEST(numbers_below_the_normal_ones)
{
    matrices x = make(1024);
    float *c = room(&x);
    for (int64_t m = 0; m < x.m; m++)
        for (int64_t k = 0; k < x.k; k++)
            x.a[at_a(&x, m, k)] *= m % 2 ? 1e-40f : (k % 32 ? 1e-41f : 1.0f);
    for (int64_t k = 0; k < x.k; k++) /* the large ones of an even row meet zeros */
        for (int64_t n = 0; n < x.n; n++) x.b[at_b(&x, k, n)] *= k % 32 ? 1e30f : 0.0f;
    (void)multiply(&x, 0, true, c);
    LE_F64(error_of(&x, c), 1e-7);
    free(c);
    drop(&x);
}

TEST(infinities_and_nans)
{
    matrices x = make(1024);
    float *split = room(&x), *plain = room(&x);
    const float inf = (float)INFINITY;
    x.a[at_a(&x, 3, 7)] = inf;
    x.a[at_a(&x, 5, 9)] = inf, x.a[at_a(&x, 5, 40)] = -inf;
    x.a[at_a(&x, 140, 33)] = (float)NAN;
    x.b[at_b(&x, 50, 66)] = -inf;
    x.a[at_a(&x, 8, 50)] = 0; /* times infinity */
    x.b[at_b(&x, 9, 4)] = 0;
    (void)multiply(&x, 0, true, split);
    (void)multiply(&x, 0, false, plain);
    for (int64_t i = 0; i < x.m * x.n; i++) {
        EQ_I64(isnan(split[i]) != 0, isnan(plain[i]) != 0);
        EQ_I64(isinf(split[i]) != 0, isinf(plain[i]) != 0);
        if (isinf(plain[i])) EQ_F64(split[i], plain[i]);
        if (isfinite(plain[i])) NEAR(split[i], plain[i], 1e-3);
    }
    IS_TRUE(isnan(split[8 * x.n + 66]) && isinf(split[3 * x.n]) && isnan(split[5 * x.n + 4]));
    free(split);
    free(plain);
    drop(&x);
}

/* Budgets that hold all of it, and pieces alone. */
TEST(same_bits_within_every_budget)
{
    if (t_slowed()) SKIP("axes of an emulated product are never cut; test_products cuts them");
    matrices x = make(8192);
    float *whole = room(&x), *cut = room(&x);
    const int64_t chunks = multiply(&x, (uint64_t)4 << 30, true, whole);
    for (uint64_t mib = 96; mib <= 192; mib *= 2) {
        IS_TRUE(multiply(&x, mib << 20, true, cut) > chunks);
        SAME_BYTES(whole, cut, (size_t)(x.m * x.n) * sizeof *cut);
    }
    free(whole);
    free(cut);
    drop(&x);
}

TEST_MAIN()
