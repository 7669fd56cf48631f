/* test_cast.c - every pair of dtypes: values, refusals, and the place of what does not fit.
 *
 * seconds: 3 labels: gpu
 */
#include "graph/graph.h"
#include "ops/elementwise.h"
#include "testing/engine/op_harness.h"

#include <math.h>

static double nearest(fth_dtype to, double v)
{
    char memory[16];
    t_put(to, memory, 0, v, 0.0);
    return t_get(to, memory, 0);
}

static void try_pair(fth_dtype from, fth_dtype to)
{
    fth_graph *g = t_graph("a=7 b=29");
    t_random r = t_random_make((uint64_t)(from * 16 + to));
    const fth_val x = t_noise(g, "x", from, "a b", &r);
    const bool unsigned_to = fth_dtype_is_int(to) && t_lowest(to) == 0;
    for (int64_t i = 0; i < t_count(x); i++) { /* inside every range */
        const double v = t_get(from, t_data(x), i) * (fth_dtype_is_real(from) ? 10 : 1);
        if (from != FTH_BOOL)
            t_put(from, t_data(x), i, unsigned_to ? fabs(v) : v, t_get_im(from, t_data(x), i));
    }
    const double ends[2] = {t_lowest(from), t_highest(from)};
    for (int k = 0; k < 2 && fth_dtype_is_int(from) && from != FTH_I64; k++)
        if (!fth_dtype_is_int(to) || (ends[k] >= t_lowest(to) && ends[k] <= t_highest(to)))
            for (int64_t i = k; i < t_count(x); i += 5) t_put(from, t_data(x), i, ends[k], 0.0);
    const fth_val y = fth_cast(x, to);
    if (fth_dtype_is_complex(from) && !fth_dtype_is_complex(to)) {
        IS_TRUE(!fth_val_ok(y));
        REFUSED(g, FTH_E_DTYPE_OP, "real()");
        t_graph_free(g);
        return;
    }
    MADE(y);
    IS_TRUE(fth_val_dtype(y) == to);
    char out[7 * 29 * 16];
    t_eval(y, out);
    for (int64_t i = 0; i < t_count(x); i++) {
        const double v = t_get(from, t_data(x), i);
        const double want = to == FTH_BOOL         ? v != 0
                            : fth_dtype_is_int(to) ? trunc(v)
                                                   : nearest(to, v);
        EQ_F64(t_get(to, out, i), want);
        if (fth_dtype_is_complex(to))
            NEAR(t_get_im(to, out, i), t_get_im(from, t_data(x), i), 1e-6);
    }
    t_graph_free(g);
}

TEST(every_pair)
{
    t_cuts(3);
    for (int from = 0; from < FTH_DTYPE_COUNT; from++)
        for (int to = 0; to < FTH_DTYPE_COUNT; to++) try_pair((fth_dtype)from, (fth_dtype)to);
}

static fth_status cast_one(fth_dtype from, fth_dtype to, double v, double *out)
{
    fth_graph *g = t_graph("a=3");
    char x[48], y[48];
    for (int i = 0; i < 3; i++) t_put(from, x, i, i == 1 ? v : 0.0, 0.0);
    fth_err err = {0};
    const fth_status s = t_try(fth_cast(t_input(g, "x", from, "a", x), to), y, &err);
    if (s == FTH_OK) *out = t_get(to, y, 1);
    if (s != FTH_OK) HAS(err.text, "at [a=1] of x");
    t_graph_free(g);
    return s;
}

