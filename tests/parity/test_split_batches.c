/* test_split_batches.c - batches, triangles and sums over several axes by parts on the matrix
 * units: errors against f64 beside those of the plain product, zeros where they belong, sums of
 * squares of products that never exist whole, and the same bits within every budget.
 *
 * seconds: 60
 * labels: gpu alone
 */
#include "testing/engine/op_device.h"
#include "testing/test.h"

#include <fathom/fathom.h>
#include <fathom/products.h>
#include <math.h>

/* Axes have one letter: l around the matrices, m and n free, k and j summed. */
typedef struct scene {
    const char *what, *a, *b, *out, *summed;
    fth_triangle of_a, of_b, of_out; /* of (m, k), (k, n) and (m, n), which are of one size then */
    int64_t size[128];
} scene;

static const scene scenes[] = {
    {"shared left side", "m k", "l k n", "l m n", "k", 0, 0, 0, {0}},
    {"shared right side", "k l m", "n k", "l m n", "k", 0, 0, 0, {0}},
    {"both sides, turned", "l k m", "l n k", "l n m", "k", 0, 0, 0, {0}},
    {"two summed axes", "m j k", "j k n", "m n", "j k", 0, 0, 0, {0}},
    {"lower right side", "m k", "l k n", "l m n", "k", 0, FTH_LOWER, 0, {0}},
    {"upper right side", "m k", "l n k", "l m n", "k", 0, FTH_UPPER, 0, {0}},
    {"lower left side", "m k", "l k n", "l m n", "k", FTH_LOWER, 0, 0, {0}},
    {"upper left side", "k m", "l k n", "l n m", "k", FTH_UPPER, 0, 0, {0}},
    {"lower product", "k m", "l k n", "l m n", "k", 0, 0, FTH_LOWER, {0}},
    {"upper product", "k m", "l k n", "l n m", "k", 0, 0, FTH_UPPER, {0}},
    {"lower sides and product", "l m k", "l k n", "l m n", "k", 0, FTH_LOWER, FTH_LOWER, {0}},
    {"two lower sides", "m k", "l k n", "l m n", "k", FTH_LOWER, FTH_LOWER, 0, {0}},
};
enum { SCENES = sizeof scenes / sizeof *scenes };

/* Large enough to go this way on a card; where kernels are emulated far less is. */
static scene sized(int i)
{
    scene s = scenes[i];
    const bool slow = t_slowed(), marked = s.of_a || s.of_b || s.of_out;
    s.size['l'] = slow ? 2 : 6, s.size['j'] = 3;
    s.size['m'] = slow ? 150 : 1050, s.size['n'] = slow ? 140 : 1300,
    s.size['k'] = slow ? 70 : 2100;
    if (s.of_out) s.size['n'] = s.size['m'];
    if (s.of_a) s.size['k'] = s.size['m'] = slow ? 270 : 1300;
    if (s.of_b) s.size['k'] = s.size['n'] = slow ? 270 : 1300;
    if (marked && s.of_out) s.size['m'] = s.size['n'];
    if (s.of_a && s.of_b) s.size['m'] = s.size['n'] = s.size['k'];
    return s;
}

static int64_t count(const scene *s, const char *axes)
{
    int64_t n = 1;
    for (; *axes; axes++)
        if (*axes != ' ') n *= s->size[(int)*axes];
    return n;
}

static int64_t at(const scene *s, const char *axes, const int64_t *index)
{
    int64_t i = 0;
    for (; *axes; axes++)
        if (*axes != ' ') i = i * s->size[(int)*axes] + index[(int)*axes];
    return i;
}

static bool is_zero(fth_triangle t, int64_t row, int64_t col)
{
    return (t == FTH_LOWER && row < col) || (t == FTH_UPPER && row > col);
}

