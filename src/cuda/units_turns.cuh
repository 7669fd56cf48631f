/* units_turns.cuh - more words of capability 9.0 for kernels that feed the matrix units: turns of
 * two groups, registers that pass from one to the others, and clusters, whose blocks of threads
 * reach each other's shared memory and get copies together.
 *
 * None of it has a form for the CPU: kernels that use it make their sums by plain loops there.
 */
#ifndef FTH_CUDA_UNITS_TURNS_CUH
#define FTH_CUDA_UNITS_TURNS_CUH

#include "cuda/units.cuh"

#if defined __CUDACC__ && !defined FTH_EMULATED

/* ---- two groups in turns ---- */

/* Until somebody passes turn `id` on (1 to 15); THREADS are those of both groups. */
template <int THREADS> static __device__ inline void fth__turn_wait(int id)
{
    asm volatile("bar.sync %0, %1;" ::"r"(id), "n"(THREADS) : "memory");
}
template <int THREADS> static __device__ inline void fth__turn_pass(int id)
{
    asm volatile("bar.arrive %0, %1;" ::"r"(id), "n"(THREADS) : "memory");
}

/* ---- clusters ---- */

static __device__ inline unsigned fth__cluster_rank(void)
{
    unsigned r;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
    return r;
}
/* All threads of all blocks of the cluster. */
static __device__ inline void fth__cluster_sync(void)
{
    asm volatile("barrier.cluster.arrive.aligned;\n barrier.cluster.wait.aligned;" ::: "memory");
}
/* At the same barrier of one of the blocks. */
static __device__ inline void fth__cluster_arrive(fth__units_barrier *b, unsigned rank)
{
    asm volatile("{\n .reg .b32 there;\n mapa.shared::cluster.u32 there, %0, %1;\n"
                 " mbarrier.arrive.release.cluster.shared::cluster.b64 _, [there];\n}" ::"r"(
                     fth__units_address(b)),
                 "r"(rank)
                 : "memory");
}
/* Until the phase of this parity is over, where other blocks arrive. */
static __device__ inline void fth__cluster_wait(fth__units_barrier *b, unsigned parity)
{
    unsigned done = 0;
    while (!done)
        asm volatile("{\n .reg .pred p;\n"
                     " mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n"
                     " selp.u32 %0, 1, 0, p;\n}"
                     : "=r"(done)
                     : "r"(fth__units_address(b)), "r"(parity)
                     : "memory");
}
/* To the same place of every block whose bit is set, arriving at the same barrier of each. */
static __device__ inline void fth__cluster_copy(void *to, const void *from, int bytes,
                                                fth__units_barrier *arrives, unsigned blocks)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".multicast::cluster [%0], [%1], %2, [%3], %4;" ::"r"(fth__units_address(to)),
                 "l"(from), "r"(bytes), "r"(fth__units_address(arrives)), "h"((uint16_t)blocks)
                 : "memory");
}

#endif
#endif