TEST(edges_of_ranges)
{
    double v = 0;
    OK(cast_one(FTH_F64, FTH_U8, 255.9, &v));
    EQ_F64(v, 255.0);
    OK(cast_one(FTH_F64, FTH_U8, -0.9, &v));
    EQ_F64(v, 0.0);
    IS(cast_one(FTH_F64, FTH_U8, 256.0, &v), FTH_E_CAST_RANGE);
    IS(cast_one(FTH_F64, FTH_U8, -1.0, &v), FTH_E_CAST_RANGE);
    OK(cast_one(FTH_F64, FTH_I32, -2147483648.9, &v));
    EQ_F64(v, -2147483648.0);
    IS(cast_one(FTH_F64, FTH_I32, 2147483648.0, &v), FTH_E_CAST_RANGE);
    OK(cast_one(FTH_F64, FTH_I64, -0x1p63, &v));
    EQ_F64(v, -0x1p63);
    IS(cast_one(FTH_F64, FTH_I64, 0x1p63, &v), FTH_E_CAST_RANGE);
    IS(cast_one(FTH_F32, FTH_I64, (double)NAN, &v), FTH_E_CAST_RANGE);
    IS(cast_one(FTH_F16, FTH_I64, HUGE_VAL, &v), FTH_E_CAST_RANGE);
    IS(cast_one(FTH_I64, FTH_I32, 3e9, &v), FTH_E_CAST_RANGE);
    IS(cast_one(FTH_I32, FTH_U16, -1.0, &v), FTH_E_CAST_RANGE);
    IS(cast_one(FTH_U16, FTH_U8, 256.0, &v), FTH_E_CAST_RANGE);
    IS(cast_one(FTH_U32, FTH_I32, 2147483648.0, &v), FTH_E_CAST_RANGE);
    IS(cast_one(FTH_I8, FTH_U32, -1.0, &v), FTH_E_CAST_RANGE);
    OK(cast_one(FTH_U32, FTH_I64, 4294967295.0, &v));
    EQ_F64(v, 4294967295.0);
    OK(cast_one(FTH_U32, FTH_F16, 65519.0, &v));
    EQ_F64(v, 65504.0);
    OK(cast_one(FTH_U32, FTH_F32, 4294967295.0, &v));
    EQ_F64(v, 0x1p32);
    OK(cast_one(FTH_I8, FTH_I16, -128.0, &v));
    EQ_F64(v, -128.0);
    OK(cast_one(FTH_F64, FTH_I16, -32768.9, &v));
    EQ_F64(v, -32768.0);
    IS(cast_one(FTH_F32, FTH_I8, -129.0, &v), FTH_E_CAST_RANGE);
    OK(cast_one(FTH_F64, FTH_F32, 1e300, &v));
    EQ_F64(v, HUGE_VAL);
    OK(cast_one(FTH_F64, FTH_BOOL, (double)NAN, &v));
    EQ_F64(v, 1.0);
}

/* 1 + 2^-11 + 2^-40 lies above the tie of two halves; through f32 it would fall on it and round
 * down. */
TEST(to_sixteen_bits_rounds_once)
{
    double v = 0;
    OK(cast_one(FTH_F64, FTH_F16, 1.0 + 0x1p-11 + 0x1p-40, &v));
    EQ_F64(v, 1.0 + 0x1p-10);
    OK(cast_one(FTH_F64, FTH_BF16, 1.0 + 0x1p-8 + 0x1p-40, &v));
    EQ_F64(v, 1.0 + 0x1p-7);
}

extern const fth_kernel fth__cpu_checked_cast;

