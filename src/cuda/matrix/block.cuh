/* block.cuh - triangles of 128 rows in shared memory, for the kernels of block.h.
 *
 * A triangle lies by columns, padded to 128 rows with the identity. Only for .cu files.
 */
#ifndef FTH_CUDA_BLOCK_CUH
#define FTH_CUDA_BLOCK_CUH

#include "cuda/matrix/block.h"
#include "cuda/matrix/field.cuh"

/* Rows of the blocks on its diagonal that are inverted: a warp, with a row per lane. */
static constexpr int FTH__BLOCK_SUB = 32;

/* From column to column in shared memory: 16 bytes more than the column, against bank conflicts. */
template <typename T> constexpr int FTH__BLOCK_PITCH = FTH__BLOCK + fth__field<T>::wide;

/* Elements that lie at multiples of 16 bytes, to registers and from them. */
template <int N, typename T>
static __device__ __forceinline__ void fth__get(T (&v)[N], const T *from)
{
    constexpr int W = fth__field<T>::wide;
#pragma unroll
    for (int g = 0; g < N / W; g++) {
        const fth__wide<T> w = ((const fth__wide<T> *)from)[g];
#pragma unroll
        for (int e = 0; e < W; e++) v[g * W + e] = w.at[e];
    }
}
template <int N, typename T> static __device__ __forceinline__ void fth__put(T *to, const T (&v)[N])
{
    constexpr int W = fth__field<T>::wide;
#pragma unroll
    for (int g = 0; g < N / W; g++) {
        fth__wide<T> w;
#pragma unroll
        for (int e = 0; e < W; e++) w.at[e] = v[g * W + e];
        ((fth__wide<T> *)to)[g] = w;
    }
}

#endif
