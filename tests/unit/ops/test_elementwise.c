/* test_elementwise.c - every operation of elementwise.def, every dtype, against the mathematics of
 * libm.
 *
 * seconds: 8 labels: gpu
 */
#include "cpu/vec.h"
#include "graph/graph.h"
#include "testing/engine/op_harness.h"

#include <complex.h>
#include <math.h>

typedef long double wide;
typedef long double complex wide_c;

static wide sigmoid(wide x)
{
    return 1 / (1 + expl(-x));
}

/* The same by another road: plain library calls, or -1 digits where there is none. */
static bool expected_real(fth_ew op, wide x, wide y, wide z, wide *out)
{
    switch ((int)op) {
    case FTH_EW_ADD: *out = x + y; return true;
    case FTH_EW_SUB: *out = x - y; return true;
    case FTH_EW_MUL: *out = x * y; return true;
    case FTH_EW_DIV: *out = x / y; return true;
    case FTH_EW_MOD: *out = fmodl(x, y); return true;
    case FTH_EW_FMA: *out = fmal(x, y, z); return true;
    case FTH_EW_MIN: *out = fminl(x, y); return true;
    case FTH_EW_MAX: *out = fmaxl(x, y); return true;
    case FTH_EW_POW: *out = powl(x, y); return true;
    case FTH_EW_ATAN2: *out = atan2l(x, y); return true;
    case FTH_EW_NEG: *out = -x; return true;
    case FTH_EW_ABS: *out = fabsl(x); return true;
    case FTH_EW_SQR: *out = x * x; return true;
    case FTH_EW_SQRT: *out = sqrtl(x); return true;
    case FTH_EW_RSQRT: *out = 1 / sqrtl(x); return true;
    case FTH_EW_RECIP: *out = 1 / x; return true;
    case FTH_EW_EXP: *out = expl(x); return true;
    case FTH_EW_EXPM1: *out = expm1l(x); return true;
    case FTH_EW_LOG: *out = logl(x); return true;
    case FTH_EW_LOG1P: *out = log1pl(x); return true;
    case FTH_EW_SIN: *out = sinl(x); return true;
    case FTH_EW_COS: *out = cosl(x); return true;
    case FTH_EW_TANH: *out = tanhl(x); return true;
    case FTH_EW_SIGMOID: *out = sigmoid(x); return true;
    case FTH_EW_SOFTPLUS: *out = x > 0 ? x + log1pl(expl(-x)) : log1pl(expl(x)); return true;
    case FTH_EW_RELU: *out = x <= 0 ? 0 : x; return true;
    case FTH_EW_LGAMMA: *out = lgammal(x); return true;
    case FTH_EW_ERF: *out = erfl(x); return true;
    case FTH_EW_FLOOR: *out = floorl(x); return true;
    case FTH_EW_CEIL: *out = ceill(x); return true;
    case FTH_EW_ROUND: *out = rintl(x); return true;
    case FTH_EW_SIGN: *out = x > 0 ? 1 : x < 0 ? -1 : x; return true;
    case FTH_EW_ISNAN: *out = isnan(x); return true;
    case FTH_EW_ISFINITE: *out = isfinite(x); return true;
    case FTH_EW_EQ: *out = x == y; return true;
    case FTH_EW_NE: *out = x != y; return true;
    case FTH_EW_LT: *out = x < y; return true;
    case FTH_EW_LE: *out = x <= y; return true;
    case FTH_EW_GT: *out = x > y; return true;
    case FTH_EW_GE: *out = x >= y; return true;
    case FTH_EW_CONJ: *out = x; return true;
    case FTH_EW_ABS2: *out = x * x; return true;
    }
    return false;
}

