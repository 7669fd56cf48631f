/* test_ops_order.c - sort, topk, argmin and argmax, histogram, scan.
 *
 * seconds: 6 labels: gpu
 */
#include "graph/graph.h"
#include "graph/grid.h"
#include "testing/engine/op_harness.h"
#include "testing/full.h"

#include <math.h>

static bool ordered(fth_dtype t)
{
    return !fth_dtype_is_complex(t);
}

/* Sorted along y of [a=3 y=n c=2]: values come in order, the order is a permutation, ties stay. */
static void check_sorted(fth_dtype t, const void *x, const double *got, const double *order,
                         int64_t n, int64_t k, bool descending)
{
    for (int64_t a = 0; a < 3; a++)
        for (int64_t c = 0; c < 2; c++)
            for (int64_t i = 0; i < k; i++) {
                const int64_t at = (a * k + i) * 2 + c, from = (int64_t)order[at];
                IS_TRUE(from >= 0 && from < n);
                EQ_F64(got[at], t_get(t, x, (a * n + from) * 2 + c));
                /* as many before it in the input's order as places before it in the result */
                int64_t rank = 0;
                for (int64_t j = 0; j < n; j++) {
                    const double e = t_get(t, x, (a * n + j) * 2 + c);
                    const bool nan = isnan(e), mine = isnan(got[at]);
                    const bool before = mine ? !nan : descending ? e > got[at] : e < got[at];
                    const bool tie = (nan && mine) || e == got[at];
                    rank += before || (tie && j < from);
                }
                EQ_I64(rank, i);
            }
}

/* Ties everywhere; NaN, infinities and both zeros in reals. */
static void fill_hard(fth_dtype t, void *x, int64_t count, t_random *r)
{
    for (int64_t i = 0; i < count / 4; i++)
        t_put(t, x, t_random_i64(r, 0, count - 1), (double)t_random_i64(r, 0, 1), 0);
    for (int64_t i = 0; fth_dtype_is_int(t) && i < count / 8; i++)
        t_put(t, x, t_random_i64(r, 0, count - 1), i % 2 ? t_lowest(t) : t_highest(t), 0);
    for (int64_t i = 0; fth_dtype_is_real(t) && i < count / 20; i++) {
        t_put(t, x, t_random_i64(r, 0, count - 1), (double)NAN, 0);
        t_put(t, x, t_random_i64(r, 0, count - 1), i % 2 ? HUGE_VAL : -HUGE_VAL, 0);
        t_put(t, x, t_random_i64(r, 0, count - 1), -0.0, 0);
    }
}

static void try_sort(fth_dtype t, bool down, int64_t n)
{
    char axes[64];
    snprintf(axes, sizeof axes, "a=3 y=%lld c=2 top=6", (long long)n);
    fth_graph *g = t_graph(axes);
    t_random r = t_random_make(1);
    const fth_val v = t_noise(g, "x", t, "a y c", &r);
    fill_hard(t, t_data(v), n * 6, &r);
    double *got = malloc((size_t)n * 6 * sizeof *got),
           *order = malloc((size_t)n * 6 * sizeof *order);
    const fth_val s = fth_sort(v, "y", down), top = fth_topk(v, "y", "top", down);
    t_eval_f64(s, got);
    t_eval_f64(fth_out(s, 1), order);
    check_sorted(t, t_data(v), got, order, n, n, down);
    t_eval_f64(top, got);
    t_eval_f64(fth_out(top, 1), order);
    check_sorted(t, t_data(v), got, order, n, 6, down);
    free(got);
    free(order);
    t_graph_free(g);
}

TEST(sort_and_topk_of_every_dtype)
{
    for (int k = 0; k < FTH_DTYPE_COUNT; k++)
        for (int down = 0; down < 2; down++) {
            if (!ordered((fth_dtype)k)) continue;
            try_sort((fth_dtype)k, down, 37);
            try_sort((fth_dtype)k, down, 300); /* long enough for the radix sort */
        }
}

