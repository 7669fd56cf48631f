/* test_ops_segments.c - searchsorted, quantile, extremes of the entries of rows, scatter that sets
 * or keeps the smallest or largest: beside plain loops.
 *
 * seconds: 5 labels: gpu
 */
#include "graph/graph.h"
#include "testing/engine/op_harness.h"

#include <math.h>
#include <stdlib.h>

static bool ordered(fth_dtype t)
{
    return !fth_dtype_is_complex(t);
}

/* Ties, and in reals NaN, infinities and both zeros. */
static void fill_hard(fth_dtype t, void *x, int64_t n, t_random *r)
{
    for (int64_t i = 0; i < n; i += 3)
        t_put(t, x, t_random_i64(r, 0, n - 1), (double)t_random_i64(r, 0, 1), 0);
    for (int64_t i = 0; fth_dtype_is_int(t) && i < n; i += 5)
        t_put(t, x, t_random_i64(r, 0, n - 1), i % 2 ? t_lowest(t) : t_highest(t), 0);
    for (int64_t i = 0; fth_dtype_is_real(t) && i < n; i += 11) {
        t_put(t, x, t_random_i64(r, 0, n - 1), i % 2 ? (double)NAN : -0.0, 0);
        t_put(t, x, t_random_i64(r, 0, n - 1), i % 2 ? HUGE_VAL : -HUGE_VAL, 0);
    }
}

/* NaN comes last. */
static bool less(double a, double b)
{
    return a < b || (isnan(b) && !isnan(a));
}

/* ---- searchsorted ---- */

static void put_sorted(fth_dtype t, void *x, int64_t first, int64_t n, int64_t step)
{
    for (int64_t i = 1; i < n; i++)
        for (int64_t k = i; k > 0; k--) {
            const double a = t_get(t, x, first + (k - 1) * step), b = t_get(t, x, first + k * step);
            if (!less(b, a)) break;
            t_put(t, x, first + (k - 1) * step, b, 0);
            t_put(t, x, first + k * step, a, 0);
        }
}

static void try_search(fth_dtype t, bool right, int64_t n)
{
    char axes[64];
    snprintf(axes, sizeof axes, "a=3 y=%lld i=5 j=4", (long long)n);
    fth_graph *g = t_graph(axes);
    t_random r = t_random_make(1);
    const fth_val sorted = t_noise(g, "s", t, "y a", &r), v = t_noise(g, "v", t, "i a j", &r);
    if (n > 0) fill_hard(t, t_data(sorted), 3 * n, &r);
    fill_hard(t, t_data(v), 60, &r);
    for (int64_t a = 0; a < 3; a++) put_sorted(t, t_data(sorted), a, n, 3);
    const fth_val out = fth_searchsorted(sorted, "y", v, right);
    SHAPE(out, "i64 [i=5 a=3 j=4]");
    int64_t got[60];
    t_eval(out, got);
    for (int k = 0; k < 60; k++) {
        const double x = t_get(t, t_data(v), k);
        int64_t before = 0;
        for (int64_t y = 0; y < n; y++) {
            const double e = t_get(t, t_data(sorted), y * 3 + k / 4 % 3);
            before += less(e, x) || (right && !less(x, e));
        }
        EQ_I64(got[k], before);
    }
    t_graph_free(g);
}

TEST(searchsorted_counts_what_comes_before)
{
    for (int t = 0; t < FTH_DTYPE_COUNT; t++) {
        if (!ordered((fth_dtype)t)) continue;
        for (int right = 0; right < 2; right++) {
            try_search((fth_dtype)t, right, 0);
            try_search((fth_dtype)t, right, 1);
            try_search((fth_dtype)t, right, 40);
        }
    }
}