static bool expected_int(fth_ew op, int64_t x, int64_t y, int64_t z, bool is_bool, int64_t *out)
{
    switch ((int)op) {
    case FTH_EW_ADD: *out = x + y; return true;
    case FTH_EW_SUB: *out = x - y; return true;
    case FTH_EW_MUL: *out = (int64_t)((uint64_t)x * (uint64_t)y); return true;
    case FTH_EW_IDIV: *out = y ? x / y : 0; return true;
    case FTH_EW_MOD: *out = y ? x % y : 0; return true;
    case FTH_EW_FMA: *out = (int64_t)((uint64_t)x * (uint64_t)y + (uint64_t)z); return true;
    case FTH_EW_MIN: *out = x < y ? x : y; return true;
    case FTH_EW_MAX: *out = x > y ? x : y; return true;
    case FTH_EW_NEG: *out = -x; return true;
    case FTH_EW_ABS: *out = x < 0 ? -x : x; return true;
    case FTH_EW_SQR: *out = (int64_t)((uint64_t)x * (uint64_t)x); return true;
    case FTH_EW_SIGN: *out = (x > 0) - (x < 0); return true;
    case FTH_EW_EQ: *out = x == y; return true;
    case FTH_EW_NE: *out = x != y; return true;
    case FTH_EW_LT: *out = x < y; return true;
    case FTH_EW_LE: *out = x <= y; return true;
    case FTH_EW_GT: *out = x > y; return true;
    case FTH_EW_GE: *out = x >= y; return true;
    case FTH_EW_AND: *out = x & y; return true;
    case FTH_EW_OR: *out = x | y; return true;
    case FTH_EW_XOR: *out = x ^ y; return true;
    case FTH_EW_NOT: *out = is_bool ? !x : ~x; return true;
    }
    return false;
}

static bool expected_complex(fth_ew op, wide_c x, wide_c y, wide_c z, wide_c *out)
{
    switch ((int)op) {
    case FTH_EW_ADD: *out = x + y; return true;
    case FTH_EW_SUB: *out = x - y; return true;
    case FTH_EW_MUL: *out = x * y; return true;
    case FTH_EW_DIV: *out = x / y; return true;
    case FTH_EW_FMA: *out = x * y + z; return true;
    case FTH_EW_NEG: *out = -x; return true;
    case FTH_EW_ABS: *out = cabsl(x); return true;
    case FTH_EW_SQR: *out = x * x; return true;
    case FTH_EW_SQRT: *out = csqrtl(x); return true;
    case FTH_EW_RECIP: *out = 1 / x; return true;
    case FTH_EW_EXP: *out = cexpl(x); return true;
    case FTH_EW_LOG: *out = clogl(x); return true;
    case FTH_EW_SIGN: *out = x / cabsl(x); return true;
    case FTH_EW_CONJ: *out = conjl(x); return true;
    case FTH_EW_REAL: *out = creall(x); return true;
    case FTH_EW_IMAG: *out = cimagl(x); return true;
    case FTH_EW_ARG: *out = cargl(x); return true;
    case FTH_EW_ABS2: *out = creall(x) * creall(x) + cimagl(x) * cimagl(x); return true;
    case FTH_EW_EQ: *out = x == y; return true;
    case FTH_EW_NE: *out = x != y; return true;
    case FTH_EW_ISNAN: *out = isnan(creall(x)) || isnan(cimagl(x)); return true;
    case FTH_EW_ISFINITE: *out = isfinite(creall(x)) && isfinite(cimagl(x)); return true;
    }
    return false;
}

static const double epsilon[FTH_DTYPE_COUNT] = {
    [FTH_F16] = 0x1p-10, [FTH_BF16] = 0x1p-7, [FTH_F32] = 0x1p-22,
    [FTH_F64] = 3e-15,   [FTH_C64] = 0x1p-20, [FTH_C128] = 1e-14};

/* Cut to the width of an integer dtype, as wrapping arithmetic does. */
static int64_t wrap(fth_dtype t, int64_t v)
{
    if (t == FTH_U8) return (uint8_t)v;
    if (t == FTH_U16) return (uint16_t)v;
    if (t == FTH_I32) return (int32_t)(uint32_t)v;
    if (t == FTH_U32) return (uint32_t)v;
    if (t == FTH_I16) return (int16_t)(uint16_t)v;
    if (t == FTH_I8) return (int8_t)(uint8_t)v;
    return v;
}

