/* elementwise_kernels.c - one loop per elementwise operation, dtype and form, from elementwise.def.
 *
 * Compiled once per instruction set. Forms in which an operand is one element exist where they are
 * worth their code: the caller swaps operands or fills a block for the others.
 */
#include "cpu/divide.h"
#include "cpu/vec.h"
#include "cpu/vec_far.h"

/* x - s and s - x, but x + s only. */
#define HAS_SV_SUB ()
#define HAS_SV_DIV ()
#define HAS_SV_MIN ()
#define HAS_SV_MAX ()
#define NO_VS_POW ()
#define NO_VS_ATAN2 ()
#define NO_VS_MOD FTH__EW_GLUE(NO_VS_MOD_, FTH__EW_COLUMN)
#define NO_VS_MOD_REAL ()
#define NO_VS_COMPLEX ()
/* Made of sines: the form for blocks without huge arguments. */
#define NEAR_SIN (FTH_FN(sin_near)(x))
#define NEAR_COS (FTH_FN(cos_near)(x))
#define NEAR_EXP FTH__EW_GLUE(NEAR_EXP_, FTH__EW_COLUMN)
#define NEAR_EXP_REAL NO
#define NEAR_EXP_COMPLEX (FTH_FN(cexp_near)(x))
/* Of two operands: the form for blocks in which both are small. */
#define NEAR_IDIV FTH__EW_GLUE(NEAR_IDIV_, TAG)
#define NEAR_IDIV_i64 (fth__near_idiv(x, y))
#define NEAR_MOD FTH__EW_GLUE(NEAR_MOD_, TAG)
#define NEAR_MOD_i64 (fth__near_imod(x, y))

/* Of integers: the same bits whatever the sign. */
#define ANY_SIGN_ADD ()
#define ANY_SIGN_SUB ()
#define ANY_SIGN_MUL ()
#define ANY_SIGN_FMA ()
#define ANY_SIGN_NEG ()
#define ANY_SIGN_SQR ()
#define ANY_SIGN_EQ ()
#define ANY_SIGN_NE ()
#define ANY_SIGN_AND ()
#define ANY_SIGN_OR ()
#define ANY_SIGN_XOR ()
#define ANY_SIGN_NOT ()
#define ANY_SIGN_SELECT ()

/* Text for a loop that the type has itself: fth__vec_map finds the others. */
#define OWN(name, ...)                                                                             \
    FTH__EW_GLUE(OWN_, FTH__EW_GLUE(HAS_TWIN, FTH__EW_HAS(ANY_SIGN_##name)))(__VA_ARGS__)
#define OWN_00(...) __VA_ARGS__
#define OWN_01(...) __VA_ARGS__
#define OWN_10(...) __VA_ARGS__
#define OWN_11(...)

#define NAME(name, form) FTH__EW_GLUE(FTH__EW_GLUE(FTH__EW_GLUE(name##_, TAG), _), form)

/* Types of the first operand and of the result. */
#define X_SAME STORE
#define X_BOOL STORE
#define X_REAL STORE
#define X_COMPLEX STORE
#define X_PICK uint8_t
#define XT_SAME FTH_T
#define XT_BOOL FTH_T
#define XT_REAL FTH_T
#define XT_COMPLEX FTH_T
#define XT_PICK uint8_t
#define OUT_SAME STORE
#define OUT_PICK STORE
#define OUT_BOOL uint8_t
#define OUT_REAL REAL_STORE
#define OUT_COMPLEX COMPLEX_STORE
#define TO_SAME CAST
#define TO_PICK CAST
#define TO_BOOL (uint8_t)
#define TO_REAL REAL_CAST
#define TO_COMPLEX

#define LOOP(name, form, result, X, Y, Z, expr)                                                    \
    static void NAME(name, form)(int64_t n, void *out_, const void *const *src)                    \
    {                                                                                              \
        OUT_##result *out = out_;                                                                  \
        const X_##result *px = src[0];                                                             \
        LOAD_##Y(y, py, src[1]);                                                                   \
        LOAD_##Z(z, pz, src[2]);                                                                   \
        FTH__EACH                                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const XT_##result x = px[X];                                                           \
            EACH_##Y(y, py);                                                                       \
            EACH_##Z(z, pz);                                                                       \
            out[i] = TO_##result expr;                                                             \
        }                                                                                          \
    }
/* An operand that is a block, one element, or not there. */
#define LOAD_V(y, py, p) const STORE *py = p
#define LOAD_S(y, py, p) const FTH_T y = *(const STORE *)p
#define LOAD_N(y, py, p)
#define EACH_V(y, py) const FTH_T y = py[i]
#define EACH_S(y, py)
#define EACH_N(y, py)

/* The first operand as one element: only where the form SV exists. */
#define LOOP_SV(name, result, expr)                                                                \
    static void NAME(name, SV)(int64_t n, void *out_, const void *const *src)                      \
    {                                                                                              \
        OUT_##result *out = out_;                                                                  \
        const FTH_T x = *(const STORE *)src[0];                                                    \
        const STORE *py = src[1];                                                                  \
        FTH__EACH                                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const FTH_T y = py[i];                                                                 \
            out[i] = TO_##result expr;                                                             \
        }                                                                                          \
    }
/* Vectors where every argument is near, one by one elsewhere: vec_far.h. */
#define LOOP_NEAR(name, expr, near)                                                                \
    static void NAME(name, VV)(int64_t n, void *out_, const void *const *src)                      \
    {                                                                                              \
        STORE *out = out_;                                                                         \
        const STORE *px = src[0];                                                                  \
        if (FTH__EW_GLUE(fth__any_far_, TAG)(px, n)) {                                             \
            for (int64_t i = 0; i < n; i++) {                                                      \
                const FTH_T x = px[i];                                                             \
                out[i] = CAST expr;                                                                \
            }                                                                                      \
            return;                                                                                \
        }                                                                                          \
        FTH__EACH                                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const FTH_T x = px[i];                                                                 \
            out[i] = CAST near;                                                                    \
        }                                                                                          \
    }
