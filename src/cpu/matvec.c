/* matvec.c - a matrix times a vector, in an order of our own.
 *
 * BLAS's own routine gives other bits at other addresses and strides (seen with OpenBLAS 0.3.21),
 * and its product of matrices takes two to three times as long for a single column. Rows are summed
 * in lanes that are joined by halving; columns are added four at a time.
 */
#include "cpu/matvec.h"

#include "base/assert.h"

#include <string.h>

#define FOUR(a, x, i)                                                                              \
    ((a)[0][i] * (x)[0] + (a)[1][i] * (x)[1]) + ((a)[2][i] * (x)[2] + (a)[3][i] * (x)[3])
#define C_ADD(to, v) ((to).re += (v).re, (to).im += (v).im)
#define C_ADD_PRODUCT(to, u, v)                                                                    \
    ((to).re += (u).re * (v).re - (u).im * (v).im, (to).im += (u).re * (v).im + (u).im * (v).re)

/* Reals: lanes as vectors of 16 bytes, which every processor we run on has. Not those of
 * fathom/vector.h: this file is compiled once, and its bits are the same on every instruction set.
 */
typedef float vec_f32 __attribute__((vector_size(16)));
typedef double vec_f64 __attribute__((vector_size(16)));
#define DEFINE_REAL_ROWS(name, type, vec, width)                                                   \
    static void name(int64_t m, int64_t k, const void *a_, int64_t ld, const void *x_, bool add,   \
                     void *y_, int64_t step)                                                       \
    {                                                                                              \
        const type *x = x_;                                                                        \
        type *y = y_;                                                                              \
        for (int64_t i = 0; i < m; i++) {                                                          \
            const type *row = (const type *)a_ + i * ld;                                           \
            vec sum[4] = {{0}, {0}, {0}, {0}};                                                     \
            type rest[4 * (width)] = {0}, lane[4 * (width)];                                       \
            int64_t j = 0;                                                                         \
            for (; j + 4 * (width) <= k; j += 4 * (width))                                         \
                for (int l = 0; l < 4; l++) {                                                      \
                    vec u, v;                                                                      \
                    memcpy(&u, row + j + l * (width), sizeof u);                                   \
                    memcpy(&v, x + j + l * (width), sizeof v);                                     \
                    sum[l] += u * v;                                                               \
                }                                                                                  \
            for (int l = 0; j + l < k; l++) rest[l] = row[j + l] * x[j + l];                       \
            memcpy(lane, sum, sizeof lane);                                                        \
            for (int l = 0; l < 4 * (width); l++) lane[l] += rest[l];                              \
            for (int half = 2 * (width); half > 0; half /= 2)                                      \
                for (int l = 0; l < half; l++) lane[l] += lane[l + half];                          \
            y[i * step] = add ? y[i * step] + lane[0] : lane[0];                                   \
        }                                                                                          \
    }
DEFINE_REAL_ROWS(rows_f32, float, vec_f32, 4)
DEFINE_REAL_ROWS(rows_f64, double, vec_f64, 2)

#define DEFINE_COMPLEX_ROWS(name, type, lanes)                                                     \
    static void name(int64_t m, int64_t k, const void *a_, int64_t ld, const void *x_, bool add,   \
                     void *y_, int64_t step)                                                       \
    {                                                                                              \
        const type zero = {0}, *x = x_;                                                            \
        type *y = y_;                                                                              \
        for (int64_t i = 0; i < m; i++) {                                                          \
            const type *row = (const type *)a_ + i * ld;                                           \
            type lane[lanes];                                                                      \
            int64_t j = 0;                                                                         \
            for (int l = 0; l < (lanes); l++) lane[l] = zero;                                      \
            for (; j + (lanes) <= k; j += (lanes))                                                 \
                for (int l = 0; l < (lanes); l++) C_ADD_PRODUCT(lane[l], row[j + l], x[j + l]);    \
            for (int l = 0; j + l < k; l++) C_ADD_PRODUCT(lane[l], row[j + l], x[j + l]);          \
            for (int half = (lanes) / 2; half > 0; half /= 2)                                      \
                for (int l = 0; l < half; l++) C_ADD(lane[l], lane[l + half]);                     \
            if (!add) y[i * step] = zero;                                                          \
            C_ADD(y[i * step], lane[0]);                                                           \
        }                                                                                          \
    }
