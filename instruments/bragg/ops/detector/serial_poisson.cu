/* serial_poisson.cu - the reference's stream of counts on a device: one thread, pixel after pixel.
 *
 * How many numbers of the stream a pixel takes depends on their values, so pixels cannot run in
 * parallel. The other threads of its block load pixels and compute what does not depend on the
 * position in the stream: the uniform numbers (staged.h) and the exponentials of small means.
 */
#include "../render/device.h"

namespace
{
#include "serial.h"
#include "staged.h"

struct stretch {
    serial_attr attr;
    const float *from;
    float *to;
    int64_t rows, cols, slow, f0, f1, t0, t1;
    br_ran1 *state;
    bool first;
};

enum { PIXELS = STAGED_THREADS };

/* Pixels of a row in shared memory. */
struct tile {
    float mean[PIXELS], g[PIXELS], count[PIXELS];
    bool inside[PIXELS];
    int n, next; /* how many, and the next one of the serial thread */
};

__device__ void bring(const stretch &k, tile &p, int64_t y, int64_t x0)
{
    const int t = (int)threadIdx.x;
    const int64_t slow = k.slow + y, x = x0 + t;
    if (t == 0) {
        p.n = (int)(k.cols - x0 < PIXELS ? k.cols - x0 : PIXELS);
        p.next = 0;
    }
    if (x < k.cols) {
        const float mean = k.from[y * k.f0 + x * k.f1];
        p.inside[t] = slow >= k.attr.roi[2] && slow <= k.attr.roi[3] && x >= k.attr.roi[0] &&
                      x <= k.attr.roi[1];
        p.mean[t] = mean;
        p.g[t] = p.inside[t] && mean < 12 ? (float)exp(-(double)mean) : 0;
        p.count[t] = 0;
    }
    __syncthreads();
}

/* From the tile's next pixel until the staged numbers are used up; at least one pixel. */
__device__ void walk_on(staged &s, tile &p)
{
    int i = p.next, at = s.at;
    do {
        if (p.inside[i]) p.count[i] = staged_poisson(s, p.mean[i], p.g[i], at);
        i++;
    } while (i < p.n && at < s.n);
    s.at = at;
    p.next = i;
}

__global__ void __launch_bounds__(STAGED_THREADS) walk(stretch k)
{
    __shared__ staged s;
    __shared__ tile p;
    const int t = (int)threadIdx.x;
    if (t == 0) s.r = k.first ? k.attr.start : *k.state;
    staged_start(s, &s.r.seed);
    for (int64_t y = 0; y < k.rows; y++)
        for (int64_t x0 = 0; x0 < k.cols; x0 += PIXELS) {
            bring(k, p, y, x0);
            while (p.next < p.n) {
                const bool used_up = s.at >= s.n;
                __syncthreads(); /* all threads have read it */
                if (used_up) staged_fill(s);
                if (t == 0) walk_on(s, p);
                __syncthreads();
            }
            if (t < p.n) k.to[y * k.t0 + (x0 + t) * k.t1] = p.count[t];
            __syncthreads();
        }
    staged_settle(s);
    if (t == 0) *k.state = s.r;
}

fth_status run(const fth_call *call)
{
    const fth_tile *in = &call->in[0], *out = &call->out[0];
    if (out->extent[1] == 0) return FTH_OK; /* an empty row has no state and needs none */
    const stretch s = {.attr = *(const serial_attr *)call->node->attr,
                       .from = (const float *)in->data +
                               (out->origin[0] - in->origin[0]) * in->stride[0],
                       .to = (float *)out->data,
                       .rows = out->extent[0],
                       .cols = out->extent[1],
                       .slow = out->origin[0],
                       .f0 = in->stride[0],
                       .f1 = in->stride[1],
                       .t0 = out->stride[0],
                       .t1 = out->stride[1],
                       .state = (br_ran1 *)call->state[0].data,
                       .first = call->first};
    FTH_LAUNCH(walk, 1, STAGED_THREADS, fth_cuda_stream(call), s);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}
} // namespace

FTH_CUDA_KERNEL(serial_poisson) = {.op = "serial_poisson", .run = run};
