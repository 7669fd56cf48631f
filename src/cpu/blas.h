/* cpu/blas.h - the one door to OpenBLAS and LAPACK.
 *
 * Matrices say which way they lie in memory; the calls below turn that into transposes. Everything
 * runs on the calling thread: our workers are the only threads. Sizes are at most 2^31-1. dtypes
 * are f32 f64 c64 c128; anything else does nothing.
 *
 * Threads: any, on distinct results, after fth__cpu_blas_init has succeeded.
 */
#ifndef FTH_CPU_BLAS_H
#define FTH_CPU_BLAS_H

#include <fathom/op.h>

/* Element (i, j) is at i*ld + j, or with `cols` at j*ld + i. */
typedef struct fth__matrix {
    const void *data;
    int64_t ld;
    bool cols;
} fth__matrix;
typedef struct fth__matrix_out {
    void *data;
    int64_t ld;
    bool cols;
} fth__matrix_out;

/* BLAS counts in 32 bits: can axis `dim` of this shape be a leading dimension? */
static inline bool fth__blas_fits(const fth_desc *d, int dim)
{
    int64_t stride = 1;
    for (int i = dim + 1; i < d->n_axes; i++) stride *= d->size[i];
    return stride <= INT32_MAX && d->size[dim] <= INT32_MAX;
}

/* One thread per call, and the kernels of this processor even when the library is older than it. */
fth_status fth__cpu_blas_init(fth_err *err);
/* Name of the kernels in use, for reports: "SkylakeX". */
const char *fth__cpu_blas_name(void);

/* c = alpha a b + beta c, with a m by k, b k by n. `conj_b`: b is replaced by its conjugate; only
 * with b lying the other way than c (BLAS can conjugate only what it transposes). */
void fth__blas_gemm(fth_dtype t, int64_t m, int64_t n, int64_t k, double alpha, fth__matrix a,
                    fth__matrix b, bool conj_b, double beta, fth__matrix_out c);
/* c = c b for triangular b, n by n: zero where its row is less than its column, or with `lower`
 * false where it is more; m rows of c. f32 and f64. */
void fth__blas_times_triangle(fth_dtype t, int64_t m, int64_t n, fth__matrix b, bool lower,
                              fth__matrix_out c);
/* Lower triangle of c -= a a^H, with a n by k; both lie the same way. */
void fth__blas_rank_k(fth_dtype t, int64_t n, int64_t k, fth__matrix a, fth__matrix_out c);

/* How the triangular matrix of a solve is used. */
typedef struct fth__blas_tri {
    bool lower;
    bool adjoint; /* its conjugate transpose; transpose for reals */
} fth__blas_tri;
/* b = op(a)^-1 b, with a m by m and b m by n. Complex adjoint: a and b must lie the same way. */
void fth__blas_solve(fth_dtype t, int64_t m, int64_t n, fth__matrix a, fth__blas_tri tri,
                     fth__matrix_out b);
/* b = b l^-H for lower l n by n and b m by n, both lying the same way. */
void fth__blas_solve_right(fth_dtype t, int64_t m, int64_t n, fth__matrix l, fth__matrix_out b);
/* Lower Cholesky factor in place; entries above the diagonal are neither read nor written.
 * 0, or the order of the leading minor that is not positive definite. */
int64_t fth__blas_cholesky(fth_dtype t, int64_t n, fth__matrix_out a);

#endif
