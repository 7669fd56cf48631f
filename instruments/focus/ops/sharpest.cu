/* sharpest.cu - sharpest.c on a device.
 *
 * The LoG of size 3 of integers is one kernel, alone (sharpest_log.cuh) and with smoothing by sigma
 * 2 (sharpest_smooth.cuh). Everything else goes plane by plane through buffers in the workspace:
 * values, energies, the two steps of smoothing, and the comparison. Sums have the order of the
 * loops of the CPU.
 */
#include <fathom/cuda.h>
#include <fathom/fathom.h>
#include <math.h>
#include <string.h>

namespace
{
#include "sharpest.h"
#include "stack.h"

#include "log.cuh"

enum { THREADS = 128, BUFFERS = 4 };

/* Where results and what is kept of each pixel lie. */
struct result {
    void *value;
    uint16_t *index;
    float *energy[4]; /* best, second, left, right: outputs; NULL: not wanted */
    float *state;     /* a row has its parts one after the other */
    int64_t value_step[2], index_step[2], energy_step[4][2], state_step[2];
    const uint8_t *kept;
    int64_t kept_step[2];
    const float *most;
    int64_t most_step[2];
    int64_t y0, rows, stacks, width;
    int parts; /* floats of the state of a pixel */
    int choose;
    bool first, last;
};

result result_of(const fth_call *call)
{
    const fo_sharpest_attr *a = (const fo_sharpest_attr *)call->node->attr;
    const fth_tile *out = call->out;
    result r = {};
    r.value = out[FO_SHARPEST_VALUE].data;
    r.index = (uint16_t *)out[FO_SHARPEST_INDEX].data;
    r.parts = a->all ? 5 : 1;
    for (int i = 0; i < call->node->n_out - FO_SHARPEST_ENERGY; i++) {
        r.energy[i] = (float *)out[FO_SHARPEST_ENERGY + i].data;
        for (int k = 0; k < 2; k++) r.energy_step[i][k] = out[FO_SHARPEST_ENERGY + i].stride[k];
    }
    r.state = (float *)call->state[0].data;
    for (int k = 0; k < 2; k++) {
        r.value_step[k] = out[FO_SHARPEST_VALUE].stride[k];
        r.index_step[k] = out[FO_SHARPEST_INDEX].stride[k];
        r.state_step[k] = call->state[0].stride[k] * r.parts;
        r.kept_step[k] = call->in[1].stride[k];
        if (call->node->n_in == 3) r.most_step[k] = call->in[2].stride[k];
    }
    r.kept = (const uint8_t *)call->in[1].data;
    if (call->node->n_in == 3) r.most = (const float *)call->in[2].data;
    r.choose = a->choose;
    r.y0 = out[0].origin[1];
    r.stacks = out[0].extent[0];
    r.rows = out[0].extent[1];
    r.width = call->node->in[0].size[FO_X];
    r.first = call->first;
    r.last = call->last;
    return r;
}

#include "columns.cuh"
#include "sharpest_log.cuh"
#include "sharpest_smooth.cuh"

/* ---- plane by plane: buffers of rows [y0, y0 + rows), each `width` floats ---- */

struct buffer {
    float *data;
    int64_t y0, rows, height, width;
    __device__ inline float &at(int64_t y, int64_t x) const
    {
        return data[(y - y0) * width + x];
    }
};

#define EACH_PIXEL(b)                                                                              \
    for (int64_t i_ = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, n_ = (b).rows * (b).width,   \
                 step_ = (int64_t)gridDim.x * blockDim.x;                                          \
         i_ < n_; i_ += step_)
#define PIXEL_Y(b) ((b).y0 + i_ / (b).width)
#define PIXEL_X(b) (i_ % (b).width)

template <typename T>
__global__ void energy_kernel(stack_tile in, int64_t s, int64_t z, int kind, fo_border border,
                              buffer to)
{
    const plane_values<T> v = plane_of<T>(in, s, z, border);
    EACH_PIXEL(to)
    {
        const int64_t y = PIXEL_Y(to), x = PIXEL_X(to);
        float e = 0;
        if (kind == FO_ENERGY_LOG)
            e = log_energy(v, y, x);
        else if (kind == FO_ENERGY_TENENGRAD) {
            float diff[3], sum[3];
            for (int i = 0; i < 3; i++) {
                const float a = v.extended(y + i - 1, x - 1), b = v.extended(y + i - 1, x),
                            c = v.extended(y + i - 1, x + 1);
                diff[i] = c - a;
                sum[i] = a + c + 2 * b;
            }
            const float gx = diff[0] + diff[2] + 2 * diff[1], gy = sum[2] - sum[0];
            e = gx * gx + gy * gy;
        } else if (kind == FO_ENERGY_MODLAP || kind == FO_ENERGY_LAPLACE) {
            const float a = v.extended(y - 1, x), b = v.at(y, x), c = v.extended(y + 1, x),
                        l = v.extended(y, x - 1), r = v.extended(y, x + 1);
            e = kind == FO_ENERGY_LAPLACE ? fabsf((l + r) + (a + c) - 4 * b)
                                          : fabsf(2 * b - l - r) + fabsf(2 * b - a - c);
        } else {
            const int radius = FO_VARIANCE_RADIUS, k = 2 * radius + 1;
            double sum = 0, square = 0;
            for (int i = -radius; i <= radius; i++) {
                double row = 0, rows = 0;
                for (int j = -radius; j <= radius; j++) {
                    const double value = (double)v.extended(y + i, x + j);
                    row += value;
                    rows += value * value;
                }
                sum += row;
                square += rows;
            }
            const double var = (square - sum * sum / (k * k)) / (k * k);
            e = var > 0 ? (float)var : 0.0f;
        }
        to.at(y, x) = e;
    }
}

template <typename T> __global__ void widen_kernel(stack_tile in, int64_t s, int64_t z, buffer to)
{
    EACH_PIXEL(to)
    to.at(PIXEL_Y(to), PIXEL_X(to)) = value_at<T>(in, s, z, PIXEL_Y(to), PIXEL_X(to));
}

struct weights {
    float w[FO_MOST_SMOOTH + 1];
    int radius;
    fo_border border;
};

weights weights_of(const float *w, int radius, fo_border border)
{
    weights r = {};
    memcpy(r.w, w, sizeof(float) * (size_t)(radius + 1));
    r.radius = radius;
    r.border = border;
    return r;
}

__device__ inline float column_at(const buffer &b, int64_t y, int64_t x, fo_border border)
{
    x = fo_border_at(x, b.width, border);
    return x < 0 ? 0.0f : b.at(y, x);
}
__device__ inline float row_at(const buffer &b, int64_t y, int64_t x, fo_border border)
{
    y = fo_border_at(y, b.height, border);
    return y < 0 ? 0.0f : b.at(y, x);
}

__global__ void across_kernel(buffer from, buffer to, weights w)
{
    EACH_PIXEL(to)
    {
        const int64_t y = PIXEL_Y(to), x = PIXEL_X(to);
        const float *own = &from.at(y, x);
        const bool inside = x >= w.radius && x + w.radius < to.width;
        float sum = *own * w.w[0];
        for (int i = 1; inside && i <= w.radius; i++) sum += (own[-i] + own[i]) * w.w[i];
        for (int i = 1; !inside && i <= w.radius; i++)
            sum += (column_at(from, y, x - i, w.border) + column_at(from, y, x + i, w.border)) *
                   w.w[i];
        to.at(y, x) = sum;
    }
}

__device__ inline float down_at(const buffer &from, const weights &w, int64_t y, int64_t x)
{
    const float *own = &from.at(y, x);
    const bool inside = y >= w.radius && y + w.radius < from.height;
    float sum = *own * w.w[0];
    for (int64_t i = 1; inside && i <= w.radius; i++)
        sum += (own[-i * from.width] + own[i * from.width]) * w.w[i];
    for (int i = 1; !inside && i <= w.radius; i++)
        sum += (row_at(from, y - i, x, w.border) + row_at(from, y + i, x, w.border)) * w.w[i];
    return sum;
}

__global__ void down_kernel(buffer from, buffer to, weights w)
{
    EACH_PIXEL(to) to.at(PIXEL_Y(to), PIXEL_X(to)) = down_at(from, w, PIXEL_Y(to), PIXEL_X(to));
}

/* |S(y) of one and D(y) of the other| */
__global__ void laplace_kernel(buffer one, buffer other, buffer to, weights s, weights d)
{
    EACH_PIXEL(to)
    {
        const int64_t y = PIXEL_Y(to), x = PIXEL_X(to);
        to.at(y, x) = fabsf(down_at(one, s, y, x) + down_at(other, d, y, x));
    }
}

/* ---- one more plane ---- */

__device__ inline float *state_at(const result &r, int64_t s, int64_t row, int64_t x)
{
    return r.state + s * r.state_step[0] + row * r.state_step[1] + x;
}

template <typename T> __global__ void start_kernel(result r)
{
    const int64_t n = r.stacks * r.rows * r.width;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;
         i += (int64_t)gridDim.x * blockDim.x) {
        const int64_t x = i % r.width, row = i / r.width % r.rows, s = i / (r.width * r.rows);
        float *state = state_at(r, s, row, x);
        for (int k = 0; k < r.parts; k++) state[k * r.width] = FO_NO_PLANE;
        if (r.value) ((T *)r.value)[s * r.value_step[0] + row * r.value_step[1] + x] = 0;
        if (r.index) r.index[s * r.index_step[0] + row * r.index_step[1] + x] = 0;
    }
}

