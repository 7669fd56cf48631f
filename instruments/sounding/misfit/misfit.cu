/* misfit.cu - misfit.c on a device: a thread per element. */
#include <fathom/cuda.h>
#include <fathom/fathom.h>

namespace
{
#include "misfit.h"

enum { THREADS = 256 };

__global__ void misfit(const float *r, float *out, int64_t n, float limit)
{
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
        out[i] = SO_MISFIT(r[i], limit);
}

fth_status run(const fth_call *call)
{
    const so_misfit *a = (const so_misfit *)call->node->attr;
    const int64_t n = call->out[0].extent[0];
    if (n == 0) return FTH_OK;
    FTH_LAUNCH(misfit, fth_cuda_blocks(n, THREADS), THREADS, fth_cuda_stream(call),
               (const float *)call->in[0].data, (float *)call->out[0].data, n, a->limit);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}
} // namespace

FTH_CUDA_KERNEL(sounding_misfit) = {.op = "sounding_misfit", .run = run};
