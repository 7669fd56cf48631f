/* move_ops.cu - rows of MCMC on a device: a thread for each row that was drawn, a warp for each
 * copy.
 */
#include <fathom/cuda.h>
#include <fathom/fathom.h>

#include <math.h>

#define GS_BOTH __host__ __device__

namespace
{
#include "family.h"
#include "move_ops.h"

enum { THREADS = 256, WARP = 32 };

__global__ void share(float *opacity, float *scaling, const uint8_t *times, int64_t n,
                      double min_opacity)
{
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t row = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; row < n; row += step)
        if (times[row] > 0) gs_share(opacity + row, scaling + 3 * row, times[row], min_opacity);
}

__global__ void move(float *at, const int64_t *from, const int64_t *to, int64_t n, int columns)
{
    const int lane = (int)(threadIdx.x % WARP);
    const int64_t step = (int64_t)gridDim.x * blockDim.x / WARP;
    for (int64_t j = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / WARP; j < n; j += step)
        for (int k = lane; k < columns; k += WARP)
            at[to[j] * columns + k] = at[from[j] * columns + k];
}

/* Where the output lies elsewhere, it begins as the input. */
fth_status begin(const fth_call *call, int i, int *columns)
{
    int64_t all = 1;
    for (int d = 1; d < call->node->in[i].n_axes; d++) all *= call->in[i].extent[d];
    *columns = (int)all;
    const uint64_t bytes = (uint64_t)(call->in[i].extent[0] * all) * sizeof(float);
    if (call->out[i].data == call->in[i].data || bytes == 0) return FTH_OK;
    FTH_CUDA_TRY(cudaMemcpyAsync(call->out[i].data, call->in[i].data, bytes,
                                 cudaMemcpyDeviceToDevice, fth_cuda_stream(call)),
                 "copying rows", call->err);
    return FTH_OK;
}

fth_status run_share(const fth_call *call)
{
    const gs_sharing *a = (const gs_sharing *)call->node->attr;
    const int64_t n = call->in[GS_SHARE_TIMES].extent[0];
    int columns = 0;
    for (int i = 0; i < GS_SHARE_PARTS; i++) FTH_TRY(begin(call, i, &columns));
    if (n == 0) return FTH_OK;
    FTH_LAUNCH(share, fth_cuda_blocks(n, THREADS), THREADS, fth_cuda_stream(call),
               (float *)call->out[GS_SHARE_OPACITY].data, (float *)call->out[GS_SHARE_SCALING].data,
               (const uint8_t *)call->in[GS_SHARE_TIMES].data, n, a->min_opacity);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

fth_status run_move(const fth_call *call)
{
    const int64_t n = call->in[GS_MOVE_FROM].extent[0];
    int columns = 0;
    FTH_TRY(begin(call, GS_MOVE_ARRAY, &columns));
    if (n == 0 || columns == 0) return FTH_OK;
    FTH_LAUNCH(move, fth_cuda_blocks(n * WARP, THREADS), THREADS, fth_cuda_stream(call),
               (float *)call->out[0].data, (const int64_t *)call->in[GS_MOVE_FROM].data,
               (const int64_t *)call->in[GS_MOVE_TO].data, n, columns);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}
} // namespace

FTH_CUDA_KERNEL(splat_share) = {.op = "splat_share", .run = run_share};
FTH_CUDA_KERNEL(splat_move) = {.op = "splat_move", .run = run_move};
