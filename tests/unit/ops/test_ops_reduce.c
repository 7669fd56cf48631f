/* test_ops_reduce.c - sum, prod, min, max, any, all, logsumexp, variance, mean, count.
 *
 * seconds: 6 labels: gpu
 */
#include "graph/graph.h"
#include "graph/grid.h"
#include "ops/ops.h"
#include "testing/engine/op_harness.h"
#include "testing/full.h"

#include <math.h>

static const double epsilon[FTH_DTYPE_COUNT] = {
    [FTH_F16] = 0x1p-11, [FTH_BF16] = 0x1p-8, [FTH_F32] = 0x1p-24,
    [FTH_F64] = 0x1p-48, [FTH_C64] = 0x1p-24, [FTH_C128] = 0x1p-48};

static bool defined(fth_red red, fth_dtype t)
{
    const bool real = fth_dtype_is_real(t), whole = fth_dtype_is_int(t);
    if (red == FTH_RED_SUM || red == FTH_RED_PROD) return true;
    if (red == FTH_RED_MIN || red == FTH_RED_MAX) return real || whole;
    if (red == FTH_RED_LOGSUMEXP) return real;
    return t == FTH_BOOL;
}

/* A plain long double loop over axis `dim` of [a b c]. */
static void expected(fth_red red, fth_dtype t, const void *x, const int64_t *n, int dim, double *re,
                     double *im)
{
    const int64_t stride[3] = {n[1] * n[2], n[2], 1};
    int64_t k = 0;
    for (int64_t i = 0; i < n[0] * n[1] * n[2]; i++) {
        if (i / stride[dim] % n[dim] != 0) continue;
        long double r = red == FTH_RED_PROD || red == FTH_RED_ALL, c = 0,
                    m = -(long double)HUGE_VAL;
        if (red == FTH_RED_MIN) r = (long double)HUGE_VAL;
        if (red == FTH_RED_MAX) r = -(long double)HUGE_VAL;
        for (int64_t a = 0; a < n[dim]; a++)
            m = fmaxl(m, (long double)t_get(t, x, i + a * stride[dim]));
        for (int64_t a = 0; a < n[dim]; a++) {
            const long double v = (long double)t_get(t, x, i + a * stride[dim]);
            const long double w = (long double)t_get_im(t, x, i + a * stride[dim]), old = r;
            switch (red) {
            case FTH_RED_SUM: r += v, c += w; break;
            case FTH_RED_PROD: r = old * v - c * w, c = old * w + c * v; break;
            case FTH_RED_MIN: r = fminl(r, v); break;
            case FTH_RED_MAX: r = fmaxl(r, v); break;
            case FTH_RED_ANY: r = r != 0 || v != 0; break;
            case FTH_RED_ALL: r = r != 0 && v != 0; break;
            case FTH_RED_LOGSUMEXP: r += expl(v - m); break;
            case FTH_RED_COUNT_: break;
            }
        }
        if (red == FTH_RED_LOGSUMEXP) r = n[dim] ? m + logl(r) : -(long double)HUGE_VAL;
        re[k] = (double)r;
        im[k++] = (double)c;
    }
}

static void try_one(fth_red red, fth_dtype t, const int64_t *n, int dim, uint64_t seed)
{
    static const char *const name[3] = {"a", "b", "c"};
    char axes[64];
    snprintf(axes, sizeof axes, "a=%lld b=%lld c=%lld", (long long)n[0], (long long)n[1],
             (long long)n[2]);
    fth_graph *g = t_graph(axes);
    t_random r = t_random_make(seed);
    const fth_val x = t_noise(g, "x", t, "a b c", &r);
    const fth_val v = fth_reduce_(FTH_HERE, red, x, name[dim]);
    const int64_t count = t_count(v);
    void *out = malloc((size_t)count * 16 + 1);
    double *re = malloc((size_t)count * 8 + 1), *im = malloc((size_t)count * 8 + 1);
    t_eval(v, out);
    expected(red, t, t_data(x), n, dim, re, im);
    double size = 1; /* rounding is relative to the largest term, not to a sum that cancels */
    for (int64_t i = 0; i < t_count(x); i++) size = fmax(size, fabs(t_get(t, t_data(x), i)));
    const double tol = epsilon[t];
    for (int64_t i = 0; i < count; i++) {
        const fth_dtype o = fth_val_dtype(v);
        NEAR(t_get(o, out, i), re[i], tol * fmax(fabs(re[i]), size));
        NEAR(t_get_im(o, out, i), im[i], tol * fmax(fabs(im[i]), size) * 4);
    }
    free(out);
    free(re);
    free(im);
    t_graph_free(g);
}

