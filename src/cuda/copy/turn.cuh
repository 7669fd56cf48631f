/* turn.cuh - copies whose source and destination run along different axes. */
#ifndef FTH_CUDA_TURN_CUH
#define FTH_CUDA_TURN_CUH

#include "cuda/walk/space.cuh"

/* Queue the copy (steps in bytes: destination, source; joined) when it is such a one and squares
 * in shared memory help; false: nothing was done. */
bool fth__cuda_turn(const fth_call *call, const fth__space<2> &space, int64_t size, char *dst,
                    const char *src);

#endif