/* The searched axis may be one of the value's: there it means places of the value. */
TEST(searchsorted_of_its_own_axis_and_of_one_number)
{
    fth_graph *g = t_graph("y=6");
    const double sorted[6] = {-1, 0, 0, 2, 2, 5}, x[6] = {0, 7, -3, 2, 5, 1};
    const fth_val s = t_input(g, "s", FTH_F64, "y", sorted), v = t_input(g, "v", FTH_F64, "y", x);
    const int64_t left[6] = {1, 6, 0, 3, 5, 3}, right[6] = {3, 6, 0, 5, 6, 3};
    int64_t got[6];
    t_eval(fth_searchsorted(s, "y", v, false), got);
    SAME_BYTES(got, left, sizeof got);
    t_eval(fth_searchsorted(s, "y", v, true), got);
    SAME_BYTES(got, right, sizeof got);
    t_eval(fth_searchsorted(s, "y", fth_const(g, FTH_F64, 2.0), true), got);
    EQ_I64(got[0], 5);
    IS_TRUE(!fth_val_ok(fth_searchsorted(s, "y", fth_const(g, FTH_F32, 2.0), true)));
    REFUSED(g, FTH_E_DTYPE, "should have one dtype");
    t_graph_free(g);
    g = t_graph("y=5"); /* of one size, and not of one order */
    IS_TRUE(!fth_val_ok(fth_searchsorted(t_input(g, "s", FTH_I64, "y", NULL), "y",
                                         fth_const(g, FTH_F64, 2.0), true)));
    REFUSED(g, FTH_E_DTYPE, "should have one dtype");
    t_graph_free(g);
    g = t_graph("y=6 b=2");
    IS_TRUE(!fth_val_ok(fth_searchsorted(t_input(g, "s", FTH_F32, "b y", NULL), "y",
                                         t_input(g, "v", FTH_F32, "y", NULL), false)));
    REFUSED(g, FTH_E_AXIS_MISMATCH, "has no axis 'b'");
    t_graph_free(g);
}

/* ---- quantile ---- */

static void try_quantile(fth_dtype t, int64_t n, double q)
{
    char axes[64];
    snprintf(axes, sizeof axes, "a=4 y=%lld", (long long)n);
    fth_graph *g = t_graph(axes);
    t_random r = t_random_make(2);
    const fth_val v = t_noise(g, "x", t, "a y", &r);
    double got[4], line[64];
    if (fth_dtype_is_real(
            t)) { /* line 1 has a NaN; line 2 infinities of one sign, line 3 of both */
        t_put(t, t_data(v), n + n / 2, (double)NAN, 0);
        for (int64_t i = 0; i < n; i++) t_put(t, t_data(v), 2 * n + i, HUGE_VAL, 0);
        t_put(t, t_data(v), 3 * n, -HUGE_VAL, 0);
    }
    const fth_val out = fth_quantile(v, "y", q);
    MADE(out);
    EQ_I64(fth_val_dtype(out), fth_dtype_is_real(t) ? t : FTH_F64);
    t_eval_f64(out, got);
    for (int a = 0; a < 4; a++) {
        bool nan = false;
        for (int64_t i = 0; i < n; i++) line[i] = t_get(t, t_data(v), a * n + i);
        for (int64_t i = 0; i < n; i++) nan |= isnan(line[i]);
        put_sorted(FTH_F64, line, 0, n, 1);
        const double place = q * (double)(n - 1), part = place - floor(place);
        const double lo = line[(int64_t)floor(place)], hi = line[(int64_t)ceil(place)];
        const double on_line = lo == hi     ? lo
                               : part < 0.5 ? lo + (hi - lo) * part
                                            : hi - (hi - lo) * (1 - part);
        /* between a number and an infinity all is infinite, between two of them nothing is known */
        const double want = isnan(on_line) ? lo + hi : on_line;
        const double unit = t == FTH_BF16 ? 8e-3 : t == FTH_F16 ? 1e-3 : t == FTH_F32 ? 1e-7 : 0.0;
        if (nan || isnan(want))
            IS_TRUE(isnan(got[a]));
        else if (isinf(want))
            EQ_F64(got[a], want);
        else
            NEAR(got[a], want, unit * fabs(want));
    }
    t_graph_free(g);
}

