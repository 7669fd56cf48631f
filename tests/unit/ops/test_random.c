/* test_random.c - known answers, moments, and numbers that depend on nothing but their place.
 *
 * seconds: 5 labels: gpu
 */
#include "graph/graph.h"
#include "ops/philox.h"
#include "testing/engine/op_harness.h"

#include <math.h>

/* The vectors that Random123 is published with. */
TEST(philox_known_answers)
{
    static const struct {
        uint32_t counter[4], key[2], want[4];
    } rows[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fth__philox c;
        memcpy(c.v, rows[i].counter, sizeof c.v);
        const fth__philox got = fth__philox_make(c, rows[i].key[0], rows[i].key[1]);
        SAME_BYTES(got.v, rows[i].want, sizeof got.v);
    }
}

static fth_val draw(fth_graph *g, fth_random_kind kind, fth_dtype t, const char *axes, int64_t seed,
                    int64_t iteration, int64_t stream)
{
    return fth_random_(FTH_HERE, kind, t, axes, fth_const_i64(g, FTH_I64, seed),
                       fth_const_i64(g, FTH_I64, iteration), stream);
}

/* The host draws the numbers of a graph. */
TEST(host_draws_the_same)
{
    double want[64];
    for (int kind = FTH_RANDOM_BITS; kind <= FTH_RANDOM_NORMAL; kind++) {
        fth_graph *g = t_graph("a=64");
        t_cuts(1);
        const fth_dtype t = kind == FTH_RANDOM_BITS ? FTH_I64 : FTH_F64;
        fth_val v = draw(g, (fth_random_kind)kind, t, "a", 42, 7, 3);
        if (kind == FTH_RANDOM_BITS)
            v = fth_cast(fth_and(v, fth_const_i64(g, FTH_I64, (1ll << 50) - 1)), FTH_F64);
        t_eval_f64(v, want);
        for (int64_t i = 0; i < 64; i++) {
            const double got =
                kind == FTH_RANDOM_BITS
                    ? (double)(int64_t)(fth_random_bits_at(42, 7, 3, i) & ((1ull << 50) - 1))
                : kind == FTH_RANDOM_UNIFORM ? fth_random_uniform_at(42, 7, 3, i)
                                             : fth_random_normal_at(42, 7, 3, i);
            SAME_BYTES(&got, &want[i], sizeof got);
        }
        t_graph_free(g);
    }
}

enum { N = 1 << 18 };

static void moments(const double *v, int64_t n, double *m)
{
    m[0] = m[1] = m[2] = m[3] = 0;
    for (int64_t i = 0; i < n; i++) m[0] += v[i] / (double)n;
    for (int64_t i = 0; i < n; i++) {
        const double d = v[i] - m[0];
        m[1] += d * d / (double)n;
        m[2] += d * d * d / (double)n;
        m[3] += d * d * d * d / (double)n;
    }
}

static void try_moments(fth_random_kind kind, fth_dtype t)
{
    fth_graph *g = t_graph("a=262144");
    double *v = malloc(sizeof *v * N), m[4];
    t_cuts(1);
    t_eval_f64(draw(g, kind, t, "a", 42, 0, 0), v);
    moments(v, N, m);
    const double s = 5 / sqrt((double)N); /* five standard errors of a unit variance */
    if (kind == FTH_RANDOM_UNIFORM) {
        NEAR(m[0], 0.5, s * 0.29);
        NEAR(m[1], 1.0 / 12, s * 0.1);
        for (int64_t i = 0; i < N; i++) IS_TRUE(v[i] >= 0 && v[i] < 1);
    } else {
        NEAR(m[0], 0.0, s);
        NEAR(m[1], 1.0, s * sqrt(2.0));
        NEAR(m[2], 0.0, s * sqrt(15.0));
        NEAR(m[3], 3.0, s * sqrt(96.0));
    }
    double lag = 0; /* neighbours are independent */
    for (int64_t i = 0; i + 1 < N; i++) lag += (v[i] - m[0]) * (v[i + 1] - m[0]) / (m[1] * N);
    NEAR(lag, 0.0, s);
    free(v);
    t_graph_free(g);
}

TEST(uniform_and_normal_moments)
{
    try_moments(FTH_RANDOM_UNIFORM, FTH_F32);
    try_moments(FTH_RANDOM_UNIFORM, FTH_F64);
    try_moments(FTH_RANDOM_NORMAL, FTH_F32);
    try_moments(FTH_RANDOM_NORMAL, FTH_F64);
}

/* t_eval cuts and checks bits; here the order of axes in memory. */
TEST(layout_does_not_enter)
{
    fth_graph *g = t_graph("a=5 b=7 c=3");
    float abc[105], cab[105];
    t_cuts(8);
    t_eval(draw(g, FTH_RANDOM_NORMAL, FTH_F32, "a b c", 1, 2, 3), abc);
    t_eval(draw(g, FTH_RANDOM_NORMAL, FTH_F32, "c a b", 1, 2, 3), cab);
    for (int a = 0; a < 5; a++)
        for (int b = 0; b < 7; b++)
            for (int c = 0; c < 3; c++) EQ_F64(abc[(a * 7 + b) * 3 + c], cab[(c * 5 + a) * 7 + b]);
    t_graph_free(g);
}

