/* windows_kernels.c - loops of windows: running values of a strip stay in registers over all taps.
 *
 * Compiled once per instruction set. Every result takes its elements in order, as the other loops
 * of a tail do (ops/fused.h), so the bits are theirs.
 */
#include "cpu/vec_loop.h"
#include "cpu/windows.h"

#include <fathom/vector.h>
#include <string.h>

/* Sums of reals: two vectors of results at a time. */
#define SUMS(name, T, V, WIDE, LANES_)                                                             \
    FTH_LANE V load_##name(const T *p)                                                             \
    {                                                                                              \
        V v;                                                                                       \
        memcpy(&v, p, sizeof v);                                                                   \
        return v;                                                                                  \
    }                                                                                              \
    FTH_LANE void strips_##name(bool scaled, int64_t rows, int64_t cols, int64_t row_step,         \
                                const void *v_, int64_t w_step, const void *w_, void *acc_)        \
    {                                                                                              \
        const T *v = v_, *w = w_;                                                                  \
        double *acc = acc_;                                                                        \
        int64_t c = 0;                                                                             \
        for (; c + 2 * LANES_ <= cols; c += 2 * LANES_) {                                          \
            WIDE a, b;                                                                             \
            memcpy(&a, acc + c, sizeof a);                                                         \
            memcpy(&b, acc + c + LANES_, sizeof b);                                                \
            for (int64_t r = 0; r < rows; r++) {                                                   \
                V x = load_##name(v + r * row_step + c),                                           \
                  y = load_##name(v + r * row_step + c + LANES_);                                  \
                if (scaled) x = x * w[r * w_step], y = y * w[r * w_step];                          \
                a += __builtin_convertvector(x, WIDE);                                             \
                b += __builtin_convertvector(y, WIDE);                                             \
            }                                                                                      \
            memcpy(acc + c, &a, sizeof a);                                                         \
            memcpy(acc + c + LANES_, &b, sizeof b);                                                \
        }                                                                                          \
        for (; c < cols; c++) {                                                                    \
            double a = acc[c];                                                                     \
            for (int64_t r = 0; r < rows; r++) {                                                   \
                const T x = v[r * row_step + c];                                                   \
                const T y = scaled ? x * w[r * w_step] : x;                                        \
                a += (double)y;                                                                    \
            }                                                                                      \
            acc[c] = a;                                                                            \
        }                                                                                          \
    }                                                                                              \
    static void scaled_##name(int64_t rows, int64_t cols, int64_t row_step, const void *v,         \
                              int64_t w_step, const void *w, void *acc)                            \
    {                                                                                              \
        strips_##name(true, rows, cols, row_step, v, w_step, w, acc);                              \
    }                                                                                              \
    FTH_LANE void rounds_##name(bool scaled, int64_t rows, int64_t cols, int64_t row_step,         \
                                const void *v_, int64_t w_step, const void *w_, void *acc_)        \
    {                                                                                              \
        const T *v = v_, *w = w_;                                                                  \
        double *acc = acc_;                                                                        \
        int64_t c = 0;                                                                             \
        for (; c + 2 * LANES_ <= cols; c += 2 * LANES_) {                                          \
            WIDE a = {0}, b = {0}, total;                                                          \
            for (int64_t r = 0; r < rows; r++) {                                                   \
                V x = load_##name(v + r * row_step + c),                                           \
                  y = load_##name(v + r * row_step + c + LANES_);                                  \
                if (scaled) x = x * w[r * w_step], y = y * w[r * w_step];                          \
                a += __builtin_convertvector(x, WIDE);                                             \
                b += __builtin_convertvector(y, WIDE);                                             \
            }                                                                                      \
            memcpy(&total, acc + c, sizeof total);                                                 \
            total += __builtin_convertvector(__builtin_convertvector(a, V), WIDE);                 \
            memcpy(acc + c, &total, sizeof total);                                                 \
            memcpy(&total, acc + c + LANES_, sizeof total);                                        \
            total += __builtin_convertvector(__builtin_convertvector(b, V), WIDE);                 \
            memcpy(acc + c + LANES_, &total, sizeof total);                                        \
        }                                                                                          \
        for (; c < cols; c++) {                                                                    \
            double a = 0.0;                                                                        \
            for (int64_t r = 0; r < rows; r++) {                                                   \
                const T x = v[r * row_step + c];                                                   \
                const T y = scaled ? x * w[r * w_step] : x;                                        \
                a += (double)y;                                                                    \
            }                                                                                      \
            acc[c] += (double)(T)a;                                                                \
        }                                                                                          \
    }                                                                                              \
    static void rounded_##name(int64_t rows, int64_t cols, int64_t row_step, const void *v,        \
                               int64_t w_step, const void *w, void *acc)                           \
    {                                                                                              \
        rounds_##name(false, rows, cols, row_step, v, w_step, w, acc);                             \
    }                                                                                              \
    static void rounded_scaled_##name(int64_t rows, int64_t cols, int64_t row_step, const void *v, \
                                      int64_t w_step, const void *w, void *acc)                    \
    {                                                                                              \
        rounds_##name(true, rows, cols, row_step, v, w_step, w, acc);                              \
    }                                                                                              \
    static void sum_##name(int64_t rows, int64_t cols, int64_t row_step, const void *v,            \
                           int64_t w_step, const void *w, void *acc)                               \
    {                                                                                              \
        strips_##name(false, rows, cols, row_step, v, w_step, w, acc);                             \
    }