/* Lines side by side in vectors: every length of a network, more lines than a group has. */
TEST(sort_of_many_short_lines)
{
    static const int64_t lengths[] = {1, 2, 3, 5, 8, 13, 31, 32, 33, 64, 100, 255, 257, 2048, 2049};
    t_cuts(2);
    for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++)
        for (int d = 0; d < FTH_DTYPE_COUNT; d++) {
            const fth_dtype t = (fth_dtype)d;
            if (!ordered(t) || (k > 12 && t != FTH_F32)) continue;
            const int64_t n = lengths[k],
                          lines = n < 40    ? 150
                                  : n < 999 ? 70
                                            : 9,
                          size = fth_dtype_size(t);
            char axes[64];
            snprintf(axes, sizeof axes, "a=%lld y=%lld", (long long)lines, (long long)n);
            fth_graph *g = t_graph(axes);
            t_random r = t_random_make(3 + (uint64_t)n);
            const fth_val v = t_noise(g, "x", t, "a y", &r), s = fth_sort(v, "y", d % 2);
            if (k % 2) fill_hard(t, t_data(v), lines * n, &r);
            char *got = malloc((size_t)(lines * n * size));
            int64_t *order = malloc((size_t)(lines * n) * sizeof *order);
            t_eval(s, got);
            t_eval(fth_out(s, 1), order);
            for (int64_t i = 0; i < lines * n; i++) {
                const int64_t from = i / n * n + order[i];
                IS_TRUE(order[i] >= 0 && order[i] < n);
                SAME_BYTES(got + i * size, (char *)t_data(v) + from * size, size);
                if (i % n == 0) continue;
                const double b = t_get(t, got, i - 1), e = t_get(t, got, i);
                const bool tie = b == e || (isnan(b) && isnan(e));
                IS_TRUE(tie ? order[i - 1] < order[i] : isnan(e) || (d % 2 ? b > e : b < e));
            }
            free(got);
            free(order);
            t_graph_free(g);
        }
    t_cuts(8);
}

TEST(sort_of_the_extreme_integers)
{
    fth_graph *g = t_graph("n=5");
    const int64_t x[5] = {0, INT64_MIN, INT64_MAX, -1, 1},
                  want[5] = {INT64_MIN, -1, 0, 1, INT64_MAX};
    int64_t got[5];
    const fth_val v = t_input(g, "x", FTH_I64, "n", x);
    t_eval(fth_sort(v, "n", false), got);
    SAME_BYTES(got, want, sizeof got);
    t_eval(fth_sort(v, "n", true), got);
    for (int i = 0; i < 5; i++) EQ_I64(got[i], want[4 - i]);
    t_graph_free(g);
}

/* A digit in which all but one agree is still a digit. */
TEST(sort_of_one_that_differs)
{
    enum { N = 400 };
    fth_graph *g = t_graph("n=400");
    int32_t x[N], got[N];
    for (int i = 0; i < N; i++) x[i] = 5;
    x[3] = 5 + (1 << 16);
    x[N - 2] = -7;
    t_eval(fth_sort(t_input(g, "x", FTH_I32, "n", x), "n", false), got);
    EQ_I64(got[0], -7);
    EQ_I64(got[1], 5);
    EQ_I64(got[N - 2], 5);
    EQ_I64(got[N - 1], 5 + (1 << 16));
    t_graph_free(g);
}

TEST(sort_of_long_lines)
{
    enum { N = 5000 };
    fth_graph *g = t_graph("n=5000");
    t_random r = t_random_make(2);
    const fth_val v = t_noise(g, "x", FTH_F32, "n", &r), s = fth_sort(v, "n", false);
    float *got = malloc(N * sizeof *got);
    int64_t *order = malloc(N * sizeof *order);
    t_cuts(2);
    t_eval(s, got);
    t_eval(fth_out(s, 1), order);
    t_cuts(8);
    const float *x = t_data(v);
    for (int i = 0; i < N; i++) {
        IS_TRUE(i == 0 || got[i - 1] <= got[i]);
        EQ_F64(got[i], x[order[i]]);
    }
    free(got);
    free(order);
    t_graph_free(g);
}

/* The first k of two lines along y of [y=n c=2] in order: nothing taken twice, ties as they stood.
 * How many come before each is not counted here: the lines are long. */
