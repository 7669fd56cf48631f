/* test_ops_index.c - gather, scatter_add, compact.
 *
 * seconds: 3 labels: gpu
 */
#include "graph/graph.h"
#include "testing/engine/op_harness.h"

#include <math.h>

TEST(gather_replaces_the_axis_in_place_for_every_dtype)
{
    for (int k = 0; k < FTH_DTYPE_COUNT; k++)
        for (int kind = 0; kind < 3; kind++) {
            const fth_dtype t = (fth_dtype)k, it = kind == 0   ? FTH_I64
                                                   : kind == 1 ? FTH_I32
                                                               : FTH_U32;
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

/* Rows of 236 bytes, single elements, and rows of many: devices move each in another way. */
TEST(gather_of_many_rows)
{
    t_cuts(2);
    fth_graph *g = t_graph("row=900 c=59 i=700 b=3 k=40000 wide=20001 few=5");
    t_random r = t_random_make(8);
    const fth_val v = t_noise(g, "x", FTH_F32, "row c", &r), n = t_noise(g, "n", FTH_I32, "i", &r),
                  m = t_noise(g, "m", FTH_I64, "b k", &r),
                  w = t_noise(g, "w", FTH_U8, "i wide", &r),
                  f = t_noise(g, "f", FTH_I64, "few", &r);
    int32_t *index = t_data(n);
    int64_t *columns = t_data(m), *rows = t_data(f);
    for (int i = 0; i < 700; i++) index[i] = (int32_t)t_random_i64(&r, 0, 899);
    for (int i = 0; i < 120000; i++) columns[i] = t_random_i64(&r, 0, 699);
    for (int i = 0; i < 5; i++) rows[i] = t_random_i64(&r, 0, 699);
    float *got = malloc(700 * 59 * sizeof *got);
    t_eval(fth_gather(v, "row", n), got);
    for (int64_t i = 0; i < 700; i++)
        SAME_BYTES(got + i * 59, (float *)t_data(v) + index[i] * 59, 236);
    int32_t *taken = malloc(120000 * sizeof *taken);
    t_eval(fth_gather(n, "i", m), taken);
    for (int i = 0; i < 120000; i++) EQ_I64(taken[i], index[columns[i]]);
    uint8_t *bytes = malloc(5 * 20001);
    t_eval(fth_gather(w, "i", f), bytes);
    for (int i = 0; i < 5; i++)
        SAME_BYTES(bytes + i * 20001, (uint8_t *)t_data(w) + rows[i] * 20001, 20001);
    free(got);
    free(taken);
    free(bytes);
    t_graph_free(g);
    t_cuts(8);
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
    fth_graph *g = t_graph("row=7 i=2"); /* no index below zero */
    const uint32_t far[2] = {6, UINT32_MAX};
    const float x[7] = {0};
    float got[2];
    fth_err err = {0};
    IS(t_try(fth_gather(t_input(g, "x", FTH_F32, "row", x), "row",
                        t_input(g, "n", FTH_U32, "i", far)),
             got, &err),
       FTH_E_INDEX_RANGE);
    HAS(err.text, "is 4294967295");
    t_graph_free(g);
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
    g = t_graph("a=1 b=1 c=1 d=1 e=1 f=1 g=1 h=1 i=1 j=1");
    const fth_val full = t_input(g, "x", FTH_F32, "a b c d e f g h", NULL);
    IS_TRUE(!fth_val_ok(fth_gather(full, "c", t_input(g, "n", FTH_I64, "i j", NULL))));
    REFUSED(g, FTH_E_AXIS_LIMIT, "would have 9 axes, at most 8");
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

/* Sums of `rows` rows of `c` columns for each of `b` batches: exactly those of a plain loop. */
static void scatter_long(fth_dtype t, int64_t b, int64_t rows, int64_t c, int64_t into)
{
    char axes[96];
    snprintf(axes, sizeof axes, "b=%lld i=%lld c=%lld into=%lld", (long long)b, (long long)rows,
             (long long)c, (long long)into);
    fth_graph *g = t_graph(axes);
    t_random r = t_random_make(9);
    const fth_val v = t_noise(g, "x", t, "b i c", &r), n = t_noise(g, "n", FTH_I64, "b i", &r);
    int64_t *index = t_data(n);
    for (int64_t i = 0; i < b * rows; i++) index[i] = t_random_i64(&r, 0, into - 1);
    const fth_val out = fth_scatter_add(v, "i", n, "into");
    const int64_t count = b * into * c;
    double *want = calloc((size_t)count, sizeof *want);
    char *got = malloc((size_t)count * 16);
    t_eval(out, got);
    for (int64_t i = 0; i < b * rows; i++)
        for (int64_t k = 0; k < c; k++)
            want[(i / rows * into + index[i]) * c + k] += t_get(t, t_data(v), i * c + k);
    for (int64_t i = 0; i < count; i++) {
        const double x = t_get(fth_val_dtype(out), got, i);
        EQ_F64(x, fth_dtype_size(t) == 4 || t == FTH_C64 ? (double)(float)want[i] : want[i]);
    }
    free(want);
    free(got);
    t_graph_free(g);
}

/* Few results of many rows, many of few, targets of more than 16 bits: devices have a way for each.
 */
TEST(scatter_add_of_many_rows_is_the_sum_in_order)
{
    static const fth_dtype dtypes[] = {FTH_F32, FTH_F64, FTH_C64, FTH_I64};
    t_cuts(2);
    for (int k = 0; k < 4; k++) {
        scatter_long(dtypes[k], 1, 50001, 2, 37);
        scatter_long(dtypes[k], 3, 1000, 5, 300);
        scatter_long(dtypes[k], 2, 70, 9000, 3);
        scatter_long(dtypes[k], 1, 3000, 1, 70000);
    }
    scatter_long(FTH_F64, 1, 150001, 1, 2);
    t_cuts(8);
}

TEST(the_first_index_outside_is_told_of_many)
{
    enum { N = 20000 };
    fth_graph *g = t_graph("i=20000 out=5 c=2");
    t_random r = t_random_make(10);
    const fth_val x = t_noise(g, "x", FTH_F32, "i c", &r), y = t_noise(g, "y", FTH_F32, "out", &r),
                  n = t_noise(g, "n", FTH_I32, "i", &r);
    int32_t *index = t_data(n);
    for (int i = 0; i < N; i++) index[i] = i < 7000 ? i % 5 : 5 + i;
    float *got = malloc(N * sizeof *got);
    fth_err err = {0};
    IS(t_try(fth_scatter_add(x, "i", n, "out"), got, &err), FTH_E_INDEX_RANGE);
    HAS(err.text, "[i=7000]");
    HAS(err.text, "is 7005");
    fth_err_clear(&err);
    IS(t_try(fth_gather(y, "out", n), got, &err), FTH_E_INDEX_RANGE);
    HAS(err.text, "[i=7000]");
    free(got);
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

/* More rows than one group of threads counts; short rows, rows of bytes, and rows of many. */
static void compact_long(fth_dtype t, int64_t a, int64_t rows, int64_t c)
{
    t_random r = t_random_make(11);
    uint8_t *mask = malloc((size_t)rows);
    int64_t kept = 0, size = fth_dtype_size(t);
    for (int64_t i = 0; i < rows; i++) kept += mask[i] = t_random_i64(&r, 0, 9) < (i < rows / 2);
    for (int64_t i = rows / 3; i < rows / 3 + 9 && i < rows; i++) kept += !mask[i], mask[i] = 1;
    char axes[96];
    snprintf(axes, sizeof axes, "a=%lld row=%lld c=%lld kept=%lld", (long long)a, (long long)rows,
             (long long)c, (long long)kept);
    fth_graph *g = t_graph(axes);
    const fth_val v = t_noise(g, "x", t, "a row c", &r);
    char *got = malloc((size_t)(a * kept * c * size)), *to = got;
    t_eval(fth_compact(v, "row", t_input(g, "mask", FTH_BOOL, "row", mask), "kept"), got);
    for (int64_t i = 0; i < a * rows; i++) {
        if (!mask[i % rows]) continue;
        SAME_BYTES(to, (char *)t_data(v) + i * c * size, c * size);
        to += c * size;
    }
    free(got);
    t_graph_free(g);
    free(mask);
}

TEST(compact_of_many_rows)
{
    t_cuts(2);
    compact_long(FTH_F32, 1, 20000, 45);
    compact_long(FTH_U8, 2, 150001, 1);
    compact_long(FTH_F64, 1, 6000, 2);
    compact_long(FTH_U16, 1, 30, 20001);
    t_cuts(8);
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