SUMS(f32, float, fth_f32v, fth_f32v_f64, FTH_F32V_LANES)
SUMS(f64, double, fth_f64v, fth_f64v_f64, FTH_F64V_LANES)

/* Everything else: a strip is an array that the compiler keeps in registers. */
enum { STRIP = 16 };
#define ORDERED(name, T, W, OP)                                                                    \
    static void name(int64_t rows, int64_t cols, int64_t row_step, const void *v_, int64_t w_step, \
                     const void *w, void *acc_)                                                    \
    {                                                                                              \
        const T *v = v_;                                                                           \
        W *acc = acc_;                                                                             \
        (void)w_step, (void)w;                                                                     \
        for (int64_t c = 0; c < cols; c += STRIP) {                                                \
            const int64_t n = cols - c < STRIP ? cols - c : STRIP;                                 \
            W a[STRIP];                                                                            \
            memcpy(a, acc + c, (size_t)n * sizeof *a);                                             \
            for (int64_t r = 0; r < rows; r++) {                                                   \
                const T *row = v + r * row_step + c;                                               \
                if (n == STRIP) {                                                                  \
                    FTH__EACH                                                                      \
                    for (int k = 0; k < STRIP; k++) a[k] = OP(a[k], (W)row[k]);                    \
                } else {                                                                           \
                    for (int64_t k = 0; k < n; k++) a[k] = OP(a[k], (W)row[k]);                    \
                }                                                                                  \
            }                                                                                      \
            memcpy(acc + c, a, (size_t)n * sizeof *a);                                             \
        }                                                                                          \
    }
/* the first NaN stays; of equal numbers the first stays */
#define MIN_F(a, x) ((((x) < (a)) | (((x) != (x)) & ((a) == (a)))) ? (x) : (a))
#define MAX_F(a, x) ((((x) > (a)) | (((x) != (x)) & ((a) == (a)))) ? (x) : (a))
#define MIN_I(a, x) ((x) < (a) ? (x) : (a))
#define MAX_I(a, x) ((x) > (a) ? (x) : (a))
#define ANY_I(a, x) ((a) | ((x) != 0))
#define ALL_I(a, x) ((a) & ((x) != 0))
#define SUM_I(a, x) ((a) + (x))
ORDERED(sum_u8, uint8_t, int64_t, SUM_I)
ORDERED(sum_u16, uint16_t, int64_t, SUM_I)

/* Extremes are elements, so the taps of a strip meet in their own width, two vectors at a time, and
 * the one that is left meets acc. To meet an element twice changes nothing: the last strip of a row
 * begins before the one ahead of it ends. Fewer columns than a strip go one by one. */
