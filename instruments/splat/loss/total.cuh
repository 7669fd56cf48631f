/* total.cuh - the sum of a number over the threads of a block. */
#ifndef SPLAT_LOSS_TOTAL_CUH
#define SPLAT_LOSS_TOTAL_CUH

/* In a fixed tree; of thread 0. `shared` has a number for each warp. */
static __device__ inline double total_of(double x, double *shared)
{
    for (int d = 16; d > 0; d /= 2) x += __shfl_xor_sync(~0u, x, d);
    __syncthreads();
    if ((threadIdx.x & 31) == 0) shared[threadIdx.x / 32] = x;
    __syncthreads();
    double sum = 0;
    if (threadIdx.x == 0)
        for (unsigned w = 0; w < blockDim.x / 32; w++) sum += shared[w];
    return sum;
}

#endif