static void check_element(fth_ew op, fth_dtype t, fth_dtype to, const wide_c *in, bool cond,
                          wide re, wide im)
{
    const wide_c x = in[0], y = in[1], z = in[2];
    wide_c want_c = 0;
    wide want = 0;
    int64_t want_i = 0;
    const char *name = fth__ew_info(op)->name;
    if (op == FTH_EW_SELECT) {
        want_c = cond ? y : z;
    } else if (op == FTH_EW_COMPLEX) {
        want_c = creall(x) + (wide_c)_Complex_I * creall(y);
    } else if (fth_dtype_is_complex(t)) {
        if (!expected_complex(op, x, y, z, &want_c)) FAIL("%s of complex has no expectation", name);
    } else if (fth_dtype_is_real(t)) {
        if (!expected_real(op, creall(x), creall(y), creall(z), &want)) return;
        want_c = want;
    } else {
        if (!expected_int(op, (int64_t)creall(x), (int64_t)creall(y), (int64_t)creall(z),
                          t == FTH_BOOL, &want_i))
            FAIL("%s of integers has no expectation", name);
        want_c = (wide)wrap(to, want_i);
    }
    const wide wr = creall(want_c), wi = cimagl(want_c);
    if (isnan(wr) && isnan(re)) return;
    if (wr == re && wi == im) return;
    const wide scale = op == FTH_EW_LGAMMA || fth_dtype_is_complex(t) ? fmaxl(1, cabsl(want_c))
                                                                      : fabsl(wr) + 1e-40L;
    const wide small = to == FTH_F16 ? 0x1p-24L : 0; /* subnormal halves */
    if (!(fabsl(re - wr) <= (wide)epsilon[to] * scale + small) ||
        !(fabsl(im - wi) <= (wide)epsilon[to] * scale))
        FAIL("%s %s of %Lg%+Lgi %Lg%+Lgi %Lg: %.17Lg%+.17Lgi, expected %.17Lg%+.17Lgi", name,
             fth_dtype_name(t), creall(x), cimagl(x), creall(y), cimagl(y), creall(z), re, im, wr,
             wi);
}

/* x [a b], y [b], z [] in all positions: broadcasting on the way. */
static void try_op(fth_ew op, fth_dtype t, uint64_t seed)
{
    const fth__ew_row *row = fth__ew_info(op);
    const fth_dtype to = fth__ew_dtype(op, t);
    if (to == FTH_DTYPE_COUNT) return;
    static const char *const axes[3] = {"a b", "b", ""};
    fth_graph *g = t_graph("a=5 b=37");
    t_random r = t_random_make(seed);
    fth_val v[3] = {{0}};
    const int first = (int)(seed % 3);
    for (int k = 0; k < row->arity; k++) {
        char name[16];
        snprintf(name, sizeof name, "in%d", k);
        const bool cond = row->result == FTH__EW_PICK && k == 0;
        v[k] =
            t_noise(g, name, cond ? FTH_BOOL : t, axes[row->arity == 1 ? 0 : (first + k) % 3], &r);
        /* the ends of integers, where a sign taken for another tells */
        for (int64_t i = 0; seed == 2 && fth_dtype_is_int(t) && t != FTH_I64 && i < t_count(v[k]);
             i++)
            if (!cond && t_random_i64(&r, 0, 2) == 0)
                t_put(t, t_data(v[k]), i, t_random_i64(&r, 0, 1) ? t_lowest(t) : t_highest(t), 0);
    }
    const fth_val out = fth_map_(FTH_HERE, op, v[0], v[1], v[2]);
    MADE(out);
    IS_TRUE(fth_val_dtype(out) == to);
    const int64_t n = t_count(out);
    void *data = malloc((size_t)n * 16 + 16);
    t_eval(out, data);
    for (int64_t i = 0; i < n; i++) {
        wide_c in[3] = {0, 0, 0};
        bool cond = false;
        for (int k = 0; k < row->arity; k++) {
            const int64_t at = t_count(v[k]) == n ? i : t_count(v[k]) == 37 ? i % 37 : 0;
            const fth_dtype dt = fth_val_dtype(v[k]);
            in[k] = (wide)t_get(dt, t_data(v[k]), at) +
                    (wide_c)_Complex_I * (wide)t_get_im(dt, t_data(v[k]), at);
            if (k == 0) cond = creall(in[0]) != 0;
        }
        check_element(op, t, to, in, cond, (wide)t_get(to, data, i), (wide)t_get_im(to, data, i));
    }
    free(data);
    t_graph_free(g);
}

TEST(every_operation_and_dtype)
{
    t_cuts(3);
    for (int op = 0; op < FTH_EW_COUNT; op++)
        for (int t = 0; t < FTH_DTYPE_COUNT; t++)
            for (uint64_t seed = 0; seed < 3; seed++) try_op((fth_ew)op, (fth_dtype)t, seed);
}

