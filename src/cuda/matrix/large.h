/* large.h - the Cholesky factor of one large real matrix, in place, by blocks and products. */
#ifndef FTH_CUDA_LARGE_H
#define FTH_CUDA_LARGE_H

#include <fathom/cuda.h>

/* Its lower triangle, with anything above it; rows or columns are neighbours in memory. */
typedef struct fth__large {
    fth_dtype dtype;
    char *a;
    int64_t row, col, n; /* elements from row to row and from column to column; rows */
    uint64_t where;      /* of the first row, for complaints */
    char *scratch;       /* fth__large_bytes of it, 16 bytes aligned */
} fth__large;

uint64_t fth__large_bytes(fth_dtype dtype);
/* Queue it; above the diagonal there are zeros then. */
fth_status fth__large_factor(const fth_call *call, const fth__large *l);
/* Choose the algorithms of its products now; of dtype, n and col alone. */
void fth__large_prepare(fth_device *device, const fth__large *l);

#endif
