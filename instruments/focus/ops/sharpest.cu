/* sharpest.cu - sharpest.c on a device.
 *
 * The LoG of size 3 without smoothing is one kernel: a thread goes down a few rows of a column with
 * what it needs of the rows above in registers, plane by plane, and keeps the best of each row.
 * Everything else goes plane by plane through buffers in the workspace: values, energies, the two
 * steps of smoothing, and the comparison. Sums have the order of the loops of the CPU.
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

enum { THREADS = 128, ROWS = 8, MOST_GRID = 65535, BUFFERS = 4 };

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
    r.state = (float *)call->state.data;
    for (int k = 0; k < 2; k++) {
        r.value_step[k] = out[FO_SHARPEST_VALUE].stride[k];
        r.index_step[k] = out[FO_SHARPEST_INDEX].stride[k];
        r.state_step[k] = call->state.stride[k] * r.parts;
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

/* ---- the LoG of size 3 ---- */

/* Energies of ROWS rows of one column, away from all borders. */
template <typename T>
__device__ inline void log_column(const plane_values<T> &v, int64_t y, int64_t x, float *e)
{
    const T *row = v.data + (y - 2 - v.first) * v.row + x;
    across3 h0 = across_at(row), h1 = across_at(row + v.row);
    float sides[3] = {0, 0, 0}, middle[3] = {0, 0, 0};
    row += 2 * v.row;
#pragma unroll
    for (int i = 0; i < ROWS + 2; i++, row += v.row) {
        const across3 h2 = across_at(row);
        sides[i % 3] = (h0.left + h2.left + 2 * h1.left) + (h0.right + h2.right + 2 * h1.right);
        middle[i % 3] = h0.middle + h2.middle + 2 * h1.middle;
        if (i >= 2) e[i - 2] = log_of(sides[(i - 2) % 3], sides[i % 3], middle[(i - 1) % 3]);
        h0 = h1;
        h1 = h2;
    }
}

template <typename T>
__global__ void __launch_bounds__(THREADS) log_kernel(stack_tile in, result r, fo_border border)
{
    const int64_t x = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    const int64_t runs = (r.rows + ROWS - 1) / ROWS;
    if (x >= r.width) return;
    for (int64_t run = blockIdx.y; run < runs * r.stacks; run += gridDim.y) {
        const int64_t s = run / runs, from = run % runs * ROWS, y = r.y0 + from;
        const int n = (int)(r.rows - from < ROWS ? r.rows - from : ROWS);
        const bool inside =
            x >= 2 && x + 2 < in.width && y >= 2 && y + ROWS + 2 <= in.height && n == ROWS;
        float best[ROWS];
        T value[ROWS];
        uint16_t index[ROWS];
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            best[i] = FO_NO_PLANE, value[i] = 0, index[i] = 0;
            if (r.first || i >= n) continue;
            best[i] = r.state[s * r.state_step[0] + (from + i) * r.state_step[1] + x];
            if (r.value)
                value[i] = ((T *)r.value)[s * r.value_step[0] + (from + i) * r.value_step[1] + x];
            if (r.index) index[i] = r.index[s * r.index_step[0] + (from + i) * r.index_step[1] + x];
        }
        for (int64_t z = 0; z < in.planes; z++) {
            if (!r.kept[s * r.kept_step[0] + z * r.kept_step[1]]) continue;
            const plane_values<T> v = plane_of<T>(in, s, z, border);
            float e[ROWS];
            if (inside)
                log_column(v, y, x, e);
            else
                for (int i = 0; i < n; i++) e[i] = log_at(v, y + i, x);
#pragma unroll
            for (int i = 0; i < ROWS; i++)
                if (i < n && e[i] > best[i]) {
                    best[i] = e[i];
                    value[i] = v.data[(y + i - v.first) * v.row + x];
                    index[i] = (uint16_t)(in.z0 + z);
                }
        }
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            if (i >= n) continue;
            const int64_t at = from + i;
            if (!r.last) r.state[s * r.state_step[0] + at * r.state_step[1] + x] = best[i];
            if (r.value) ((T *)r.value)[s * r.value_step[0] + at * r.value_step[1] + x] = value[i];
            if (r.index) r.index[s * r.index_step[0] + at * r.index_step[1] + x] = index[i];
            if (r.energy[0])
                r.energy[0][s * r.energy_step[0][0] + at * r.energy_step[0][1] + x] = best[i];
        }
    }
}

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

bool is_plain(const fth_call *call)
{
    const fo_sharpest_attr *a = attr_of(call);
    return a->energy.kind == FO_ENERGY_LOG && a->energy.radius == 1 && a->energy.smooth == 0 &&
           !a->all;
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

template <typename T> fth_status run_as(const fth_call *call)
{
    const result r = result_of(call);
    if (r.width == 0 || r.rows == 0 || r.stacks == 0) return FTH_OK;
    if (!is_plain(call)) return by_planes<T>(call);
    const int64_t runs = (r.rows + ROWS - 1) / ROWS * r.stacks;
    const dim3 grid((unsigned)((r.width + THREADS - 1) / THREADS),
                    (unsigned)(runs < MOST_GRID ? runs : (int64_t)MOST_GRID));
    FTH_LAUNCH((log_kernel<T>), grid, THREADS, fth_cuda_stream(call), stack_of(call), r,
               (fo_border)attr_of(call)->energy.border);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

fth_status run(const fth_call *call)
{
    const fth_dtype t = call->node->in[0].dtype;
    return t == FTH_U8    ? run_as<uint8_t>(call)
           : t == FTH_U16 ? run_as<uint16_t>(call)
                          : run_as<float>(call);
}
} // namespace

FTH_CUDA_KERNEL(focus_sharpest) = {.op = "focus_sharpest", .scratch = scratch, .run = run};