/* Sines of arguments of every size, which no reduction in a few steps gets right. One in ten, or
 * every one; numbers that are none among them. */
static void try_huge(fth_ew op, fth_dtype t, int one_in)
{
    enum { N = 700 };
    fth_graph *g = t_graph("a=700");
    t_random r = t_random_make((uint64_t)one_in);
    const fth_val x = t_noise(g, "x", t, "a", &r);
    const double most = t == FTH_F16 ? 11 : t == FTH_F64 || t == FTH_C128 ? 709 : 88;
    for (int64_t i = 0; i < N; i++) {
        if (i % one_in != one_in - 1) continue;
        double v = copysign(exp(most * t_random_f64(&r)), t_random_normal(&r));
        if (i % 97 == 96) v = i % 2 ? (double)NAN : HUGE_VAL;
        if (fth_dtype_is_complex(t))
            t_put(t, t_data(x), i, t_random_normal(&r), v);
        else
            t_put(t, t_data(x), i, v, 0);
    }
    const fth_val out = fth_map_(FTH_HERE, op, x, (fth_val){0}, (fth_val){0});
    MADE(out);
    char data[N * 16];
    t_eval(out, data);
    for (int64_t i = 0; i < N; i++) {
        const wide_c in[3] = {(wide)t_get(t, t_data(x), i) +
                              (wide_c)_Complex_I * (wide)t_get_im(t, t_data(x), i)};
        if (isfinite(creall(in[0])) && isfinite(cimagl(in[0])))
            check_element(op, t, t, in, false, (wide)t_get(t, data, i), (wide)t_get_im(t, data, i));
        else
            IS_TRUE(isnan(t_get(t, data, i)));
    }
    t_graph_free(g);
}

TEST(sines_of_huge_arguments)
{
    NEEDS_LONG_DOUBLE();
    static const fth_dtype real[] = {FTH_F16, FTH_BF16, FTH_F32, FTH_F64};
    for (int i = 0; i < 4; i++)
        for (int one_in = 1; one_in <= 10; one_in += 9) {
            try_huge(FTH_EW_SIN, real[i], one_in);
            try_huge(FTH_EW_COS, real[i], one_in);
        }
    for (int one_in = 1; one_in <= 10; one_in += 9) {
        try_huge(FTH_EW_EXP, FTH_C64, one_in);
        try_huge(FTH_EW_EXP, FTH_C128, one_in);
    }
}

/* ---- the edges ------------------------------------------------------------------------ */

static int64_t int_op(fth_ew op, fth_dtype t, int64_t x, int64_t y)
{
    fth__cell a = {0}, b = {0}, r;
    fth__cell_const(t, (fth_c128){0}, x, &a);
    fth__cell_const(t, (fth_c128){0}, y, &b);
    fth__cell_map(op, t, &a, &b, NULL, &r);
    return t == FTH_I64 ? r.i64 : (int64_t)t_get(t, &r, 0);
}