TEST(quantiles_lie_between_sorted_neighbours)
{
    for (int t = FTH_U8; t < FTH_DTYPE_COUNT; t++)
        for (int q = 0; q <= 8; q++) {
            if (!ordered((fth_dtype)t)) continue;
            try_quantile((fth_dtype)t, 1, q / 8.0);
            try_quantile((fth_dtype)t, 2, q / 8.0);
            try_quantile((fth_dtype)t, 37, q / 8.0);
        }
    fth_graph *g = t_graph("y=4");
    const int32_t x[4] = {7, 1, 5, 2};
    double got;
    t_eval(fth_median(t_input(g, "x", FTH_I32, "y", x), "y"), &got);
    EQ_F64(got, 3.5);
    t_graph_free(g);
}

TEST(quantile_refusals)
{
    fth_graph *g = t_graph("y=4 none=0");
    const fth_val v = t_input(g, "x", FTH_F32, "y", NULL);
    IS_TRUE(!fth_val_ok(fth_quantile(v, "y", 1.5)));
    REFUSED(g, FTH_E_GRAPH_ATTR, "1.5 is not between 0 and 1");
    t_graph_free(g);
    g = t_graph("none=0");
    IS_TRUE(!fth_val_ok(fth_median(t_input(g, "x", FTH_F32, "none", NULL), "none")));
    REFUSED(g, FTH_E_AXIS_SIZE, "empty axis 'none'");
    t_graph_free(g);
    g = t_graph("y=4");
    IS_TRUE(!fth_val_ok(fth_median(t_input(g, "x", FTH_C64, "y", NULL), "y")));
    REFUSED(g, FTH_E_DTYPE_OP, "c64");
    t_graph_free(g);
    g = t_graph("y=4");
    IS_TRUE(!fth_val_ok(fth_median(t_input(g, "x", FTH_BOOL, "y", NULL), "y")));
    REFUSED(g, FTH_E_DTYPE_OP, "the value is bool");
    t_graph_free(g);
}

/* ---- extremes of the entries of rows ---- */

static const int64_t uneven[8] = {0, 3, 3, 4, 9, 9, 9, 12}; /* rows of 3 0 1 5 0 0 3 */

TEST(rows_get_their_extreme_entry_and_its_position)
{
    t_random r = t_random_make(3);
    for (int k = 0; k < FTH_DTYPE_COUNT; k++)
        for (int largest = 0; largest < 2; largest++) {
            const fth_dtype t = (fth_dtype)k;
            if (!ordered(t)) continue;
            fth_graph *g = t_graph("row=7 k=5 z=2");
            IS_TRUE(fth_axis_ragged(g, "entry", "row", uneven));
            const fth_val x = t_noise(g, "x", t, "z entry k", &r);
            fill_hard(t, t_data(x), 120, &r);
            const fth_val m = largest ? fth_collect_max(x, "entry") : fth_collect_min(x, "entry");
            SHAPE(fth_out(m, 1), "i64 [z=2 row=7 k=5]");
            double got[70];
            int64_t at[70];
            t_eval_f64(m, got);
            t_eval(fth_out(m, 1), at);
            for (int i = 0; i < 70; i++) {
                const int row = i / 5 % 7;
                const int64_t base = (int64_t)(i / 35) * 60 + i % 5;
                int64_t best = -1;
                for (int64_t e = uneven[row]; e < uneven[row + 1]; e++) {
                    const double v = t_get(t, t_data(x), base + e * 5);
                    const double b = best < 0 ? 0.0 : t_get(t, t_data(x), base + best * 5);
                    if (best < 0 || (!isnan(b) && (isnan(v) || (largest ? v > b : v < b))))
                        best = e;
                }
                EQ_I64(at[i], best);
                const double none = largest ? t_lowest(t) : t == FTH_I64 ? 0x1p63 : t_highest(t);
                const double want = best < 0 ? none : t_get(t, t_data(x), base + best * 5);
                IS_TRUE(isnan(want) ? isnan(got[i]) : got[i] == want);
            }
            t_graph_free(g);
        }
    fth_graph *g = t_graph("row=7");
    IS_TRUE(!fth_val_ok(fth_collect_max(t_input(g, "x", FTH_F32, "row", NULL), "row")));
    REFUSED(g, FTH_E_AXIS_MISMATCH, "axis 'row' has no rows");
    t_graph_free(g);
}

