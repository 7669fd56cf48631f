/* psf_float.cu - the point spread of the original on a device: a thread per pixel adds up its
 * sources in their order, in floats. Radii and shares come from the host, so that bits are those of
 * the CPU.
 */
#include "../render/device.h"

namespace
{
#include "psf_float.h"

enum { THREADS = 128 };

struct smear {
    const float *in;
    const int32_t *radius;
    const double *kernel;
    int64_t i0, i1, in_first, in_rows;
    int64_t r0, r1, radius_first;
    int64_t k0, k1, reach;
    double pool;
    float *out;
    int64_t rows, cols, first, o0, o1;
};

__device__ inline bool inside(int64_t dx, int64_t dy, int64_t r)
{
    return dx * dx + dy * dy <= r * r;
}

__device__ inline double share_at(const smear &s, int64_t dx, int64_t dy)
{
    return s.kernel[(s.reach + dy) * s.k0 + (s.reach + dx) * s.k1];
}

/* One source, at dx and dy from the target. */
__device__ inline float add(const smear &s, float sum, int64_t ys, int64_t xs, int64_t dx,
                            int64_t dy)
{
    const int64_t r = s.radius[(ys - s.radius_first) * s.r0 + xs * s.r1];
    if (r == 0 || !inside(dx, dy, r)) return sum;
    const double share = share_at(s, dx, dy);
    if (share == 0) return sum;
    const double photons = (double)s.in[(ys - s.in_first) * s.i0 + xs * s.i1];
    return (float)((double)sum + photons * share);
}

__device__ float gathered(const smear &s, int64_t yt, int64_t xt)
{
    const int64_t end = s.in_first + s.in_rows, top = yt - 1 - s.reach;
    const bool edge = xt == 0 && yt > 0; /* also as the pixel after the last of the row above */
    float sum = 0;
    for (int64_t ys = top > s.in_first ? top : s.in_first; ys < end && ys <= yt + s.reach; ys++) {
        const int64_t dy = yt - ys, from = edge || xt < s.reach ? 0 : xt - s.reach,
                      to = edge || xt + s.reach >= s.cols ? s.cols - 1 : xt + s.reach;
        for (int64_t xs = from; xs <= to; xs++) {
            const int64_t dx = xt - xs, across = s.cols - xs;
            if (dy <= s.reach && -dx <= s.reach) sum = add(s, sum, ys, xs, dx, dy);
            if (edge && across <= s.reach && dy - 1 >= -s.reach)
                sum = add(s, sum, ys, xs, across, dy - 1);
        }
    }
    return (float)((double)sum + s.pool);
}

__global__ void __launch_bounds__(THREADS) spread(smear s)
{
    const int64_t n = s.rows * s.cols;
    for (int64_t i = THREAD_INDEX; i < n; i += THREAD_COUNT) {
        const int64_t y = i / s.cols, x = i % s.cols;
        s.out[y * s.o0 + x * s.o1] = gathered(s, s.first + y, x);
    }
}

fth_status run(const fth_call *call)
{
    const psf_float *a = (const psf_float *)call->node->attr;
    const fth_tile *in = &call->in[0], *radius = &call->in[1], *kernel = &call->in[2],
                   *out = &call->out[0];
    const smear s = {.in = (const float *)in->data,
                     .radius = (const int32_t *)radius->data,
                     .kernel = (const double *)kernel->data,
                     .i0 = in->stride[0],
                     .i1 = in->stride[1],
                     .in_first = in->origin[0],
                     .in_rows = in->extent[0],
                     .r0 = radius->stride[0],
                     .r1 = radius->stride[1],
                     .radius_first = radius->origin[0],
                     .k0 = kernel->stride[0],
                     .k1 = kernel->stride[1],
                     .reach = a->reach,
                     .pool = a->pool,
                     .out = (float *)out->data,
                     .rows = out->extent[0],
                     .cols = out->extent[1],
                     .first = out->origin[0],
                     .o0 = out->stride[0],
                     .o1 = out->stride[1]};
    FTH_LAUNCH(spread, blocks_for(s.rows * s.cols, THREADS), THREADS, fth_cuda_stream(call), s);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}
} // namespace

FTH_CUDA_KERNEL(bragg_psf_float) = {.op = "bragg_psf_float", .run = run};