TEST(integers_wrap_and_divide_by_zero_to_zero)
{
    EQ_I64(int_op(FTH_EW_ADD, FTH_I32, INT32_MAX, 1), INT32_MIN);
    EQ_I64(int_op(FTH_EW_MUL, FTH_I64, INT64_MAX, 2), -2);
    EQ_I64(int_op(FTH_EW_SUB, FTH_U8, 3, 5), 254);
    EQ_I64(int_op(FTH_EW_IDIV, FTH_I64, INT64_MIN, -1), INT64_MIN);
    EQ_I64(int_op(FTH_EW_IDIV, FTH_I32, INT32_MIN, -1), INT32_MIN);
    EQ_I64(int_op(FTH_EW_MOD, FTH_I32, INT32_MIN, -1), 0);
    EQ_I64(int_op(FTH_EW_IDIV, FTH_I32, 7, 0), 0);
    EQ_I64(int_op(FTH_EW_MOD, FTH_I64, 7, 0), 0);
    EQ_I64(int_op(FTH_EW_IDIV, FTH_I32, -7, 2), -3);
    EQ_I64(int_op(FTH_EW_NEG, FTH_I64, INT64_MIN, 0), INT64_MIN);
    EQ_I64(int_op(FTH_EW_ABS, FTH_I32, INT32_MIN, 0), INT32_MIN);
    EQ_I64(int_op(FTH_EW_ABS, FTH_I8, INT8_MIN, 0), INT8_MIN);
    EQ_I64(int_op(FTH_EW_IDIV, FTH_I8, INT8_MIN, -1), INT8_MIN);
    EQ_I64(int_op(FTH_EW_IDIV, FTH_I16, INT16_MIN, -1), INT16_MIN);
    EQ_I64(int_op(FTH_EW_MOD, FTH_I16, INT16_MIN, -1), 0);
    EQ_I64(int_op(FTH_EW_MUL, FTH_I16, INT16_MIN, INT16_MIN), 0);
    EQ_I64(int_op(FTH_EW_IDIV, FTH_U32, UINT32_MAX, 1), UINT32_MAX);
    EQ_I64(int_op(FTH_EW_IDIV, FTH_U32, UINT32_MAX, 0), 0);
    EQ_I64(int_op(FTH_EW_MOD, FTH_U32, UINT32_MAX, 10), 5);
    EQ_I64(int_op(FTH_EW_MOD, FTH_U32, 7, 0), 0);
    EQ_I64(int_op(FTH_EW_ABS, FTH_U32, UINT32_MAX, 0), UINT32_MAX);
    EQ_I64(int_op(FTH_EW_SIGN, FTH_U32, UINT32_MAX, 0), 1);
    EQ_I64(int_op(FTH_EW_SIGN, FTH_I8, -7, 0), -1);
    EQ_I64(int_op(FTH_EW_MAX, FTH_U32, UINT32_MAX, 1), UINT32_MAX);
    EQ_I64(int_op(FTH_EW_SUB, FTH_U32, 3, 5), UINT32_MAX - 1);
}

TEST(nan_wins_in_min_and_max)
{
    fth__cell nan = {.f64 = (double)NAN}, one = {.f64 = 1.0}, r;
    for (int way = 0; way < 4; way++) {
        fth__cell_map(way & 2 ? FTH_EW_MAX : FTH_EW_MIN, FTH_F64, way & 1 ? &nan : &one,
                      way & 1 ? &one : &nan, NULL, &r);
        IS_TRUE(isnan(r.f64));
    }
}

/* ---- the rule of axes ----------------------------------------------------------------- */

TEST(result_has_the_axes_and_order_of_the_larger)
{
    fth_graph *g = t_graph("a=2 b=3 c=4");
    t_random r = t_random_make(1);
    const fth_val x = t_noise(g, "x", FTH_F32, "c a b", &r),
                  y = t_noise(g, "y", FTH_F32, "b c", &r);
    const fth_val s = t_noise(g, "s", FTH_BOOL, "a", &r);
    SHAPE(fth_add(x, y), "f32 [c=4 a=2 b=3]");
    SHAPE(fth_add(y, x), "f32 [c=4 a=2 b=3]");
    SHAPE(fth_lt(y, x), "bool [c=4 a=2 b=3]");
    SHAPE(fth_select(s, x, y), "f32 [c=4 a=2 b=3]");
    SHAPE(fth_mul(y, fth_const(g, FTH_F32, 2.0)), "f32 [b=3 c=4]");
    t_graph_free(g);
}

/* Images of [group chan] met offsets of [group]; the report was about a reshape. */
TEST(mismatch_names_both_and_suggests_split)
{
    fth_graph *g = t_graph("group=32 chan=4 patch=128 y=78");
    t_random r = t_random_make(1);
    const fth_val shift = t_noise(g, "shift", FTH_F32, "group", &r);
    const fth_val image =
        fth_merge(t_noise(g, "image", FTH_F32, "group chan y", &r), "group chan", "patch");
    IS_TRUE(!fth_val_ok(fth_add(image, shift)));
    REFUSED(g, FTH_E_AXIS_MISMATCH, "[patch=128 y=78]");
    REFUSED(g, FTH_E_AXIS_MISMATCH, "[group=32]");
    REFUSED(g, FTH_E_AXIS_MISMATCH, "test_elementwise.c");
    REFUSED(g, FTH_E_AXIS_MISMATCH, "split(first operand, \"patch\", \"group chan\")");
    t_graph_free(g);
}

