/* cpu/matvec.h - a matrix times a vector, in an order of our own. */
#ifndef FTH_CPU_MATVEC_H
#define FTH_CPU_MATVEC_H

#include "cpu/blas.h"

#include <fathom/isa.h>

/* y = a x, or y += a x, with a m by k and x dense; elements of y are `step` apart. Tiles of k are
 * summed by themselves and added in order; rows or columns of a are `ld` apart. */
typedef struct fth__matvec {
    int64_t m, k, tile_k, ld, step;
    const void *a, *x;
    void *y;
    bool add;
} fth__matvec;

/* Rows lie in one piece, or columns do. */
typedef struct fth__matvec_loops {
    void (*rows_f32)(const fth__matvec *w);
    void (*rows_f64)(const fth__matvec *w);
    void (*cols_f32)(const fth__matvec *w);
    void (*cols_f64)(const fth__matvec *w);
} fth__matvec_loops;
FTH_ISA_DECLARE(const fth__matvec_loops, fth__matvec_loops);

/* dtypes f32 f64 c64 c128. Elements of y do not depend on which others are made with them. */
void fth__cpu_matvec(fth_dtype t, const fth__matvec *w, bool by_cols);

#endif