/* The first of equals, of NaN before all: the place in a row of entries `step` apart, -1: none. */
static int64_t best_of(fth_dtype t, const void *x, int64_t first, int64_t n, int64_t step,
                       bool largest)
{
    int64_t best = -1;
    double m = 0.0;
    for (int64_t e = 0; e < n; e++) {
        const double v = t_get(t, x, first + e * step);
        if (best >= 0 && (isnan(m) || !(isnan(v) || (largest ? v > m : v < m)))) continue;
        best = e;
        m = v;
    }
    return best;
}

enum { LENGTHS = 23, SHORT = 20 };

/* Rows of 0 to 19 entries, of blocks and a few more, and one of a whole line. */
static int64_t put_lengths(int64_t *row_ptr, int64_t rows)
{
    static const int64_t more[LENGTHS - SHORT] = {48, 63, 1031};
    row_ptr[0] = 0;
    for (int64_t r = 0; r < rows; r++)
        row_ptr[r + 1] = row_ptr[r] + (r < SHORT ? r * 7 % SHORT : more[r - SHORT]);
    return row_ptr[rows];
}

/* Columns of entries that are neighbours (1), or columns that are. */
static void try_lengths(fth_dtype t, bool largest, int64_t columns, t_random *r)
{
    int64_t row_ptr[LENGTHS + 1];
    const int64_t rows = columns == 1 ? LENGTHS : SHORT, n = put_lengths(row_ptr, rows),
                  results = rows * columns, size = fth_dtype_size(t);
    char axes[48];
    snprintf(axes, sizeof axes, "row=%lld k=%lld", (long long)rows, (long long)columns);
    fth_graph *g = t_graph(axes);
    IS_TRUE(fth_axis_ragged(g, "entry", "row", row_ptr));
    const fth_val x = t_noise(g, "x", t, columns == 1 ? "entry" : "entry k", r);
    fill_hard(t, t_data(x), n * columns, r);
    const fth_val m = largest ? fth_collect_max(x, "entry") : fth_collect_min(x, "entry");
    int64_t *at = calloc((size_t)results, sizeof *at);
    char *value = calloc((size_t)results, (size_t)size);
    if (!at || !value) abort();
    t_eval(fth_out(m, 1), at);
    t_eval(m, value);
    for (int64_t i = 0; i < results; i++) {
        const int64_t row = i / columns, first = row_ptr[row] * columns + i % columns;
        const int64_t best =
            best_of(t, t_data(x), first, row_ptr[row + 1] - row_ptr[row], columns, largest);
        EQ_I64(at[i], best < 0 ? -1 : row_ptr[row] + best);
        if (best < 0) continue;
        SAME_BYTES(value + i * size, (char *)t_data(x) + (first + best * columns) * size,
                   (size_t)size);
    }
    free(at);
    free(value);
    t_graph_free(g);
}

TEST(rows_of_any_length_get_the_bits_of_their_first_extreme)
{
    t_random r = t_random_make(6);
    for (int k = 0; k < FTH_DTYPE_COUNT; k++)
        for (int largest = 0; largest < 2 && ordered((fth_dtype)k); largest++) {
            try_lengths((fth_dtype)k, largest, 1, &r);
            try_lengths((fth_dtype)k, largest, 7, &r);
        }
    try_lengths(FTH_F32, true, 300, &r); /* more than are looked at together */
}