TEST(unrelated_axes_need_a_written_expand)
{
    fth_graph *g = t_graph("row=3 col=4");
    t_random r = t_random_make(1);
    const fth_val x = t_noise(g, "x", FTH_F32, "row", &r), y = t_noise(g, "y", FTH_F32, "col", &r);
    IS_TRUE(!fth_val_ok(fth_mul(x, y)));
    REFUSED(g, FTH_E_AXIS_MISMATCH, "expand(first operand, \"col\")");
    t_graph_free(g);
}

TEST(dtypes_never_change_silently)
{
    fth_graph *g = t_graph("row=3");
    t_random r = t_random_make(1);
    IS_TRUE(!fth_val_ok(
        fth_add(t_noise(g, "x", FTH_F32, "row", &r), t_noise(g, "y", FTH_F64, "row", &r))));
    REFUSED(g, FTH_E_DTYPE, "cast");
    t_graph_free(g);
    g = t_graph("row=3");
    IS_TRUE(!fth_val_ok(fth_exp(t_noise(g, "x", FTH_I32, "row", &r))));
    REFUSED(g, FTH_E_DTYPE_OP, "exp is defined for: reals complex");
    t_graph_free(g);
    g = t_graph("row=3");
    const fth_val x = t_noise(g, "x", FTH_F32, "row", &r);
    IS_TRUE(!fth_val_ok(fth_select(x, x, x)));
    REFUSED(g, FTH_E_DTYPE_OP, "must be bool");
    t_graph_free(g);
    g = t_graph("row=3");
    IS_TRUE(!fth_val_ok(
        fth_lt(t_noise(g, "x", FTH_C64, "row", &r), t_noise(g, "y", FTH_C64, "row", &r))));
    REFUSED(g, FTH_E_DTYPE_OP, "lt");
    t_graph_free(g);
}

TEST(triangular_marks_survive_where_zeros_do)
{
    fth_graph *g = t_graph("row=3 col=3 b=2");
    t_random r = t_random_make(1);
    const fth_val l = fth_mark(t_noise(g, "l", FTH_F32, "row col", &r), FTH_LOWER, "row", "col");
    const fth_val x = t_noise(g, "x", FTH_F32, "b row col", &r);
    EQ_I64(fth__val_desc(fth_mul(l, x))->triangle, FTH_LOWER);
    EQ_I64(fth__val_desc(fth_mul(x, l))->row, 1);
    EQ_I64(fth__val_desc(fth_add(l, l))->triangle, FTH_LOWER);
    EQ_I64(fth__val_desc(fth_neg(l))->triangle, FTH_LOWER);
    EQ_I64(fth__val_desc(fth_add(l, x))->triangle, FTH_FULL);
    EQ_I64(fth__val_desc(fth_exp(l))->triangle, FTH_FULL);
    t_graph_free(g);
}

/* ---- gradients ------------------------------------------------------------------------ */

/* Inputs away from zeros, poles and ties: |v| in [0.3, 1.5]. */
static void tame(fth_val v, bool positive)
{
    double *x = t_data(v);
    const int64_t n = t_count(v) * (fth_val_dtype(v) == FTH_C128 ? 2 : 1);
    for (int64_t i = 0; i < n; i++) {
        const double a = 0.3 + fmod(fabs(x[i]), 1.2);
        x[i] = positive || x[i] > 0 ? a : -a;
    }
}

