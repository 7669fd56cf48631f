/* gather_rows.cu - rows of an array by their numbers, for tensors whose rows are kept in place.
 *
 * A thread moves the widest word that divides a row, so neighbours read and write side by side.
 */
#include "base/assert.h"
#include "cuda/device/device.h"

enum { THREADS = 256 };

template <typename word>
static __global__ void gather(word *to, const word *from, const int64_t *index, int64_t n,
                              uint32_t wide)
{
    const int64_t step = (int64_t)gridDim.x * blockDim.x, all = n * wide;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += step) {
        const int64_t row = all <= UINT32_MAX ? (uint32_t)i / wide : i / wide;
        to[i] = from[index[row] * wide + (i - row * wide)];
    }
}

template <typename word>
static void queue(cudaStream_t stream, void *to, const void *from, const int64_t *index, int64_t n,
                  uint64_t bytes)
{
    FTH_ASSERT(bytes % sizeof(word) == 0 && bytes / sizeof(word) <= UINT32_MAX);
    const uint32_t wide = (uint32_t)(bytes / sizeof(word));
    FTH_LAUNCH(gather<word>, fth_cuda_blocks(n * wide, THREADS), THREADS, stream, (word *)to,
               (const word *)from, index, n, wide);
}

fth_status fth__cuda_gather_rows(fth_device *d, fth_lane lane, void *to, const void *from,
                                 const int64_t *index, int64_t n, uint64_t bytes, fth_err *err)
{
    FTH_ASSERT(lane >= 0 && lane < FTH_LANE_COUNT && n >= 0);
    const uintptr_t all = (uintptr_t)to | (uintptr_t)from | (uintptr_t)bytes;
    if (n == 0 || bytes == 0) return FTH_OK;
    if (all % sizeof(uint4) == 0)
        queue<uint4>(d->lane[lane], to, from, index, n, bytes);
    else if (all % sizeof(uint32_t) == 0)
        queue<uint32_t>(d->lane[lane], to, from, index, n, bytes);
    else
        queue<uint8_t>(d->lane[lane], to, from, index, n, bytes);
    FTH_CUDA_TRY(cudaGetLastError(), "gathering rows", err);
    return FTH_OK;
}