/* Random numbers, and zeros where a mark says so. */
static float *fill(const scene *s, const char *axes, fth_triangle t, char row, char col,
                   uint64_t seed)
{
    const int64_t n = count(s, axes);
    float *v = calloc((size_t)n, sizeof *v);
    IS_TRUE(v != NULL);
    t_random r = t_random_make(seed);
    t_random_fill_f32(&r, v, n);
    for (int64_t i = 0; t != FTH_FULL && i < n; i++) {
        int64_t index[128] = {0}, left = i;
        for (const char *p = axes + strlen(axes); p-- > axes;) {
            if (*p == ' ') continue;
            index[(int)*p] = left % s->size[(int)*p];
            left /= s->size[(int)*p];
        }
        if (is_zero(t, index[(int)row], index[(int)col])) v[i] = 0;
    }
    return v;
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
    IS_TRUE(fth_context_split_products(ctx)); /* by default */
    fth_context_set_split_products(ctx, split);
    return ctx;
}

static fth_tensor *wrap(fth_context *ctx, const scene *s, const char *axes, float *data)
{
    fth_err err = {0};
    fth_tensor *t = NULL;
    int64_t size[FTH_MAX_AXES];
    int n = 0;
    for (const char *p = axes; *p; p++)
        if (*p != ' ') size[n++] = s->size[(int)*p];
    OKE(fth_tensor_wrap(&t, fth_context_mem(ctx), "array", FTH_F32, n, size, data, &err), &err);
    return t;
}

static fth_val marked(fth_val v, fth_triangle t, const char *row, const char *col)
{
    return t == FTH_FULL ? v : fth_mark(v, t, row, col);
}

