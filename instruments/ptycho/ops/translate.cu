/* translate.cu - translate.c on a device: a thread for each pixel of the output, a block for each
 * image of the offsets' cotangent, whose sums are added in a fixed tree. */
#include <fathom/cuda.h>
#include <fathom/fathom.h>

namespace
{
#include "shift_node.h"

constexpr int THREADS = 256;

/* Tiles of a call: leading axes are those of the output. */
struct frames {
    int lead, comps;              /* numbers of a pixel: 1 or 2 */
    int64_t extent[FTH_MAX_AXES]; /* of the output's tile, leading axes */
    int64_t in_step[FTH_MAX_AXES], t_step[FTH_MAX_AXES], out_step[FTH_MAX_AXES],
        bar_step[FTH_MAX_AXES];
    int64_t images, rows, cols, in_row, t_xy;
    int64_t out_rows, out_cols, out_row, from_row, from_col;
    int64_t before_row, before_col;
    int64_t whole_rows, whole_cols; /* of the output, nearest */
    const void *in, *t, *bar;
    void *out;
};

struct place {
    int64_t in, t, bar, out;
};

/* I: counts images; 32 bits divide several times as fast. */
template <typename I> __device__ inline place place_of(const frames &f, I i)
{
    place p = {0, 0, 0, 0};
    for (int d = f.lead - 1; d >= 0; d--) {
        const I rest = d > 0 ? i / (I)f.extent[d] : 0;
        const int64_t k = (int64_t)(i - rest * (I)f.extent[d]);
        i = rest;
        p.in += k * f.in_step[d];
        p.t += k * f.t_step[d];
        p.bar += k * f.bar_step[d];
        p.out += k * f.out_step[d];
    }
    return p;
}

template <typename T>
__device__ inline T corner(const frames &f, const T *image, int64_t y, int64_t x, int k)
{
    if (y < 0 || y >= f.rows || x < 0 || x >= f.cols) return 0;
    return image[(y * f.in_row + x) * f.comps + k];
}

template <typename T, int COMPS, typename I> __global__ void move(const frames __grid_constant__ f)
{
    const I row = (I)f.out_cols, frame = (I)f.out_rows * row, all = (I)f.images * frame,
            step = (I)gridDim.x * blockDim.x;
    for (I i = (I)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += step) {
        const I image = i / frame, rest = i - image * frame, y = rest / row, x = rest - y * row;
        const place p = place_of(f, image);
        const T *t = (const T *)f.t + p.t, *in = (const T *)f.in + p.in * COMPS;
        const pt_shift_axis sx = pt_shift_of((double)t[0], f.before_col),
                            sy = pt_shift_of((double)t[f.t_xy], f.before_row);
        const T fx = (T)sx.part, fy = (T)sy.part, gx = 1 - fx, gy = 1 - fy;
        const int64_t at_x = f.from_col + (int64_t)x + sx.first,
                      at_y = f.from_row + (int64_t)y + sy.first;
        T *out = (T *)f.out + (p.out + (int64_t)y * f.out_row + (int64_t)x) * COMPS;
        for (int k = 0; k < COMPS; k++)
            out[k] = gy * gx * corner(f, in, at_y, at_x, k) +
                     gy * fx * corner(f, in, at_y, at_x + 1, k) +
                     fy * gx * corner(f, in, at_y + 1, at_x, k) +
                     fy * fx * corner(f, in, at_y + 1, at_x + 1, k);
    }
}

template <typename T> __global__ void move_nearest(const frames f, bool back)
{
    const int64_t row = f.out_cols * f.comps, all = f.images * f.out_rows * row,
                  step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += step) {
        const int k = (int)(i % f.comps);
        const int64_t x = i % row / f.comps, y = i / row % f.out_rows;
        const place p = place_of(f, i / (row * f.out_rows));
        const T *t = (const T *)f.t + p.t, *in = (const T *)f.in + p.in * f.comps;
        const double tx = (double)t[0], ty = (double)t[f.t_xy];
        int64_t r[PT_NEAREST_PLACES], c[PT_NEAREST_PLACES];
        pt_nearest_line(back, ty, f.before_row, f.from_row + y, f.rows, f.whole_rows, r);
        pt_nearest_line(back, tx, f.before_col, f.from_col + x, f.cols, f.whole_cols, c);
        T sum = tx == tx && ty == ty ? 0 : (T)(tx + ty); /* NaN */
        for (int a = 0; a < PT_NEAREST_PLACES; a++)
            for (int b = 0; b < PT_NEAREST_PLACES; b++)
                if (r[a] >= 0 && c[b] >= 0) sum += corner(f, in, r[a], c[b], k);
        ((T *)f.out)[(p.out + y * f.out_row + x) * f.comps + k] = sum;
    }
}