enum { BEST, SECOND, LEFT, RIGHT, PREVIOUS };

template <typename T>
__global__ void take_kernel(stack_tile in, result r, int64_t s, int64_t z, buffer from, weights w)
{
    const bool has = r.kept[s * r.kept_step[0] + z * r.kept_step[1]] != 0;
    const int64_t n = r.rows * r.width;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;
         i += (int64_t)gridDim.x * blockDim.x) {
        const int64_t x = i % r.width, row = i / r.width, y = r.y0 + row;
        float *p = state_at(r, s, row, x);
        if (!has) {
            if (r.parts == 1) continue;
            if (p[RIGHT * r.width] == FO_NEXT_PLANE) p[RIGHT * r.width] = FO_NO_PLANE;
            p[PREVIOUS * r.width] = FO_NO_PLANE;
            continue;
        }
        const float e = w.radius ? down_at(from, w, y, x) : from.at(y, x), was = p[0];
        bool more = e > was;
        if (r.choose != FO_CHOOSE_MOST)
            more = e >= FO_NEAR_TIE * r.most[s * r.most_step[0] + row * r.most_step[1] + x] &&
                   (r.choose == FO_CHOOSE_LAST || was < 0);
        if (r.parts > 1) {
            float *second = p + SECOND * r.width, *left = p + LEFT * r.width,
                  *right = p + RIGHT * r.width, *previous = p + PREVIOUS * r.width;
            if (r.choose == FO_CHOOSE_MOST) *second = more ? was : e > *second ? e : *second;
            *left = more ? *previous : *left;
            *right = more ? FO_NEXT_PLANE : *right == FO_NEXT_PLANE ? e : *right;
            *previous = e;
        }
        if (!more) continue;
        p[0] = e;
        if (r.value)
            ((T *)r.value)[s * r.value_step[0] + row * r.value_step[1] + x] =
                ((const T *)in.data)[s * in.stack + z * in.plane + (y - in.first) * in.row + x];
        if (r.index)
            r.index[s * r.index_step[0] + row * r.index_step[1] + x] = (uint16_t)(in.z0 + z);
    }
}

