/* serial_poisson.cu - the reference's stream of counts on a device: one thread, pixel after pixel.
 *
 * How many numbers of the stream a pixel takes depends on them, so nobody can go ahead.
 */
#include "device.h"

namespace
{
#include "../random.c"
#include "serial.h"

enum { AHEAD = 16 };

struct stretch {
    serial_attr attr;
    const float *from;
    float *to;
    int64_t rows, cols, slow, f0, f1, t0, t1;
    br_ran1 *state;
    bool first;
};

__global__ void walk(stretch s)
{
    br_ran1 r = s.first ? s.attr.start : *s.state;
    for (int64_t y = 0; y < s.rows; y++) {
        const int64_t slow = s.slow + y;
        const bool row_inside = slow >= s.attr.roi[2] && slow <= s.attr.roi[3];
        for (int64_t x0 = 0; x0 < s.cols; x0 += AHEAD) {
            float mean[AHEAD]; /* asked for together: one wait for all */
            for (int64_t k = 0; k < AHEAD; k++)
                mean[k] = x0 + k < s.cols ? s.from[y * s.f0 + (x0 + k) * s.f1] : 0;
            for (int64_t x = x0; x < x0 + AHEAD && x < s.cols; x++) {
                const bool inside = row_inside && x >= s.attr.roi[0] && x <= s.attr.roi[1];
                s.to[y * s.t0 + x * s.t1] = inside ? br_poisson(&r, mean[x - x0], &r.seed) : 0.0f;
            }
        }
    }
    *s.state = r;
}

fth_status run(const fth_call *call)
{
    const fth_tile *in = &call->in[0], *out = &call->out[0];
    if (out->extent[1] == 0) return FTH_OK; /* no room for a state, and no need */
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
                       .state = (br_ran1 *)call->state.data,
                       .first = call->first};
    FTH_LAUNCH(walk, 1, 1, fth_cuda_stream(call), s);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}
} // namespace

FTH_CUDA_KERNEL(serial_poisson) = {.op = "serial_poisson", .run = run};