#define STRIPS(name, T, W, OP, LANES_, FIND)                                                       \
    ORDERED(few_##name, T, W, OP)                                                                  \
    static void name(int64_t rows, int64_t cols, int64_t row_step, const void *v_, int64_t w_step, \
                     const void *w, void *acc_)                                                    \
    {                                                                                              \
        enum { MANY = 2 * (LANES_) };                                                              \
        const T *v = v_;                                                                           \
        W *acc = acc_;                                                                             \
        if (cols < MANY || rows == 0) {                                                            \
            few_##name(rows, cols, row_step, v, w_step, w, acc);                                   \
            return;                                                                                \
        }                                                                                          \
        for (int64_t next = 0; next < cols; next += MANY) {                                        \
            const int64_t c = next + MANY <= cols ? next : cols - MANY;                            \
            T found[MANY];                                                                         \
            FIND(rows, row_step, v + c, found);                                                    \
            FTH__EACH                                                                              \
            for (int k = 0; k < MANY; k++) acc[c + k] = OP(acc[c + k], (W)found[k]);               \
        }                                                                                          \
    }
/* PICK(x, a) is a where x does not come before it, and where either is NaN: NaN is seen beside. */
#define REALS(name, T, BITS, PICK, OP)                                                             \
    FTH_LANE void find_##name(int64_t rows, int64_t row_step, const T *v, T *found)                \
    {                                                                                              \
        enum { L = FTH_F##BITS##V_LANES };                                                         \
        fth_f##BITS##v a = load_f##BITS(v), b = load_f##BITS(v + L);                               \
        fth_m##BITS##v is_a = fth_f##BITS##v_eq(a, a), is_b = fth_f##BITS##v_eq(b, b);             \
        for (int64_t r = 1; r < rows; r++) {                                                       \
            const fth_f##BITS##v x = load_f##BITS(v + r * row_step),                               \
                                 y = load_f##BITS(v + r * row_step + L);                           \
            is_a = fth_m##BITS##v_both(is_a, fth_f##BITS##v_eq(x, x));                             \
            is_b = fth_m##BITS##v_both(is_b, fth_f##BITS##v_eq(y, y));                             \
            a = fth_f##BITS##v_##PICK(x, a);                                                       \
            b = fth_f##BITS##v_##PICK(y, b);                                                       \
        }                                                                                          \
        const fth_f##BITS##v nan = fth_f##BITS##v_set((T)NAN);                                     \
        fth_f##BITS##v_store(found, fth_f##BITS##v_pick(is_a, a, nan));                            \
        fth_f##BITS##v_store(found + L, fth_f##BITS##v_pick(is_b, b, nan));                        \
    }                                                                                              \
    STRIPS(name, T, double, OP, FTH_F##BITS##V_LANES, find_##name)
REALS(min_f32, float, 32, min, MIN_F)
REALS(max_f32, float, 32, max, MAX_F)
REALS(min_f64, double, 64, min, MIN_F)
REALS(max_f64, double, 64, max, MAX_F)

#define LESS(x, a) ((x) < (a))
#define MORE(x, a) ((x) > (a))
/* Of bytes that are truths the smallest is that of all, the largest that of any. */
#define INTS(name, T, BEFORE, OP)                                                                  \
    typedef T name##_v __attribute__((vector_size(FTH_VECTOR_BYTES)));                             \
    FTH_LANE void find_##name(int64_t rows, int64_t row_step, const T *v, T *found)                \
    {                                                                                              \
        name##_v a, b, x, y;                                                                       \
        memcpy(&a, v, sizeof a);                                                                   \
        memcpy(&b, (const char *)v + sizeof a, sizeof b);                                          \
        for (int64_t r = 1; r < rows; r++) {                                                       \
            memcpy(&x, v + r * row_step, sizeof x);                                                \
            memcpy(&y, (const char *)(v + r * row_step) + sizeof x, sizeof y);                     \
            a ^= (a ^ x) & (name##_v)BEFORE(x, a);                                                 \
            b ^= (b ^ y) & (name##_v)BEFORE(y, b);                                                 \
        }                                                                                          \
        memcpy(found, &a, sizeof a);                                                               \
        memcpy((char *)found + sizeof a, &b, sizeof b);                                            \
    }                                                                                              \
    STRIPS(name, T, int64_t, OP, FTH_VECTOR_BYTES / (int)sizeof(T), find_##name)
INTS(min_u8, uint8_t, LESS, MIN_I)
INTS(max_u8, uint8_t, MORE, MAX_I)
INTS(min_u16, uint16_t, LESS, MIN_I)
INTS(max_u16, uint16_t, MORE, MAX_I)
INTS(min_i32, int32_t, LESS, MIN_I)
INTS(max_i32, int32_t, MORE, MAX_I)
INTS(min_i64, int64_t, LESS, MIN_I)
INTS(max_i64, int64_t, MORE, MAX_I)
INTS(min_u32, uint32_t, LESS, MIN_I)
INTS(max_u32, uint32_t, MORE, MAX_I)
INTS(min_i16, int16_t, LESS, MIN_I)
INTS(max_i16, int16_t, MORE, MAX_I)
INTS(min_i8, int8_t, LESS, MIN_I)
INTS(max_i8, int8_t, MORE, MAX_I)
INTS(all_bool, uint8_t, LESS, ALL_I)
INTS(any_bool, uint8_t, MORE, ANY_I)

#define EXTREME_ROW(red)                                                                           \
    {                                                                                              \
        [FTH_F32] = red##_f32, [FTH_F64] = red##_f64, [FTH_U8] = red##_u8, [FTH_U16] = red##_u16,  \
        [FTH_I32] = red##_i32, [FTH_I64] = red##_i64, [FTH_U32] = red##_u32,                       \
        [FTH_I16] = red##_i16, [FTH_I8] = red##_i8                                                 \
    }
const fth__window_loops FTH_ISA_NAME(fth__window_loops) = {
    .scaled = {[FTH_F32] = scaled_f32, [FTH_F64] = scaled_f64},
    .rounded = {{[FTH_F32] = rounded_f32, [FTH_F64] = rounded_f64},
                {[FTH_F32] = rounded_scaled_f32, [FTH_F64] = rounded_scaled_f64}},
    .plain =
        {[FTH_RED_SUM] =
             {[FTH_F32] = sum_f32, [FTH_F64] = sum_f64, [FTH_U8] = sum_u8, [FTH_U16] = sum_u16},
         [FTH_RED_MIN] = EXTREME_ROW(min),
         [FTH_RED_MAX] = EXTREME_ROW(max),
         [FTH_RED_ANY] = {[FTH_BOOL] = any_bool},
         [FTH_RED_ALL] = {[FTH_BOOL] = all_bool}},
};