DEFINE_COMPLEX_ROWS(rows_c64, fth_c64, 4)
DEFINE_COMPLEX_ROWS(rows_c128, fth_c128, 4)

#define DEFINE_COLS(name, type)                                                                    \
    static void name(int64_t m, int64_t k, const void *a_, int64_t ld, const void *x_, bool add,   \
                     void *y_, int64_t step)                                                       \
    {                                                                                              \
        const type *x = x_;                                                                        \
        type *y = y_;                                                                              \
        int64_t j = 0;                                                                             \
        for (int64_t i = 0; i < m && !add; i++) y[i * step] = 0;                                   \
        for (; j + 4 <= k; j += 4) {                                                               \
            const type *const first = (const type *)a_ + j * ld;                                   \
            const type *const a[4] = {first, first + ld, first + 2 * ld, first + 3 * ld};          \
            const type v[4] = {x[j], x[j + 1], x[j + 2], x[j + 3]};                                \
            if (step == 1)                                                                         \
                for (int64_t i = 0; i < m; i++) y[i] += FOUR(a, v, i);                             \
            else                                                                                   \
                for (int64_t i = 0; i < m; i++) y[i * step] += FOUR(a, v, i);                      \
        }                                                                                          \
        for (; j < k; j++)                                                                         \
            for (int64_t i = 0; i < m; i++) y[i * step] += ((const type *)a_)[j * ld + i] * x[j];  \
    }
DEFINE_COLS(cols_f32, float)
DEFINE_COLS(cols_f64, double)

#define DEFINE_COLS_COMPLEX(name, type)                                                            \
    static void name(int64_t m, int64_t k, const void *a_, int64_t ld, const void *x_, bool add,   \
                     void *y_, int64_t step)                                                       \
    {                                                                                              \
        const type zero = {0}, *x = x_, *a = a_;                                                   \
        type *y = y_;                                                                              \
        for (int64_t i = 0; i < m && !add; i++) y[i * step] = zero;                                \
        for (int64_t j = 0; j < k; j++)                                                            \
            for (int64_t i = 0; i < m; i++) C_ADD_PRODUCT(y[i * step], a[j * ld + i], x[j]);       \
    }
DEFINE_COLS_COMPLEX(cols_c64, fth_c64)
DEFINE_COLS_COMPLEX(cols_c128, fth_c128)

typedef void matvec_fn(int64_t m, int64_t k, const void *a, int64_t ld, const void *x, bool add,
                       void *y, int64_t step);
static matvec_fn *const rows[FTH_DTYPE_COUNT] = {
    [FTH_F32] = rows_f32, [FTH_F64] = rows_f64, [FTH_C64] = rows_c64, [FTH_C128] = rows_c128};
static matvec_fn *const cols[FTH_DTYPE_COUNT] = {
    [FTH_F32] = cols_f32, [FTH_F64] = cols_f64, [FTH_C64] = cols_c64, [FTH_C128] = cols_c128};
_Static_assert(FTH_DTYPE_COUNT == 14, "a new dtype: does it have a product?");

void fth__cpu_matvec(fth_dtype t, int64_t m, int64_t k, fth__matrix a, const void *x, double beta,
                     void *y, int64_t step)
{
    FTH_ASSERT(rows[t] && cols[t] && (beta == 0.0 || beta == 1.0));
    (a.cols ? cols : rows)[t](m, k, a.data, a.ld, x, beta != 0.0, y, step);
}