TEST(seed_iteration_and_stream_each_matter)
{
    fth_graph *g = t_graph("a=64");
    const int64_t way[][3] = {{1, 0, 0},
                              {2, 0, 0},
                              {1, 1, 0},
                              {1, 0, 1},
                              {1, INT64_C(1) << 32, 0},
                              {1, 0, INT64_C(1) << 32},
                              {-1, -1, -1}};
    int64_t bits[7][64];
    for (int i = 0; i < 7; i++)
        t_eval(draw(g, FTH_RANDOM_BITS, FTH_I64, "a", way[i][0], way[i][1], way[i][2]), bits[i]);
    for (int i = 0; i < 7; i++)
        for (int k = 0; k < i; k++)
            for (int e = 0; e < 64; e++) IS_TRUE(bits[i][e] != bits[k][e]);
    t_graph_free(g);
}

TEST(wrong_calls_are_refused)
{
    fth_graph *g = t_graph("a=3");
    const fth_val one = fth_const(g, FTH_F32, 1.0), seed = fth_const_i64(g, FTH_I64, 1);
    IS_TRUE(!fth_val_ok(fth_normal(FTH_F32, "a", one, seed, 0)));
    REFUSED(g, FTH_E_DTYPE_OP, "seed");
    t_graph_free(g);
    g = t_graph("a=3");
    const fth_val s = fth_const_i64(g, FTH_I64, 1);
    IS_TRUE(!fth_val_ok(fth_uniform(FTH_F16, "a", s, s, 0)));
    REFUSED(g, FTH_E_DTYPE_OP, "f32 or f64");
    t_graph_free(g);
}

/* ---- Poisson -------------------------------------------------------------------------- */

static double probability(double rate, int64_t k)
{
    return exp((double)k * log(rate) - rate - lgamma((double)k + 1));
}

static void try_poisson(double rate)
{
    enum { DRAWS = 100000 };
    fth_graph *g = t_graph("a=100000");
    const fth_val seed = fth_const_i64(g, FTH_I64, 9),
                  rates = fth_expand(fth_const(g, FTH_F64, rate), "a");
    int64_t *k = malloc(sizeof *k * DRAWS);
    t_cuts(1);
    t_eval(fth_poisson(rates, seed, seed, 0), k);
    double mean = 0, var = 0;
    for (int i = 0; i < DRAWS; i++) mean += (double)k[i] / DRAWS;
    for (int i = 0; i < DRAWS; i++) var += ((double)k[i] - mean) * ((double)k[i] - mean) / DRAWS;
    NEAR(mean, rate, 5 * sqrt(rate / DRAWS));
    NEAR(var, rate, 5 * sqrt((rate + 2 * rate * rate) / DRAWS));
    /* chi-square over the counts that are expected often enough */
    double chi = 0;
    int cells = 0;
    const int64_t low = (int64_t)fmax(0, rate - 4 * sqrt(rate)),
                  high = (int64_t)(rate + 4 * sqrt(rate)) + 2;
    for (int64_t v = low; v <= high; v++) {
        const double want = DRAWS * probability(rate, v);
        if (want < 20) continue;
        double got = 0;
        for (int i = 0; i < DRAWS; i++) got += k[i] == v;
        chi += (got - want) * (got - want) / want;
        cells++;
    }
    LE_F64(chi, cells + 5 * sqrt(2.0 * cells) + 5);
    free(k);
    t_graph_free(g);
}

TEST(poisson_mean_variance_and_shape)
{
    static const double rates[] = {0.05, 0.9, 3.0, 9.99, 10.0, 25.0, 130.0};
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) try_poisson(rates[i]);
}

TEST(poisson_edges)
{
    fth_graph *g = t_graph("a=3");
    const double good[3] = {0.0, 1e12, 0.0}, bad[3] = {1.0, -0.5, 2.0};
    const fth_val seed = fth_const_i64(g, FTH_I64, 9);
    int64_t k[3];
    t_eval(fth_poisson(t_input(g, "good", FTH_F64, "a", good), seed, seed, 0), k);
    EQ_I64(k[0], 0);
    NEAR(k[1], 1e12, 1e7);
    fth_err err = {0};
    IS(t_try(fth_poisson(t_input(g, "bad", FTH_F64, "a", bad), seed, seed, 0), k, &err),
       FTH_E_NUMERIC);
    HAS(err.text, "-0.5");
    HAS(err.text, "index 1 of 'a'");
    t_graph_free(g);
}

TEST(index_counts_from_the_origin)
{
    fth_graph *g = t_graph("a=11");
    int64_t out[11];
    t_eval(fth_index(g, "a"), out);
    for (int i = 0; i < 11; i++) EQ_I64(out[i], i);
    IS_TRUE(!fth_val_ok(fth_index(g, "b")));
    REFUSED(g, FTH_E_AXIS_NAME, "'b'");
    t_graph_free(g);
}

TEST_MAIN()
