/* segment_kernels.c - the loops of segment.h.
 *
 * Compiled once per instruction set. Rows are short, so what counts is that none of them takes a
 * jump that depends on its elements: these become integers that compare like them, NaN the largest
 * and both zeros alike, and two readings of a row find the largest and where it is first. The last
 * block of a row overlaps the one before it.
 */
#include "cpu/extreme.h"
#include "cpu/segment.h"
#include "cpu/vec_loop.h"

#include <string.h>

enum {
    BLOCK = 16, /* elements of a loop of its own length */
    SMALL = 4,  /* the same of rows that have no block */
    LONG = 1024 /* elements of a row that the loop of whole lines is faster for */
};

/* Before a loop of constant length: a vector loop, which it would not become unrolled. */
#if defined(__GNUC__) && !defined(__clang__)
#define WHOLE _Pragma("GCC unroll 1")
#else
#define WHOLE
#endif

/* `flip`: 0, or all bits where the smallest is sought. */
#define KEY_INT(x, flip) ((x) ^ (flip))
static inline int32_t key_f32(float x, int32_t flip)
{
    int32_t bits;
    const float sum = x + 0.0f; /* -0 becomes +0 */
    memcpy(&bits, &sum, sizeof bits);
    const int32_t key = bits ^ ((bits >> 31) & INT32_MAX) ^ flip;
    return x != x ? INT32_MAX : key;
}
static inline int64_t key_f64(double x, int64_t flip)
{
    int64_t bits;
    const double sum = x + 0.0;
    memcpy(&bits, &sum, sizeof bits);
    const int64_t key = bits ^ ((bits >> 63) & INT64_MAX) ^ flip;
    return x != x ? INT64_MAX : key;
}

/* K: keys; U: as wide. */
#define SEGMENTS(name, T, K, U, KEY)                                                               \
    static inline __attribute__((always_inline))                                                   \
    int64_t blocks_##name(int64_t n, const T *v, K flip, int block)                                \
    {                                                                                              \
        K m[BLOCK], best;                                                                          \
        WHOLE for (int k = 0; k < block; k++) m[k] = KEY(v[k], flip);                              \
        for (int64_t i = block; i < n; i += block) {                                               \
            const T *p = v + (i < n - block ? i : n - block);                                      \
            WHOLE for (int k = 0; k < block; k++)                                                  \
            {                                                                                      \
                const K key = KEY(p[k], flip);                                                     \
                m[k] = key > m[k] ? key : m[k];                                                    \
            }                                                                                      \
        }                                                                                          \
        best = m[0];                                                                               \
        WHOLE for (int k = 0; k < block; k++) best = m[k] > best ? m[k] : best;                    \
        for (int64_t i = 0;; i += block) {                                                         \
            const int64_t from = i < n - block ? i : n - block;                                    \
            U at = (U)block;                                                                       \
            WHOLE for (int k = 0; k < block; k++)                                                  \
            {                                                                                      \
                const U here = KEY(v[from + k], flip) == best ? (U)k : (U)block;                   \
                at = here < at ? here : at;                                                        \
            }                                                                                      \
            if (at < (U)block) return from + (int64_t)at;                                          \
        }                                                                                          \
    }                                                                                              \
    static inline int64_t few_##name(int64_t n, const T *v, K flip)                                \
    {                                                                                              \
        K best = KEY(v[0], flip);                                                                  \
        int64_t at = 0;                                                                            \
        for (int64_t i = 1; i < n; i++) {                                                          \
            const K key = KEY(v[i], flip);                                                         \
            at = key > best ? i : at;                                                              \
            best = key > best ? key : best;                                                        \
        }                                                                                          \
        return at;                                                                                 \
    }                                                                                              \
    static void segments_##name(int64_t rows, const int64_t *row_ptr, const void *entry,           \
                                int64_t *where, K flip, fth__where_fn *line)                       \
    {                                                                                              \
        const T *v = entry;                                                                        \
        for (int64_t r = 0; r < rows; r++) {                                                       \
            const int64_t n = row_ptr[r + 1] - row_ptr[r];                                         \
            double wide;                                                                           \
            if (n >= LONG)                                                                         \
                where[r] = line(n, v, &wide);                                                      \
            else if (n >= BLOCK)                                                                   \
                where[r] = blocks_##name(n, v, flip, BLOCK);                                       \
            else if (n >= SMALL)                                                                   \
                where[r] = blocks_##name(n, v, flip, SMALL);                                       \
            else                                                                                   \
                where[r] = n > 0 ? few_##name(n, v, flip) : -1;                                    \
            v += n;                                                                                \
        }                                                                                          \
    }                                                                                              \
    static void max_##name(int64_t rows, const int64_t *row_ptr, const void *entry,                \
                           int64_t *where)                                                         \
    {                                                                                              \
        segments_##name(rows, row_ptr, entry, where, 0,                                            \
                        FTH_ISA_NAME(fth__extreme_loops).where[1][FTH_##name]);                    \
    }                                                                                              \
    static void min_##name(int64_t rows, const int64_t *row_ptr, const void *entry,                \
                           int64_t *where)                                                         \
    {                                                                                              \
        segments_##name(rows, row_ptr, entry, where, (K) ~(K)0,                                    \
                        FTH_ISA_NAME(fth__extreme_loops).where[0][FTH_##name]);                    \
    }
SEGMENTS(U8, uint8_t, uint8_t, uint8_t, KEY_INT)
SEGMENTS(I8, int8_t, int8_t, uint8_t, KEY_INT)
SEGMENTS(U16, uint16_t, uint16_t, uint16_t, KEY_INT)
SEGMENTS(I16, int16_t, int16_t, uint16_t, KEY_INT)
SEGMENTS(U32, uint32_t, uint32_t, uint32_t, KEY_INT)
SEGMENTS(I32, int32_t, int32_t, uint32_t, KEY_INT)
SEGMENTS(I64, int64_t, int64_t, uint64_t, KEY_INT)
SEGMENTS(F32, float, int32_t, uint32_t, key_f32)
SEGMENTS(F64, double, int64_t, uint64_t, key_f64)

#define TABLE(pick)                                                                                \
    {                                                                                              \
        [FTH_BOOL] = pick##_U8, [FTH_U8] = pick##_U8, [FTH_I8] = pick##_I8,                        \
        [FTH_U16] = pick##_U16, [FTH_I16] = pick##_I16, [FTH_U32] = pick##_U32,                    \
        [FTH_I32] = pick##_I32, [FTH_I64] = pick##_I64, [FTH_F32] = pick##_F32,                    \
        [FTH_F64] = pick##_F64                                                                     \
    }
const fth__segment_loops FTH_ISA_NAME(fth__segment_loops) = {.of = {TABLE(min), TABLE(max)}};
_Static_assert(FTH_DTYPE_COUNT == 14, "new dtype: give it a row above");
