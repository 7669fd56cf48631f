/* ops/matrix.h - what operations on matrices over two named axes share.
 *
 * All other axes of the operand are batches: each index of them is a matrix of its own.
 */
#ifndef FTH_OPS_MATRIX_H
#define FTH_OPS_MATRIX_H

#include "ops/build.h"
#include "ops/loop.h"

/* Rows of the largest matrix that inverse and eigh take: 64 by 64 c128 are 64 KiB, which a device
 * keeps in the shared memory of a group of threads. */
enum { FTH__SMALL_MATRIX = 64 };

typedef struct fth__matrix_attr {
    fth_axis_id row, col;
} fth__matrix_attr;

/* Resolve the two names; false: poison, or the mistake was recorded. */
bool fth__build_matrix(fth_val v, fth_site site, const char *what, const char *row, const char *col,
                       fth__matrix_attr *attr);
/* Operand `in` is square over (row, col) and of a dtype in f32 f64 c64 c128. */
fth_status fth__need_square(const fth_node *node, int in, fth__matrix_attr attr, fth_err *err);

/* The matrices of one tile: strides of the two axes, and a walk over the batches in which array 0
 * is this tile. Further tiles are added with fth__batch_follow. */
typedef struct fth__batch {
    int row, col;
    int64_t n_row, n_col, s_row, s_col;
    fth__loop loop;
    int dim[FTH_MAX_AXES]; /* position of each loop axis in the descriptor */
} fth__batch;
void fth__batch_init(fth__batch *b, const fth_desc *d, const fth_tile *t, fth_axis_id row,
                     fth_axis_id col);
/* Array k (1..3) of the walk is tile t of shape d; an axis d lacks stands still. */
void fth__batch_follow(fth__batch *b, int k, const fth_desc *of, const fth_desc *d,
                       const fth_tile *t);
/* "factor=3 view=0", the global place of the current matrix; "" when there is one only. */
const char *fth__batch_text(const fth__batch *b, const fth_node *node, int in, const fth_tile *t,
                            char *text, size_t bytes);

/* FTH_E_NUMERIC for the current matrix of the walk. */
fth_status fth__cholesky_fail(const fth_call *call, const fth__batch *b, int64_t order);
fth_status fth__inverse_fail(const fth_call *call, const fth__batch *b);
fth_status fth__eigh_fail(const fth_call *call, const fth__batch *b);

/* A fresh axis of the size of `like` for a gradient of `node`; its name into `text`. */
const char *fth__fresh_axis(const fth_node *node, const char *like, char *text, size_t bytes);
/* The conjugate of a complex value; real values are returned unchanged. */
fth_val fth__conj(fth_site site, fth_val v);

/* Any element of f32 f64 c64 c128 as c128, for reference loops. */
static inline fth_c128 fth__elem_get(fth_dtype t, const void *data, int64_t i)
{
    if (t == FTH_F32) return (fth_c128){(double)((const float *)data)[i], 0.0};
    if (t == FTH_F64) return (fth_c128){((const double *)data)[i], 0.0};
    if (t == FTH_C64)
        return (fth_c128){(double)((const fth_c64 *)data)[i].re,
                          (double)((const fth_c64 *)data)[i].im};
    return ((const fth_c128 *)data)[i];
}
static inline void fth__elem_put(fth_dtype t, void *data, int64_t i, fth_c128 v)
{
    if (t == FTH_F32) ((float *)data)[i] = (float)v.re;
    if (t == FTH_F64) ((double *)data)[i] = v.re;
    if (t == FTH_C64) ((fth_c64 *)data)[i] = (fth_c64){(float)v.re, (float)v.im};
    if (t == FTH_C128) ((fth_c128 *)data)[i] = v;
}
static inline fth_c128 fth__cmul(fth_c128 a, fth_c128 b)
{
    return (fth_c128){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
static inline fth_c128 fth__cconj(fth_c128 a)
{
    return (fth_c128){a.re, -a.im};
}
static inline fth_c128 fth__csub(fth_c128 a, fth_c128 b)
{
    return (fth_c128){a.re - b.re, a.im - b.im};
}
static inline fth_c128 fth__cdiv(fth_c128 a, fth_c128 b)
{
    if (b.im == 0.0) return (fth_c128){a.re / b.re, a.im / b.re};
    const double d = b.re * b.re + b.im * b.im;
    return (fth_c128){(a.re * b.re + a.im * b.im) / d, (a.im * b.re - a.re * b.im) / d};
}

#endif
