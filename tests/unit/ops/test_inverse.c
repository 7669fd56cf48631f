/* test_inverse.c - inverses times their matrices are one, determinants, refusals.
 * seconds: 5 labels: gpu
 */
#include "testing/engine/op_cut.h"

#include <math.h>

static const fth_dtype dtypes[] = {FTH_F32, FTH_F64, FTH_C64, FTH_C128};

static void check(const char *axes, int64_t n, fth_dtype t)
{
    oc_bench b;
    oc_open(&b);
    fth_axis(b.g, "row", n);
    fth_axis(b.g, "col", n);
    fth_axis(b.g, "l", 3);
    const fth_node *node = oc_node(&b, fth_inverse(oc_in(&b, "A", t, axes), "row", "col"));
    const fth_desc *d = &node->in[0];
    t_random r = t_random_make((uint64_t)n);
    const size_t bytes = (size_t)oc_bytes(d) + 1, log_bytes = (size_t)oc_bytes(&node->out[1]) + 1;
    oc_case c = {.node = node, .in = {malloc(bytes)}, .out = {malloc(bytes), malloc(log_bytes)}};
    oc_fill(&r, d, c.in[0]);
    OKE(oc_run(&c), &c.err);
    void *inverse = c.out[0], *logs = c.out[1];
    c.out[0] = malloc(bytes), c.out[1] = malloc(log_bytes);
    OKE(oc_run_cut(&c, &r), &c.err);
    SAME_BYTES(inverse, c.out[0], bytes - 1);
    SAME_BYTES(logs, c.out[1], log_bytes - 1);
    /* twice is the matrix again, and the determinants cancel */
    void *first = c.in[0], *back_logs = c.out[1];
    c.in[0] = inverse;
    OKE(oc_run(&c), &c.err);
    LE_F64(oc_error(d, c.out[0], first), t == FTH_F32 || t == FTH_C64 ? 2e-3 : 1e-10);
    for (int64_t i = 0; i < fth_desc_count(&node->out[1]); i++)
        NEAR(oc_get(&node->out[1], logs, i, 0), -oc_get(&node->out[1], back_logs, i, 0), 1e-2);
    free(first), free(inverse), free(logs), free(c.out[0]), free(back_logs);
    oc_close(&b);
}

TEST(twice_is_nothing)
{
    static const char *const axes[] = {"row col", "l row col", "row l col", "col row l"};
    for (size_t i = 0; i < sizeof axes / sizeof *axes; i++)
        for (int t = 0; t < 4; t++) {
            check(axes[i], 5, dtypes[t]);
            check(axes[i], 1, dtypes[t]);
        }
    check("row col", 64, FTH_F64);
    check("l row col", 0, FTH_F64);
}

/* Rows must be exchanged: the first pivot is zero. */
TEST(numbers_by_hand)
{
    oc_bench b;
    oc_open(&b);
    fth_axis(b.g, "row", 3);
    fth_axis(b.g, "col", 3);
    double a[9] = {0, 2, 0, 0, 0, 4, 5, 0, 0}, out[9], log_det[1];
    oc_case c = {.node = oc_node(&b, fth_inverse(oc_in(&b, "A", FTH_F64, "row col"), "row", "col")),
                 .in = {a},
                 .out = {out, log_det}};
    OK(oc_run(&c));
    EQ_F64(out[2], 0.2);
    EQ_F64(out[3], 0.5);
    EQ_F64(out[7], 0.25);
    EQ_F64(out[0], 0.0);
    NEAR(log_det[0], log(40.0), 1e-14);
    oc_close(&b);
}

TEST(singular_matrices_are_named)
{
    oc_bench b;
    oc_open(&b);
    fth_axis(b.g, "row", 2);
    fth_axis(b.g, "col", 2);
    fth_axis(b.g, "view", 2);
    fth_axis(b.g, "big", 65);
    fth_axis(b.g, "big2", 65);
    float a[8] = {1, 0, 0, 1, 1, 2, 2, 4}, out[8], log_det[2];
    oc_case c = {
        .node = oc_node(&b, fth_inverse(oc_in(&b, "cov", FTH_F32, "view row col"), "row", "col")),
        .in = {a},
        .out = {out, log_det}};
    IS(oc_run(&c), FTH_E_NUMERIC);
    HAS(c.err.text, "view=1");
    HAS(c.err.text, "cov f32");
    fth_err err = {0};
    fth_inverse(oc_in(&b, "large", FTH_F32, "big big2"), "big", "big2");
    fth_graph_errors(b.g, 0, &err);
    EQ_I64(err.status, FTH_E_GRAPH_ATTR);
    oc_close(&b);
}

TEST_MAIN()