TEST(every_reduction_dtype_and_axis_agrees_with_a_long_double_loop)
{
    t_cuts(4);
    for (int red = 0; red < FTH_RED_COUNT_; red++)
        for (int t = 0; t < FTH_DTYPE_COUNT; t++)
            for (int dim = 0; dim < 3; dim++) {
                int64_t n[3] = {3, 2, 5};
                if (!defined((fth_red)red, (fth_dtype)t)) continue;
                try_one((fth_red)red, (fth_dtype)t, n, dim, 1);
                n[dim] = 150; /* several blocks of 4 */
                if (red == FTH_RED_PROD && t != FTH_F32 && t != FTH_F64 && t != FTH_BOOL)
                    n[dim] = 17;
                try_one((fth_red)red, (fth_dtype)t, n, dim, 2);
            }
    t_cuts(8);
}

/* More than 64 blocks: superblocks appear. */
TEST(long_axes_use_superblocks)
{
    NEEDS_LONG_DOUBLE();
    t_cuts(3);
    for (int dim = 0; dim < 3; dim++) {
        int64_t n[3] = {1, 1, 1};
        n[dim] = 150001;
        try_one(FTH_RED_SUM, FTH_F32, n, dim, 3);
        try_one(FTH_RED_SUM, FTH_F64, n, dim, 4);
        try_one(FTH_RED_SUM, FTH_C64, n, dim, 5);
        try_one(FTH_RED_LOGSUMEXP, FTH_F32, n, dim, 6);
    }
    int64_t n[3] = {2, 140000, 3};
    try_one(FTH_RED_SUM, FTH_F32, n, 1, 7);
    t_cuts(8);
}

/* The sum is defined bit by bit: blocks in order inside superblocks, superblocks in order. */
TEST(sums_follow_their_definition)
{
    enum { N = 150001 };
    fth_graph *g = t_graph("n=150001");
    t_random r = t_random_make(8);
    const fth_val v = t_noise(g, "x", FTH_F64, "n", &r);
    const double *x = t_data(v);
    const int64_t block = fth__grid_reduce(N), super = fth__grid_superblock(N, block);
    EQ_I64(block, 1024);
    EQ_I64(super, 3072);
    double total = 0, got[1];
    for (int64_t s = 0; s < N; s += super) {
        double of_super = 0;
        for (int64_t b = s; b < s + super && b < N; b += block) {
            double of_block = 0;
            for (int64_t i = b; i < b + block && i < N; i++) of_block += x[i];
            of_super += of_block;
        }
        total += of_super;
    }
    t_cuts(3);
    t_eval(fth_sum(v, "n"), got);
    t_cuts(8);
    SAME_BYTES(got, &total, sizeof total);
    t_graph_free(g);
}

TEST(empty_axes)
{
    static const double want[FTH_RED_COUNT_] = {
        [FTH_RED_PROD] = 1, [FTH_RED_ALL] = 1, [FTH_RED_LOGSUMEXP] = -HUGE_VAL};
    for (int red = 0; red < FTH_RED_COUNT_; red++) {
        if (red == FTH_RED_MIN || red == FTH_RED_MAX) continue;
        fth_graph *g = t_graph("row=4 col=0");
        const fth_dtype t = red == FTH_RED_ANY || red == FTH_RED_ALL ? FTH_BOOL : FTH_F32;
        double out[4] = {9, 9, 9, 9};
        char none[1];
        const fth_val x = t_input(g, "x", t, "row col", none);
        t_eval_f64(fth_reduce_(FTH_HERE, (fth_red)red, x, "col"), out);
        for (int i = 0; i < 4; i++) EQ_F64(out[i], want[red]);
        t_eval(fth_reduce_(FTH_HERE, (fth_red)red, x, "row"), none);
        t_graph_free(g);
    }
}

