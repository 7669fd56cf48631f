/* async.cuh - copies from global to shared memory that a thread does not wait for.
 *
 * Copies are gathered in groups; a thread waits until at most so many of its newest groups are
 * still on their way, and then a barrier of the block shows them to the others. Where kernels are
 * compiled for the CPU a copy is made at once. Only for .cu files.
 */
#ifndef FTH_CUDA_ASYNC_CUH
#define FTH_CUDA_ASYNC_CUH

#include <fathom/cuda.h>

#ifdef __CUDACC__
/* BYTES is 4, 8 or 16, both addresses are multiples of it. Not `there`: zeros are written, and
 * nothing is read. */
template <int BYTES>
static __device__ inline void fth__async_copy(void *to, const void *from, bool there)
{
#ifdef FTH_EMULATED
    if (there)
        memcpy(to, from, BYTES);
    else
        memset(to, 0, BYTES);
#else
    const unsigned at = (unsigned)__cvta_generic_to_shared(to);
    const int read = there ? BYTES : 0;
    if constexpr (BYTES == 16) /* whole lines: past the first cache */
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(read)
                     : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %3, %2;" ::"r"(at), "l"(from),
                     "r"(read), "n"(BYTES)
                     : "memory");
#endif
}

/* What was asked for since the last call is a group. */
static __device__ inline void fth__async_group(void)
{
#ifndef FTH_EMULATED
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

template <int NEWEST> static __device__ inline void fth__async_wait(void)
{
#ifndef FTH_EMULATED
    asm volatile("cp.async.wait_group %0;" ::"n"(NEWEST) : "memory");
#endif
}
#endif

#endif
