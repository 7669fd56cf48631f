/* resize_kernels.c - see resize_rows.h. NaN counts as larger than any number, and of equal ones the
 * first is taken. */
#include "resize_rows.h"

#include <string.h>

#define DEFINE_ROWS(T, U, name)                                                                    \
    static inline T larger_##name(T a, T b)                                                        \
    {                                                                                              \
        const T most = b > a ? b : a;                                                              \
        return b == b ? most : b;                                                                  \
    }                                                                                              \
    static void halve_##name(T *restrict to, const T *restrict a, const T *restrict b, int64_t n)  \
    {                                                                                              \
        for (int64_t x = 0; x < n; x++)                                                            \
            to[x] = larger_##name(larger_##name(a[2 * x], a[2 * x + 1]),                           \
                                  larger_##name(b[2 * x], b[2 * x + 1]));                          \
    }                                                                                              \
    static void add_##name(T *restrict to, const T *restrict a, const T *restrict b, int64_t n)    \
    {                                                                                              \
        for (int64_t x = 0; x < n; x++)                                                            \
            to[x] = (a[2 * x] + a[2 * x + 1]) + (b[2 * x] + b[2 * x + 1]);                         \
    }                                                                                              \
    static void repeat_##name(T *restrict to, const T *restrict from, int64_t n)                   \
    {                                                                                              \
        for (int64_t x = 0; x < n; x++) to[2 * x] = to[2 * x + 1] = from[x];                       \
    }                                                                                              \
    static inline U bits_##name(T v)                                                               \
    {                                                                                              \
        U u;                                                                                       \
        memcpy(&u, &v, sizeof u);                                                                  \
        return u;                                                                                  \
    }                                                                                              \
    static inline T number_##name(U u)                                                             \
    {                                                                                              \
        T v;                                                                                       \
        memcpy(&v, &u, sizeof v);                                                                  \
        return v;                                                                                  \
    }                                                                                              \
    /* all bits where b is the largest of the two */                                               \
    static inline U second_##name(T a, T b)                                                        \
    {                                                                                              \
        return (U)0 - (U)((b > a) | ((b != b) & (a == a)));                                        \
    }                                                                                              \
    static inline T pick_##name(T a, T b, U second)                                                \
    {                                                                                              \
        return number_##name((bits_##name(b) & second) | (bits_##name(a) & ~second));              \
    }                                                                                              \
    static void slope_##name(T *restrict to, T *restrict under, const T *restrict a,               \
                             const T *restrict b, const T *restrict from, int64_t n)               \
    {                                                                                              \
        for (int64_t x = 0; x < n; x++) {                                                          \
            const U g = bits_##name(from[x]), right = second_##name(a[2 * x], a[2 * x + 1]),       \
                    right2 = second_##name(b[2 * x], b[2 * x + 1]),                                \
                    below = second_##name(pick_##name(a[2 * x], a[2 * x + 1], right),              \
                                          pick_##name(b[2 * x], b[2 * x + 1], right2));            \
            to[2 * x] = number_##name(g & ~below & ~right);                                        \
            to[2 * x + 1] = number_##name(g & ~below & right);                                     \
            under[2 * x] = number_##name(g & below & ~right2);                                     \
            under[2 * x + 1] = number_##name(g & below & right2);                                  \
        }                                                                                          \
    }                                                                                              \
    const pt_rows_##name FTH_ISA_NAME(pt_rows_##name) = {halve_##name, add_##name, repeat_##name,  \
                                                         slope_##name};
DEFINE_ROWS(float, uint32_t, f32)
DEFINE_ROWS(double, uint64_t, f64)
