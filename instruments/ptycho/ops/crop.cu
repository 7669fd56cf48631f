/* crop.cu - crop.c on a device: a thread for each number of the output; a pixel of a canvas adds
 * the patches that cover it in their order. */
#include <fathom/cuda.h>
#include <fathom/fathom.h>

namespace
{
#include "crop.h"

constexpr int THREADS = 256;

struct patches_of {
    int parts;                                        /* numbers of a pixel */
    int64_t patterns, n_rows, n_cols, p_step, r_step; /* of patches, steps in pixels */
    int64_t rows, cols, o_step;                       /* of the canvas */
    const int64_t *corner;
    int64_t corner_step, xy_step;
    bool first;
};

template <typename T> __global__ void crop(const patches_of f, const T *canvas, T *out)
{
    const int64_t row = f.n_cols * f.parts, all = f.patterns * f.n_rows * row,
                  step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t k = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; k < all; k += step) {
        const int64_t i = k / (f.n_rows * row), r = k / row % f.n_rows, c = k % row / f.parts,
                      part = k % f.parts;
        const int64_t *v = f.corner + i * f.corner_step;
        const int64_t y = v[f.xy_step] + r, x = v[0] + c;
        const bool inside = y >= 0 && x >= 0 && y < f.rows && x < f.cols;
        out[(i * f.p_step + r * f.r_step + c) * f.parts + part] =
            inside ? canvas[(y * f.o_step + x) * f.parts + part] : 0;
    }
}

template <typename T> __global__ void place(const patches_of f, const T *patches, T *out)
{
    const int64_t row = f.cols * f.parts, all = f.rows * row,
                  step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t k = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; k < all; k += step) {
        const int64_t y = k / row, x = k % row / f.parts, part = k % f.parts;
        T *to = out + (y * f.o_step + x) * f.parts + part;
        T sum = f.first ? 0 : *to;
        for (int64_t i = 0; i < f.patterns; i++) {
            const int64_t *v = f.corner + i * f.corner_step;
            const int64_t r = y - v[f.xy_step], c = x - v[0];
            if (r < 0 || c < 0 || r >= f.n_rows || c >= f.n_cols) continue;
            sum += patches[(i * f.p_step + r * f.r_step + c) * f.parts + part];
        }
        *to = sum;
    }
}

fth_status run(const fth_call *call, bool placing)
{
    const fth_node *node = call->node;
    const fth_tile *patch = placing ? &call->in[0] : &call->out[0],
                   *canvas = placing ? &call->out[0] : &call->in[0], *corner = &call->in[1];
    const fth_dtype t = node->in[0].dtype;
    const cudaStream_t stream = fth_cuda_stream(call);
    patches_of f = {};
    f.parts = fth_dtype_is_complex(t) ? 2 : 1;
    f.patterns = patch->extent[0];
    f.n_rows = patch->extent[1];
    f.n_cols = patch->extent[2];
    f.p_step = patch->stride[0];
    f.r_step = patch->stride[1];
    f.rows = canvas->extent[0];
    f.cols = canvas->extent[1];
    f.o_step = canvas->stride[0];
    f.corner_step = corner->stride[0];
    f.xy_step = corner->stride[1];
    f.corner =
        (const int64_t *)corner->data + (patch->origin[0] - corner->origin[0]) * corner->stride[0];
    f.first = call->first;
    const int64_t all = (placing ? f.rows * f.cols : f.patterns * f.n_rows * f.n_cols) * f.parts;
    if (all == 0) return FTH_OK;
    const unsigned blocks = fth_cuda_blocks(all, THREADS);
    const void *from = call->in[0].data;
    void *to = call->out[0].data;
    if (fth_dtype_real_of(t) == FTH_F32) {
        if (placing)
            FTH_LAUNCH(place<float>, blocks, THREADS, stream, f, (const float *)from, (float *)to);
        else
            FTH_LAUNCH(crop<float>, blocks, THREADS, stream, f, (const float *)from, (float *)to);
    } else {
        if (placing)
            FTH_LAUNCH(place<double>, blocks, THREADS, stream, f, (const double *)from,
                       (double *)to);
        else
            FTH_LAUNCH(crop<double>, blocks, THREADS, stream, f, (const double *)from,
                       (double *)to);
    }
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

fth_status run_crop(const fth_call *call)
{
    return run(call, false);
}
fth_status run_place(const fth_call *call)
{
    return run(call, true);
}
} // namespace

FTH_CUDA_KERNEL(ptycho_crop) = {.op = "ptycho_crop", .run = run_crop};
FTH_CUDA_KERNEL(ptycho_place) = {.op = "ptycho_place", .run = run_place};
