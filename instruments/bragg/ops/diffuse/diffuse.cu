/* diffuse.cu - scattering without a lattice on a device, forward and inverse: a thread per
 * pixel. */
#include "../render/device.h"

namespace
{
#include "diffuse_pixel.h"

#define dot plain_dot
#include "../render/render_plain.c"
#undef dot
#include "../../geometry/rotate.c"
#include "../../read/stol_at.c"

enum { THREADS = 128 };

struct picture {
    window w;
    const double *stol;
    int64_t stol_rows;
    double molecules;
    bool amplitude;
    const double *from; /* inverse: photons */
    int64_t from_stride[2];
    float *F;
    int64_t stride[2];
    int32_t *bin;
    int64_t bin_stride[2];
};

__device__ diffuse diffuse_at(const device_view *top, const picture &p)
{
    diffuse h;
    h.view = top->view;
    h.stol = p.stol;
    h.rows = p.stol_rows;
    return h;
}

__device__ double scale_at(const diffuse &h, double molecules)
{
    const br_scene *s = h.view.scene;
    return h.view.scale * molecules /
           ((double)s->sources * (double)s->oversample * (double)s->oversample);
}

__global__ void __launch_bounds__(THREADS) forward(const device_view *top, picture p)
{
    const diffuse h = diffuse_at(top, p);
    const double scale = scale_at(h, p.molecules);
    const int64_t n = p.w.rows * p.w.cols;
    for (int64_t i = THREAD_INDEX; i < n; i += THREAD_COUNT) {
        const int64_t y = i / p.w.cols, x = i % p.w.cols;
        const br_row row = {.slow = p.w.slow + y, .fast = p.w.fast + x, .n = 1};
        double value = 0;
        if (is_rendered(h.view.scene, p.w, y, x)) {
            const sums t = diffuse_pixel(&h, &row, 0);
            value = !p.amplitude ? t.signal * scale : t.factor > 0 ? t.F / t.factor : 0;
        }
        p.F[y * p.stride[0] + x * p.stride[1]] = (float)value;
    }
}

__global__ void __launch_bounds__(THREADS) backward(const device_view *top, picture p)
{
    const diffuse h = diffuse_at(top, p);
    const double scale = scale_at(h, p.molecules);
    const int64_t n = p.w.rows * p.w.cols;
    for (int64_t i = THREAD_INDEX; i < n; i += THREAD_COUNT) {
        const int64_t y = i / p.w.cols, x = i % p.w.cols;
        const br_row row = {.slow = p.w.slow + y, .fast = p.w.fast + x, .n = 1};
        const double from = p.from[y * p.from_stride[0] + x * p.from_stride[1]];
        sums t = {0, 0, 0, 0};
        if (is_rendered(h.view.scene, p.w, y, x) && !isnan(from)) t = diffuse_pixel(&h, &row, 0);
        const bool good = t.factor > 0 && scale > 0;
        const double square = good ? fabs(from) / (t.factor * scale) : 0;
        if (p.F)
            p.F[y * p.stride[0] + x * p.stride[1]] = (float)((from < 0 ? -1 : 1) * sqrt(square));
        if (p.bin)
            p.bin[y * p.bin_stride[0] + x * p.bin_stride[1]] =
                good ? (int32_t)br_stol_nearest(h.stol, h.rows, t.stol / t.factor) : -1;
    }
}

const diffuse_attr *attr_of(const fth_call *call)
{
    return (const diffuse_attr *)call->node->attr;
}

uint64_t scratch(const fth_call *call)
{
    return scratch_map_of(&attr_of(call)->scene, false).end;
}

picture picture_of(const fth_call *call, int mask)
{
    const diffuse_attr *a = attr_of(call);
    const fth_tile *out = &call->out[0], *bin = &call->out[1], *from = &call->in[MASK_OR_IMAGE];
    picture p = {};
    p.w = window_of(out, mask < call->node->n_in ? &call->in[mask] : NULL);
    p.stol = (const double *)call->in[STOL].data;
    p.stol_rows = call->in[STOL].extent[0] - 2 * BR_STOL_GUARD;
    p.molecules = a->molecules;
    p.amplitude = a->amplitude != 0;
    p.F = (float *)out->data;
    if (a->back) p.from = (const double *)from->data;
    if (a->back) p.bin = (int32_t *)bin->data;
    for (int k = 0; k < 2; k++) {
        p.stride[k] = out->stride[k];
        if (a->back) p.from_stride[k] = from->stride[k];
        if (a->back) p.bin_stride[k] = bin->stride[k];
    }
    return p;
}

fth_status run(const fth_call *call)
{
    const diffuse_attr *a = attr_of(call);
    const br_device_inputs in = {PARAM, -1, SOURCE, -1, -1};
    const picture p = picture_of(call, a->back ? MASK_TOO : MASK_OR_IMAGE);
    const device_view *top = (const device_view *)call->scratch;
    const unsigned blocks = blocks_for(p.w.rows * p.w.cols, THREADS);
    if (p.w.rows == 0 || p.w.cols == 0) return FTH_OK;
    FTH_TRY(fth__bragg_view(call, &a->scene, &in, false));
    if (a->back)
        FTH_LAUNCH(backward, blocks, THREADS, fth_cuda_stream(call), top, p);
    else
        FTH_LAUNCH(forward, blocks, THREADS, fth_cuda_stream(call), top, p);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}
} // namespace

FTH_CUDA_KERNEL(bragg_diffuse) = {.op = "bragg_diffuse", .scratch = scratch, .run = run};
FTH_CUDA_KERNEL(bragg_diffuse_amplitude) = {
    .op = "bragg_diffuse_amplitude", .scratch = scratch, .run = run};