TEST(smallest_and_largest_of_nothing_are_refused)
{
    fth_graph *g = t_graph("row=4 col=0");
    IS_TRUE(!fth_val_ok(fth_rmax(t_input(g, "x", FTH_F32, "row col", NULL), "col")));
    REFUSED(g, FTH_E_AXIS_SIZE, "empty axis has no max");
    t_graph_free(g);
}

/* Counting trues in bool was once float bits read as int: 1 became 1065353216. */
TEST(bool_sums_to_i64)
{
    fth_graph *g = t_graph("row=2 col=3");
    const uint8_t x[6] = {1, 0, 1, 0, 0, 0};
    int64_t out[2];
    const fth_val v = fth_sum(t_input(g, "x", FTH_BOOL, "row col", x), "col");
    SHAPE(v, "i64 [row=2]");
    t_eval(v, out);
    EQ_I64(out[0], 2);
    EQ_I64(out[1], 0);
    t_graph_free(g);
}

TEST(integer_sums_wrap)
{
    fth_graph *g = t_graph("n=3");
    const int64_t x[3] = {INT64_MAX, 1, 0};
    int64_t out[1];
    t_eval(fth_sum(t_input(g, "x", FTH_I64, "n", x), "n"), out);
    EQ_I64(out[0], INT64_MIN);
    t_graph_free(g);
}

TEST(nan_wins)
{
    const double x[2][3] = {{1, (double)NAN, -5}, {3, 2, 7}};
    fth_graph *g = t_graph("row=2 col=3");
    const fth_val v = t_input(g, "x", FTH_F64, "row col", x);
    double out[3];
    t_eval(fth_rmax(v, "col"), out);
    IS_TRUE(isnan(out[0]));
    EQ_F64(out[1], 7);
    t_eval(fth_rmin(v, "row"), out);
    EQ_F64(out[0], 1);
    IS_TRUE(isnan(out[1]));
    EQ_F64(out[2], -5);
    t_eval(fth_logsumexp(v, "col"), out);
    IS_TRUE(isnan(out[0]));
    t_graph_free(g);
}

TEST(logsumexp_of_huge_and_infinite_numbers)
{
    const double inf = HUGE_VAL, x[4][2] = {{1e300, 1e300}, {-inf, -inf}, {inf, 0}, {-1000, -inf}};
    fth_graph *g = t_graph("row=4 col=2");
    double out[4];
    t_eval(fth_logsumexp(t_input(g, "x", FTH_F64, "row col", x), "col"), out);
    EQ_F64(out[0], 1e300);
    EQ_F64(out[1], -inf);
    EQ_F64(out[2], inf);
    EQ_F64(out[3], -1000);
    t_graph_free(g);
}

/* A device has the very bits: exp, log and the order of the sums are written once. */
TEST(logsumexp_of_long_and_short_blocks_everywhere)
{
    static const int64_t shape[5][3] = {
        {1, 5000, 1}, {3, 4100, 5}, {2, 70001, 1}, {40, 30, 1}, {4, 2000, 9}};
    t_exact(true);
    t_cuts(t_few() ? 1 : 3);
    for (int k = 0; k < 10; k++) {
        const int64_t *s = shape[k / 2];
        char axes[64];
        snprintf(axes, sizeof axes, "a=%lld n=%lld c=%lld", (long long)s[0], (long long)s[1],
                 (long long)s[2]);
        fth_graph *g = t_graph(axes);
        t_random r = t_random_make(13);
        double got[40];
        const fth_val x = t_noise(g, "x", k % 2 ? FTH_F64 : FTH_F32, "a n c", &r);
        t_eval_f64(fth_logsumexp(x, "n"), got);
        t_graph_free(g);
    }
    t_cuts(8);
    t_exact(false);
}

