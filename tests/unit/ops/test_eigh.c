/* test_eigh.c - values ascend, vectors are orthonormal and put the matrix together again.
 * seconds: 5 labels: gpu
 */
#include "testing/engine/op_cut.h"

#include <math.h>

static const fth_dtype dtypes[] = {FTH_F32, FTH_F64, FTH_C64, FTH_C128};

typedef struct number {
    double re, im;
} number;

static number at(const fth_desc *d, const void *data, int64_t i)
{
    return (number){oc_get(d, data, i, 0), oc_get(d, data, i, 1)};
}

/* One matrix [row col] of size n at element `base` of dense arrays. */
static void check_one(const fth_node *node, const void *a, const void *w, const void *v, int64_t n,
                      int64_t m, double tol)
{
    const fth_desc *d = &node->in[0];
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j <= i; j++) {
            double re = 0.0, im = 0.0, dot_re = 0.0, dot_im = 0.0;
            for (int64_t k = 0; k < n; k++) {
                const number x = at(d, v, m * n * n + k * n + i),
                             y = at(d, v, m * n * n + k * n + j);
                const double value = oc_get(&node->out[0], w, m * n + k, 0);
                re += value * (x.re * y.re + x.im * y.im); /* v[k][i] conj(v[k][j]) */
                im += value * (x.im * y.re - x.re * y.im);
                const number p = at(d, v, m * n * n + i * n + k),
                             q = at(d, v, m * n * n + j * n + k);
                dot_re += p.re * q.re + p.im * q.im;
                dot_im += p.im * q.re - p.re * q.im;
            }
            const number want = at(d, a, m * n * n + i * n + j);
            NEAR(re, want.re, tol);
            NEAR(im, i == j ? 0.0 : want.im, tol);
            NEAR(dot_re, i == j, tol);
            NEAR(dot_im, 0.0, tol);
        }
    for (int64_t k = 1; k < n; k++)
        LE_F64(oc_get(&node->out[0], w, m * n + k - 1, 0), oc_get(&node->out[0], w, m * n + k, 0));
}

static void check(int64_t n, fth_dtype t)
{
    oc_bench b;
    oc_open(&b);
    fth_axis(b.g, "row", n);
    fth_axis(b.g, "col", n);
    fth_axis(b.g, "l", 3);
    const fth_node *node = oc_node(&b, fth_eigh(oc_in(&b, "A", t, "l row col"), "row", "col"));
    t_random r = t_random_make((uint64_t)n);
    const size_t bytes = (size_t)oc_bytes(&node->in[0]) + 1,
                 value_bytes = (size_t)oc_bytes(&node->out[0]) + 1;
    oc_case c = {.node = node, .in = {malloc(bytes)}, .out = {malloc(value_bytes), malloc(bytes)}};
    oc_fill(&r, &node->in[0], c.in[0]);
    OKE(oc_run(&c), &c.err);
    for (int64_t m = 0; m < 3; m++)
        check_one(node, c.in[0], c.out[0], c.out[1], n, m,
                  (t == FTH_F32 || t == FTH_C64 ? 4e-6 : 2e-14) * (double)(n + 1));
    void *w = c.out[0], *v = c.out[1];
    c.out[0] = malloc(value_bytes), c.out[1] = malloc(bytes);
    OKE(oc_run_cut(&c, &r), &c.err);
    SAME_BYTES(w, c.out[0], value_bytes - 1);
    SAME_BYTES(v, c.out[1], bytes - 1);
    free(w), free(v), free(c.in[0]), free(c.out[0]), free(c.out[1]);
    oc_close(&b);
}

TEST(matrices_come_together_again)
{
    for (int t = 0; t < 4; t++) {
        check(0, dtypes[t]);
        check(1, dtypes[t]);
        check(2, dtypes[t]);
        check(3, dtypes[t]);
        check(11, dtypes[t]);
    }
    check(64, FTH_F64);
}

TEST(numbers_by_hand)
{
    oc_bench b;
    oc_open(&b);
    fth_axis(b.g, "row", 2);
    fth_axis(b.g, "col", 2);
    double a[4] = {2, (double)NAN, 1, 2}, w[2], v[4]; /* above the diagonal nothing is read */
    oc_case c = {.node = oc_node(&b, fth_eigh(oc_in(&b, "A", FTH_F64, "row col"), "row", "col")),
                 .in = {a},
                 .out = {w, v}};
    OK(oc_run(&c));
    NEAR(w[0], 1, 1e-15);
    NEAR(w[1], 3, 1e-15);
    NEAR(v[0], sqrt(0.5), 1e-15); /* of equal components the first is positive */
    NEAR(v[1], -sqrt(0.5), 1e-15);
    NEAR(v[2], sqrt(0.5), 1e-15);
    NEAR(v[3], sqrt(0.5), 1e-15);
    a[0] = (double)NAN;
    IS(oc_run(&c), FTH_E_NUMERIC);
    oc_close(&b);
}

TEST_MAIN()
