/* table_gradient.cu - the gradient by every structure factor on a device.
 *
 * Pixels of a block of rows add to the same entries, in any order. So that the sums do not depend
 * on the order they are integers: a first pass finds the largest term, a second one adds every term
 * as three digits of 28 bits below it; anything below 2^-84 of the largest is lost. A NaN term
 * makes its entry NaN.
 */
#define BR_BOTH __attribute__((unused)) __device__
#include "../render/device.h"

namespace
{
#include "blocks.h"

__device__ void give(void *sum, int64_t entry, double value);
#define BR_TABLE_ADD(sum, entry, value) give((sum), (entry), (value))
#include "table_pixel.h"

#define dot plain_dot
#define in_range plain_in_range
#include "../render/render_plain.c"
#undef dot
#undef in_range
#include "../../geometry/rotate.c"
#include "slope.c"

enum { THREADS = 64, ROWS = 32, DIGITS = 3, WORDS = DIGITS + 1 };

/* Sums of a block: integers by digit, and the count of NaN terms. */
struct sums {
    double *largest; /* of all terms, 0 or a finite number */
    unsigned long long *word;
    double scale; /* 0: only the largest is looked for */
};

__device__ void give(void *sum, int64_t entry, double value)
{
    const sums *s = (const sums *)sum;
    const double size = fabs(value);
    if (s->scale == 0) {
        if (size <= DBL_MAX) /* non-negative numbers are ordered like their bits */
            atomicMax((unsigned long long *)s->largest,
                      (unsigned long long)__double_as_longlong(size));
        return;
    }
    unsigned long long *to = s->word + entry * WORDS;
    if (!(size <= DBL_MAX)) {
        atomicAdd(to + DIGITS, 1ull);
        return;
    }
    double rest = value * s->scale;
    for (int k = 0; k < DIGITS; k++) {
        const double digit = rint(rest *= 268435456.0);
        rest -= digit;
        if (digit != 0) atomicAdd(to + k, (unsigned long long)(long long)digit);
    }
}

/* 1 over the power of two above `largest`. */
__device__ inline double scale_of(double largest)
{
    int e;
    frexp(largest, &e);
    return ldexp(1.0, -e < 1000 ? -e : 1000);
}

struct rows {
    window w;
    const double *bar;
    int64_t stride[2];
    double *largest;
    unsigned long long *word;
};

__global__ void start(rows r, int64_t words)
{
    for (int64_t i = THREAD_INDEX; i < words; i += THREAD_COUNT) r.word[i] = 0;
    if (THREAD_INDEX == 0) *r.largest = 0;
}

__global__ void __launch_bounds__(THREADS) sweep(const device_view *top, rows r, bool add)
{
    const br_view *v = &top->view;
    const int64_t n = r.w.rows * r.w.cols;
    sums s = {r.largest, r.word, add && *r.largest > 0 ? scale_of(*r.largest) : 0};
    if (add && s.scale == 0) s.scale = 1; /* only zeros or NaN */
    for (int64_t i = THREAD_INDEX; i < n; i += THREAD_COUNT) {
        const int64_t y = i / r.w.cols, x = i % r.w.cols;
        const br_row row = {.slow = r.w.slow + y, .fast = r.w.fast + x, .n = 1};
        if (!is_rendered(v->scene, r.w, y, x)) continue;
        traced px = {};
        px.v = v;
        px.row = &row;
        px.sum = &s;
        one_pixel(&px, r.bar[y * r.stride[0] + x * r.stride[1]]);
    }
}

struct out {
    double *data;
    int64_t extent[3], stride[3];
};

__device__ inline double *entry_at(const out &o, int64_t i)
{
    const int64_t l = i % o.extent[2], k = i / o.extent[2] % o.extent[1],
                  h = i / o.extent[2] / o.extent[1];
    return o.data + h * o.stride[0] + k * o.stride[1] + l * o.stride[2];
}

__global__ void clear(out o, int64_t n)
{
    for (int64_t i = THREAD_INDEX; i < n; i += THREAD_COUNT) *entry_at(o, i) = 0;
}

__global__ void finish(rows r, out o, int64_t n)
{
    const double unit = 1 / 268435456.0, scale = *r.largest > 0 ? scale_of(*r.largest) : 1;
    for (int64_t i = THREAD_INDEX; i < n; i += THREAD_COUNT) {
        const unsigned long long *from = r.word + i * WORDS;
        double sum = 0;
        for (int k = DIGITS - 1; k >= 0; k--) sum = (sum + (double)(long long)from[k]) * unit;
        if (from[DIGITS]) sum = NAN;
        *entry_at(o, i) += sum / scale;
    }
}

const br_scene *scene_of(const fth_call *call)
{
    return &((const br_op_attr *)call->node->attr)->scene;
}

int64_t entries_of(const fth_call *call)
{
    const fth_tile *t = &call->out[0];
    return t->extent[0] * t->extent[1] * t->extent[2];
}

uint64_t scratch(const fth_call *call)
{
    return scratch_map_of(scene_of(call), false).end + 128 +
           (uint64_t)entries_of(call) * WORDS * sizeof(unsigned long long);
}

fth_status one_block(const fth_call *call, const out &o, int64_t y)
{
    const br_scene *s = scene_of(call);
    const fth_tile *bar = &call->in[s->masked ? BR_IN_MASK + 1 : BR_IN_MASK];
    const device_view *top = (const device_view *)call->scratch;
    const int64_t n = entries_of(call), left = bar->extent[0] - y;
    const cudaStream_t stream = fth_cuda_stream(call);
    char *at = (char *)call->scratch + scratch_map_of(s, false).end;
    fth_tile tile = *bar;
    tile.origin[0] += y;
    tile.extent[0] = left < ROWS ? left : (int64_t)ROWS;
    rows r = {};
    r.w = window_of(&tile, s->masked ? &call->in[BR_IN_MASK] : NULL);
    r.bar = (const double *)bar->data + y * bar->stride[0];
    r.stride[0] = bar->stride[0];
    r.stride[1] = bar->stride[1];
    r.largest = (double *)at;
    r.word = (unsigned long long *)(at + 128);
    const unsigned blocks = blocks_for(r.w.rows * r.w.cols, THREADS);
    FTH_LAUNCH(start, fth_cuda_blocks(n * WORDS, 128), 128, stream, r, n * WORDS);
    FTH_CUDA_LAUNCHED(call);
    FTH_LAUNCH(sweep, blocks, THREADS, stream, top, r, false);
    FTH_CUDA_LAUNCHED(call);
    FTH_LAUNCH(sweep, blocks, THREADS, stream, top, r, true);
    FTH_CUDA_LAUNCHED(call);
    FTH_LAUNCH(finish, fth_cuda_blocks(n, 128), 128, stream, r, o, n);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

fth_status run(const fth_call *call)
{
    const br_scene *s = scene_of(call);
    const br_device_inputs in = {BR_IN_PARAM, BR_IN_TABLE, BR_IN_SOURCE, BR_IN_MOSAIC, BR_IN_LATCH};
    const fth_tile *t = &call->out[0], *bar = &call->in[s->masked ? BR_IN_MASK + 1 : BR_IN_MASK];
    out o = {};
    o.data = (double *)t->data;
    for (int k = 0; k < 3; k++) {
        o.extent[k] = t->extent[k];
        o.stride[k] = t->stride[k];
    }
    if (call->first) {
        FTH_LAUNCH(clear, fth_cuda_blocks(entries_of(call), 128), 128, fth_cuda_stream(call), o,
                   entries_of(call));
        FTH_CUDA_LAUNCHED(call);
    }
    if (bar->extent[0] == 0 || bar->extent[1] == 0) return FTH_OK;
    FTH_TRY(fth__bragg_view(call, s, &in, false));
    for (int64_t y = 0; y < bar->extent[0]; y += ROWS) FTH_TRY(one_block(call, o, y));
    return FTH_OK;
}
} // namespace

FTH_CUDA_KERNEL(bragg_table_gradient) = {
    .op = "bragg_table_gradient", .scratch = scratch, .run = run};
