/* cpu/moments.h - loops of the variance, for lines that lie dense.
 *
 * Compiled once per instruction set. Every sum is taken in the order of ops/variance.c, of several
 * lines or blocks at once, so all sets and layouts give its bits. Other dtypes have no loops.
 */
#ifndef FTH_CPU_MOMENTS_H
#define FTH_CPU_MOMENTS_H

#include <fathom/array.h>
#include <fathom/isa.h>

/* Moments of n elements each of `cols` columns, `step` apart from one to the next: of elements of a
 * column in `down`, where columns are neighbours, and of columns in `along`, where elements are. */
typedef void fth__moments_fn(int64_t n, int64_t cols, int64_t step, const void *x, double *mean,
                             double *m2);
typedef struct fth__moments_loops {
    fth__moments_fn *down[FTH_DTYPE_COUNT], *along[FTH_DTYPE_COUNT];
    /* columns with n elements so far are joined by m more */
    void (*join)(int64_t cols, double n, double m, const double *more_mean, const double *more_m2,
                 double *mean, double *m2);
} fth__moments_loops;
FTH_ISA_DECLARE(const fth__moments_loops, fth__moments_loops);

#endif
