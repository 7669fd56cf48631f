/* totals.cu - totals.c on a device: a block for each plane. */
#include <fathom/cuda.h>
#include <fathom/fathom.h>

namespace
{
#include "stack.h"

constexpr int THREADS = 256;

struct work {
    const int64_t *in;
    int64_t *out;
    int64_t in_step[3], out_step[2], planes, rows, sums;
    bool first;
};

/* Threads take rows in turn, so many at once as there are sums for. */
__global__ void __launch_bounds__(THREADS) add_rows(work w)
{
    __shared__ int64_t part[THREADS];
    const int64_t s = blockIdx.x / w.planes, z = blockIdx.x % w.planes;
    const int64_t *in = w.in + s * w.in_step[0] + z * w.in_step[1];
    int64_t *out = w.out + s * w.out_step[0] + z * w.out_step[1];
    for (int64_t from = 0; from < w.sums; from += THREADS) {
        const int wide = (int)(w.sums - from < THREADS ? w.sums - from : (int64_t)THREADS);
        const int high = THREADS / wide, t = (int)threadIdx.x, k = t % wide;
        int64_t sum = 0;
#pragma unroll 8
        for (int64_t y = t / wide; t < high * wide && y < w.rows; y += high)
            sum += in[y * w.in_step[2] + from + k];
        part[t] = sum;
        __syncthreads();
        for (int i = 1; t < wide && i < high; i++) sum += part[i * wide + t];
        if (t < wide) out[from + t] = w.first ? sum : out[from + t] + sum;
        __syncthreads();
    }
}

fth_status run(const fth_call *call)
{
    const fth_tile *in = &call->in[0], *out = &call->out[0];
    work w = {};
    w.in = (const int64_t *)in->data;
    w.out = (int64_t *)out->data;
    for (int i = 0; i < 3; i++) w.in_step[i] = in->stride[i];
    for (int i = 0; i < 2; i++) w.out_step[i] = out->stride[i];
    w.planes = out->extent[FO_Z];
    w.rows = in->extent[FO_Y];
    w.sums = out->extent[2];
    w.first = call->first;
    const int64_t blocks = out->extent[FO_STACK] * w.planes;
    if (blocks == 0 || w.sums == 0) return FTH_OK;
    FTH_LAUNCH(add_rows, (unsigned)blocks, THREADS, fth_cuda_stream(call), w);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}
} // namespace

FTH_CUDA_KERNEL(focus_plane_totals) = {.op = "focus_plane_totals", .run = run};
