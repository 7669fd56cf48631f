/* test_ops_index.c - gather, scatter_add, compact.
 *
 * seconds: 3
 */
#include "graph/graph.h"
#include "testing/op_harness.h"

#include <math.h>

TEST(gather_replaces_the_axis_in_place_for_every_dtype)
{
    for (int k = 0; k < FTH_DTYPE_COUNT; k++)
        for (int wide = 0; wide < 2; wide++) {
            const fth_dtype t = (fth_dtype)k, it = wide ? FTH_I64 : FTH_I32;
            const int64_t size = fth_dtype_size(t);
            fth_graph *g = t_graph("a=3 row=7 c=5 i=4 j=2");
            t_random r = t_random_make(1);
            const fth_val v = t_noise(g, "x", t, "a row c", &r), n = t_noise(g, "n", it, "i j", &r);
            for (int i = 0; i < 8; i++) t_put(it, t_data(n), i, (double)t_random_i64(&r, 0, 6), 0);
            const fth_val out = fth_gather(v, "row", n);
            MADE(out);
            EQ_I64(fth_val_axes(out), 4);
            EQ_STR(fth_val_axis(out, 1), "i");
            EQ_STR(fth_val_axis(out, 3), "c");
            char got[3 * 8 * 5 * 16];
            const char *x = t_data(v);
            t_eval(out, got);
            for (int64_t a = 0; a < 3; a++)
                for (int64_t i = 0; i < 8; i++)
                    for (int64_t c = 0; c < 5; c++) {
                        const int64_t row = (int64_t)t_get(it, t_data(n), i);
                        SAME_BYTES(got + ((a * 8 + i) * 5 + c) * size,
                                   x + ((a * 7 + row) * 5 + c) * size, size);
                    }
            t_graph_free(g);
        }
}

TEST(gather_along_the_innermost_axis_with_batches)
{
    fth_graph *g = t_graph("b=4 c=6 k=3");
    t_random r = t_random_make(2);
    const fth_val v = t_noise(g, "x", FTH_F32, "b c", &r), n = t_noise(g, "n", FTH_I32, "k b", &r);
    int32_t *index = t_data(n);
    for (int i = 0; i < 12; i++) index[i] = (int32_t)t_random_i64(&r, 0, 5);
    const fth_val out = fth_gather(v, "c", n);
    SHAPE(out, "f32 [b=4 k=3]");
    float got[12];
    const float *x = t_data(v);
    t_eval(out, got);
    for (int b = 0; b < 4; b++)
        for (int k = 0; k < 3; k++) EQ_F64(got[b * 3 + k], x[b * 6 + index[k * 4 + b]]);
    t_graph_free(g);
}

TEST(gather_of_one_row_and_of_one_per_batch)
{
    fth_graph *g = t_graph("b=4 c=6");
    t_random r = t_random_make(3);
    const int64_t one = 5, each[4] = {0, 5, 2, 2};
    const fth_val v = t_noise(g, "x", FTH_F64, "b c", &r);
    const double *x = t_data(v);
    double got[4];
    const fth_val out = fth_gather(v, "c", t_input(g, "one", FTH_I64, "", &one));
    SHAPE(out, "f64 [b=4]");
    t_eval(out, got);
    for (int b = 0; b < 4; b++) EQ_F64(got[b], x[b * 6 + 5]);
    t_eval(fth_gather(v, "c", t_input(g, "each", FTH_I64, "b", each)), got);
    for (int b = 0; b < 4; b++) EQ_F64(got[b], x[b * 6 + each[b]]);
    t_graph_free(g);
}

/* The index may have the indexed axis itself: a permutation. */
TEST(gather_permutes)
{
    fth_graph *g = t_graph("b=2 c=3");
    const int64_t order[6] = {2, 0, 1, 1, 2, 0};
    const float x[6] = {10, 11, 12, 20, 21, 22}, want[6] = {12, 10, 11, 21, 22, 20};
    float got[6];
    const fth_val out =
        fth_gather(t_input(g, "x", FTH_F32, "b c", x), "c", t_input(g, "n", FTH_I64, "b c", order));
    SHAPE(out, "f32 [b=2 c=3]");
    t_eval(out, got);
    SAME_BYTES(got, want, sizeof got);
    t_graph_free(g);
}