/* Around every edge the fast rows fit and refuse exactly what the reference does. */
TEST(fast_rows_refuse_what_the_reference_refuses)
{
    static const double edge[] = {0,       255, 256,  65535,  65536, -1,   0x1p31, -0x1p31, 0x1p63,
                                  -0x1p63, 0.5, -0.5, 0x1p32, 127,   -128, 32767,  -32768};
    enum { EDGES = sizeof edge / sizeof edge[0] };
    static const double off[] = {-1, -0.5, 0, 0.5, 1};
    for (int from = 0; from < FTH_DTYPE_COUNT; from++)
        for (int to = 0; to < FTH_DTYPE_COUNT; to++) {
            if (!fth__cast_may_fail((fth_dtype)from, (fth_dtype)to) ||
                fth_dtype_is_complex((fth_dtype)from))
                continue;
            fth_graph *g = t_graph("a=3");
            char x[48], y[48];
            const fth_val v = fth_cast(t_input(g, "x", (fth_dtype)from, "a", x), (fth_dtype)to);
            MADE(v);
            const fth_node *node = fth__val_node(v);
            for (int i = 0; i < EDGES * 5 && fth__cpu_checked_cast.supports(node); i++) {
                const double value = edge[i / 5] + off[i % 5];
                if (fth_dtype_is_int((fth_dtype)from) &&
                    (value != trunc(value) || fabs(value) >= 0x1p63))
                    continue;
                if (fth_dtype_is_int((fth_dtype)from) &&
                    (value < t_lowest((fth_dtype)from) || value > t_highest((fth_dtype)from)))
                    continue;
                fth_err err = {0};
                for (int k = 0; k < 3; k++) t_put((fth_dtype)from, x, k, k == 1 ? value : 0.0, 0.0);
                const fth_call call = {.node = node,
                                       .err = &err,
                                       .in = {{.data = x, .extent = {3}, .stride = {1}}},
                                       .out = {{.data = y, .extent = {3}, .stride = {1}}}};
                const fth_status want = node->op->run(&call);
                const double should = want == FTH_OK ? t_get((fth_dtype)to, y, 1) : 0.0;
                err = (fth_err){0};
                IS(fth__cpu_checked_cast.run(&call), want);
                if (want == FTH_OK) EQ_F64(t_get((fth_dtype)to, y, 1), should);
            }
            t_graph_free(g);
        }
}

TEST(constants_are_numbers_of_their_dtype)
{
    for (int k = 0; k < FTH_DTYPE_COUNT; k++) {
        const fth_dtype t = (fth_dtype)k;
        if ((!fth_dtype_is_int(t) && t != FTH_BOOL) || t == FTH_I64) continue;
        const double ends[2] = {t_lowest(t), t_highest(t)};
        for (int high = 0; high < 2; high++) {
            fth_graph *g = t_graph("a=2");
            const fth_val v = fth_const(g, t, ends[high]);
            char got[8];
            MADE(v);
            t_eval(v, got);
            EQ_F64(t_get(t, got, 0), ends[high]);
            IS_TRUE(!fth_val_ok(fth_const(g, t, ends[high] + (high ? 1 : -1))));
            REFUSED(g, FTH_E_GRAPH_ATTR, "does not fit");
            t_graph_free(g);
        }
    }
}

TEST(only_pairs_that_can_fail_are_marked)
{
    fth_graph *g = t_graph("a=2");
    t_random r = t_random_make(1);
    const fth_val x = t_noise(g, "x", FTH_I32, "a", &r), f = t_noise(g, "f", FTH_F32, "a", &r);
    IS_TRUE(!(fth__val_node(fth_cast(x, FTH_I64))->op->flags & FTH_OP_MAY_FAIL));
    IS_TRUE(!(fth__val_node(fth_cast(f, FTH_F16))->op->flags & FTH_OP_MAY_FAIL));
    IS_TRUE((fth__val_node(fth_cast(x, FTH_U16))->op->flags & FTH_OP_MAY_FAIL) != 0);
    IS_TRUE((fth__val_node(fth_cast(f, FTH_I64))->op->flags & FTH_OP_MAY_FAIL) != 0);
    IS_TRUE(fth_cast(f, FTH_F32).id == f.id);
    t_graph_free(g);
}

TEST(gradient_goes_back_through_reals)
{
    fth_graph *g = t_graph("a=4");
    t_random r = t_random_make(1);
    const fth_val x = t_noise(g, "x", FTH_F64, "a", &r);
    const fth_val z = fth_cast(x, FTH_C128);
    GRAD(fth_sum(fth_sqr(fth_real(fth_mul(z, fth_const_complex(g, FTH_C128, 2.0, 1.0)))), "a"), x,
         1e-7);
    t_graph_free(g);
}

TEST_MAIN()