/* More rows than are looked at together: each takes its own entries. */
TEST(many_rows_get_their_extremes)
{
    enum { ROWS = 700 };
    int64_t row_ptr[ROWS + 1] = {0}, at[ROWS];
    for (int64_t r = 0; r < ROWS; r++) row_ptr[r + 1] = row_ptr[r] + r * 5 % 7;
    t_random r = t_random_make(8);
    for (int largest = 0; largest < 2; largest++) {
        fth_graph *g = t_graph("row=700");
        IS_TRUE(fth_axis_ragged(g, "entry", "row", row_ptr));
        const fth_val x = t_noise(g, "x", FTH_F32, "entry", &r);
        const fth_val m = largest ? fth_collect_max(x, "entry") : fth_collect_min(x, "entry");
        double got[ROWS];
        t_eval_f64(m, got);
        t_eval(fth_out(m, 1), at);
        for (int64_t i = 0; i < ROWS; i++) {
            const int64_t n = row_ptr[i + 1] - row_ptr[i],
                          best = best_of(FTH_F32, t_data(x), row_ptr[i], n, 1, largest);
            EQ_I64(at[i], n ? row_ptr[i] + best : -1);
            if (n) EQ_F64(got[i], t_get(FTH_F32, t_data(x), at[i]));
        }
        t_graph_free(g);
    }
}

/* Both zeros are equal: the first is taken, with its sign, in rows of every length. */
TEST(rows_of_zeros_get_the_first)
{
    static const fth_dtype reals[] = {FTH_F16, FTH_BF16, FTH_F32, FTH_F64};
    for (int k = 0; k < 4 * 2 * 2; k++) {
        const fth_dtype t = reals[k / 4];
        const bool largest = k & 1, minus = k & 2;
        fth_graph *g = t_graph("row=4");
        const int64_t row_ptr[5] = {0, 3, 9, 40, 1100}, size = fth_dtype_size(t);
        IS_TRUE(fth_axis_ragged(g, "entry", "row", row_ptr));
        t_random r = t_random_make(9);
        const fth_val x = t_noise(g, "x", t, "entry", &r);
        for (int64_t i = 0; i < 1100; i++) t_put(t, t_data(x), i, largest ? -1.0 : 1.0, 0);
        for (int row = 0; row < 4; row++) {
            t_put(t, t_data(x), row_ptr[row] + 1, minus ? -0.0 : 0.0, 0);
            t_put(t, t_data(x), row_ptr[row] + 2, minus ? 0.0 : -0.0, 0);
        }
        const fth_val m = largest ? fth_collect_max(x, "entry") : fth_collect_min(x, "entry");
        int64_t at[4];
        char got[4 * 8];
        t_eval(fth_out(m, 1), at);
        t_eval(m, got);
        for (int row = 0; row < 4; row++) {
            EQ_I64(at[row], row_ptr[row] + 1);
            SAME_BYTES(got + row * size, (const char *)t_data(x) + at[row] * size, (size_t)size);
        }
        t_graph_free(g);
    }
}

/* ---- scatter ---- */

/* Of two candidates, which stays: -0 is less than +0, NaN beats all. */
static bool stays(double m, double x, fth_scatter_how how)
{
    if (how == FTH_SCATTER_SET) return false;
    if (isnan(m) || isnan(x)) return isnan(m);
    if (m == x)
        return how == FTH_SCATTER_MAX ? !signbit(m) || signbit(x) : signbit(m) || !signbit(x);
    return how == FTH_SCATTER_MAX ? m > x : m < x;
}

static void try_scatter(fth_dtype t, fth_scatter_how how, double fill, double filled)
{
    fth_graph *g = t_graph("b=3 i=30 j=2 c=5 into=7");
    t_random r = t_random_make(4 + (uint64_t)how);
    const fth_val v = t_noise(g, "x", t, "b i j c", &r), n = t_noise(g, "n", FTH_I32, "j b i", &r);
    int32_t *index = t_data(n);
    if (ordered(t)) fill_hard(t, t_data(v), 900, &r);
    for (int i = 0; i < 180; i++) index[i] = (int32_t)t_random_i64(&r, 0, 5); /* 6 stays empty */
    const fth_val out = fth_scatter(how, v, "j i", n, "into", fill);
    MADE(out);
    EQ_I64(fth_val_dtype(out), t);
    double got[105], want[105];
    t_eval_f64(out, got);
    for (int i = 0; i < 105; i++) want[i] = filled;
    for (int j = 0; j < 2; j++) /* the first named axis is outermost */
        for (int i = 0; i < 30; i++)
            for (int b = 0; b < 3; b++)
                for (int c = 0; c < 5; c++) {
                    double *m = &want[(b * 7 + index[(j * 3 + b) * 30 + i]) * 5 + c];
                    const double x = t_get(t, t_data(v), ((b * 30 + i) * 2 + j) * 5 + c);
                    if (!stays(*m, x, how)) *m = x;
                }
    for (int i = 0; i < 105; i++)
        if (isnan(want[i]))
            IS_TRUE(isnan(got[i]));
        else
            SAME_BYTES(&got[i], &want[i], sizeof *got);
    t_graph_free(g);
}