static void check_long(fth_dtype t, const void *x, const char *got, const int64_t *order, int64_t n,
                       int64_t k, bool down)
{
    char *seen = calloc((size_t)n, 1);
    for (int64_t c = 0; c < 2; c++) {
        memset(seen, 0, (size_t)n);
        for (int64_t i = 0; i < k; i++) {
            const int64_t from = order[i * 2 + c];
            IS_TRUE(from >= 0 && from < n && !seen[from]);
            seen[from] = 1;
            const double e = t_get(t, got, i * 2 + c);
            SAME_BYTES(got + (i * 2 + c) * fth_dtype_size(t),
                       (const char *)x + (from * 2 + c) * fth_dtype_size(t), fth_dtype_size(t));
            if (i == 0) continue;
            const double b = t_get(t, got, i * 2 - 2 + c);
            const bool tie = b == e || (isnan(b) && isnan(e));
            IS_TRUE(tie ? order[i * 2 - 2 + c] < from : isnan(e) || (down ? b > e : b < e));
        }
        const double last = t_get(t, got, k * 2 - 2 + c);
        for (int64_t i = 0; i < n; i++) { /* nothing better was left out */
            const double e = t_get(t, x, i * 2 + c);
            IS_TRUE(seen[i] || isnan(e) || (!isnan(last) && !(down ? e > last : e < last)));
        }
    }
    free(seen);
}

/* Lines across memory, some at once and some left over: beside the same lines along memory. */
static void sort_across(fth_dtype t, int64_t n, int64_t lines, bool down)
{
    char axes[64];
    snprintf(axes, sizeof axes, "y=%lld c=%lld", (long long)n, (long long)lines);
    fth_graph *g = t_graph(axes);
    t_random r = t_random_make(21 + (uint64_t)n);
    const fth_val v = t_noise(g, "x", t, "y c", &r);
    fill_hard(t, t_data(v), n * lines, &r);
    const int64_t bytes = n * lines * fth_dtype_size(t);
    char *across = malloc((size_t)bytes), *along = malloc((size_t)bytes);
    int64_t *order = malloc((size_t)(2 * n * lines) * sizeof *order), *other = order + n * lines;
    const fth_val s = fth_sort(v, "y", down), turned = fth_sort(fth_layout(v, "c y"), "y", down);
    t_eval(s, across);
    t_eval(fth_layout(turned, "y c"), along);
    SAME_BYTES(across, along, bytes);
    t_eval(fth_out(s, 1), order);
    t_eval(fth_layout(fth_out(turned, 1), "y c"), other);
    SAME_BYTES(order, other, n * lines * (int64_t)sizeof *order);
    free(across);
    free(along);
    free(order);
    t_graph_free(g);
}

TEST(sort_of_lines_across_memory)
{
    t_cuts(2);
    for (int k = 0; k < FTH_DTYPE_COUNT; k++) {
        if (!ordered((fth_dtype)k)) continue;
        sort_across((fth_dtype)k, 301, 21, k % 2);
        sort_across((fth_dtype)k, 40, 37, !(k % 2));
        sort_across((fth_dtype)k, 9001, 3, k % 2);
        sort_across((fth_dtype)k, 90, 1, k % 2); /* few lines */
        sort_across((fth_dtype)k, 5, 3, !(k % 2));
    }
    t_cuts(8);
}

static void try_long(fth_dtype t, bool down, int64_t n, int64_t k)
{
    char axes[64];
    snprintf(axes, sizeof axes, "y=%lld c=2 top=%lld", (long long)n, (long long)k);
    fth_graph *g = t_graph(axes);
    t_random r = t_random_make(12);
    const fth_val v = t_noise(g, "x", t, "y c", &r);
    fill_hard(t, t_data(v), n * 2, &r);
    const fth_val s = k == n ? fth_sort(v, "y", down) : fth_topk(v, "y", "top", down);
    char *got = malloc((size_t)(k * 2 * fth_dtype_size(t)));
    int64_t *order = malloc((size_t)k * 2 * sizeof *order);
    t_eval(s, got);
    t_eval(fth_out(s, 1), order);
    check_long(t, t_data(v), got, order, n, k, down);
    free(got);
    free(order);
    t_graph_free(g);
}