TEST(several_axes_are_reduced_innermost_first)
{
    fth_graph *g = t_graph("a=3 b=4 c=5");
    t_random r = t_random_make(8);
    const fth_val x = t_noise(g, "x", FTH_F32, "a b c", &r);
    const fth_val v = fth_sum(x, "a c");
    SHAPE(v, "f32 [b=4]");
    const fth_node *node = fth__val_node(v);
    EQ_I64(((const fth__reduce_attr *)node->attr)->axis, fth_axis_find(g, "a"));
    float one[4], two[4];
    t_eval(v, one);
    t_eval(fth_sum(fth_sum(x, "c"), "a"), two);
    SAME_BYTES(one, two, sizeof one);
    IS_TRUE(fth_sum(x, "").id == x.id);
    t_graph_free(g);
}

TEST(refusals)
{
    fth_graph *g = t_graph("a=3 b=4 colour=2");
    const fth_val x = t_input(g, "x", FTH_F32, "a b", NULL);
    IS_TRUE(!fth_val_ok(fth_sum(x, "colour")));
    REFUSED(g, FTH_E_AXIS_MISSING, "x f32 [a=3 b=4]");
    t_graph_free(g);
    g = t_graph("a=3");
    IS_TRUE(!fth_val_ok(fth_any(t_input(g, "x", FTH_F32, "a", NULL), "a")));
    REFUSED(g, FTH_E_DTYPE_OP, "any takes bool");
    t_graph_free(g);
    g = t_graph("a=3");
    IS_TRUE(!fth_val_ok(fth_rmax(t_input(g, "z", FTH_C64, "a", NULL), "a")));
    REFUSED(g, FTH_E_DTYPE_OP, "z c64 [a=3]");
    t_graph_free(g);
    g = t_graph("a=3");
    IS_TRUE(!fth_val_ok(fth_mean(t_input(g, "x", FTH_I32, "a", NULL), "a")));
    REFUSED(g, FTH_E_DTYPE_OP, "mean");
    t_graph_free(g);
}

/* f32 terms are added in f64: ten million tenths keep their digits. */
TEST(f32_accumulates_in_f64)
{
    enum { N = 1 << 20 };
    fth_graph *g = t_graph("n=1048576");
    float *x = malloc(N * sizeof *x), out[1];
    for (int i = 0; i < N; i++) x[i] = 0.1f;
    t_cuts(2);
    t_eval(fth_sum(t_input(g, "x", FTH_F32, "n", x), "n"), out);
    t_cuts(8);
    NEAR(out[0], (double)0.1f * N, 0.01);
    free(x);
    t_graph_free(g);
}

TEST(a_small_axis_needs_no_state)
{
    fth_graph *g = t_graph("cell=100000 dim=3");
    const fth_node *node =
        fth__val_node(fth_sum(t_input(g, "x", FTH_F32, "cell dim", NULL), "dim"));
    EQ_U64(node->op->state(node, 0), 0);
    node = fth__val_node(fth_sum(t_input(g, "y", FTH_F64, "cell dim", NULL), "cell"));
    EQ_U64(node->op->state(node, 0), 8);
    t_graph_free(g);
}

TEST(sum_drops_the_mark)
{
    fth_graph *g = t_graph("row=3 col=3 k=2");
    const fth_val v =
        fth_mark(t_input(g, "L", FTH_F64, "row k col", NULL), FTH_LOWER, "row", "col");
    const fth_desc *d = fth__val_desc(fth_sum(v, "k"));
    EQ_I64(d->triangle, FTH_LOWER);
    EQ_I64(d->col, 1);
    EQ_I64(fth__val_desc(fth_sum(v, "col"))->triangle, FTH_FULL);
    t_graph_free(g);
}