static void try_grad(fth_ew op, fth_dtype t)
{
    const fth__ew_row *row = fth__ew_info(op);
    const fth_dtype to = fth__ew_dtype(op, t);
    if (to == FTH_DTYPE_COUNT || to == FTH_BOOL) return;
    fth_graph *g = t_graph("a=3 b=2");
    t_random r = t_random_make((uint64_t)op);
    const bool positive = op == FTH_EW_POW || op == FTH_EW_LOG || op == FTH_EW_LOG1P ||
                          op == FTH_EW_SQRT || op == FTH_EW_RSQRT || op == FTH_EW_LGAMMA ||
                          op == FTH_EW_DIGAMMA;
    static const char *const axes[3] = {"a b", "b", "b a"};
    static const char *const names[3] = {"x", "y", "z"};
    fth_val v[3] = {{0}};
    for (int k = 0; k < row->arity; k++) {
        const bool cond = row->result == FTH__EW_PICK && k == 0;
        v[k] = t_noise(g, names[k], cond ? FTH_BOOL : t, axes[k], &r);
        if (!cond) tame(v[k], positive);
    }
    fth_val out = fth_map_(FTH_HERE, op, v[0], v[1], v[2]);
    MADE(out);
    const fth_val weight = t_noise(g, "w", to, "a b", &r);
    if (fth_dtype_is_complex(to))
        out = fth_real(fth_mul(out, fth_conj(weight)));
    else
        out = fth_mul(out, weight);
    const fth_val loss = fth_sum(out, "a b");
    for (int k = 0; k < row->arity; k++)
        if (fth_val_dtype(v[k]) != FTH_BOOL) GRAD(loss, v[k], 1e-6);
    t_graph_free(g);
}

TEST(gradients)
{
    t_cuts(1);
    for (int op = 0; op < FTH_EW_COUNT; op++) {
        if (op == FTH_EW_MOD || op == FTH_EW_TRIGAMMA)
            continue; /* jumps; third derivative is not there */
        if (op == FTH_EW_SIGN) {
            try_grad(FTH_EW_SIGN, FTH_F64);
            continue; /* of complex: not differentiable in our sense */
        }
        try_grad((fth_ew)op, FTH_F64);
        try_grad((fth_ew)op, FTH_C128);
    }
}

/* ---- instruction sets ----------------------------------------------------------------- */

/* Equal, or both not a number in the same part. */
static bool same_bits(fth_dtype t, const void *a, const void *b)
{
    const int64_t size = fth_dtype_size(t);
    if (memcmp(a, b, (size_t)size) == 0) return true;
    if (!fth_dtype_is_real(t) && !fth_dtype_is_complex(t)) return false;
    const double x = t_get(t, a, 0), y = t_get(t, b, 0), xi = t_get_im(t, a, 0),
                 yi = t_get_im(t, b, 0);
    const bool re = isnan(x) ? isnan(y) : x == y && signbit(x) == signbit(y);
    const bool im = isnan(xi) ? isnan(yi) : xi == yi && signbit(xi) == signbit(yi);
    return re && im;
}

enum { LOOP_N = 83 };

/* Without huge numbers, loops over sines have vectors; with one, they go element by element. */
static void fill_special(fth_dtype t, char *data, bool huge, t_random *r)
{
    static const double special[] = {0.0,  -0.0,   1.0,   -1.0, 1e-40, -1e-310, 1e30, -1e30,
                                     88.7, -103.5, 709.0, 0.5,  1e5,   2.5,     -3.5};
    for (int i = 0; i < LOOP_N; i++) {
        const int64_t k = t_random_i64(r, 0, 30);
        double v = k < 15    ? special[k]
                   : k == 15 ? (double)NAN
                   : k == 16 ? HUGE_VAL
                   : k == 17 ? -HUGE_VAL
                             : 3 * t_random_normal(r);
        double im = huge && k % 8 == 0 ? 1e9 * exp(40 * t_random_f64(r)) : t_random_normal(r);
        if (!huge && fabs(v) > 50 && isfinite(v)) v = 50;
        if (t == FTH_BOOL) v = (double)(k & 1);
        if (fth_dtype_is_int(t))
            v = k < 6 && t != FTH_I64 ? (k % 2 ? t_lowest(t) : t_highest(t))
                                      : (double)t_random_i64(r, t_lowest(t) < 0 ? -100 : 0, 120);
        t_put(t, data, i, v, im);
    }
}