TEST(long_sort_and_topk_of_every_dtype)
{
    t_cuts(2);
    for (int k = 0; k < FTH_DTYPE_COUNT; k++) {
        if (!ordered((fth_dtype)k)) continue;
        if (!t_few() || k % 2) try_long((fth_dtype)k, k % 2, 2500, 2500);
        if (!t_few() || k % 2 == 0) try_long((fth_dtype)k, !(k % 2), 9000, 20);
    }
    try_long(FTH_F32, false, 60001, 60001);
    try_long(FTH_F64, true, 20001, 700); /* more than are chosen in rounds */
    try_long(FTH_F32, true, 150001, 500);
    try_long(FTH_F64, false, 20001, 129); /* candidates are sorted out as soon as twice as many */
    try_long(FTH_I32, true, 20001, 128);
    try_long(FTH_F32, true, 40001, 20000);
    try_long(FTH_U16, false, 1500, 1000);
    try_long(FTH_U16, true, 3000, 3000);
    try_long(FTH_I16, false, 3000, 3000);
    t_cuts(8);
}

/* The last elements of a long line are the largest: no tile of it may be left out. */
TEST(topk_that_lies_at_the_end)
{
    enum { N = 5000 };
    fth_graph *g = t_graph("n=5000 top=3");
    float x[N], got[3];
    for (int i = 0; i < N; i++) x[i] = (float)i;
    t_eval(fth_topk(t_input(g, "x", FTH_F32, "n", x), "n", "top", true), got);
    for (int i = 0; i < 3; i++) EQ_F64(got[i], N - 1 - i);
    t_graph_free(g);
}

/* One element, far behind, goes before the others, by as little as can be. */
TEST(topk_finds_the_one_that_differs)
{
    enum { N = 1500, AT = 1400 };
    static const fth_dtype of[] = {FTH_I32, FTH_U8, FTH_F64};
    for (int k = 0; k < 6; k++) {
        const bool largest = k % 2;
        const fth_dtype t = of[k / 2];
        double x[N];
        for (int i = 0; i < N; i++) t_put(t, x, i, i != AT ? 5 : largest ? 6 : 4, 0);
        fth_graph *g = t_graph("n=1500 top=3");
        const fth_val v = t_input(g, "x", t, "n", x);
        int64_t got[3];
        t_eval(fth_out(fth_topk(v, "n", "top", largest), 1), got);
        EQ_I64(got[0], AT);
        EQ_I64(got[1], 0);
        EQ_I64(got[2], 1);
        t_graph_free(g);
    }
}

TEST(sort_and_topk_of_empty_and_single)
{
    fth_graph *g = t_graph("none=0 one=1 c=3");
    t_random r = t_random_make(3);
    char nothing[1];
    float got[3];
    t_eval(fth_sort(t_input(g, "x", FTH_F32, "none c", nothing), "none", false), nothing);
    const fth_val v = t_noise(g, "y", FTH_F32, "one c", &r);
    t_eval(fth_sort(v, "one", true), got);
    SAME_BYTES(got, t_data(v), sizeof got);
    t_eval(fth_topk(v, "c", "none", true), nothing);
    IS_TRUE(!fth_val_ok(fth_topk(v, "c", "one", true)));
    REFUSED(g, FTH_E_AXIS_MISMATCH, "already has axis 'one'");
    t_graph_free(g);
    g = t_graph("n=3 k=4");
    IS_TRUE(!fth_val_ok(fth_topk(t_input(g, "x", FTH_F32, "n", NULL), "n", "k", true)));
    REFUSED(g, FTH_E_AXIS_SIZE, "'k' has 4");
    t_graph_free(g);
    g = t_graph("n=3");
    IS_TRUE(!fth_val_ok(fth_sort(t_input(g, "x", FTH_C64, "n", NULL), "n", false)));
    REFUSED(g, FTH_E_DTYPE_OP, "x c64 [n=3]");
    t_graph_free(g);
}

