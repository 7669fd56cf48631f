/* super_kernels.c - two elementwise instructions in one loop.
 *
 * Compiled once per instruction set. Each of the two rounds as it would alone, so the bits do not
 * depend on what was joined; what is saved is a trip of the intermediate block through the cache.
 * The pairs are those that gradients, kernels of Gaussian processes and losses are made of.
 */
#include "cpu/vec.h"
#include "cpu/vec_far.h"

/* The operations as functions, from the table. */
#define FUNCTION_1(name, expr)                                                                     \
    FTH__MATH FTH_T FTH__EW_GLUE(name##_, TAG)(FTH_T x)                                            \
    {                                                                                              \
        return (FTH_T)expr;                                                                        \
    }
#define FUNCTION_2(name, expr)                                                                     \
    FTH__MATH FTH_T FTH__EW_GLUE(name##_, TAG)(FTH_T x, FTH_T y)                                   \
    {                                                                                              \
        return (FTH_T)expr;                                                                        \
    }
#define FUNCTION_3(name, expr)
#define KEEP_SAME(name, arity, expr) FUNCTION_##arity(name, expr)
#define KEEP_REAL(name, arity, expr) FUNCTION_##arity(name, expr)
#define KEEP_PICK(name, arity, expr)
#define KEEP_BOOL(name, arity, expr)
#define KEEP_COMPLEX(name, arity, expr)

#define FTH__EW_COLUMN REAL
#define FTH_T float
#define FTH_FN(f) fth__##f##_f32
#define TAG f32
#define FTH__EW_ROW(name, arity, result, expr) KEEP_##result(name, arity, expr)
#include "ops/elementwise_type.h"
#undef FTH_T
#undef FTH_FN
#undef TAG
#define FTH_T double
#define FTH_FN(f) fth__##f##_f64
#define TAG f64
#define FTH__EW_ROW(name, arity, result, expr) KEEP_##result(name, arity, expr)
#include "ops/elementwise_type.h"
#undef FTH_T
#undef FTH_FN
#undef TAG

/* ---- which pairs ---------------------------------------------------------------------- */
/* X(first, second) for second(first(a, b), c), Y for second(c, first(a, b)) */
/* clang-format off */
#define BINARY_BINARY(X, Y)                                                                        \
    X(MUL, ADD) X(MUL, SUB) Y(MUL, SUB) X(MUL, MUL) X(MUL, MAX) X(MUL, DIV)                        \
    X(ADD, ADD) X(ADD, SUB) Y(ADD, SUB) X(ADD, MUL) X(ADD, MAX) X(ADD, DIV) Y(ADD, DIV)            \
    X(SUB, ADD) X(SUB, SUB) Y(SUB, SUB) X(SUB, MUL) X(SUB, MAX) X(SUB, DIV)                        \
    X(DIV, ADD) X(DIV, SUB) Y(DIV, SUB) X(DIV, MUL)
#define BINARY_UNARY(X)                                                                            \
    X(MUL, EXP) X(MUL, SQR) X(MUL, SQRT) X(MUL, NEG) X(MUL, SIGMOID) X(MUL, TANH) X(MUL, RECIP)    \
    X(ADD, EXP) X(ADD, SQR) X(ADD, SQRT) X(ADD, NEG) X(ADD, LOG) X(ADD, RECIP) X(ADD, RSQRT)       \
    X(SUB, EXP) X(SUB, SQR) X(SUB, ABS) X(SUB, NEG) X(DIV, SQR) X(DIV, EXP)                        \
    X(MAX, SQRT) X(MAX, LOG)
#define UNARY_BINARY(X, Y)                                                                         \
    X(SQR, MUL) X(SQR, ADD) X(SQR, SUB) Y(SQR, SUB) X(SQR, DIV)                                    \
    X(EXP, MUL) X(EXP, ADD) X(EXP, SUB) Y(EXP, SUB) X(EXP, DIV)                                    \
    X(NEG, MUL) X(NEG, ADD) X(NEG, DIV) X(SQRT, MUL) X(SQRT, ADD) X(SQRT, DIV) Y(SQRT, DIV)        \
    X(LOG, MUL) X(LOG, ADD) X(LOG, SUB) Y(LOG, SUB) X(RECIP, MUL) X(ABS, MUL) X(ABS, ADD)          \
    X(SIGMOID, MUL) X(TANH, MUL) X(TANH, ADD)
#define SINE_BINARY(X) X(COS, cos, MUL) X(SIN, sin, MUL)
#define UNARY_UNARY(X)                                                                             \
    X(NEG, EXP) X(SQR, NEG) X(EXP, NEG) X(EXP, SQR) X(LOG, NEG) X(SQRT, NEG) X(SQR, SQR)
/* clang-format on */

/* ---- loops ---------------------------------------------------------------------------- */
#define PAIR(name, T, B, C, expr)                                                                  \
    static void name(int64_t n, void *out_, const void *const *src)                                \
    {                                                                                              \
        T *out = out_;                                                                             \
        const T *pa = src[0];                                                                      \
        LOAD_##B(T, b, pb, src[1]);                                                                \
        LOAD_##C(T, c, pc, src[2]);                                                                \
        FTH__EACH                                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const T a = pa[i];                                                                     \
            EACH_##B(T, b, pb);                                                                    \
            EACH_##C(T, c, pc);                                                                    \
            out[i] = expr;                                                                         \
        }                                                                                          \
    }
/* What begins with a sine: vectors where every argument is near, one by one elsewhere. */
#define PAIR_NEAR(name, T, tag, C, expr, near)                                                     \
    PAIR(name##_any, T, N, C, expr)                                                                \
    PAIR(name##_near, T, N, C, near)                                                               \
    static void name(int64_t n, void *out, const void *const *src)                                 \
    {                                                                                              \
        (fth__any_far_##tag(src[0], n) ? name##_any : name##_near)(n, out, src);                   \
    }
#define LOAD_V(T, b, pb, p) const T *pb = p
#define LOAD_S(T, b, pb, p) const T b = *(const T *)p
#define LOAD_N(T, b, pb, p)
#define EACH_V(T, b, pb) const T b = pb[i]
#define EACH_S(T, b, pb)
#define EACH_N(T, b, pb)

#define BB4(name, T, expr)                                                                         \
    PAIR(name##_VV, T, V, V, expr)                                                                 \
    PAIR(name##_VS, T, V, S, expr) PAIR(name##_SV, T, S, V, expr) PAIR(name##_SS, T, S, S, expr)
#define BB_X(f, s)                                                                                 \
    BB4(f##_##s##_f32, float, s##_f32(f##_f32(a, b), c))                                           \
    BB4(f##_##s##_f64, double, s##_f64(f##_f64(a, b), c))
#define BB_Y(f, s)                                                                                 \
    BB4(f##_R##s##_f32, float, s##_f32(c, f##_f32(a, b)))                                          \
    BB4(f##_R##s##_f64, double, s##_f64(c, f##_f64(a, b)))
#define BU2(name, T, expr) PAIR(name##_VV, T, V, N, expr) PAIR(name##_SV, T, S, N, expr)
#define BU_X(f, s)                                                                                 \
    BU2(f##_##s##_f32, float, s##_f32(f##_f32(a, b)))                                              \
    BU2(f##_##s##_f64, double, s##_f64(f##_f64(a, b)))
#define UB2(name, T, expr) PAIR(name##_VV, T, N, V, expr) PAIR(name##_VS, T, N, S, expr)
#define UB_X(f, s)                                                                                 \
    UB2(f##_##s##_f32, float, s##_f32(f##_f32(a), c))                                              \
    UB2(f##_##s##_f64, double, s##_f64(f##_f64(a), c))
#define UB_Y(f, s)                                                                                 \
    UB2(f##_R##s##_f32, float, s##_f32(c, f##_f32(a)))                                             \
    UB2(f##_R##s##_f64, double, s##_f64(c, f##_f64(a)))
#define SB2(name, T, tag, expr, near)                                                              \
    PAIR_NEAR(name##_VV, T, tag, V, expr, near) PAIR_NEAR(name##_VS, T, tag, S, expr, near)
#define SB_X(f, fn, s)                                                                             \
    SB2(f##_##s##_f32, float, f32, s##_f32(f##_f32(a), c), s##_f32(fth__##fn##_near_f32(a), c))    \
    SB2(f##_##s##_f64, double, f64, s##_f64(f##_f64(a), c), s##_f64(fth__##fn##_near_f64(a), c))
#define UU_X(f, s)                                                                                 \
    PAIR(f##_##s##_f32_VV, float, N, N, s##_f32(f##_f32(a)))                                       \
    PAIR(f##_##s##_f64_VV, double, N, N, s##_f64(f##_f64(a)))
BINARY_BINARY(BB_X, BB_Y)
BINARY_UNARY(BU_X)
UNARY_BINARY(UB_X, UB_Y)
SINE_BINARY(SB_X)
UNARY_UNARY(UU_X)

#define ROW4(f, s, t, T, r, n)                                                                     \
    {FTH_EW_##f, FTH_EW_##s, T, r, {n##_##t##_VV, n##_##t##_VS, n##_##t##_SV, n##_##t##_SS}},
#define ROW_SV(f, s, t, T, n)                                                                      \
    {FTH_EW_##f, FTH_EW_##s, T, 0, {n##_##t##_VV, NULL, n##_##t##_SV, NULL}},
#define ROW_VS(f, s, t, T, r, n)                                                                   \
    {FTH_EW_##f, FTH_EW_##s, T, r, {n##_##t##_VV, n##_##t##_VS, NULL, NULL}},
#define ROW1(f, s, t, T, n) {FTH_EW_##f, FTH_EW_##s, T, 0, {n##_##t##_VV, NULL, NULL, NULL}},
#define BB_ROW_X(f, s) ROW4(f, s, f32, FTH_F32, 0, f##_##s) ROW4(f, s, f64, FTH_F64, 0, f##_##s)
#define BB_ROW_Y(f, s) ROW4(f, s, f32, FTH_F32, 1, f##_R##s) ROW4(f, s, f64, FTH_F64, 1, f##_R##s)
#define BU_ROW(f, s) ROW_SV(f, s, f32, FTH_F32, f##_##s) ROW_SV(f, s, f64, FTH_F64, f##_##s)
#define UB_ROW_X(f, s) ROW_VS(f, s, f32, FTH_F32, 0, f##_##s) ROW_VS(f, s, f64, FTH_F64, 0, f##_##s)
#define SB_ROW(f, fn, s) UB_ROW_X(f, s)
#define UB_ROW_Y(f, s)                                                                             \
    ROW_VS(f, s, f32, FTH_F32, 1, f##_R##s) ROW_VS(f, s, f64, FTH_F64, 1, f##_R##s)
#define UU_ROW(f, s) ROW1(f, s, f32, FTH_F32, f##_##s) ROW1(f, s, f64, FTH_F64, f##_##s)
static const fth__vec_pair pairs[] = {BINARY_BINARY(BB_ROW_X, BB_ROW_Y) BINARY_UNARY(
    BU_ROW) UNARY_BINARY(UB_ROW_X, UB_ROW_Y) SINE_BINARY(SB_ROW) UNARY_UNARY(UU_ROW)};
const fth__pair_list FTH_ISA_NAME(fth__pair_loops) = {pairs, (int)(sizeof pairs / sizeof pairs[0])};
