/* images.cu - operations of pick.c, scale.c, map.c, finite.c, depth.c and guard.c on a device: a
 * thread for each pixel. What a pixel is computed by is shared with the CPU.
 */
#include <fathom/cuda.h>
#include <fathom/fathom.h>
#include <math.h>
#include <string.h>

namespace
{
#include "guard_fill.h"
#include "map.h"
#include "pick.h"
#include "scale.h"

enum { THREADS = 256 };

/* Up to four axes, in elements; the last one lies dense. */
struct box {
    char *data;
    int64_t n[4], step[4], origin[4];
};

box box_of(const fth_desc *d, const fth_tile *t)
{
    box b = {};
    b.data = (char *)t->data;
    for (int i = 0; i < 4; i++) b.n[i] = 1;
    for (int i = 0; i < d->n_axes; i++) {
        b.n[i] = t->extent[i];
        b.step[i] = t->stride[i];
        b.origin[i] = t->origin[i];
    }
    return b;
}

int64_t count_of(const box &b)
{
    return b.n[0] * b.n[1] * b.n[2] * b.n[3];
}

#define EACH(i, count)                                                                             \
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < (count);                  \
         i += (int64_t)gridDim.x * blockDim.x)

/* Element i of a box, as three coordinates of an image or four of a stack. */
__device__ inline int64_t image_at(const box &b, int64_t s, int64_t y, int64_t x)
{
    return s * b.step[0] + y * b.step[1] + x * b.step[2];
}
__device__ inline int64_t stack_at(const box &b, int64_t s, int64_t z, int64_t y, int64_t x)
{
    return s * b.step[0] + z * b.step[1] + y * b.step[2] + x * b.step[3];
}

#define LAUNCH_ON(kernel, grid, call, ...)                                                         \
    FTH_LAUNCH(kernel, (grid), THREADS, fth_cuda_stream(call), __VA_ARGS__)
#define LAUNCH(kernel, n, call, ...)                                                               \
    LAUNCH_ON(kernel, fth_cuda_blocks((n), THREADS), call, __VA_ARGS__)
#define LAUNCH_SIZED(size, kernel, grid, call, ...)                                                \
    do {                                                                                           \
        if ((size) == 1)                                                                           \
            LAUNCH_ON((kernel<uint8_t>), grid, call, __VA_ARGS__);                                 \
        else if ((size) == 2)                                                                      \
            LAUNCH_ON((kernel<uint16_t>), grid, call, __VA_ARGS__);                                \
        else                                                                                       \
            LAUNCH_ON((kernel<float>), grid, call, __VA_ARGS__);                                   \
    } while (0)

/* Threads along x, rows of images along y. */
dim3 grid_of_rows(const box &out, int64_t each)
{
    const int64_t rows = out.n[0] * out.n[1], run = THREADS * each;
    return dim3((unsigned)((out.n[2] + run - 1) / run), (unsigned)(rows < 65535 ? rows : 65535));
}

/* ---- by plane ---- */

template <typename T> __global__ void pick_pixels(box in, box index, box out, bool first)
{
    EACH(i, out.n[0] * out.n[1] * out.n[2])
    {
        const int64_t x = i % out.n[2], y = i / out.n[2] % out.n[1], s = i / (out.n[2] * out.n[1]);
        T *to = (T *)out.data + image_at(out, s, y, x);
        const int64_t z =
            (int64_t)((const uint16_t *)index.data)[image_at(index, s, y, x)] - in.origin[1];
        if (z >= 0 && z < in.n[1])
            *to = ((const T *)in.data)[stack_at(in, s, z, y, x)];
        else if (first)
            *to = 0;
    }
}