TEST(argmin_and_argmax_of_every_dtype)
{
    for (int k = 0; k < FTH_DTYPE_COUNT; k++)
        for (int largest = 0; largest < 2; largest++) {
            const fth_dtype t = (fth_dtype)k;
            if (!ordered(t)) continue;
            fth_graph *g = t_graph("a=3 y=19 c=2");
            t_random r = t_random_make(4);
            const fth_val v = t_noise(g, "x", t, "a y c", &r),
                          m = fth_arg_(FTH_HERE, largest, v, "y");
            if (fth_dtype_is_int(t)) {
                t_put(t, t_data(v), 11 * 2, t_highest(t), 0);
                t_put(t, t_data(v), 12 * 2, t_lowest(t), 0);
            }
            if (fth_dtype_is_real(t)) {
                t_put(t, t_data(v), 7 * 2, (double)NAN, 0);
                t_put(t, t_data(v), 9 * 2, (double)NAN, 0);
            }
            SHAPE(m, "i64 [a=3 c=2]");
            int64_t got[6];
            t_eval(m, got);
            for (int64_t i = 0; i < 6; i++) {
                int64_t best = 0;
                for (int64_t y = 1; y < 19; y++) {
                    const double e = t_get(t, t_data(v), (i / 2 * 19 + y) * 2 + i % 2);
                    const double b = t_get(t, t_data(v), (i / 2 * 19 + best) * 2 + i % 2);
                    if (!isnan(b) && (isnan(e) || (largest ? e > b : e < b))) best = y;
                }
                EQ_I64(got[i], best);
            }
            t_graph_free(g);
        }
    fth_graph *g = t_graph("y=0");
    IS_TRUE(!fth_val_ok(fth_argmax(t_input(g, "x", FTH_F32, "y", NULL), "y")));
    REFUSED(g, FTH_E_AXIS_SIZE, "largest");
    t_graph_free(g);
}

/* [a n c] along n, long: the best comes twice, and of the two the first counts. */
static void arg_long(fth_dtype t, int64_t a, int64_t n, int64_t c)
{
    char axes[64];
    snprintf(axes, sizeof axes, "a=%lld n=%lld c=%lld", (long long)a, (long long)n, (long long)c);
    fth_graph *g = t_graph(axes);
    t_random r = t_random_make(13);
    const fth_val v = t_noise(g, "x", t, "a n c", &r);
    int64_t *at = malloc((size_t)(a * c) * sizeof *at),
            *got = malloc((size_t)(a * c) * sizeof *got);
    for (int64_t i = 0; i < a * c; i++) {
        at[i] = t_random_i64(&r, 0, n - 2);
        const int64_t again = t_random_i64(&r, at[i] + 1, n - 1), base = i / c * n;
        const double best = i % 3 == 2 && fth_dtype_is_real(t) ? (double)NAN : 100.0;
        t_put(t, t_data(v), (base + at[i]) * c + i % c, best, 0);
        t_put(t, t_data(v), (base + again) * c + i % c, best, 0);
    }
    t_eval(fth_argmax(v, "n"), got);
    SAME_BYTES(got, at, (size_t)(a * c) * sizeof *at);
    free(at);
    free(got);
    t_graph_free(g);
}

TEST(argmax_of_long_lines)
{
    t_cuts(3);
    arg_long(FTH_F32, 1, 150001, 1);
    arg_long(FTH_I32, 2, 30001, 3);
    arg_long(FTH_U32, 3, 20011, 1); /* longer than a copy with its sign turned */
    arg_long(FTH_I16, 3, 20011, 1);
    arg_long(FTH_I8, 3, 70001, 1);
    arg_long(FTH_F64, 700, 200, 1);
    arg_long(FTH_U8, 3, 50, 900);
    t_cuts(8);
}

TEST(histogram_counts_what_is_inside)
{
    fth_graph *g = t_graph("a=2 n=9 bin=4");
    const double x[2][9] = {{-1, -0.5, 0, 0.5, 0.999, 1, (double)NAN, 7, -1.0001},
                            {0, 0, 0, 0, 0, 0, 0, 0, 0}};
    const fth_val h = fth_histogram(t_input(g, "x", FTH_F64, "a n", x), "n", "bin", -1, 1);
    SHAPE(h, "i64 [a=2 bin=4]");
    int64_t got[8];
    t_eval(h, got);
    const int64_t want[8] = {1, 1, 1, 2, 0, 0, 9, 0};
    for (int i = 0; i < 8; i++) EQ_I64(got[i], want[i]);
    t_graph_free(g);
    for (int k = 0; k < FTH_DTYPE_COUNT; k++) {
        const fth_dtype t = (fth_dtype)k;
        if (t == FTH_BOOL || fth_dtype_is_complex(t)) continue;
        g = t_graph("n=200 c=3 bin=7");
        t_random r = t_random_make(5);
        const fth_val v = t_noise(g, "x", t, "n c", &r);
        int64_t counts[21], total = 0, inside = 0;
        t_eval(fth_histogram(v, "n", "bin", 0, 14), counts);
        for (int i = 0; i < 21; i++) total += counts[i];
        for (int i = 0; i < 600; i++)
            inside += t_get(t, t_data(v), i) >= 0 && t_get(t, t_data(v), i) < 14;
        EQ_I64(total, inside);
        t_graph_free(g);
    }
    g = t_graph("n=9 bin=4");
    IS_TRUE(!fth_val_ok(fth_histogram(t_input(g, "x", FTH_F64, "n", NULL), "n", "bin", 1, 1)));
    REFUSED(g, FTH_E_GRAPH_ATTR, "[1, 1)");
    t_graph_free(g);
}