TEST(an_index_outside_is_an_error_of_the_run_with_its_place)
{
    static const int64_t bad[2] = {7, -1};
    for (int k = 0; k < 2; k++) {
        fth_graph *g = t_graph("row=7 i=4 j=2 c=3 out=5");
        t_random r = t_random_make(4);
        const int64_t index[8] = {0, 1, 2, 3, 4, bad[k], 6, 0};
        const fth_val v = t_noise(g, "x", FTH_F32, "row c", &r),
                      n = t_input(g, "n", FTH_I64, "i j", index);
        float got[24];
        fth_err err = {0};
        IS(t_try(fth_gather(v, "row", n), got, &err), FTH_E_INDEX_RANGE);
        HAS(err.text, "[i=2 j=1]");
        HAS(err.text, k ? "is -1" : "is 7");
        HAS(err.text, "'row' has 7 elements");
        const fth_val rows = t_noise(g, "y", FTH_F32, "i j c", &r);
        fth_err_clear(&err);
        IS(t_try(fth_scatter_add(rows, "i j", n, "out"), got, &err), FTH_E_INDEX_RANGE);
        HAS(err.text, "'out' has 5 elements");
        t_graph_free(g);
    }
}

TEST(gather_refusals)
{
    fth_graph *g = t_graph("row=7 i=4");
    const fth_val v = t_input(g, "x", FTH_F32, "row", NULL);
    IS_TRUE(!fth_val_ok(fth_gather(v, "row", t_input(g, "n", FTH_F32, "i", NULL))));
    REFUSED(g, FTH_E_DTYPE_OP, "n f32 [i=4]");
    t_graph_free(g);
    g = t_graph("row=7 i=4");
    IS_TRUE(!fth_val_ok(fth_gather(t_input(g, "x", FTH_F32, "row", NULL), "i",
                                   t_input(g, "n", FTH_I64, "i", NULL))));
    REFUSED(g, FTH_E_AXIS_MISSING, "no axis 'i'");
    t_graph_free(g);
}

TEST(scatter_add_of_every_dtype)
{
    for (int k = 0; k < FTH_DTYPE_COUNT; k++) {
        const fth_dtype t = (fth_dtype)k;
        fth_graph *g = t_graph("a=3 i=40 c=5 into=4");
        t_random r = t_random_make(5);
        const fth_val v = t_noise(g, "x", t, "a i c", &r), n = t_noise(g, "n", FTH_I32, "i", &r);
        int32_t *index = t_data(n);
        for (int i = 0; i < 40; i++)
            index[i] = (int32_t)t_random_i64(&r, 0, 2); /* the last stays empty */
        const fth_val out = fth_scatter_add(v, "i", n, "into");
        MADE(out);
        const bool whole = fth_dtype_is_int(t) || t == FTH_BOOL;
        EQ_I64(fth_val_dtype(out), whole ? FTH_I64 : t);
        double got[60], want[60] = {0};
        t_eval_f64(out, got);
        for (int a = 0; a < 3; a++)
            for (int i = 0; i < 40; i++)
                for (int c = 0; c < 5; c++)
                    want[(a * 4 + index[i]) * 5 + c] += t_get(t, t_data(v), (a * 40 + i) * 5 + c);
        const double tol = t == FTH_F16                   ? 0.01
                           : t == FTH_BF16                ? 0.1
                           : t == FTH_F32 || t == FTH_C64 ? 1e-6
                                                          : 1e-13;
        for (int i = 0; i < 60; i++) NEAR(got[i], want[i], tol * (1 + fabs(want[i])));
        t_graph_free(g);
    }
}