TEST(scatter_sets_the_last_or_keeps_the_best)
{
    for (int k = 0; k < FTH_DTYPE_COUNT; k++) {
        const fth_dtype t = (fth_dtype)k;
        try_scatter(t, FTH_SCATTER_SET, 1, 1);
        if (!ordered(t)) continue;
        const bool real = fth_dtype_is_real(t);
        try_scatter(t, FTH_SCATTER_MAX, 0, 0);
        try_scatter(t, FTH_SCATTER_MIN, 1, 1);
        try_scatter(t, FTH_SCATTER_MAX, -HUGE_VAL, t_lowest(t));
        if (real) try_scatter(t, FTH_SCATTER_MIN, (double)NAN, (double)NAN);
    }
}

/* An infinite fill is the end of an integer dtype. */
TEST(scatter_fills_with_the_ends_of_a_dtype)
{
    static const struct {
        fth_dtype t;
        double fill;
        int64_t want;
    } row[] = {{FTH_U8, -HUGE_VAL, 0},        {FTH_U8, HUGE_VAL, 255},
               {FTH_I8, -HUGE_VAL, -128},     {FTH_I16, HUGE_VAL, 32767},
               {FTH_U32, -HUGE_VAL, 0},       {FTH_I64, HUGE_VAL, INT64_MAX},
               {FTH_I64, -0x1p63, INT64_MIN}, {FTH_BOOL, 1.0, 1}};
    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        fth_graph *g = t_graph("i=2 into=3");
        const int64_t index[2] = {1, 1};
        const char x[16] = {0};
        const fth_val n = t_input(g, "n", FTH_I64, "i", index),
                      out = fth_scatter(FTH_SCATTER_SET, t_input(g, "x", row[k].t, "i", x), "i", n,
                                        "into", row[k].fill);
        int64_t got[3];
        t_eval(fth_cast(out, FTH_I64), got);
        EQ_I64(got[0], row[k].want);
        EQ_I64(got[1], 0);
        EQ_I64(got[2], row[k].want);
        t_graph_free(g);
    }
}

/* What moves keeps its bits; of what a minimum or maximum gives there is one NaN. */
TEST(scatter_has_one_nan_or_the_bits_that_moved)
{
    uint64_t bits[3] = {UINT64_C(0xfff8000000000123), UINT64_C(0x3ff0000000000000),
                        UINT64_C(0x7ff800000000abcd)};
    const int64_t index[3] = {0, 1, 2};
    for (int how = FTH_SCATTER_SET; how <= FTH_SCATTER_MAX; how++) {
        fth_graph *g = t_graph("i=3 into=3");
        const fth_val v = t_input(g, "x", FTH_F64, "i", bits),
                      n = t_input(g, "n", FTH_I64, "i", index);
        uint64_t got[3];
        t_eval(
            fth_scatter((fth_scatter_how)how, v, "i", n, "into", how == FTH_SCATTER_MIN ? 9 : -9),
            got);
        for (int i = 0; i < 3; i++)
            EQ_I64((int64_t)got[i],
                   (int64_t)(how == FTH_SCATTER_SET || i == 1 ? bits[i]
                                                              : UINT64_C(0x7ff8000000000000)));
        t_graph_free(g);
    }
}