static double running(fth_red red, double a, double x)
{
    return red == FTH_RED_SUM    ? a + x
           : red == FTH_RED_PROD ? a * x
           : red == FTH_RED_MIN  ? fmin(a, x)
                                 : fmax(a, x);
}

static void try_scan(fth_dtype t, fth_red red, bool exclusive, bool reverse)
{
    fth_graph *g = t_graph("a=3 y=15 c=2");
    t_random r = t_random_make(6);
    const fth_val v = t_noise(g, "x", t, "a y c", &r);
    if (red == FTH_RED_PROD)
        for (int i = 0; i < 90; i++) t_put(t, t_data(v), i, (double)(1 + i % 2), 0);
    double got[90];
    t_eval_f64(fth_scan(red, v, "y", exclusive, reverse), got);
    for (int64_t line = 0; line < 6; line++) {
        double a = red == FTH_RED_PROD;
        for (int64_t i = 0; i < 15; i++) {
            const int64_t y = reverse ? 14 - i : i, at = (line / 2 * 15 + y) * 2 + line % 2;
            const double x = t_get(t, t_data(v), at), before = a;
            a = i == 0 && red >= FTH_RED_MIN ? x : running(red, a, x);
            const double want = exclusive ? before : a;
            if (exclusive && red >= FTH_RED_MIN && i == 0) {
                if (fth_dtype_is_real(t))
                    EQ_F64(got[at], red == FTH_RED_MIN ? HUGE_VAL : -HUGE_VAL);
                continue;
            }
            NEAR(got[at], want,
                 fth_dtype_size(t) == 2 ? 0.05 * (1 + fabs(want)) : 1e-5 * (1 + fabs(want)));
        }
    }
    t_graph_free(g);
}

TEST(scan_of_every_dtype_both_ways)
{
    for (int k = 0; k < FTH_DTYPE_COUNT; k++)
        for (int red = FTH_RED_SUM; red <= FTH_RED_MAX; red++)
            for (int way = 0; way < 4; way++) {
                const fth_dtype t = (fth_dtype)k;
                if (red >= FTH_RED_MIN && (t == FTH_BOOL || fth_dtype_is_complex(t))) continue;
                if (red == FTH_RED_PROD && t == FTH_BOOL) continue;
                try_scan(t, (fth_red)red, way & 1, way & 2);
            }
}

/* Kernels work in runs of some hundred elements; nothing may be lost from one to the next. */
TEST(lines_longer_than_a_run)
{
    enum { N = 1000 };
    fth_graph *g = t_graph("n=1000 bin=5");
    t_random r = t_random_make(7);
    const fth_val v = t_noise(g, "x", FTH_I64, "n", &r);
    int64_t *x = t_data(v), got[N], sum = 0, bins[5] = {0};
    x[777] = 1000;
    t_eval(fth_argmax(v, "n"), got);
    EQ_I64(got[0], 777);
    t_eval(fth_cumsum(v, "n"), got);
    for (int i = 0; i < N; i++) EQ_I64(got[i], sum += x[i]);
    t_eval(fth_scan(FTH_RED_SUM, v, "n", true, true), got);
    for (int i = 0; i < N; i++) EQ_I64(got[i], sum -= x[i]);
    t_eval(fth_histogram(v, "n", "bin", -20, 20), got);
    for (int i = 0; i < N; i++)
        if (x[i] < 20) bins[(x[i] + 20) / 8]++;
    SAME_BYTES(got, bins, sizeof bins);
    t_graph_free(g);
}