/* The product, or the sum of its squares over n; chunks of the plan. */
static int64_t run(const scene *s, float *a, float *b, bool squares, uint64_t bytes, bool split,
                   float *out)
{
    fth_err err = {0};
    fth_context *ctx = open_within(bytes, split);
    fth_graph *g = fth_graph_create(ctx);
    const char *to = squares ? "l m" : s->out;
    for (const char *p = "lmnkj"; *p; p++) {
        const char name[2] = {*p, 0};
        fth_axis(g, name, s->size[(int)*p]);
    }
    fth_tensor *t[3] = {wrap(ctx, s, s->a, a), wrap(ctx, s, s->b, b), wrap(ctx, s, to, out)};
    const fth_val va = marked(fth_input(g, "a", FTH_F32, s->a, fth_tensor_source(t[0])), s->of_a,
                              "m", "k"),
                  vb = marked(fth_input(g, "b", FTH_F32, s->b, fth_tensor_source(t[1])), s->of_b,
                              "k", "n");
    fth_val c = s->of_out ? fth_dot_triangle(va, vb, s->summed, s->of_out, "m", "n")
                          : fth_dot(va, vb, s->summed);
    if (squares) c = fth_sum(fth_sqr(c), "n");
    c = fth_layout(c, to);
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

/* One element in f64, and what its terms add up to without signs. */
static double exact(const scene *s, const float *a, const float *b, int64_t *index, double *size)
{
    const bool two = strchr(s->summed, 'j') != NULL;
    double sum = 0;
    *size = 0;
    for (index['j'] = 0; index['j'] < (two ? s->size['j'] : 1); index['j']++)
        for (index['k'] = 0; index['k'] < s->size['k']; index['k']++) {
            const double term = (double)a[at(s, s->a, index)] * (double)b[at(s, s->b, index)];
            sum += term;
            *size += fabs(term);
        }
    return sum;
}

/* Root of the mean square error of some elements, each against the size of its terms. Elements of
 * the side that was not asked for are zeros. */
static double error_of(const scene *s, const float *a, const float *b, const float *c)
{
    enum { SAMPLES = 500 };
    t_random r = t_random_make(77);
    double squares = 0;
    int64_t n = 0;
    for (int i = 0; i < SAMPLES; i++) {
        int64_t index[128] = {0};
        for (const char *p = s->out; *p; p++)
            if (*p != ' ') index[(int)*p] = t_random_i64(&r, 0, s->size[(int)*p] - 1);
        const float v = c[at(s, s->out, index)];
        if (is_zero(s->of_out, index['m'], index['n'])) {
            EQ_F64(v, 0.0);
            continue;
        }
        double size;
        const double e = (double)v - exact(s, a, b, index, &size);
        if (size == 0) EQ_F64(v, 0.0);
        squares += size > 0 ? e * e / (size * size) : 0;
        n++;
    }
    return sqrt(squares / (double)n);
}

TEST(errors_of_every_kind)
{
    for (int i = 0; i < SCENES; i++) {
        const scene s = sized(i);
        float *a = fill(&s, s.a, s.of_a, 'm', 'k', 1), *b = fill(&s, s.b, s.of_b, 'k', 'n', 2);
        const int64_t n = count(&s, s.out);
        float *split = calloc((size_t)n, sizeof *split), *plain = calloc((size_t)n, sizeof *plain);
        IS_TRUE(split && plain);
        (void)run(&s, a, b, false, 0, true, split);
        (void)run(&s, a, b, false, 0, false, plain);
        const double ours = error_of(&s, a, b, split), theirs = error_of(&s, a, b, plain);
        printf("%-24s split %.3g, plain %.3g\n", s.what, ours, theirs);
        IS_TRUE(memcmp(split, plain, (size_t)n * sizeof *split) != 0); /* or it was not */
        LE_F64(ours, theirs);
        free(a), free(b), free(split), free(plain);
    }
}

/* sum(sqr(dot(a, b)), n), whose product is made slab by slab. */
TEST(sums_of_squares)
{
    static const int with[] = {0, 4, 5};
    for (int w = 0; w < 3; w++) {
        const scene s = sized(with[w]);
        float *a = fill(&s, s.a, s.of_a, 'm', 'k', 1), *b = fill(&s, s.b, s.of_b, 'k', 'n', 2);
        const int64_t n = s.size['l'] * s.size['m'];
        float *sum[2] = {calloc((size_t)n, sizeof(float)), calloc((size_t)n, sizeof(float))};
        IS_TRUE(sum[0] && sum[1]);
        for (int i = 0; i < 2; i++) (void)run(&s, a, b, true, 0, i == 0, sum[i]);
        IS_TRUE(memcmp(sum[0], sum[1], (size_t)n * sizeof(float)) != 0);
        t_random r = t_random_make(78);
        for (int i = 0; i < 20; i++) {
            int64_t index[128] = {['l'] = t_random_i64(&r, 0, s.size['l'] - 1),
                                  ['m'] = t_random_i64(&r, 0, s.size['m'] - 1)};
            double want = 0, size;
            for (index['n'] = 0; index['n'] < s.size['n']; index['n']++)
                want += pow(exact(&s, a, b, index, &size), 2.0);
            NEAR(sum[0][at(&s, "l m", index)], want, 2e-6 * want);
        }
        free(a), free(b), free(sum[0]), free(sum[1]);
    }
}

/* Budgets that hold all of it, and pieces alone. */
TEST(same_bits_within_every_budget)
{
    if (t_slowed()) SKIP("axes of emulated products are never cut; test_products cuts them");
    for (int i = 0; i < SCENES; i++) {
        const scene s = sized(i);
        float *a = fill(&s, s.a, s.of_a, 'm', 'k', 1), *b = fill(&s, s.b, s.of_b, 'k', 'n', 2);
        const size_t bytes = (size_t)count(&s, s.out) * sizeof(float);
        float *whole = calloc(1, bytes), *cut = calloc(1, bytes);
        IS_TRUE(whole && cut);
        const int64_t chunks = run(&s, a, b, false, (uint64_t)4 << 30, true, whole);
        const int64_t pieces = run(&s, a, b, false, (uint64_t)80 << 20, true, cut);
        printf("%-24s %lld chunks, %lld\n", s.what, (long long)chunks, (long long)pieces);
        SAME_BYTES(whole, cut, bytes);
        free(a), free(b), free(whole), free(cut);
    }
}

TEST_MAIN()