/* Elements [first, first + count) of xy are wanted. */
template <typename T>
__global__ void slope(const frames f, int64_t bar_row, int64_t xy_step, int64_t first,
                      int64_t count)
{
    __shared__ double sums[2][THREADS];
    const int64_t i = blockIdx.x;
    const place p = place_of(f, i);
    const T *t = (const T *)f.t + p.t, *in = (const T *)f.in + p.in * f.comps,
            *bar = (const T *)f.bar + p.bar * f.comps;
    const pt_shift_axis sx = pt_shift_of((double)t[0], f.before_col),
                        sy = pt_shift_of((double)t[f.t_xy], f.before_row);
    const double fx = sx.part, fy = sy.part;
    double by_x = 0, by_y = 0;
    const int64_t row = f.out_cols * f.comps;
    for (int64_t n = threadIdx.x; n < f.out_rows * row; n += THREADS) {
        const int k = (int)(n % f.comps);
        const int64_t y = n / row, x = n % row / f.comps, at_y = y + sy.first, at_x = x + sx.first;
        const double g = (double)bar[(y * bar_row + x) * f.comps + k];
        const double v00 = (double)corner(f, in, at_y, at_x, k),
                     v01 = (double)corner(f, in, at_y, at_x + 1, k),
                     v10 = (double)corner(f, in, at_y + 1, at_x, k),
                     v11 = (double)corner(f, in, at_y + 1, at_x + 1, k);
        by_x -= g * ((1 - fy) * (v01 - v00) + fy * (v11 - v10));
        by_y -= g * ((1 - fx) * (v10 - v00) + fx * (v11 - v01));
    }
    sums[0][threadIdx.x] = by_x;
    sums[1][threadIdx.x] = by_y;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if ((int)threadIdx.x < half)
            for (int d = 0; d < 2; d++) sums[d][threadIdx.x] += sums[d][threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        for (int64_t d = 0; d < count; d++)
            ((T *)f.out)[p.out + d * xy_step] = (T)sums[first + d][0];
}

frames frames_of(const fth_call *call)
{
    const pt_shift_attr *a = (const pt_shift_attr *)call->node->attr;
    const fth_tile *in = &call->in[0], *t = &call->in[1], *bar = &call->in[2], *out = &call->out[0];
    frames f = {};
    int own = 0;
    f.lead = a->lead;
    f.comps = fth_dtype_is_complex(call->node->in[0].dtype) ? 2 : 1;
    f.images = 1;
    f.in = in->data;
    f.t = t->data;
    f.out = out->data;
    int64_t in_first = 0, t_first = 0, bar_first = 0;
    for (int d = 0; d < a->lead; d++) {
        f.extent[d] = out->extent[d];
        f.images *= out->extent[d];
        f.out_step[d] = out->stride[d];
        f.t_step[d] = t->stride[d];
        t_first += (out->origin[d] - t->origin[d]) * t->stride[d];
        if (!(a->repeated >> d & 1u)) {
            f.in_step[d] = in->stride[own];
            in_first += (out->origin[d] - in->origin[own]) * in->stride[own];
            own++;
        }
        if (call->node->n_in > 2) {
            f.bar_step[d] = bar->stride[d];
            bar_first += (out->origin[d] - bar->origin[d]) * bar->stride[d];
        }
    }
    const int64_t real = fth_dtype_size(call->node->in[1].dtype);
    f.in = (const char *)in->data + in_first * real * f.comps;
    f.t = (const char *)t->data + t_first * real;
    f.t_xy = t->stride[a->lead];
    f.rows = in->extent[own];
    f.cols = in->extent[own + 1];
    f.in_row = in->stride[own];
    f.before_row = a->before_row;
    f.before_col = a->before_col;
    if (call->node->n_in > 2) f.bar = (const char *)bar->data + bar_first * real * f.comps;
    return f;
}

template <typename T, int COMPS> void queue_move(const fth_call *call, const frames &f)
{
    const int64_t n = f.images * f.out_rows * f.out_cols;
    const unsigned blocks = fth_cuda_blocks(n, THREADS);
    if (n < 1 << 30)
        FTH_LAUNCH((move<T, COMPS, uint32_t>), blocks, THREADS, fth_cuda_stream(call), f);
    else
        FTH_LAUNCH((move<T, COMPS, uint64_t>), blocks, THREADS, fth_cuda_stream(call), f);
}

template <typename T> void queue(const fth_call *call, const frames &f)
{
    if (f.comps == 2)
        queue_move<T, 2>(call, f);
    else
        queue_move<T, 1>(call, f);
}

fth_status run(const fth_call *call)
{
    const pt_shift_attr *a = (const pt_shift_attr *)call->node->attr;
    const fth_tile *out = &call->out[0];
    frames f = frames_of(call);
    f.out_rows = out->extent[a->lead];
    f.out_cols = out->extent[a->lead + 1];
    f.out_row = out->stride[a->lead];
    f.from_row = out->origin[a->lead];
    f.from_col = out->origin[a->lead + 1];
    const int64_t n = f.images * f.out_rows * f.out_cols * f.comps;
    if (n == 0) return FTH_OK;
    f.whole_rows = call->node->out[0].size[a->lead];
    f.whole_cols = call->node->out[0].size[a->lead + 1];
    const bool back = a->nearest == PT_NEAREST_BACK;
    if (a->nearest && call->node->in[1].dtype == FTH_F32)
        FTH_LAUNCH(move_nearest<float>, fth_cuda_blocks(n, THREADS), THREADS, fth_cuda_stream(call),
                   f, back);
    else if (a->nearest)
        FTH_LAUNCH(move_nearest<double>, fth_cuda_blocks(n, THREADS), THREADS,
                   fth_cuda_stream(call), f, back);
    else if (call->node->in[1].dtype == FTH_F32)
        queue<float>(call, f);
    else
        queue<double>(call, f);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

fth_status run_slope(const fth_call *call)
{
    const pt_shift_attr *a = (const pt_shift_attr *)call->node->attr;
    const fth_tile *out = &call->out[0], *bar = &call->in[2];
    frames f = frames_of(call);
    f.out_rows = bar->extent[a->lead];
    f.out_cols = bar->extent[a->lead + 1];
    const int64_t first = out->origin[a->lead], count = out->extent[a->lead];
    if (f.images == 0 || count == 0) return FTH_OK;
    if (call->node->in[1].dtype == FTH_F32)
        FTH_LAUNCH(slope<float>, (unsigned)f.images, THREADS, fth_cuda_stream(call), f,
                   bar->stride[a->lead], out->stride[a->lead], first, count);
    else
        FTH_LAUNCH(slope<double>, (unsigned)f.images, THREADS, fth_cuda_stream(call), f,
                   bar->stride[a->lead], out->stride[a->lead], first, count);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}
} // namespace

FTH_CUDA_KERNEL(ptycho_translate) = {.op = "ptycho_translate", .run = run};
FTH_CUDA_KERNEL(ptycho_translate_slope) = {.op = "ptycho_translate_slope", .run = run_slope};
