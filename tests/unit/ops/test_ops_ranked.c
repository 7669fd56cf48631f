/* test_ops_ranked.c - elements at places of the sorted order are those that a sort leaves there, to
 * the bit, whatever the elements, and stand where the sort found them.
 *
 * seconds: 8 labels: gpu
 */
#include "ops/ranked.h"
#include "testing/engine/op_harness.h"
#include "testing/full.h"

#include <math.h>

typedef enum kind { NOISE, EQUAL, TWO, RISING, FALLING, DOUBLING, FAR, HARD, KINDS } kind;

/* Element i of a line of n. */
static double element(kind k, int64_t i, int64_t n, t_random *r)
{
    switch (k) {
    case EQUAL: return 3.0;
    case TWO: return (double)t_random_i64(r, 0, 1);
    case RISING: return (double)(i % 200);
    case FALLING: return (double)((n - i) % 200);
    case DOUBLING: return ldexp(1.0, (int)(i % 7)); /* most are small: a sample says little */
    case FAR: return i == n / 3 ? 100.0 : (double)t_random_i64(r, 0, 3);
    case NOISE:
    case HARD:
    case KINDS: break;
    }
    return (double)t_random_i64(r, 0, 120);
}

static void fill(fth_dtype t, void *x, int64_t lines, int64_t n, kind k, t_random *r)
{
    for (int64_t i = 0; i < lines * n; i++) {
        const double e = element(k, i % n, n, r);
        t_put(t, x, i, t == FTH_BOOL ? (double)((int)e % 2) : e, 0);
    }
    if (k != HARD || !fth_dtype_is_real(t)) return;
    for (int64_t i = 0; i < lines * n / 6; i++) {
        static const double odd[] = {-0.0, 0.0, -1.5, HUGE_VAL, -HUGE_VAL};
        t_put(t, x, t_random_i64(r, 0, lines * n - 1), odd[i % 5], 0);
    }
    for (int64_t i = 0; i < lines * n / 40; i++) /* in some lines */
        t_put(t, x, t_random_i64(r, 0, lines * n / 2), (double)NAN, 0);
}

/* [a y c] along y. */
static void try_ranks(fth_dtype t, int64_t a, int64_t n, int64_t c, kind k, const int64_t *rank)
{
    char axes[64];
    snprintf(axes, sizeof axes, "a=%lld y=%lld c=%lld", (long long)a, (long long)n, (long long)c);
    fth_graph *g = t_graph(axes);
    t_random r = t_random_make(5 + (uint64_t)(n + c) + (uint64_t)k);
    const int64_t lines = a * c, size = fth_dtype_size(t);
    const fth_val v = t_noise(g, "x", t, "a y c", &r);
    fill(t, t_data(v), 1, lines * n, k, &r);
    const fth_val s = fth_sort(v, "y", false), got = fth__ranked(FTH_HERE, v, "y", 3, rank);
    MADE(got);
    char *sorted = malloc((size_t)(lines * n * size)), *value = malloc((size_t)(lines * size));
    int64_t *order = malloc((size_t)(lines * n) * sizeof *order),
            *position = malloc((size_t)lines * sizeof *position);
    t_eval(s, sorted);
    t_eval(fth_out(s, 1), order);
    for (int q = 0; q < 3; q++) {
        t_eval(fth_out(got, q), value); /* values alone, then positions alone */
        t_eval(fth_out(got, 3 + q), position);
        for (int64_t l = 0; l < lines; l++) {
            const int64_t at = (l / c * n + rank[q]) * c + l % c;
            SAME_BYTES(value + l * size, sorted + at * size, size);
            EQ_I64(position[l], order[at]);
        }
    }
    free(sorted);
    free(value);
    free(order);
    free(position);
    t_graph_free(g);
}

TEST(ranked_is_what_a_sort_leaves_there)
{
    static const int64_t lengths[] = {1, 2, 33, 256, 257, 1000, 5003};
    t_cuts(2);
    for (int d = 0; d < FTH_DTYPE_COUNT; d++) {
        const fth_dtype t = (fth_dtype)d;
        if (fth_dtype_is_complex(t)) continue;
        for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
            const int64_t n = lengths[i], q = n * 2 / 3;
            const int64_t rank[2][3] = {{n / 2, n / 2 + (n > 2), n - 1}, {n - 1, 0, q}};
            for (int k = 0; k < KINDS; k++) {
                if ((k + d + (int)i) % (t_few() ? 4 : 3)) continue;
                try_ranks(t, 3, n, 1, (kind)k, rank[k % 2]);
                if (n <= 1000) try_ranks(t, 2, n, n == 256 ? 70 : 5, (kind)k, rank[(k + 1) % 2]);
            }
        }
    }
    t_cuts(8);
}

/* Keys that a sample cannot part: all but some are the lowest. */
TEST(ranked_of_few_that_differ)
{
    enum { N = 20000 };
    fth_graph *g = t_graph("n=20000");
    int64_t *x = calloc(N, sizeof *x), got;
    for (int64_t i = 0; i < 10; i++) x[i * 1999] = INT64_C(1) << (6 * i);
    const fth_val v = t_input(g, "x", FTH_I64, "n", x);
    for (int64_t k = 0; k < 12; k++) {
        const int64_t rank = N - 12 + k;
        t_eval(fth__ranked(FTH_HERE, v, "n", 1, &rank), &got);
        EQ_I64(got, k < 2 ? 0 : INT64_C(1) << (6 * (k - 2)));
    }
    free(x);
    t_graph_free(g);
}

TEST(ranked_refuses_complex)
{
    const int64_t rank = 0;
    fth_graph *g = t_graph("n=3");
    IS_TRUE(!fth_val_ok(fth__ranked(FTH_HERE, t_input(g, "x", FTH_C64, "n", NULL), "n", 1, &rank)));
    REFUSED(g, FTH_E_DTYPE_OP, "x c64 [n=3]");
    t_graph_free(g);
}

TEST_MAIN()
