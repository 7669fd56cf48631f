/* units_turns.cuh - two groups that feed the matrix units in turns (capability 9.0).
 *
 * Left alone, both would ask the units at once and both would add afterwards. It has no form for
 * the CPU: kernels that use it make their sums by plain loops there.
 */
#ifndef FTH_CUDA_UNITS_TURNS_CUH
#define FTH_CUDA_UNITS_TURNS_CUH

#include "cuda/units.cuh"

#if defined __CUDACC__ && !defined FTH_EMULATED

/* Until somebody passes turn `id` on (1 to 15); THREADS are those of both groups. */
template <int THREADS> static __device__ inline void fth__turn_wait(int id)
{
    asm volatile("bar.sync %0, %1;" ::"r"(id), "n"(THREADS) : "memory");
}
template <int THREADS> static __device__ inline void fth__turn_pass(int id)
{
    asm volatile("bar.arrive %0, %1;" ::"r"(id), "n"(THREADS) : "memory");
}

#endif
#endif
