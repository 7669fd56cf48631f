/* grid.cu - the operations of grid.h on a device: kernels of grid.cuh in both precisions. */
#include <fathom/cuda.h>
#include <fathom/fathom.h>

extern "C" {
#include "loops.h"
}
#include "../loss/total.cuh"

#define GS_BOTH __host__ __device__

namespace
{

enum { SLOPE_THREADS = 256 };

int64_t slope_blocks(const fth_node *node)
{
    const fth_desc *d = &node->in[GS_SLOPE_GRIDS];
    const int64_t plane = d->size[2] * d->size[3] * d->size[4];
    return d->size[0] * GS_AFFINE * ((plane + SLOPE_THREADS - 1) / SLOPE_THREADS);
}

/* One block: thread t has blocks t, t + threads .. of the slopes. */
__global__ void add_slopes(const double *sum, int64_t blocks, double *loss)
{
    __shared__ double warps[32];
    double part = 0;
    for (int64_t b = threadIdx.x; b < blocks; b += blockDim.x) part += sum[b];
    const double all = total_of(part, warps);
    if (threadIdx.x == 0 && loss) *loss = all;
}

namespace single
{
typedef float real;
#define FMA(a, b, c) fmaf((a), (b), (c))
#include "grid.cuh"
#undef FMA
} // namespace single

namespace twice
{
typedef double real;
#define FMA(a, b, c) fma((a), (b), (c))
#include "grid.cuh"
#undef FMA
} // namespace twice

bool is_single(const fth_node *node)
{
    return node->in[0].dtype == FTH_F32;
}

bool supports(const fth_node *node)
{
    const bool back = node->n_in == GS_SLICE_INPUTS;
    const uint64_t bytes =
        is_single(node) ? single::shared_bytes(node, back) : twice::shared_bytes(node, back);
    return bytes <= (uint64_t)fth_cuda_most_shared();
}

uint64_t back_scratch(const fth_call *call)
{
    return is_single(call->node) ? single::back_scratch(call) : twice::back_scratch(call);
}

fth_status run_slice(const fth_call *call)
{
    if (is_single(call->node))
        single::run_slice(call);
    else
        twice::run_slice(call);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

uint64_t slope_scratch(const fth_call *call)
{
    return (uint64_t)slope_blocks(call->node) * sizeof(double);
}

fth_status run_slope(const fth_call *call)
{
    if (is_single(call->node))
        single::run_slope(call);
    else
        twice::run_slope(call);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

} // namespace

FTH_CUDA_KERNEL(splat_slice) = {.op = "splat_slice", .supports = supports, .run = run_slice};
FTH_CUDA_KERNEL(splat_slice_back) = {
    .op = "splat_slice_back", .supports = supports, .scratch = back_scratch, .run = run_slice};
FTH_CUDA_KERNEL(splat_grid_slope) = {
    .op = "splat_grid_slope", .scratch = slope_scratch, .run = run_slope};
