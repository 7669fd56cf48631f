/* cuda/product/product.h - one matrix product, or a batch of them, shared by dot and dot_reduce.
 *
 * Matrices in a layout that BLAS supports go to cuBLASLt; everything else (vectors, small matrices,
 * other layouts) to a kernel of our own that takes any strides. The choice depends on the operation
 * alone, never on a tile. Parts outside triangular marks are skipped block by block; blocks start
 * at fixed positions of the whole axes.
 *
 * f16 and bf16 are three times as fast by algorithms that want everything at multiples of 16 bytes,
 * and these give other bits. They are taken where the operation's sizes allow it; then pieces of
 * dense arrays lie so, because grids are powers of two, and others are copied block by block.
 */
#ifndef FTH_CUDA_PRODUCT_H
#define FTH_CUDA_PRODUCT_H

#include <fathom/cuda.h>

extern "C" {
#include "ops/dot.h"
}

/* Other summed axes, inside every tile of k. */
typedef struct fth__cuda_sums {
    int32_t n;
    int64_t count; /* places of all of them together */
    int64_t extent[FTH_MAX_AXES], a[FTH_MAX_AXES], b[FTH_MAX_AXES];
} fth__cuda_sums;

/* c = a b, or c += a b. Strides and steps count elements of each array's own dtype. */
typedef struct fth__cuda_product {
    const char *a, *b;
    char *c;
    int64_t am, ak, bk, bn, cm, cn;
    int64_t m, n, k;    /* extents */
    int64_t m0, n0, k0; /* where they begin in the whole axes */
    int64_t batch, step_a, step_b, step_c;
    int64_t batches; /* of the whole operation that are made at once, for choosing how */
    fth_dtype out;   /* of c: the operands', or what sums are held in */
    bool c_cols;     /* m lies next to itself in c, not n */
    bool c_matrix;   /* and BLAS can write there */
    bool add;
    bool aligned;  /* as fth__cuda_product_aligned says, and there is its scratch */
    char *scratch; /* for pieces that lie badly, and for packed operands */
    uint64_t room; /* bytes of it, by parts */
    fth__cuda_sums sums;
} fth__cuda_product;

/* The other summed axes of a call. */
fth__cuda_sums fth__cuda_sums_of(const fth_call *call, const fth__dot_shape *s);
/* Queue it. k = 0 makes zeros, unless it is added. */
fth_status fth__cuda_product_run(const fth_call *call, const fth__dot_shape *s,
                                 const fth__cuda_product *p);
/* The same by our own kernels, for parts that BLAS does not take: no marks. */
fth_status fth__cuda_product_own(const fth_call *call, const fth__dot_shape *s,
                                 const fth__cuda_product *p);
/* Choose algorithms now; the rest as it will be. */
void fth__cuda_product_prepare(fth_device *device, const fth__dot_shape *s, fth_dtype out,
                               bool c_cols, bool c_matrix, int64_t batches, bool aligned);
/* Can every piece of the operation lie at multiples of 16 bytes? */
bool fth__cuda_product_aligned(const fth__dot_shape *s, bool c_matrix);
/* Bytes of scratch that a piece with these extents may need then. */
uint64_t fth__cuda_product_scratch(const fth__dot_shape *s, int64_t m, int64_t n, int64_t k);

/* dst (f16 or bf16) = src (f32), or elements copied, m by n and a batch of them. */
typedef struct fth__cuda_plane {
    char *dst;
    const char *src;
    int64_t m, n, batch;
    int64_t dst_m, dst_n, dst_step, src_m, src_n, src_step;
} fth__cuda_plane;
fth_status fth__cuda_to_half(const fth_call *call, fth_dtype dtype, const fth__cuda_plane *p);

#endif
