/* scan_kernels.c - the loops of scan.h.
 *
 * Compiled once per instruction set. An element of a running sum of reals is the sum of the blocks
 * before its own, and the sum inside that, put together.
 */
#include "array/nan.h"
#include "cpu/scan.h"
#include "cpu/vec_loop.h"

#define REAL(name, T)                                                                              \
    static void along_##name(int64_t n, int64_t block, int64_t at, const void *x_, void *out_,     \
                             void *sum)                                                            \
    {                                                                                              \
        const T *x = x_;                                                                           \
        T *out = out_;                                                                             \
        double before = *(double *)sum;                                                            \
        for (int64_t i = 0; i < n;) {                                                              \
            const int64_t left = block - ((at + i) & (block - 1)),                                 \
                          end = left < n - i ? i + left : n;                                       \
            double inside = 0.0;                                                                   \
            for (; i < end; i++) {                                                                 \
                inside += (double)x[i];                                                            \
                out[i] = (T)fth__one_nan(before + inside);                                         \
            }                                                                                      \
            before += inside;                                                                      \
        }                                                                                          \
        *(double *)sum = before;                                                                   \
    }                                                                                              \
    static void across_##name(int64_t n, int64_t block, int64_t at, int64_t cols,                  \
                              int64_t row_step, int64_t out_step, const void *x_, void *out_,      \
                              void *sum)                                                           \
    {                                                                                              \
        double *before = sum, inside[FTH__SCAN_LANES];                                             \
        const char *from = x_;                                                                     \
        char *to = out_;                                                                           \
        for (int64_t i = 0; i < n;) {                                                              \
            const int64_t left = block - ((at + i) & (block - 1)),                                 \
                          end = left < n - i ? i + left : n;                                       \
            for (int64_t k = 0; k < cols; k++) inside[k] = 0.0;                                    \
            for (; i < end; i++, from += row_step, to += out_step) {                               \
                const T *x = (const T *)(const void *)from;                                        \
                T *out = (T *)(void *)to;                                                          \
                FTH__EACH                                                                          \
                for (int64_t k = 0; k < cols; k++) {                                               \
                    inside[k] += (double)x[k];                                                     \
                    out[k] = (T)fth__one_nan(before[k] + inside[k]);                               \
                }                                                                                  \
            }                                                                                      \
            for (int64_t k = 0; k < cols; k++) before[k] += inside[k];                             \
        }                                                                                          \
    }
/* Sums are unsigned inside: they wrap. */
#define INTEGER(name, T)                                                                           \
    static void along_##name(int64_t n, int64_t block, int64_t at, const void *x_, void *out_,     \
                             void *sum)                                                            \
    {                                                                                              \
        const T *x = x_;                                                                           \
        int64_t *out = out_;                                                                       \
        uint64_t total = *(uint64_t *)sum;                                                         \
        (void)block;                                                                               \
        (void)at;                                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                          \
            total += (uint64_t)(int64_t)x[i];                                                      \
            out[i] = (int64_t)total;                                                               \
        }                                                                                          \
        *(uint64_t *)sum = total;                                                                  \
    }                                                                                              \
    static void across_##name(int64_t n, int64_t block, int64_t at, int64_t cols,                  \
                              int64_t row_step, int64_t out_step, const void *x_, void *out_,      \
                              void *sum)                                                           \
    {                                                                                              \
        uint64_t *total = sum;                                                                     \
        const char *from = x_;                                                                     \
        char *to = out_;                                                                           \
        (void)block;                                                                               \
        (void)at;                                                                                  \
        for (int64_t i = 0; i < n; i++, from += row_step, to += out_step) {                        \
            const T *x = (const T *)(const void *)from;                                            \
            int64_t *out = (int64_t *)(void *)to;                                                  \
            FTH__EACH                                                                              \
            for (int64_t k = 0; k < cols; k++) {                                                   \
                total[k] += (uint64_t)(int64_t)x[k];                                               \
                out[k] = (int64_t)total[k];                                                        \
            }                                                                                      \
        }                                                                                          \
    }
REAL(f32, float)
REAL(f64, double)
INTEGER(u8, uint8_t)
INTEGER(i8, int8_t)
INTEGER(u16, uint16_t)
INTEGER(i16, int16_t)
INTEGER(u32, uint32_t)
INTEGER(i32, int32_t)
INTEGER(i64, int64_t)

#define TABLE(way)                                                                                 \
    {                                                                                              \
        [FTH_F32] = way##_f32, [FTH_F64] = way##_f64, [FTH_BOOL] = way##_u8, [FTH_U8] = way##_u8,  \
        [FTH_I8] = way##_i8, [FTH_U16] = way##_u16, [FTH_I16] = way##_i16, [FTH_U32] = way##_u32,  \
        [FTH_I32] = way##_i32, [FTH_I64] = way##_i64                                               \
    }
const fth__scan_loops FTH_ISA_NAME(fth__scan_loops) = {.along = TABLE(along),
                                                       .across = TABLE(across)};
_Static_assert(FTH_DTYPE_COUNT == 14, "new dtype: give it a row above");
