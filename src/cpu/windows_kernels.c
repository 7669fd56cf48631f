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
#define SUM_I(a, x) ((a) + (x))
ORDERED(min_f32, float, double, MIN_F)
ORDERED(max_f32, float, double, MAX_F)
ORDERED(min_f64, double, double, MIN_F)
ORDERED(max_f64, double, double, MAX_F)
ORDERED(min_u8, uint8_t, int64_t, MIN_I)
ORDERED(max_u8, uint8_t, int64_t, MAX_I)
ORDERED(sum_u8, uint8_t, int64_t, SUM_I)
ORDERED(min_u16, uint16_t, int64_t, MIN_I)
ORDERED(max_u16, uint16_t, int64_t, MAX_I)
ORDERED(sum_u16, uint16_t, int64_t, SUM_I)

const fth__window_loops FTH_ISA_NAME(fth__window_loops) = {
    .scaled = {[FTH_F32] = scaled_f32, [FTH_F64] = scaled_f64},
    .rounded = {{[FTH_F32] = rounded_f32, [FTH_F64] = rounded_f64},
                {[FTH_F32] = rounded_scaled_f32, [FTH_F64] = rounded_scaled_f64}},
    .plain =
        {[FTH_RED_SUM] =
             {[FTH_F32] = sum_f32, [FTH_F64] = sum_f64, [FTH_U8] = sum_u8, [FTH_U16] = sum_u16},
         [FTH_RED_MIN] =
             {[FTH_F32] = min_f32, [FTH_F64] = min_f64, [FTH_U8] = min_u8, [FTH_U16] = min_u16},
         [FTH_RED_MAX] =
             {[FTH_F32] = max_f32, [FTH_F64] = max_f64, [FTH_U8] = max_u8, [FTH_U16] = max_u16}},
};
