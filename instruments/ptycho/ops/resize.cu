/* resize.cu - resize.c on a device: a thread for each pixel of the smaller frame, and so for four
 * of the larger one.
 */
#include <fathom/cuda.h>
#include <fathom/fathom.h>

namespace
{
#include "resize_node.h"

constexpr int THREADS = 256;

/* One array: elements from frame to frame and from row to row, and the pixel that comes first. */
struct frame_set {
    char *data;
    int64_t step[FTH_MAX_AXES], row;
    int32_t y0, x0;
};

/* Pixels are of whole frames, `coarse` the first of the smaller one that the output touches. */
struct frames {
    frame_set fine, coarse, halved;
    int lead;
    int32_t extent[FTH_MAX_AXES];
    int64_t count;
    int32_t rows, cols, y, x;     /* of the smaller frame */
    int32_t y_end, x_end, y0, x0; /* of the output, in the larger frame */
    bool pairs;                   /* neighbours of a row can be read and written as one */
};

enum kind { HALVE, SLOPE, DOUBLE, SUM };

template <typename T> struct pair;
template <> struct pair<float> {
    typedef float2 type;
};
template <> struct pair<double> {
    typedef double2 type;
};

/* Which of the four wins: the first of the largest, or the first NaN. */
template <typename T> __device__ inline int best_of(const T (&v)[4], T *most)
{
    int best = 0;
    *most = v[0];
    for (int k = 1; k < 4; k++) {
        if (!(v[k] > *most || (v[k] != v[k] && *most == *most))) continue;
        *most = v[k];
        best = k;
    }
    return best;
}

template <typename T>
__device__ inline void read_four(const frames &f, const T *p, int64_t row, T (&v)[4])
{
    typedef typename pair<T>::type two;
    for (int k = 0; k < 2; k++) {
        if (f.pairs) {
            const two a = *(const two *)(p + k * row);
            v[2 * k] = a.x, v[2 * k + 1] = a.y;
        } else {
            v[2 * k] = p[k * row], v[2 * k + 1] = p[k * row + 1];
        }
    }
}

/* To rows and columns from (y, x) on; a piece of the output may end between them. */
template <typename T>
__device__ inline void write_four(const frames &f, T *p, int32_t y, int32_t x, const T (&v)[4])
{
    typedef typename pair<T>::type two;
    for (int k = 0; k < 2; k++) {
        if (y + k < f.y0 || y + k >= f.y_end) continue;
        T *to = p + k * f.fine.row;
        if (f.pairs) {
            *(two *)to = two{v[2 * k], v[2 * k + 1]};
            continue;
        }
        if (x >= f.x0 && x < f.x_end) to[0] = v[2 * k];
        if (x + 1 >= f.x0 && x + 1 < f.x_end) to[1] = v[2 * k + 1];
    }
}

template <typename T>
__device__ inline T *at(const frame_set &s, int64_t first, int32_t y, int32_t x)
{
    return (T *)s.data + first + (y - s.y0) * s.row + x - s.x0;
}

/* I: counts pixels; 32 bits divide several times as fast. */
template <typename T, int KIND, typename I> __global__ void resize(const frames __grid_constant__ f)
{
    const I pixels = (I)f.rows * (I)f.cols, all = (I)f.count * pixels,
            step = (I)gridDim.x * blockDim.x;
    for (I i = (I)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += step) {
        I n = i / pixels;
        const I rest = i - n * pixels, row = rest / (I)f.cols;
        const int32_t y = f.y + (int32_t)row, x = f.x + (int32_t)(rest - row * (I)f.cols);
        int64_t fine = 0, coarse = 0, halved = 0;
        for (int d = f.lead - 1; d >= 0; d--) {
            const I q = d > 0 ? n / (I)f.extent[d] : 0, k = n - q * (I)f.extent[d];
            n = q;
            fine += (int64_t)k * f.fine.step[d];
            coarse += (int64_t)k * f.coarse.step[d];
            halved += (int64_t)k * f.halved.step[d];
        }
        T *large = at<T>(f.fine, fine, 2 * y, 2 * x), *small = at<T>(f.coarse, coarse, y, x), v[4],
          most;
        if (KIND == DOUBLE) {
            v[0] = v[1] = v[2] = v[3] = *small;
            write_four(f, large, 2 * y, 2 * x, v);
            continue;
        }
        if (KIND == SLOPE) { /* f.fine is the output, f.coarse the cotangent */
            read_four(f, at<T>(f.halved, halved, 2 * y, 2 * x), f.halved.row, v);
            const int best = best_of(v, &most);
            for (int k = 0; k < 4; k++) v[k] = k == best ? *small : (T)0;
            write_four(f, large, 2 * y, 2 * x, v);
            continue;
        }
        read_four(f, large, f.fine.row, v);
        if (KIND == HALVE) best_of(v, &most);
        *small = KIND == SUM ? (v[0] + v[1]) + (v[2] + v[3]) : most;
    }
}

/* The array of a tile, frames counted from the output's first one. */
frame_set set_of(const fth_tile *t, const fth_tile *out, int lead, int64_t size)
{
    frame_set s = {};
    int64_t first = 0;
    for (int d = 0; d < lead; d++) {
        s.step[d] = t->stride[d];
        first += (out->origin[d] - t->origin[d]) * t->stride[d];
    }
    s.data = (char *)t->data + first * size;
    s.row = t->stride[lead];
    s.y0 = (int32_t)t->origin[lead];
    s.x0 = (int32_t)t->origin[lead + 1];
    return s;
}

bool in_pairs(const frame_set &s, int lead, int64_t size)
{
    bool even = s.row % 2 == 0 && s.x0 % 2 == 0 && (uintptr_t)s.data % (uintptr_t)(2 * size) == 0;
    for (int d = 0; d < lead; d++) even = even && s.step[d] % 2 == 0;
    return even;
}

/* Whether frames of axis d - 1 follow those of axis d. */
bool follows(const frame_set &s, const int32_t *extent, int d)
{
    return s.step[d - 1] == s.step[d] * extent[d];
}

void join_axis(frame_set *s, int lead, int d)
{
    s->step[d - 1] = s->step[d];
    for (int k = d; k + 1 < lead; k++) s->step[k] = s->step[k + 1];
}

/* One axis less where frames of two follow each other in all arrays. */
void join_axes(frames *f)
{
    for (int d = f->lead - 1; d > 0; d--) {
        if ((int64_t)f->extent[d - 1] * f->extent[d] >= INT32_MAX ||
            !follows(f->fine, f->extent, d) || !follows(f->coarse, f->extent, d) ||
            !follows(f->halved, f->extent, d))
            continue;
        f->extent[d - 1] *= f->extent[d];
        for (int k = d; k + 1 < f->lead; k++) f->extent[k] = f->extent[k + 1];
        join_axis(&f->fine, f->lead, d);
        join_axis(&f->coarse, f->lead, d);
        join_axis(&f->halved, f->lead, d);
        f->lead--;
    }
}

template <typename T, int KIND> void queue(const fth_call *call, const frames &f, int64_t n)
{
    const unsigned blocks = fth_cuda_blocks(n, THREADS);
    if (n < 1 << 30)
        FTH_LAUNCH((resize<T, KIND, uint32_t>), blocks, THREADS, fth_cuda_stream(call), f);
    else
        FTH_LAUNCH((resize<T, KIND, uint64_t>), blocks, THREADS, fth_cuda_stream(call), f);
}

template <int KIND> fth_status run(const fth_call *call)
{
    constexpr bool enlarges = KIND == SLOPE || KIND == DOUBLE;
    const fth_tile *out = &call->out[0];
    const int lead = call->node->out[0].n_axes - 2;
    const int64_t size = fth_dtype_size(call->node->out[0].dtype);
    frames f = {};
    f.lead = lead;
    f.count = 1;
    for (int d = 0; d < lead; d++) {
        f.extent[d] = (int32_t)out->extent[d];
        f.count *= out->extent[d];
    }
    const frame_set to = set_of(out, out, lead, size), in = set_of(&call->in[0], out, lead, size);
    f.fine = enlarges ? to : in;
    f.coarse = KIND == SLOPE ? set_of(&call->in[1], out, lead, size) : enlarges ? in : to;
    f.halved = KIND == SLOPE ? in : f.fine;
    f.y0 = to.y0, f.x0 = to.x0;
    f.y_end = f.y0 + (int32_t)out->extent[lead], f.x_end = f.x0 + (int32_t)out->extent[lead + 1];
    constexpr int by = enlarges ? 2 : 1;
    f.y = f.y0 / by, f.x = f.x0 / by;
    f.rows = (f.y_end + by - 1) / by - f.y;
    f.cols = (f.x_end + by - 1) / by - f.x;
    f.pairs = in_pairs(f.fine, lead, size) && in_pairs(f.halved, lead, size) &&
              (!enlarges || f.x_end % 2 == 0);
    const int64_t n = f.count * f.rows * f.cols;
    if (f.count == 0 || out->extent[lead] == 0 || out->extent[lead + 1] == 0) return FTH_OK;
    join_axes(&f);
    if (call->node->out[0].dtype == FTH_F32)
        queue<float, KIND>(call, f, n);
    else
        queue<double, KIND>(call, f, n);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}
} // namespace

FTH_CUDA_KERNEL(ptycho_halve) = {.op = "ptycho_halve", .run = run<HALVE>};
FTH_CUDA_KERNEL(ptycho_halve_slope) = {.op = "ptycho_halve_slope", .run = run<SLOPE>};
FTH_CUDA_KERNEL(ptycho_double) = {.op = "ptycho_double", .run = run<DOUBLE>};
FTH_CUDA_KERNEL(ptycho_double_slope) = {.op = "ptycho_double_slope", .run = run<SUM>};