TEST(scatter_add_of_elements_batches_and_several_axes)
{
    fth_graph *g = t_graph("b=3 i=6 j=2 into=4");
    t_random r = t_random_make(6);
    const fth_val v = t_noise(g, "x", FTH_F64, "b i j", &r),
                  n = t_noise(g, "n", FTH_I64, "j b i", &r);
    int64_t *index = t_data(n);
    for (int i = 0; i < 36; i++) index[i] = t_random_i64(&r, 0, 3);
    const fth_val out = fth_scatter_add(v, "j i", n, "into");
    SHAPE(out, "f64 [b=3 into=4]");
    const double *x = t_data(v);
    double got[12], want[12] = {0};
    t_eval(out, got);
    for (int j = 0; j < 2; j++) /* the first named axis is outermost */
        for (int i = 0; i < 6; i++)
            for (int b = 0; b < 3; b++)
                want[b * 4 + index[(j * 3 + b) * 6 + i]] += x[(b * 6 + i) * 2 + j];
    SAME_BYTES(got, want, sizeof got);
    t_graph_free(g);
}

TEST(scatter_add_of_nothing_is_zero)
{
    fth_graph *g = t_graph("i=0 c=2 into=3");
    char none[1];
    float got[6];
    t_eval(fth_scatter_add(t_input(g, "x", FTH_F32, "i c", none), "i",
                           t_input(g, "n", FTH_I64, "i", none), "into"),
           got);
    for (int i = 0; i < 6; i++) EQ_F64(got[i], 0);
    t_graph_free(g);
}

TEST(scatter_add_refusals)
{
    fth_graph *g = t_graph("i=4 k=2 into=3");
    const fth_val v = t_input(g, "x", FTH_F32, "i", NULL);
    IS_TRUE(!fth_val_ok(fth_scatter_add(v, "i", t_input(g, "n", FTH_I64, "i k", NULL), "into")));
    REFUSED(g, FTH_E_AXIS_MISMATCH, "expand the value by 'k'");
    t_graph_free(g);
    g = t_graph("i=4 into=3");
    IS_TRUE(!fth_val_ok(fth_scatter_add(t_input(g, "x", FTH_F32, "i into", NULL), "i",
                                        t_input(g, "n", FTH_I64, "i", NULL), "into")));
    REFUSED(g, FTH_E_AXIS_MISMATCH, "already has axis 'into'");
    t_graph_free(g);
}

TEST(compact_keeps_rows_in_order)
{
    for (int k = 0; k < FTH_DTYPE_COUNT; k++) {
        const fth_dtype t = (fth_dtype)k;
        const int64_t size = fth_dtype_size(t);
        fth_graph *g = t_graph("a=3 row=9 c=2 kept=5");
        t_random r = t_random_make(7);
        const uint8_t mask[9] = {1, 1, 0, 0, 1, 0, 1, 0, 1};
        const int64_t rows[5] = {0, 1, 4, 6, 8};
        const fth_val v = t_noise(g, "x", t, "a row c", &r);
        char got[30 * 16];
        const char *x = t_data(v);
        t_eval(fth_compact(v, "row", t_input(g, "mask", FTH_BOOL, "row", mask), "kept"), got);
        for (int64_t a = 0; a < 3; a++)
            for (int64_t i = 0; i < 5; i++)
                SAME_BYTES(got + (a * 5 + i) * 2 * size, x + (a * 9 + rows[i]) * 2 * size,
                           2 * size);
        t_graph_free(g);
    }
}

TEST(compact_checks_the_count)
{
    fth_graph *g = t_graph("row=4 kept=3 none=0 all=4");
    const uint8_t mask[4] = {1, 0, 0, 1}, zero[4] = {0}, ones[4] = {1, 1, 1, 1};
    const float x[4] = {1, 2, 3, 4};
    float got[4];
    fth_err err = {0};
    const fth_val v = t_input(g, "x", FTH_F32, "row", x);
    IS(t_try(fth_compact(v, "row", t_input(g, "mask", FTH_BOOL, "row", mask), "kept"), got, &err),
       FTH_E_INDEX_RANGE);
    HAS(err.text, "3 elements, but 2 of mask");
    t_eval(fth_compact(v, "row", t_input(g, "zero", FTH_BOOL, "row", zero), "none"), got);
    t_eval(fth_compact(v, "row", t_input(g, "ones", FTH_BOOL, "row", ones), "all"), got);
    SAME_BYTES(got, x, sizeof got);
    IS_TRUE(!fth_val_ok(fth_compact(v, "row", v, "kept")));
    REFUSED(g, FTH_E_DTYPE_OP, "mask of bool");
    t_graph_free(g);
}

TEST_MAIN()
