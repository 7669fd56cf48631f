/* centre.cu - centre.c on a device: a thread for each place, centres through shared memory. */
#include <fathom/cuda.h>
#include <fathom/fathom.h>

namespace
{
#include "centre.h"

constexpr int THREADS = 256;
constexpr int AT_ONCE = 1024; /* centres in shared memory */

struct work {
    const float *at;
    const double *of;
    int32_t *out;
    int64_t at_step, at_dim, of_step, of_dim, out_step, count;
    int centres;
};

__global__ void __launch_bounds__(THREADS) nearest_centre(const work w)
{
    __shared__ double2 some[AT_ONCE];
    const int64_t step = (int64_t)gridDim.x * THREADS,
                  rounds = (w.count + step - 1) / step; /* all threads come to the barriers */
    for (int64_t round = 0; round < rounds; round++) {
        const int64_t i = round * step + (int64_t)blockIdx.x * THREADS + threadIdx.x;
        const bool there = i < w.count;
        const double x = there ? (double)w.at[i * w.at_step] : 0,
                     y = there ? (double)w.at[i * w.at_step + w.at_dim] : 0;
        double least = HUGE_VAL;
        int best = 0;
        for (int c0 = 0; c0 < w.centres; c0 += AT_ONCE) {
            const int n = w.centres - c0 < AT_ONCE ? w.centres - c0 : AT_ONCE;
            __syncthreads(); /* the previous tile was read */
            for (int c = (int)threadIdx.x; c < n; c += THREADS) {
                const double *z = w.of + (c0 + c) * w.of_step;
                some[c] = make_double2(z[0], z[w.of_dim]);
            }
            __syncthreads();
#pragma unroll 4
            for (int c = 0; c < n; c++) {
                const double dx = some[c].x - x, dy = some[c].y - y, d2 = dx * dx + dy * dy;
                if (d2 < least) {
                    least = d2;
                    best = c0 + c;
                }
            }
        }
        if (there) w.out[i * w.out_step] = best;
    }
}

fth_status run(const fth_call *call)
{
    const fth_tile *at = &call->in[SP_CENTRE_AT], *of = &call->in[SP_CENTRE_OF],
                   *out = &call->out[0];
    work w = {};
    w.at_step = at->stride[0];
    w.at_dim = at->stride[1];
    w.of_step = of->stride[0];
    w.of_dim = of->stride[1];
    w.out_step = out->stride[0];
    w.at = (const float *)at->data + (out->origin[0] - at->origin[0]) * at->stride[0];
    w.of = (const double *)of->data;
    w.out = (int32_t *)out->data;
    w.count = out->extent[0];
    w.centres = (int)call->node->in[SP_CENTRE_OF].size[0];
    if (w.count == 0) return FTH_OK;
    FTH_LAUNCH(nearest_centre, fth_cuda_blocks(w.count, THREADS), THREADS, fth_cuda_stream(call),
               w);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}
} // namespace

FTH_CUDA_KERNEL(spatial_nearest_centre) = {.op = "spatial_nearest_centre", .run = run};