TEST(mean_and_variance_over_one_and_several_axes)
{
    static const fth_dtype dtypes[] = {FTH_F16, FTH_BF16, FTH_F32, FTH_F64};
    for (int k = 0; k < 4; k++) {
        fth_graph *g = t_graph("a=7 b=30 c=5");
        t_random r = t_random_make(9);
        const fth_val x = t_noise(g, "x", dtypes[k], "a b c", &r);
        const double tol = 8 * epsilon[dtypes[k]];
        double sum = 0, sum2 = 0, got[7];
        for (int i = 0; i < 7 * 30 * 5; i++) sum += t_get(dtypes[k], t_data(x), i);
        const double mean = sum / 1050;
        for (int i = 0; i < 1050; i++) sum2 += pow(t_get(dtypes[k], t_data(x), i) - mean, 2);
        t_eval_f64(fth_mean(x, "a b c"), got);
        NEAR(got[0], mean, tol);
        t_eval_f64(fth_variance(x, "c a b"), got);
        NEAR(got[0], sum2 / 1050, tol);
        t_eval_f64(fth_variance(fth_layout(x, "b a c"), "b c"), got);
        for (int a = 0; a < 7; a++) {
            double s = 0, s2 = 0;
            for (int i = 0; i < 150; i++) s += t_get(dtypes[k], t_data(x), a * 150 + i);
            for (int i = 0; i < 150; i++)
                s2 += pow(t_get(dtypes[k], t_data(x), a * 150 + i) - s / 150, 2);
            NEAR(got[a], s2 / 150, tol * 2);
        }
        t_graph_free(g);
    }
}

TEST(variance_of_long_lines_and_of_many)
{
    static const int64_t shape[4][3] = {{1, 150001, 1}, {2, 3001, 3}, {5000, 40, 1}, {1, 70, 9000}};
    t_cuts(t_few() ? 1 : 3);
    for (int k = 0; k < 4; k++) {
        const int64_t a = shape[k][0], n = shape[k][1], c = shape[k][2];
        char axes[64];
        snprintf(axes, sizeof axes, "a=%lld n=%lld c=%lld", (long long)a, (long long)n,
                 (long long)c);
        fth_graph *g = t_graph(axes);
        t_random r = t_random_make(11);
        const fth_val x = t_noise(g, "x", FTH_F64, "a n c", &r);
        const double *e = t_data(x);
        double *got = malloc((size_t)(a * c) * sizeof *got);
        t_eval(fth_variance(x, "n"), got);
        for (int64_t line = 0; line < a * c; line++) {
            double sum = 0, sum2 = 0;
            for (int64_t i = 0; i < n; i++) sum += e[(line / c * n + i) * c + line % c];
            for (int64_t i = 0; i < n; i++)
                sum2 += pow(e[(line / c * n + i) * c + line % c] - sum / (double)n, 2);
            NEAR(got[line], sum2 / (double)n, 1e-12);
        }
        free(got);
        t_graph_free(g);
    }
    t_cuts(8);
}

/* Subtracting the square of the mean would leave nothing of this variance. */
TEST(variance_survives_a_large_mean)
{
    fth_graph *g = t_graph("n=1000");
    double x[1000], got[1];
    for (int i = 0; i < 1000; i++) x[i] = 1e9 + (i % 2);
    t_eval(fth_variance(t_input(g, "x", FTH_F64, "n", x), "n"), got);
    NEAR(got[0], 0.25, 1e-12);
    t_graph_free(g);
}

TEST(count_of_every_dtype)
{
    for (int t = 0; t < FTH_DTYPE_COUNT; t++) {
        fth_graph *g = t_graph("a=4 b=20");
        t_random r = t_random_make(10);
        const fth_val x = t_noise(g, "x", (fth_dtype)t, "a b", &r);
        int64_t got[1], want = 0;
        for (int i = 0; i < 40; i++) t_put((fth_dtype)t, t_data(x), i * 2, 0, 0);
        for (int i = 0; i < 80; i++)
            want +=
                t_get((fth_dtype)t, t_data(x), i) != 0 || t_get_im((fth_dtype)t, t_data(x), i) != 0;
        const fth_val v = fth_count(x, "a b");
        SHAPE(v, "i64 []");
        t_eval(v, got);
        EQ_I64(got[0], want);
        t_graph_free(g);
    }
}

TEST_MAIN()
