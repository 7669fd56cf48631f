/* cuda/product/blas.h - products of matrices by cuBLASLt, opened by name when the first one is
 * asked for.
 *
 * The algorithm is chosen once for a kind of product: by dtypes, by how the matrices lie, and by
 * the sizes of the whole operation. Every piece of it, however the planner cut it, is made by that
 * one algorithm without splitting k, so one element is the same sum in the same order in every
 * budget.
 */
#ifndef FTH_CUDA_BLAS_H
#define FTH_CUDA_BLAS_H

#include <fathom/cuda.h>

/* Extents of the pieces of an aligned kind are, but for multiples of this, those of the whole. */
enum { FTH__CUDA_PIECE = 256 };

/* A product as BLAS counts: columns next to each other, c = op(a) op(b). */
typedef struct fth__cuda_kind {
    fth_dtype dtype, out;   /* of the operands; of c: the same, or f32 for f16 and bf16 */
    bool turn_a, turn_b;    /* a lies as k by m, b as n by k */
    int64_t m, n, k, batch; /* of the whole operation, not of a piece */
    bool aligned; /* f16 and bf16: addresses and distances of every piece are multiples of 16 bytes,
                     extents of 8 elements, and an algorithm that wants it so is taken */
} fth__cuda_kind;

/* One piece: addresses, distances of columns, and of matrices: zero when there is one. */
typedef struct fth__cuda_gemm {
    const void *a, *b;
    void *c;
    int64_t m, n, k, batch;
    int64_t ld_a, ld_b, ld_c, step_a, step_b, step_c;
    bool add;   /* to what c holds */
    bool minus; /* the product is subtracted instead; only with add */
} fth__cuda_gemm;

/* Is all of it at multiples of 16 bytes? What runs a product of an aligned kind insists on it. */
static inline bool fth__cuda_gemm_aligned(const fth__cuda_kind *kind, const fth__cuda_gemm *g)
{
    const uint64_t in = (uint64_t)fth_dtype_size(kind->dtype),
                   out = (uint64_t)fth_dtype_size(kind->out);
    const uint64_t steps = (uint64_t)(g->ld_a | g->ld_b | g->step_a | g->step_b) * in |
                           (uint64_t)(g->ld_c | g->step_c) * out;
    return ((steps | (uintptr_t)g->a | (uintptr_t)g->b | (uintptr_t)g->c) & 15u) == 0;
}

/* Opens the library and chooses the algorithm. false: there is no library, or no algorithm. */
bool fth__cuda_blas_knows(fth_device *device, const fth__cuda_kind *kind);
/* Queues the product; the kind is known. */
fth_status fth__cuda_blas_run(fth_device *device, cudaStream_t stream, const fth__cuda_kind *kind,
                              const fth__cuda_gemm *g, fth_err *err);
/* "cuBLASLt 13.0.2", or why there is none. */
const char *fth__cuda_blas_name(fth_device *device);

#endif
