/* stitch.cu - stitch.c on a device: a thread for each pixel of the canvas goes through the groups
 * in their order, and one for each pixel of a patch on the way back. */
#include <fathom/cuda.h>
#include <fathom/fathom.h>

namespace
{
#include "shift_node.h"

constexpr int THREADS = 256;

struct work {
    int comps;
    const void *image;                          /* patches, or the canvas on the way back */
    int64_t image_group, image_row, rows, cols; /* steps in pixels, and its size */
    const void *t;
    int64_t t_group, t_xy, groups;
    int64_t before_row, before_col;
    void *sum, *weight;
    int64_t sum_group, sum_row, weight_row, y0, x0, out_rows, out_cols;
    bool first;
};

template <typename T> __device__ inline T at(const work &w, const T *p, int64_t y, int64_t x, int k)
{
    if (y < 0 || y >= w.rows || x < 0 || x >= w.cols) return 0;
    return p ? p[(y * w.image_row + x) * w.comps + k] : (T)1;
}

/* Of an image moved by less than a pixel; p null: of ones. */
template <typename T>
__device__ inline T mixed(const work &w, const T *p, pt_shift_axis sy, pt_shift_axis sx, int64_t y,
                          int64_t x, int k)
{
    const T fx = (T)sx.part, fy = (T)sy.part, gx = 1 - fx, gy = 1 - fy;
    return gy * gx * at(w, p, y, x, k) + gy * fx * at(w, p, y, x + 1, k) +
           fy * gx * at(w, p, y + 1, x, k) + fy * fx * at(w, p, y + 1, x + 1, k);
}

template <typename T> __global__ void add(const work w)
{
    const int64_t all = w.out_rows * w.out_cols, step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += step) {
        const int64_t dy = i / w.out_cols, dx = i % w.out_cols, y = w.y0 + dy, x = w.x0 + dx;
        T *sum = w.sum ? (T *)w.sum + (dy * w.sum_row + dx) * w.comps : nullptr;
        T *weight = w.weight ? (T *)w.weight + dy * w.weight_row + dx : nullptr;
        T v[2] = {0, 0}, covered = 0;
        if (!w.first) {
            for (int k = 0; sum && k < w.comps; k++) v[k] = sum[k];
            if (weight) covered = *weight;
        }
        for (int64_t g = 0; g < w.groups; g++) {
            const T *t = (const T *)w.t + g * w.t_group;
            const pt_shift_axis sx = pt_shift_of((double)t[0], w.before_col),
                                sy = pt_shift_of((double)t[w.t_xy], w.before_row);
            const int64_t py = y + sy.first, px = x + sx.first;
            if (py < -1 || py >= w.rows || px < -1 || px >= w.cols) continue;
            const T *p = (const T *)w.image + g * w.image_group * w.comps;
            for (int k = 0; sum && k < w.comps; k++) v[k] += mixed(w, p, sy, sx, py, px, k);
            if (weight) covered += mixed(w, (const T *)nullptr, sy, sx, py, px, 0);
        }
        for (int k = 0; sum && k < w.comps; k++) sum[k] = v[k];
        if (weight) *weight = covered;
    }
}

template <typename T> __global__ void take(const work w)
{
    const int64_t row = w.out_cols * w.comps, all = w.groups * w.out_rows * row,
                  step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += step) {
        const int k = (int)(i % w.comps);
        const int64_t x = i % row / w.comps, y = i / row % w.out_rows, g = i / (row * w.out_rows);
        const T *t = (const T *)w.t + g * w.t_group;
        const pt_shift_axis sx = pt_shift_of(-(double)t[0], w.before_col),
                            sy = pt_shift_of(-(double)t[w.t_xy], w.before_row);
        ((T *)w.sum)[(g * w.sum_group + y * w.sum_row + x) * w.comps + k] =
            mixed(w, (const T *)w.image, sy, sx, w.y0 + y + sy.first, w.x0 + x + sx.first, k);
    }
}

/* What both directions share. */
work work_of(const fth_call *call)
{
    const pt_shift_attr *s = (const pt_shift_attr *)call->node->attr;
    work w = {};
    w.comps = fth_dtype_is_complex(call->node->in[0].dtype) ? 2 : 1;
    w.image = call->in[0].data;
    w.t = call->in[1].data;
    w.t_group = call->in[1].stride[0];
    w.t_xy = call->in[1].stride[1];
    w.before_row = s->before_row;
    w.before_col = s->before_col;
    return w;
}

fth_status run(const fth_call *call)
{
    const fth_tile *v = &call->in[0], *sum = &call->out[0], *weight = &call->out[1];
    work w = work_of(call);
    w.image_group = v->stride[0];
    w.image_row = v->stride[1];
    w.rows = call->node->in[0].size[1];
    w.cols = call->node->in[0].size[2];
    w.groups = v->extent[0];
    w.first = call->first;
    w.sum = sum->data;
    w.sum_row = sum->stride[0];
    w.weight = weight->data;
    w.weight_row = weight->stride[0];
    w.y0 = sum->origin[0];
    w.x0 = sum->origin[1];
    w.out_rows = sum->extent[0];
    w.out_cols = sum->extent[1];
    const int64_t n = w.out_rows * w.out_cols;
    if (n == 0) return FTH_OK;
    if (call->node->in[1].dtype == FTH_F32)
        FTH_LAUNCH(add<float>, fth_cuda_blocks(n, THREADS), THREADS, fth_cuda_stream(call), w);
    else
        FTH_LAUNCH(add<double>, fth_cuda_blocks(n, THREADS), THREADS, fth_cuda_stream(call), w);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

fth_status run_back(const fth_call *call)
{
    const fth_tile *v = &call->in[0], *t = &call->in[1], *out = &call->out[0];
    work w = work_of(call);
    const int64_t real = fth_dtype_size(call->node->in[1].dtype);
    w.t = (const char *)t->data + (out->origin[0] - t->origin[0]) * t->stride[0] * real;
    w.image_row = v->stride[0];
    w.rows = v->extent[0];
    w.cols = v->extent[1];
    w.groups = out->extent[0];
    w.sum = out->data;
    w.sum_group = out->stride[0];
    w.sum_row = out->stride[1];
    w.y0 = out->origin[1];
    w.x0 = out->origin[2];
    w.out_rows = out->extent[1];
    w.out_cols = out->extent[2];
    const int64_t n = w.groups * w.out_rows * w.out_cols * w.comps;
    if (n == 0) return FTH_OK;
    if (call->node->in[1].dtype == FTH_F32)
        FTH_LAUNCH(take<float>, fth_cuda_blocks(n, THREADS), THREADS, fth_cuda_stream(call), w);
    else
        FTH_LAUNCH(take<double>, fth_cuda_blocks(n, THREADS), THREADS, fth_cuda_stream(call), w);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}
} // namespace

FTH_CUDA_KERNEL(ptycho_stitch) = {.op = "ptycho_stitch", .run = run};
FTH_CUDA_KERNEL(ptycho_unstitch) = {.op = "ptycho_unstitch", .run = run_back};
