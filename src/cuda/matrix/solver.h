/* solver.h - Cholesky factors of large matrices by cuSOLVER, opened by name when the first one is
 * planned.
 *
 * Its workspace is part of the plan, so its size is asked for while there is a plan to make. What
 * the library keeps for itself comes on top, as with cuBLASLt. It says of none of its functions
 * that they can be recorded, so runs that call it are queued anew each time.
 */
#ifndef FTH_CUDA_SOLVER_H
#define FTH_CUDA_SOLVER_H

#include <fathom/cuda.h>

/* One matrix by columns; the factor takes the place of the triangle that is read. */
typedef struct fth__cuda_factor {
    fth_dtype dtype;
    bool upper;
    int64_t n, ld;
    void *a;
    void *work; /* fth__cuda_solver_bytes of it, 16 bytes aligned */
    int *info;  /* on the device: 0, or the order of the first minor that is not positive */
} fth__cuda_factor;

/* Bytes of workspace; 0: there is no library, or it does not take such matrices. The answer for a
 * size never changes while the process runs. */
uint64_t fth__cuda_solver_bytes(fth_dtype dtype, int64_t n);
/* Queue it; for sizes whose workspace is known. */
fth_status fth__cuda_solver_factor(fth_device *device, cudaStream_t stream,
                                   const fth__cuda_factor *f, fth_err *err);

#endif
