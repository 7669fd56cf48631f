/* matvec.c - a matrix times a vector, in an order of our own.
 *
 * BLAS's own routine gives other bits at other addresses and strides (seen with OpenBLAS 0.3.21),
 * and its product of matrices takes two to three times as long for a single column. Rows are summed
 * in lanes that are joined by halving; columns are added four at a time. Reals are in
 * matvec_kernels.c.
 */
#include "cpu/matvec.h"

#include "base/assert.h"
#include "base/checked.h"

#define C_ADD(to, v) ((to).re += (v).re, (to).im += (v).im)
#define C_ADD_PRODUCT(to, u, v)                                                                    \
    ((to).re += (u).re * (v).re - (u).im * (v).im, (to).im += (u).re * (v).im + (u).im * (v).re)

#define DEFINE_COMPLEX_ROWS(name, type, lanes)                                                     \
    static void name(const fth__matvec *w)                                                         \
    {                                                                                              \
        const type zero = {0}, *x = w->x;                                                          \
        type *y = w->y;                                                                            \
        for (int64_t i = 0; i < w->m; i++) {                                                       \
            const type *row = (const type *)w->a + i * w->ld;                                      \
            if (!w->add) y[i * w->step] = zero;                                                    \
            for (int64_t j = 0; j < w->k;) {                                                       \
                const int64_t end = fth__min_i64(j + w->tile_k, w->k);                             \
                type lane[lanes];                                                                  \
                for (int l = 0; l < (lanes); l++) lane[l] = zero;                                  \
                for (; j + (lanes) <= end; j += (lanes))                                           \
                    for (int l = 0; l < (lanes); l++)                                              \
                        C_ADD_PRODUCT(lane[l], row[j + l], x[j + l]);                              \
                for (int l = 0; j + l < end; l++) C_ADD_PRODUCT(lane[l], row[j + l], x[j + l]);    \
                for (int half = (lanes) / 2; half > 0; half /= 2)                                  \
                    for (int l = 0; l < half; l++) C_ADD(lane[l], lane[l + half]);                 \
                C_ADD(y[i * w->step], lane[0]);                                                    \
                j = end;                                                                           \
            }                                                                                      \
        }                                                                                          \
    }
DEFINE_COMPLEX_ROWS(rows_c64, fth_c64, 4)
DEFINE_COMPLEX_ROWS(rows_c128, fth_c128, 4)

#define DEFINE_COMPLEX_COLS(name, type)                                                            \
    static void name(const fth__matvec *w)                                                         \
    {                                                                                              \
        const type zero = {0}, *x = w->x, *a = w->a;                                               \
        type *y = w->y;                                                                            \
        for (int64_t i = 0; i < w->m && !w->add; i++) y[i * w->step] = zero;                       \
        for (int64_t j = 0; j < w->k; j++)                                                         \
            for (int64_t i = 0; i < w->m; i++)                                                     \
                C_ADD_PRODUCT(y[i * w->step], a[j * w->ld + i], x[j]);                             \
    }
DEFINE_COMPLEX_COLS(cols_c64, fth_c64)
DEFINE_COMPLEX_COLS(cols_c128, fth_c128)

_Static_assert(FTH_DTYPE_COUNT == 14, "a new dtype: does it have a product?");

void fth__cpu_matvec(fth_dtype t, const fth__matvec *w, bool by_cols)
{
    const fth__matvec_loops *loops = FTH_ISA_BEST(fth__matvec_loops);
    FTH_ASSERT(w->tile_k > 0 || w->k == 0);
    if (t == FTH_F32)
        (by_cols ? loops->cols_f32 : loops->rows_f32)(w);
    else if (t == FTH_F64)
        (by_cols ? loops->cols_f64 : loops->rows_f64)(w);
    else if (t == FTH_C64)
        (by_cols ? cols_c64 : rows_c64)(w);
    else if (t == FTH_C128)
        (by_cols ? cols_c128 : rows_c128)(w);
}