/* Running sums are defined bit by bit: what came before the block, and what came before inside. */
static void scan_long(int64_t a, int64_t n, int64_t c, bool exclusive, bool reverse)
{
    char axes[64];
    snprintf(axes, sizeof axes, "a=%lld n=%lld c=%lld", (long long)a, (long long)n, (long long)c);
    fth_graph *g = t_graph(axes);
    t_random r = t_random_make(14);
    const fth_val v = t_noise(g, "x", FTH_F64, "a n c", &r);
    const double *x = t_data(v);
    double *got = malloc((size_t)(a * n * c) * sizeof *got);
    t_eval(fth_scan(FTH_RED_SUM, v, "n", exclusive, reverse), got);
    const int64_t block = fth__grid_reduce(n);
    for (int64_t line = 0; line < a * c; line++) {
        double before = 0, inside = 0;
        for (int64_t i = 0; i < n; i++) {
            const int64_t y = reverse ? n - 1 - i : i, at = (line / c * n + y) * c + line % c;
            if (i > 0 && (reverse ? y + 1 : y) % block == 0) {
                before += inside;
                inside = 0;
            }
            const double last = inside;
            inside += x[at];
            EQ_F64(got[at], before + (exclusive ? last : inside));
        }
    }
    free(got);
    t_graph_free(g);
}

TEST(long_running_sums_follow_their_definition)
{
    t_cuts(3);
    scan_long(1, 150001, 1, false, false);
    scan_long(2, 5001, 3, true, true);
    scan_long(2, 5001, 1, true, false);
    scan_long(2, 5001, 300, false, false);
    scan_long(1, 70000, 1, false, true);
    scan_long(17000, 9, 1, false, false); /* many lines of neighbours */
    scan_long(2, 70, 9000, false, true);  /* many side by side */
    t_cuts(8);
}

TEST(long_running_extremes_and_counts)
{
    enum { N = 120001 };
    t_cuts(3);
    fth_graph *g = t_graph("n=120001 bin=5000 few=7");
    t_random r = t_random_make(15);
    const fth_val v = t_noise(g, "x", FTH_F32, "n", &r), m = t_noise(g, "m", FTH_BOOL, "n", &r);
    float *x = t_data(v), *least = malloc(N * sizeof *least), low = HUGE_VALF;
    const uint8_t *mask = t_data(m);
    int64_t *trues = malloc(N * sizeof *trues), count = 0, bins[5000], some[7], want[7] = {0};
    x[N - 9] = NAN;
    t_eval(fth_scan(FTH_RED_MIN, v, "n", false, false), least);
    t_eval(fth_scan(FTH_RED_SUM, m, "n", true, false), trues);
    for (int i = 0; i < N; i++) {
        EQ_I64(trues[i], count);
        count += mask[i];
        low = isnan(low) || isnan(x[i]) ? NAN : fminf(low, x[i]);
        IS_TRUE(least[i] == low || (isnan(low) && isnan(least[i])));
    }
    t_eval(fth_histogram(v, "n", "bin", -8, 8), bins);
    t_eval(fth_histogram(v, "n", "few", -8, 8), some);
    count = 0;
    for (int i = 0; i < 5000; i++) count += bins[i];
    EQ_I64(count, N - 1);
    for (int i = 0; i < N; i++)
        if (!isnan(x[i])) want[(int)(((double)x[i] + 8) * (7.0 / 16))]++;
    SAME_BYTES(some, want, sizeof want);
    free(least);
    free(trues);
    t_graph_free(g);
    t_cuts(8);
}

TEST(scan_edges_and_refusals)
{
    fth_graph *g = t_graph("n=0 c=2");
    char none[1];
    t_eval(fth_cumsum(t_input(g, "x", FTH_F32, "n c", none), "n"), none);
    t_graph_free(g);
    g = t_graph("n=3");
    IS_TRUE(!fth_val_ok(
        fth_scan(FTH_RED_ANY, t_input(g, "x", FTH_BOOL, "n", NULL), "n", false, false)));
    REFUSED(g, FTH_E_GRAPH_ATTR, "sum, prod, min or max");
    t_graph_free(g);
    g = t_graph("n=3");
    IS_TRUE(
        !fth_val_ok(fth_scan(FTH_RED_MAX, t_input(g, "x", FTH_C64, "n", NULL), "n", false, false)));
    REFUSED(g, FTH_E_DTYPE_OP, "x c64 [n=3]");
    t_graph_free(g);
}

TEST_MAIN()