static void try_loops_with(fth__map_loops *loops, fth_ew op, fth_dtype t, bool huge, t_random *r)
{
    const fth__ew_row *row = fth__ew_info(op);
    const fth_dtype to = fth__ew_dtype(op, t);
    _Alignas(16) char in[3][LOOP_N * 16], out[LOOP_N * 16];
    for (int form = 0; form < FTH__FORMS; form++) {
        fth__vec_fn *run = (*loops)[op][t][form];
        if (to != FTH_DTYPE_COUNT && form == FTH__VV && !run)
            run = (*loops)[op][fth__vec_twin(t)][form]; /* they share it */
        if (to == FTH_DTYPE_COUNT || !run) continue;
        for (int k = 0; k < 3; k++)
            fill_special(k == 0 && row->result == FTH__EW_PICK ? FTH_BOOL : t, in[k], huge, r);
        /* which operands are one element: the last two, or of two operands either */
        const bool two = row->arity == 2;
        const bool one[3] = {two && form == FTH__SV, two ? form == FTH__VS : (form & 2) != 0,
                             !two && (form & 1)};
        const void *src[3] = {in[0], in[1], in[2]};
        run(LOOP_N, out, src);
        for (int i = 0; i < LOOP_N; i++) {
            fth__cell v[3], want;
            for (int k = 0; k < 3; k++) {
                const fth_dtype dt = k == 0 && row->result == FTH__EW_PICK ? FTH_BOOL : t;
                fth__cell_load(dt, in[k] + (one[k] ? 0 : i) * fth_dtype_size(dt), &v[k]);
            }
            fth__cell_map(op, t, &v[0], &v[1], &v[2], &want);
            if (!same_bits(to, &want, out + i * fth_dtype_size(to)))
                FAIL("%s %s form %d: %.17g %.17gi, the reference gives %.17g %.17gi", row->name,
                     fth_dtype_name(t), form, t_get(to, out, i), t_get_im(to, out, i),
                     t_get(to, &want, 0), t_get_im(to, &want, 0));
        }
    }
}

static void try_loops(fth__map_loops *loops, fth_ew op, fth_dtype t, t_random *r)
{
    try_loops_with(loops, op, t, true, r);
    try_loops_with(loops, op, t, false, r);
}

/* One definition of the mathematics: scalar code and vectors of any length agree to the last bit.
 */
TEST(every_instruction_set_gives_the_same_bits)
{
    t_random r = t_random_make(3);
    for (int op = 0; op < FTH_EW_COUNT; op++)
        for (int t = 0; t < FTH_DTYPE_COUNT; t++) {
            if (t == FTH_F16 || t == FTH_BF16) continue; /* they have no loops of their own */
            for (int level = 1; level <= 4; level++) {
                fth__map_loops *loops = FTH_ISA_AT(fth__map_loops, level);
                if (loops) try_loops(loops, (fth_ew)op, (fth_dtype)t, &r);
            }
        }
}

/* Every dtype that has an order; one end may be missing; NaN stays. */
TEST(clip)
{
    enum { N = 9 };
    static const double x[N] = {-3, -1, -0.0, 0, 1, 2, 3, HUGE_VAL, (double)NAN};
    fth_graph *g = t_graph("i=9");
    double got[N];
    const fth_val v = t_input(g, "x", FTH_F64, "i", x);
    const double ends[4][2] = {{-1, 2}, {-HUGE_VAL, 2}, {-1, HUGE_VAL}, {1, 1}};
    for (int k = 0; k < 4; k++) {
        t_eval(fth_clip(v, ends[k][0], ends[k][1]), got);
        for (int i = 0; i < N; i++)
            EQ_F64(got[i], isnan(x[i]) ? (double)NAN : fmin(fmax(x[i], ends[k][0]), ends[k][1]));
    }
    IS_TRUE(fth_clip(v, -HUGE_VAL, HUGE_VAL).id == v.id);
    static const int32_t whole[N] = {-5, -1, 0, 1, 2, 3, 4, 5, 6};
    int32_t held[N];
    t_eval(fth_clip(t_input(g, "n", FTH_I32, "i", whole), 0, 4), held);
    for (int i = 0; i < N; i++) EQ_I64(held[i], whole[i] < 0 ? 0 : whole[i] > 4 ? 4 : whole[i]);
    IS_TRUE(!fth_val_ok(fth_clip(v, 2, 1)));
    REFUSED(g, FTH_E_GRAPH_ATTR, "cannot lie between 2 and 1");
    fth_graph_clear_errors(g);
    IS_TRUE(!fth_val_ok(fth_clip(v, (double)NAN, 1)));
    fth_graph_clear_errors(g);
    IS_TRUE(!fth_val_ok(fth_clip(t_input(g, "m", FTH_I32, "i", whole), 0.5, 4)));
    REFUSED(g, FTH_E_GRAPH_ATTR, "0.5 is not a whole number");
    t_graph_free(g);
}

TEST_MAIN()