/* Into one row, where results lie side by side and what goes there does not. */
TEST(scatter_of_columns_into_one_row)
{
    for (int k = 0; k < FTH_DTYPE_COUNT; k++) {
        const fth_dtype t = (fth_dtype)k;
        fth_graph *g = t_graph("c=6 i=4 into=1");
        t_random r = t_random_make(6);
        const int32_t zero[4] = {0};
        const fth_val v = t_noise(g, "x", t, "c i", &r), n = t_input(g, "n", FTH_I32, "i", zero);
        const fth_val set = fth_scatter(FTH_SCATTER_SET, v, "i", n, "into", 0),
                      sum = fth_scatter_add(v, "i", n, "into");
        char got[6 * 16], want[6 * 16];
        const int64_t size = fth_dtype_size(t);
        t_eval(set, got);
        for (int c = 0; c < 6; c++)
            SAME_BYTES(got + c * size, (const char *)t_data(v) + (c * 4 + 3) * size, (size_t)size);
        t_eval(sum, got);
        t_eval(fth_sum(v, "i"), want);
        if (t != FTH_C64 && t != FTH_C128) /* few enough that the order of both is one */
            SAME_BYTES(got, want, (size_t)(6 * fth_dtype_size(fth_val_dtype(sum))));
        t_graph_free(g);
    }
}

TEST(scatter_refusals)
{
    fth_graph *g = t_graph("i=4 into=3");
    t_random r = t_random_make(5);
    const fth_val v = t_noise(g, "x", FTH_F32, "i", &r), n = t_noise(g, "n", FTH_I64, "i", &r);
    int64_t *index = t_data(n);
    float got[3];
    fth_err err = {0};
    for (int i = 0; i < 4; i++) index[i] = i;
    IS(t_try(fth_scatter(FTH_SCATTER_SET, v, "i", n, "into", 0), got, &err), FTH_E_INDEX_RANGE);
    HAS(err.text, "scatter: the index at [i=3]");
    HAS(err.text, "'into' has 3 elements");
    IS_TRUE(!fth_val_ok(fth_scatter((fth_scatter_how)9, v, "i", n, "into", 0)));
    REFUSED(g, FTH_E_GRAPH_ATTR, "9 is not FTH_SCATTER_SET");
    t_graph_free(g);
    g = t_graph("i=4 into=3");
    IS_TRUE(!fth_val_ok(fth_scatter(FTH_SCATTER_MAX, t_input(g, "x", FTH_C64, "i", NULL), "i",
                                    t_input(g, "n", FTH_I64, "i", NULL), "into", 0)));
    REFUSED(g, FTH_E_DTYPE_OP, "x c64 [i=4]");
    t_graph_free(g);
    g = t_graph("i=4 into=3");
    IS_TRUE(!fth_val_ok(fth_scatter(FTH_SCATTER_SET, t_input(g, "x", FTH_U8, "i", NULL), "i",
                                    t_input(g, "n", FTH_I64, "i", NULL), "into", (double)NAN)));
    REFUSED(g, FTH_E_GRAPH_ATTR, "nan is not a number of x u8");
    t_graph_free(g);
    g = t_graph("i=4 into=3");
    IS_TRUE(!fth_val_ok(fth_scatter(FTH_SCATTER_SET, t_input(g, "x", FTH_U8, "i", NULL), "",
                                    t_input(g, "n", FTH_I64, "i", NULL), "into", 0)));
    REFUSED(g, FTH_E_AXIS_NAME, "scatter: no axis of the index is named");
    t_graph_free(g);
    static const struct {
        fth_dtype dtype;
        double fill;
    } changed[] = {
        {FTH_U16, -1}, {FTH_U16, 0.5}, {FTH_U16, 70000}, {FTH_F16, 70000}, {FTH_BOOL, 2}};
    for (size_t i = 0; i < sizeof changed / sizeof *changed; i++) {
        g = t_graph("i=4 into=3");
        IS_TRUE(!fth_val_ok(
            fth_scatter(FTH_SCATTER_SET, t_input(g, "x", changed[i].dtype, "i", NULL), "i",
                        t_input(g, "n", FTH_I64, "i", NULL), "into", changed[i].fill)));
        REFUSED(g, FTH_E_GRAPH_ATTR, "is not a number of x");
        t_graph_free(g);
    }
}