__global__ void end_kernel(result r)
{
    const int64_t n = r.stacks * r.rows * r.width;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;
         i += (int64_t)gridDim.x * blockDim.x) {
        const int64_t x = i % r.width, row = i / r.width % r.rows, s = i / (r.width * r.rows);
        const float *p = state_at(r, s, row, x);
        for (int k = 0; k < 4 && k < r.parts; k++) {
            float v = p[k * r.width] > FO_NO_PLANE ? p[k * r.width] : FO_NO_PLANE;
            if (k == SECOND) v = v > 0 ? v : 0;
            if (r.energy[k])
                r.energy[k][s * r.energy_step[k][0] + row * r.energy_step[k][1] + x] = v;
        }
    }
}

/* ---- the host's part ---- */

const fo_sharpest_attr *attr_of(const fth_call *call)
{
    return (const fo_sharpest_attr *)call->node->attr;
}

/* Whether the kernels for the LoG of size 3 can do it. */
bool is_plain(const fth_call *call)
{
    const fo_sharpest_attr *a = attr_of(call);
    const fth_desc *stack = &call->node->in[0];
    return a->energy.kind == FO_ENERGY_LOG && a->energy.radius == 1 && !a->all &&
           a->choose == FO_CHOOSE_MOST && stack->dtype != FTH_F32 &&
           (a->energy.smooth == 0 || has_tiles(stack, &a->energy));
}

int buffers_of(const fo_energy *e)
{
    const bool passes = e->kind == FO_ENERGY_LOG && e->radius > 1;
    return passes ? BUFFERS : e->smooth > 0 ? 2 : 1;
}

