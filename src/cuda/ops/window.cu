/* window.cu - the neighbours of every element along a new innermost axis. */
#include "cuda/walk/space.cuh"

extern "C" {
#include "ops/border.h"
#include "ops/window.h"
}

/* Places in the result, in the input without the axis, and along the axis: x + t. */
template <class T>
static __global__ void take(const fth__places<3> __grid_constant__ w, T *out, const T *in,
                            int64_t first, int64_t size, int64_t origin, int64_t step, int border)
{
    for (FTH__EACH_PLACE(w, i)) {
        int64_t at[3];
        fth__place_at(w, i, at);
        const int64_t from = fth__border_index(border, size, first + at[2]);
        out[at[0]] = from >= 0 ? in[at[1] + (from - origin) * step] : T{};
    }
}

template <class T> static void queue(const fth_call *call)
{
    const fth__window_attr *attr = (const fth__window_attr *)call->node->attr;
    const fth_desc *d = &call->node->in[0];
    const fth_tile *in = &call->in[0], *out = &call->out[0];
    const int dim = fth_desc_find(d, attr->axis), tap = d->n_axes;
    fth__space<3> s;
    for (int i = 0; i < tap; i++) {
        const bool along = i == dim;
        s.add(out->extent[i], out->stride[i], along ? 0 : in->stride[i], along ? 1 : 0);
        s.base[1] += along ? 0 : (out->origin[i] - in->origin[i]) * in->stride[i];
    }
    s.add(out->extent[tap], out->stride[tap], 0, 1);
    s.base[2] = out->origin[dim] + out->origin[tap] - attr->lo;
    fth__space_each(s, [&](const fth__places<3> &w, const int64_t *base) {
        FTH_LAUNCH((take<T>), fth__place_blocks(w.count, 4), FTH__SPACE_THREADS,
                   fth_cuda_stream(call), w, (T *)out->data + base[0],
                   (const T *)in->data + base[1], base[2], d->size[dim], in->origin[dim],
                   in->stride[dim], attr->border);
    });
}

static fth_status run(const fth_call *call)
{
    switch (fth_dtype_size(call->node->out[0].dtype)) {
    case 1: queue<uint8_t>(call); break;
    case 2: queue<uint16_t>(call); break;
    case 4: queue<uint32_t>(call); break;
    case 8: queue<uint2>(call); break;
    default: queue<uint4>(call); break;
    }
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

FTH_CUDA_KERNEL(window) = {.op = "window", .run = run};
