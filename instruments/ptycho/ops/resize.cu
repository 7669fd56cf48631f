/* resize.cu - resize.c on a device: a thread for each number of the output. */
#include <fathom/cuda.h>
#include <fathom/fathom.h>

namespace
{
#include "resize_node.h"

constexpr int THREADS = 256;

struct frames {
    int lead;
    int64_t extent[FTH_MAX_AXES], out_step[FTH_MAX_AXES], in_step[2][FTH_MAX_AXES];
    int64_t count, rows, cols, out_row, y0, x0;
    int64_t in_row[2], in_y0[2], in_x0[2];
    const void *in[2];
    void *out;
};

enum kind { HALVE, SLOPE, DOUBLE, SUM };

/* The number of which of the four wins: the first of the largest, or the first NaN. */
template <typename T> __device__ inline int best_of(const T *p, int64_t row, T *most)
{
    int best = 0;
    *most = p[0];
    for (int k = 1; k < 4; k++) {
        const T c = p[k / 2 * row + k % 2];
        if (!(c > *most || (c != c && *most == *most))) continue;
        *most = c;
        best = k;
    }
    return best;
}

template <typename T, int KIND> __global__ void resize(const frames f)
{
    const int64_t all = f.count * f.rows * f.cols, step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += step) {
        const int64_t x = i % f.cols, y = i / f.cols % f.rows, Y = f.y0 + y, X = f.x0 + x;
        int64_t n = i / (f.cols * f.rows), to = 0, at[2] = {0, 0};
        for (int d = f.lead - 1; d >= 0; d--) {
            const int64_t k = n % f.extent[d];
            n /= f.extent[d];
            to += k * f.out_step[d];
            at[0] += k * f.in_step[0][d];
            at[1] += k * f.in_step[1][d];
        }
        const T *v = (const T *)f.in[0] + at[0];
        const int64_t row = f.in_row[0];
        T r, most;
        if (KIND == DOUBLE) {
            r = v[(Y / 2 - f.in_y0[0]) * row + X / 2 - f.in_x0[0]];
        } else if (KIND == SLOPE) {
            const T *p = v + (Y / 2 * 2 - f.in_y0[0]) * row + X / 2 * 2 - f.in_x0[0];
            const T *bar = (const T *)f.in[1] + at[1];
            r = best_of(p, row, &most) == (int)(Y % 2 * 2 + X % 2)
                    ? bar[(Y / 2 - f.in_y0[1]) * f.in_row[1] + X / 2 - f.in_x0[1]]
                    : (T)0;
        } else {
            const T *p = v + (2 * Y - f.in_y0[0]) * row + 2 * X - f.in_x0[0];
            if (KIND == SUM) {
                r = (p[0] + p[1]) + (p[row] + p[row + 1]);
            } else {
                best_of(p, row, &most);
                r = most;
            }
        }
        ((T *)f.out)[to + y * f.out_row + x] = r;
    }
}

template <int KIND> fth_status run(const fth_call *call)
{
    const fth_tile *out = &call->out[0];
    const int lead = call->node->out[0].n_axes - 2;
    const int64_t size = fth_dtype_size(call->node->out[0].dtype);
    frames f = {};
    f.lead = lead;
    f.count = 1;
    for (int d = 0; d < lead; d++) {
        f.extent[d] = out->extent[d];
        f.out_step[d] = out->stride[d];
        f.count *= out->extent[d];
    }
    f.rows = out->extent[lead];
    f.cols = out->extent[lead + 1];
    f.out_row = out->stride[lead];
    f.y0 = out->origin[lead];
    f.x0 = out->origin[lead + 1];
    f.out = out->data;
    for (int k = 0; k < call->node->n_in; k++) {
        const fth_tile *in = &call->in[k];
        int64_t first = 0;
        for (int d = 0; d < lead; d++) {
            f.in_step[k][d] = in->stride[d];
            first += (out->origin[d] - in->origin[d]) * in->stride[d];
        }
        f.in[k] = (const char *)in->data + first * size;
        f.in_row[k] = in->stride[lead];
        f.in_y0[k] = in->origin[lead];
        f.in_x0[k] = in->origin[lead + 1];
    }
    const int64_t n = f.count * f.rows * f.cols;
    if (n == 0) return FTH_OK;
    const unsigned blocks = fth_cuda_blocks(n, THREADS);
    if (call->node->out[0].dtype == FTH_F32)
        FTH_LAUNCH((resize<float, KIND>), blocks, THREADS, fth_cuda_stream(call), f);
    else
        FTH_LAUNCH((resize<double, KIND>), blocks, THREADS, fth_cuda_stream(call), f);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}
} // namespace

FTH_CUDA_KERNEL(ptycho_halve) = {.op = "ptycho_halve", .run = run<HALVE>};
FTH_CUDA_KERNEL(ptycho_halve_slope) = {.op = "ptycho_halve_slope", .run = run<SLOPE>};
FTH_CUDA_KERNEL(ptycho_double) = {.op = "ptycho_double", .run = run<DOUBLE>};
FTH_CUDA_KERNEL(ptycho_double_slope) = {.op = "ptycho_double_slope", .run = run<SUM>};
