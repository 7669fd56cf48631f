/* shift.cuh - copies of long runs that begin at different places of a vector. */
#ifndef FTH_CUDA_SHIFT_CUH
#define FTH_CUDA_SHIFT_CUH

#include "cuda/walk/space.cuh"

/* Queue the copy (steps in bytes: destination, source; joined) when it is such a one; false:
 * nothing was done. */
bool fth__cuda_shift(const fth_call *call, const fth__space<2> &space, int64_t size, char *dst,
                     const char *src);

#endif