fth_status pick_run(const fth_call *call)
{
    const fth_node *n = call->node;
    const box in = box_of(&n->in[0], &call->in[0]), index = box_of(&n->in[1], &call->in[1]),
              out = box_of(&n->out[0], &call->out[0]);
    if (count_of(out) == 0) return FTH_OK;
    LAUNCH_SIZED(fth_dtype_size(n->in[0].dtype), pick_pixels,
                 fth_cuda_blocks(count_of(out), THREADS), call, in, index, out, call->first);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

template <typename T> __global__ void blend_pixels(box in, box kept, box depth, box out, bool first)
{
    EACH(i, out.n[0] * out.n[1] * out.n[2])
    {
        const int64_t x = i % out.n[2], y = i / out.n[2] % out.n[1], s = i / (out.n[2] * out.n[1]),
                      lo = in.origin[1], hi = lo + in.n[1];
        float *to = (float *)out.data + image_at(out, s, y, x);
        const fo_between b =
            fo_planes_between((const uint8_t *)kept.data + s * kept.step[0], kept.step[1],
                              kept.n[1], ((const float *)depth.data)[image_at(depth, s, y, x)]);
        float sum = first ? 0.0f : *to;
        if (b.low >= lo && b.low < hi)
            sum = (float)((const T *)in.data)[stack_at(in, s, b.low - lo, y, x)] * (1 - b.share);
        if (b.share > 0 && b.high >= lo && b.high < hi)
            sum += (float)((const T *)in.data)[stack_at(in, s, b.high - lo, y, x)] * b.share;
        *to = sum;
    }
}

fth_status blend_run(const fth_call *call)
{
    const fth_node *n = call->node;
    const box in = box_of(&n->in[0], &call->in[0]), kept = box_of(&n->in[1], &call->in[1]),
              depth = box_of(&n->in[2], &call->in[2]), out = box_of(&n->out[0], &call->out[0]);
    if (count_of(out) == 0) return FTH_OK;
    LAUNCH_SIZED(fth_dtype_size(n->in[0].dtype), blend_pixels,
                 fth_cuda_blocks(count_of(out), THREADS), call, in, kept, depth, out, call->first);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

__global__ void nearest_pixels(box kept, box depth, box out)
{
    EACH(i, out.n[0] * out.n[1] * out.n[2])
    {
        const int64_t x = i % out.n[2], y = i / out.n[2] % out.n[1], s = i / (out.n[2] * out.n[1]);
        const int64_t z =
            fo_nearest_plane((const uint8_t *)kept.data + s * kept.step[0], kept.step[1], kept.n[1],
                             ((const float *)depth.data)[image_at(depth, s, y, x)]);
        ((uint16_t *)out.data)[image_at(out, s, y, x)] = z < 0 ? (uint16_t)0 : (uint16_t)z;
    }
}

fth_status nearest_run(const fth_call *call)
{
    const fth_node *n = call->node;
    const box kept = box_of(&n->in[0], &call->in[0]), depth = box_of(&n->in[1], &call->in[1]),
              out = box_of(&n->out[0], &call->out[0]);
    if (count_of(out) == 0) return FTH_OK;
    LAUNCH(nearest_pixels, count_of(out), call, kept, depth, out);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

/* ---- images ---- */

/* Rows are shared out to the blocks along y; a thread has every THREADSth pixel of its run. */
enum { SCALE_EACH = 4 };
template <typename T>
__global__ void scale_pixels(box in, const double *lo, const double *hi, box wide, box narrow,
                             int invert)
{
    const int64_t from = (int64_t)blockIdx.x * THREADS * SCALE_EACH + threadIdx.x;
    for (int64_t row = blockIdx.y; row < wide.n[0] * wide.n[1]; row += gridDim.y) {
        const int64_t s = row / wide.n[1], y = row - s * wide.n[1];
        const T *v = (const T *)in.data + image_at(in, s, y, 0);
        uint16_t *to = (uint16_t *)wide.data + image_at(wide, s, y, 0);
        uint8_t *upper = (uint8_t *)narrow.data + image_at(narrow, s, y, 0);
        const double black = lo[s], range = fo_scale_range(black, hi[s]);
#pragma unroll
        for (int k = 0; k < SCALE_EACH; k++) {
            const int64_t x = from + k * THREADS;
            if (x >= wide.n[2]) break;
            const int32_t n = fo_scaled_at((double)v[x], black, range, invert);
            if (wide.data) to[x] = (uint16_t)n;
            if (narrow.data) upper[x] = (uint8_t)(n >> 8);
        }
    }
}

fth_status scale_run(const fth_call *call)
{
    const fth_node *n = call->node;
    const box in = box_of(&n->in[0], &call->in[0]), wide = box_of(&n->out[0], &call->out[0]),
              narrow = box_of(&n->out[1], &call->out[1]);
    const int invert = (int)((const fo_scale_attr *)n->attr)->invert;
    if (count_of(wide) == 0) return FTH_OK;
    LAUNCH_SIZED(fth_dtype_size(n->in[0].dtype), scale_pixels, grid_of_rows(wide, SCALE_EACH), call,
                 in, (const double *)call->in[1].data, (const double *)call->in[2].data, wide,
                 narrow, invert);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

/* ---- tables, finite numbers ---- */

template <typename T> __global__ void map_values(box in, int from, const T *table, box out)
{
    EACH(i, out.n[0] * out.n[1] * out.n[2] * out.n[3])
    {
        const int64_t x = i % out.n[3], y = i / out.n[3] % out.n[2],
                      z = i / (out.n[3] * out.n[2]) % out.n[1],
                      s = i / (out.n[3] * out.n[2] * out.n[1]), at = stack_at(in, s, z, y, x);
        const unsigned v =
            from == 1 ? ((const uint8_t *)in.data)[at] : ((const uint16_t *)in.data)[at];
        ((T *)out.data)[stack_at(out, s, z, y, x)] = table[v];
    }
}

fth_status map_run(const fth_call *call)
{
    const fth_node *n = call->node;
    const box in = box_of(&n->in[0], &call->in[0]), out = box_of(&n->out[0], &call->out[0]);
    const int from = (int)fth_dtype_size(n->in[0].dtype);
    const void *table = call->in[1].data;
    if (count_of(out) == 0) return FTH_OK;
    switch (fth_dtype_size(n->out[0].dtype)) {
    case 1:
        LAUNCH((map_values<uint8_t>), count_of(out), call, in, from, (const uint8_t *)table, out);
        break;
    case 2:
        LAUNCH((map_values<uint16_t>), count_of(out), call, in, from, (const uint16_t *)table, out);
        break;
    default: LAUNCH((map_values<float>), count_of(out), call, in, from, (const float *)table, out);
    }
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

struct sizes4 {
    int64_t n[4];
};

__global__ void check_finite(box in, box present, box out, sizes4 whole, fth_fault *fault)
{
    EACH(i, out.n[0] * out.n[1] * out.n[2] * out.n[3])
    {
        const int64_t x = i % out.n[3], y = i / out.n[3] % out.n[2],
                      z = i / (out.n[3] * out.n[2]) % out.n[1],
                      s = i / (out.n[3] * out.n[2] * out.n[1]);
        const bool has = ((const uint8_t *)present.data)[s * present.step[0] + z * present.step[1]];
        const float v = ((const float *)in.data)[stack_at(in, s, z, y, x)];
        ((float *)out.data)[stack_at(out, s, z, y, x)] = has ? v : 0.0f;
        if (!has || isfinite(v)) continue;
        const uint64_t where =
            (uint64_t)((((s + in.origin[0]) * whole.n[1] + z + in.origin[1]) * whole.n[2] + y +
                        in.origin[2]) *
                           whole.n[3] +
                       x + in.origin[3]);
        fth_cuda_complain(fault, where, isnan(v) ? 1 : 0, 0);
    }
}

fth_status finite_run(const fth_call *call)
{
    const fth_node *n = call->node;
    const box in = box_of(&n->in[0], &call->in[0]), present = box_of(&n->in[1], &call->in[1]),
              out = box_of(&n->out[0], &call->out[0]);
    sizes4 whole;
    for (int i = 0; i < 4; i++) whole.n[i] = n->in[0].size[i];
    if (count_of(out) == 0) return FTH_OK;
    LAUNCH(check_finite, count_of(out), call, in, present, out, whole, call->fault);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

fth_status finite_explain(const fth_node *node, const fth_fault *fault, fth_err *err)
{
    const int64_t *n = node->in[0].size, at = (int64_t)fault->where;
    return FTH_FAIL(err, FTH_E_FILE_FORMAT, FO_NOT_FINITE, fault->value ? "NaN" : "an infinity",
                    (long long)(at / (n[3] * n[2]) % n[1]), (long long)(at / (n[3] * n[2] * n[1])),
                    (long long)(at / n[3] % n[2]), (long long)(at % n[3]));
}

/* ---- depths ---- */

__global__ void refine_pixels(box index, box energy, box left, box right, box out)
{
    EACH(i, out.n[0] * out.n[1] * out.n[2])
    {
        const int64_t x = i % out.n[2], y = i / out.n[2] % out.n[1], s = i / (out.n[2] * out.n[1]);
        ((float *)out.data)[image_at(out, s, y, x)] =
            fo_refine_at((float)((const uint16_t *)index.data)[image_at(index, s, y, x)],
                         ((const float *)energy.data)[image_at(energy, s, y, x)],
                         ((const float *)left.data)[image_at(left, s, y, x)],
                         ((const float *)right.data)[image_at(right, s, y, x)]);
    }
}

fth_status refine_run(const fth_call *call)
{
    const fth_node *n = call->node;
    const box out = box_of(&n->out[0], &call->out[0]);
    box in[4];
    for (int i = 0; i < 4; i++) in[i] = box_of(&n->in[i], &call->in[i]);
    if (count_of(out) == 0) return FTH_OK;
    LAUNCH(refine_pixels, count_of(out), call, in[0], in[1], in[2], in[3], out);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

/* The median of 25 by counting: the value that 12 lie before, equals in their order. */
__global__ void median_pixels(box in, box out, int64_t height, int64_t width)
{
    EACH(i, out.n[0] * out.n[1] * out.n[2])
    {
        const int64_t x = i % out.n[2], row = i / out.n[2] % out.n[1],
                      s = i / (out.n[2] * out.n[1]), y = row + out.origin[1];
        float v[25];
        for (int k = 0; k < 25; k++) {
            const int64_t from = fo_border_at(y + k / 5 - 2, height, FO_BORDER_MIRROR);
            v[k] = ((const float *)in.data)[image_at(
                in, s, from - in.origin[1], fo_border_at(x + k % 5 - 2, width, FO_BORDER_MIRROR))];
        }
        float found = v[0];
        for (int k = 0; k < 25; k++) {
            int before = 0;
            for (int m = 0; m < 25; m++) before += v[m] < v[k] || (v[m] == v[k] && m < k);
            if (before == 12) found = v[k];
        }
        ((float *)out.data)[image_at(out, s, row, x)] = found;
    }
}

fth_status median_run(const fth_call *call)
{
    const fth_node *n = call->node;
    const box in = box_of(&n->in[0], &call->in[0]), out = box_of(&n->out[0], &call->out[0]);
    if (count_of(out) == 0) return FTH_OK;
    LAUNCH(median_pixels, count_of(out), call, in, out, n->in[0].size[1], n->in[0].size[2]);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

/* ---- the halo guard: stack after stack, in the workspace of one ---- */

__global__ void guard_rows(box energy, int64_t s, float *most, int64_t height, int64_t width)
{
    EACH(i, height * width)
    {
        const int64_t y = i / width, x = i % width;
        float e = 0;
        for (int64_t k = y - FO_GUARD_RADIUS; k <= y + FO_GUARD_RADIUS; k++) {
            if (k < 0 || k >= height) continue;
            const float v = ((const float *)energy.data)[image_at(energy, s, k, x)];
            e = v > e ? v : e;
        }
        most[i] = e;
    }
}

__global__ void guard_weights(box energy, box depth, box out, int64_t s, const float *most,
                              fo_guard_level level)
{
    EACH(i, level.height * level.width)
    {
        const int64_t y = i / level.width, x = i % level.width;
        float e = 0;
        for (int64_t k = x - FO_GUARD_RADIUS; k <= x + FO_GUARD_RADIUS; k++)
            if (k >= 0 && k < level.width)
                e = most[y * level.width + k] > e ? most[y * level.width + k] : e;
        const float own = ((const float *)energy.data)[image_at(energy, s, y, x)];
        level.weight[i] = own < FO_GUARD_SHARE * e ? 0.0f : 1.0f;
        level.depth[y * level.step + x] = ((const float *)depth.data)[image_at(depth, s, y, x)];
    }
}

__global__ void guard_down(fo_guard_level fine, fo_guard_level coarse)
{
    EACH(i, coarse.height * coarse.width)
    fo_guard_down(&fine, &coarse, i / coarse.width, i % coarse.width);
}

__global__ void guard_up(fo_guard_level coarse, fo_guard_level fine)
{
    EACH(i, fine.height * fine.width) fo_guard_up(&coarse, &fine, i / fine.width, i % fine.width);
}

uint64_t guard_scratch(const fth_call *call)
{
    const int64_t height = call->node->in[0].size[1], width = call->node->in[0].size[2];
    return sizeof(float) * (uint64_t)(2 * height * width + 2 * fo_guard_cells(height, width));
}

fth_status guard_run(const fth_call *call)
{
    const fth_node *n = call->node;
    const box depth = box_of(&n->in[0], &call->in[0]), energy = box_of(&n->in[1], &call->in[1]),
              out = box_of(&n->out[0], &call->out[0]);
    const int64_t height = out.n[1], width = out.n[2], area = height * width;
    float *weight = (float *)call->scratch, *most = weight + area;
    for (int64_t s = 0; s < out.n[0] && area > 0; s++) {
        float *next = most + area;
        fo_guard_level level[FO_GUARD_LEVELS + 1];
        level[0] =
            fo_guard_level{(float *)out.data + s * out.step[0], weight, height, width, out.step[1]};
        LAUNCH(guard_rows, area, call, energy, s, most, height, width);
        LAUNCH(guard_weights, area, call, energy, depth, out, s, most, level[0]);
        for (int i = 1; i <= FO_GUARD_LEVELS; i++) {
            const int64_t h = (level[i - 1].height + 1) / 2, w = (level[i - 1].width + 1) / 2;
            const fo_guard_level fine = level[i - 1], coarse = {next, next + h * w, h, w, w};
            level[i] = coarse;
            next += 2 * h * w;
            LAUNCH(guard_down, h * w, call, fine, coarse);
        }
        for (int i = FO_GUARD_LEVELS; i > 0; i--) {
            const fo_guard_level fine = level[i - 1], coarse = level[i];
            LAUNCH(guard_up, fine.height * fine.width, call, coarse, fine);
        }
    }
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}
} // namespace

FTH_CUDA_KERNEL(focus_pick) = {.op = "focus_pick", .run = pick_run};
FTH_CUDA_KERNEL(focus_blend) = {.op = "focus_blend", .run = blend_run};
FTH_CUDA_KERNEL(focus_plane_at) = {.op = "focus_plane_at", .run = nearest_run};
FTH_CUDA_KERNEL(focus_scale) = {.op = "focus_scale", .run = scale_run};
FTH_CUDA_KERNEL(focus_map) = {.op = "focus_map", .run = map_run};
FTH_CUDA_KERNEL(focus_finite) = {
    .op = "focus_finite", .run = finite_run, .explain = finite_explain};
FTH_CUDA_KERNEL(focus_refine) = {.op = "focus_refine", .run = refine_run};
FTH_CUDA_KERNEL(focus_median) = {.op = "focus_median", .run = median_run};
FTH_CUDA_KERNEL(focus_guard) = {.op = "focus_guard", .scratch = guard_scratch, .run = guard_run};