/* The same of two operands, the second a block or one element: cpu/divide.h. */
#define LOOP_NEAR_2(name, form, Y, expr, near)                                                     \
    static void NAME(name, form)(int64_t n, void *out_, const void *const *src)                    \
    {                                                                                              \
        STORE *out = out_;                                                                         \
        const STORE *px = src[0];                                                                  \
        LOAD_##Y(y, py, src[1]);                                                                   \
        if (!fth__all_near(px, n) || !fth__all_near(src[1], COUNT_##Y)) {                          \
            FTH__EACH                                                                              \
            for (int64_t i = 0; i < n; i++) {                                                      \
                const FTH_T x = px[i];                                                             \
                EACH_##Y(y, py);                                                                   \
                out[i] = expr;                                                                     \
            }                                                                                      \
            return;                                                                                \
        }                                                                                          \
        FTH__EACH                                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const FTH_T x = px[i];                                                                 \
            EACH_##Y(y, py);                                                                       \
            out[i] = near;                                                                         \
        }                                                                                          \
    }
#define COUNT_V n
#define COUNT_S 1
#define UNLESS(column, ...) FTH__EW_GLUE(UNLESS_, FTH__EW_HAS(column))(__VA_ARGS__)
#define UNLESS_0(...) __VA_ARGS__
#define UNLESS_1(...)

#define LOOPS_1(name, result, expr)                                                                \
    OWN(name, UNLESS(NEAR_##name, LOOP(name, VV, result, i, N, N, expr))                           \
                  FTH__EW_IF(NEAR_##name, LOOP_NEAR(name, expr, NEAR_##name)))
#define LOOPS_2(name, result, expr)                                                                \
    OWN(name,                                                                                      \
        LOOP_2(name, VV, V, result, expr) UNLESS(NO_VS_##name, LOOP_2(name, VS, S, result, expr))  \
            FTH__EW_IF(HAS_SV_##name, LOOP_SV(name, result, expr)))
#define LOOP_2(name, form, Y, result, expr)                                                        \
    UNLESS(NEAR_##name, LOOP(name, form, result, i, Y, N, expr))                                   \
    FTH__EW_IF(NEAR_##name, LOOP_NEAR_2(name, form, Y, expr, NEAR_##name))
#define LOOPS_3(name, result, expr)                                                                \
    OWN(name, LOOP(name, VV, result, i, V, V, expr) LOOP(name, VS, result, i, V, S, expr)          \
                  LOOP(name, SV, result, i, S, V, expr) LOOP(name, SS, result, i, S, S, expr))

#include "cpu/vec_types.h"

/* ---- the same rows again, as a table -------------------------------------------------- */
#undef LOOPS_1
#undef LOOPS_2
#undef LOOPS_3
#define OR_NULL(absent, ...) FTH__EW_GLUE(OR_NULL_, FTH__EW_HAS(absent))(__VA_ARGS__)
#define OR_NULL_0(...) __VA_ARGS__
#define OR_NULL_1(...) NULL
#define LOOPS_1(name, result, expr)                                                                \
    OWN(name, [FTH_EW_##name][DTYPE] = {NAME(name, VV), NULL, NULL, NULL}, )
#define LOOPS_2(name, result, expr)                                                                \
    OWN(name,                                                                                      \
        [FTH_EW_##name][DTYPE] = {NAME(name, VV), OR_NULL(NO_VS_##name, NAME(name, VS)),           \
                                  FTH__EW_OR_NULL(HAS_SV_##name, NAME(name, SV)), NULL}, )
#define LOOPS_3(name, result, expr)                                                                \
    OWN(name,                                                                                      \
        [FTH_EW_##                                                                                 \
            name][DTYPE] = {NAME(name, VV), NAME(name, VS), NAME(name, SV), NAME(name, SS)}, )

fth__map_loops FTH_ISA_NAME(fth__map_loops) = {
#include "cpu/vec_types.h"
};