uint64_t scratch(const fth_call *call)
{
    if (is_plain(call)) return 0;
    return sizeof(float) * (uint64_t)buffers_of(&attr_of(call)->energy) *
           (uint64_t)(call->in[0].extent[FO_Y] * call->node->in[0].size[FO_X]);
}

/* Rows that output rows [y0, y0 + rows) need `reach` around them, inside the image. */
buffer rows_around(const stack_tile &in, float *data, int64_t y0, int64_t rows, int64_t reach)
{
    const int64_t from = y0 > reach ? y0 - reach : 0;
    const int64_t to = y0 + rows + reach < in.height ? y0 + rows + reach : in.height;
    return buffer{data, from, to - from, in.height, in.width};
}

template <typename T> fth_status by_planes(const fth_call *call)
{
    const fo_energy *e = &attr_of(call)->energy;
    const fo_border border = (fo_border)e->border;
    const stack_tile in = stack_of(call);
    const result r = result_of(call);
    const cudaStream_t stream = fth_cuda_stream(call);
    const int64_t size = call->in[0].extent[FO_Y] * in.width;
    float *data[BUFFERS];
    for (int i = 0; i < BUFFERS; i++) data[i] = (float *)call->scratch + i * size;
    const weights smooth = weights_of(e->weight, e->smooth, FO_BORDER_MIRROR);
    const bool passes = e->kind == FO_ENERGY_LOG && e->radius > 1;
    const unsigned blocks = fth_cuda_blocks(size, THREADS);
    if (r.first) FTH_LAUNCH((start_kernel<T>), blocks, THREADS, stream, r);
    for (int64_t s = 0; s < r.stacks; s++)
        for (int64_t z = 0; z < in.planes; z++) {
            buffer energy = rows_around(in, data[0], r.y0, r.rows, e->smooth);
            if (passes) {
                const int radius = e->radius;
                const weights g = weights_of(e->gauss, radius, border),
                              b = weights_of(e->binomial, radius, border),
                              d = weights_of(e->second, radius, border);
                const buffer v = rows_around(in, data[0], r.y0, r.rows, e->smooth + 2 * radius),
                             h = rows_around(in, data[1], r.y0, r.rows, e->smooth + 2 * radius),
                             blur = rows_around(in, data[0], r.y0, r.rows, e->smooth + radius),
                             hd = rows_around(in, data[1], r.y0, r.rows, e->smooth + radius),
                             hs = rows_around(in, data[2], r.y0, r.rows, e->smooth + radius);
                energy.data = data[3];
                FTH_LAUNCH((widen_kernel<T>), blocks, THREADS, stream, in, s, z, v);
                FTH_LAUNCH(across_kernel, blocks, THREADS, stream, v, h, g);
                FTH_LAUNCH(down_kernel, blocks, THREADS, stream, h, blur, g);
                FTH_LAUNCH(across_kernel, blocks, THREADS, stream, blur, hd, d);
                FTH_LAUNCH(across_kernel, blocks, THREADS, stream, blur, hs, b);
                FTH_LAUNCH(laplace_kernel, blocks, THREADS, stream, hd, hs, energy, b, d);
            } else
                FTH_LAUNCH((energy_kernel<T>), blocks, THREADS, stream, in, s, z, (int)e->kind,
                           border, energy);
            if (e->smooth > 0) {
                buffer across = energy;
                across.data = data[1];
                FTH_LAUNCH(across_kernel, blocks, THREADS, stream, energy, across, smooth);
                energy = across;
            }
            FTH_LAUNCH((take_kernel<T>), blocks, THREADS, stream, in, r, s, z, energy, smooth);
        }
    FTH_LAUNCH(end_kernel, blocks, THREADS, stream, r);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

fth_status run(const fth_call *call)
{
    const fth_dtype t = call->node->in[0].dtype;
    const fo_energy *e = &attr_of(call)->energy;
    const result r = result_of(call);
    if (r.width == 0 || r.rows == 0 || r.stacks == 0) return FTH_OK;
    if (!is_plain(call))
        return t == FTH_U8    ? by_planes<uint8_t>(call)
               : t == FTH_U16 ? by_planes<uint16_t>(call)
                              : by_planes<float>(call);
    if (e->smooth == 0)
        FO_FOR_INTEGERS(t, stack_of(call), launch_log_runs, call, (fo_border)e->border);
    else
        FO_FOR_INTEGERS(t, stack_of(call), launch_smooth_tiles, call, e);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}
} // namespace

FTH_CUDA_KERNEL(focus_sharpest) = {.op = "focus_sharpest", .scratch = scratch, .run = run};
