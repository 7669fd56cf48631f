/* conv2d_grad_weight.cu - the gradient of a convolution's weights on the device.
 *
 * Rows of the product are output channels, columns (ky, kx, channel), and the sum goes over pixels
 * and images. It is cut into units of 1024 pixels, fewer where channels are few and a large card
 * would be idle otherwise, counted anew in every block of the batch's grid, so that the order of
 * additions does not depend on how the batch was cut: units of a block in order, then blocks and
 * superblocks in order, as on the CPU. Units are made side by side, as many as fill the card, and
 * added by a second kernel; how many at once changes no sum.
 */
#include "base/assert.h"
#include "cuda/conv2d/conv2d_units.h"

extern "C" {
#include "graph/grid.h"
}

/* Blocks of threads per launch: about four rounds of three resident blocks on 132 multiprocessors,
 * which bounds the scratch for their sums. */
static constexpr int64_t ENOUGH = 1536;
static constexpr int AHEAD = 16; /* units a thread loads before it adds them in order */

typedef struct job {
    fth__conv_view r, v, w, kept;
    int64_t total, block, super;     /* images: all, of a block, of a superblock */
    int64_t image_pixels, per_block; /* pixels of an image; units of a whole block */
    int64_t unit;                    /* pixels of a unit */
    int64_t units, at_once;          /* of this call; made at a time */
    int64_t m, n;
    int rows;
    bool by_parts; /* on the matrix units */
    fth__conv_weight_job parts;
} job;

static __host__ __device__ inline int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t units_of(const job *j, int64_t images)
{
    const int64_t pixels = images * j->image_pixels;
    if (j->by_parts) {
        const int64_t stretches = images * j->parts.v.strips.d * j->parts.per_frame;
        return (stretches + j->parts.length - 1) / j->parts.length;
    }
    return pixels > 0 ? (pixels + j->unit - 1) / j->unit : 1;
}

static int64_t tiles_for(int64_t m, int64_t n, int64_t rows)
{
    return (m + rows - 1) / rows * ((n + FTH__CONV_N - 1) / FTH__CONV_N);
}

/* Pixels of a unit, by whole sizes alone: they decide on bits. A unit is one chain of additions, so
 * it takes as long whatever the card. Short ones are more exact as well; where another card would
 * go by parts they stay long, because parts are to be no less exact than this way. */
static int64_t unit_for(const fth_node *node, const job *j)
{
    constexpr int64_t BUSY = 256, SHORTEST = 128; /* 64 blocks of 1024 pixels took 146 us (H200) */
    const fth__conv_attr *a = (const fth__conv_attr *)node->attr;
    const int64_t m = fth__conv_size(node, a->out_chan), channels = fth__conv_size(node, a->chan),
                  taps = fth__conv_size(node, a->ky) * fth__conv_size(node, a->kx),
                  pixels =
                      j->total * fth__conv_size(node, a->out_y) * fth__conv_size(node, a->out_x),
                  tiles = tiles_for(m, channels * taps, j->rows);
    int64_t unit = FTH__CONV_CHAIN;
    if (!fth__conv_weight_is_small(m, channels, taps)) return unit;
    while (unit > SHORTEST && pixels / unit * tiles < BUSY) unit /= 2;
    return unit;
}

static void make_job(const fth_call *call, job *j)
{
    const fth_node *node = call->node;
    const fth__conv_attr *attr = (const fth__conv_attr *)node->attr;
    *j = job{};
    j->r = fth__conv_view_of(attr, FTH__CONV_RESULT, &node->in[0], &call->in[0]);
    j->v = fth__conv_view_of(attr, FTH__CONV_IMAGE, &node->in[1], &call->in[1]);
    j->w = fth__conv_view_of(attr, FTH__CONV_WEIGHTS, &node->out[0], &call->out[0]);
    j->kept = fth__conv_view_of(attr, FTH__CONV_WEIGHTS, &node->out[0], &call->state[0]);
    j->total = fth__conv_size(node, attr->batch);
    j->block = fth__grid_reduce(j->total);
    j->super = fth__grid_superblock(j->total, j->block);
    j->image_pixels = j->r.n[2] * j->r.n[3];
    j->by_parts = fth__conv_weight_plan(node, &j->parts);
    j->rows = node->in[0].dtype == FTH_F32 && fth__conv_size(node, attr->out_chan) > 32 ? 64 : 32;
    j->unit = unit_for(node, j);
    j->per_block = units_of(j, j->block);
    const int64_t images = j->r.n[0], whole = images / j->block, rest = images % j->block;
    /* an empty first piece still sets the output: one unit of nothing */
    j->units = images == 0 ? 1 : whole * j->per_block + (rest > 0 ? units_of(j, rest) : 0);
    j->m = j->w.n[0], j->n = j->w.n[1] * j->w.n[2] * j->w.n[3];
    int64_t tiles = tiles_for(j->m, j->n, j->rows);
    if (j->by_parts) tiles = 3 * fth__conv_weight_tiles(j->m, j->w.n[1], j->parts.taps);
    FTH_ASSERT(j->units >= 1 && j->per_block >= 1 && j->block >= 1);
    j->at_once = least(j->units, tiles > 0 ? (ENOUGH + tiles - 1) / tiles : 1);
}

/* ---- adding units ---- */

typedef struct sums {
    const char *units; /* unit by m by n */
    char *running;     /* m by n: the units of a block so far */
    char *out, *part;
    int64_t out_step[4], part_step[4]; /* out_chan, chan, ky, kx */
    int64_t first, count;              /* units of this call */
    int64_t per_block, block, super, total;
    int64_t origin; /* the first image of this call */
    int64_t all;    /* units of the call */
    int32_t m;
    fth__div n, channels, kx;
} sums;

/* What a thread has of its element of the result, and of the superblock so far: memory is asked
 * once, not for every block. */
template <typename T> struct folded {
    T out, part;
    bool new_out = false, new_part = false;

    __device__ folded(const sums &p, const T *from, const T *kept)
    {
        const int64_t at = p.origin + p.first / p.per_block * p.block;
        out = at >= p.super ? *from : T(0);
        part = p.super > p.block && at % p.super != 0 ? *kept : T(0);
    }

    /* The sum of a whole block that begins with image `at` of the batch. */
    __device__ void add(const sums &p, int64_t at, T sum)
    {
        const int64_t next = least(at + p.block, p.total);
        if (p.super > p.block) {
            part = sum = at % p.super != 0 ? part + sum : sum;
            new_part = true;
            if (next % p.super != 0 && next != p.total) return;
        }
        out = at >= p.super ? out + sum : sum;
        new_out = true;
    }
};

template <typename T> static __global__ void add_units(const sums __grid_constant__ p)
{
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x, m = fth__div_by(i, p.n),
                   n = i - m * p.n.d;
    if (m >= (uint32_t)p.m) return;
    const uint32_t window = fth__div_by(n, p.channels), ky = fth__div_by(window, p.kx);
    const int64_t place[4] = {m, n - window * p.channels.d, ky, window - ky * p.kx.d};
    int64_t to = 0, kept = 0;
    for (int d = 0; d < 4; d++) to += place[d] * p.out_step[d], kept += place[d] * p.part_step[d];
    T *running = (T *)p.running + i;
    const T *unit = (const T *)p.units + i;
    const int64_t size = (int64_t)p.m * p.n.d;
    int64_t block = p.first / p.per_block, at = p.first % p.per_block;
    T sum = at > 0 ? *running : T(0);
    T *const out = (T *)p.out + to, *const part = (T *)p.part + kept;
    folded<T> f(p, out, part);
    const int64_t end = p.first + p.count;
    for (int64_t u = p.first; u < end; u += AHEAD, unit += AHEAD * size) {
        T v[AHEAD]; /* many are on their way at a time; they are added one after the other */
#pragma unroll
        for (int i = 0; i < AHEAD; i++) v[i] = u + i < end ? unit[i * size] : T(0);
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            if (u + i >= end) break;
            sum = at == 0 ? v[i] : sum + v[i];
            if (++at < p.per_block && u + i + 1 < p.all) continue;
            f.add(p, p.origin + block * p.block, sum);
            block++, at = 0;
        }
    }
    *running = sum;
    if (f.new_out) *out = f.out;
    if (f.new_part) *part = f.part;
}

/* ---- one call ---- */

template <typename T, int MT, bool ALONG_K, bool EVEN>
static void launch(const fth_call *call, const fth__conv_tiles &p, int64_t units)
{
    FTH_LAUNCH((fth__conv_multiply<T, MT, true, ALONG_K, false, EVEN>),
               (unsigned)(fth__conv_blocks(&p, 8 * MT) * units), FTH__CONV_THREADS,
               fth_cuda_stream(call), p);
}

template <typename T, int MT>
static void queue(const fth_call *call, const fth__conv_tiles &p, int64_t units)
{
    const auto way = fth__conv_by_channel(&p.from)              ? launch<T, MT, false, false>
                     : fth__conv_even(&p.from, FTH__CONV_ALIKE) ? launch<T, MT, true, true>
                                                                : launch<T, MT, true, false>;
    way(call, p, units);
}

template <typename T> static fth__conv_tiles tiles_of(const fth_call *call, const job *j)
{
    fth__conv_tiles p = {};
    p.from = fth__conv_gather_of(call->node, &j->v, false, 0);
    p.pixels = fth__conv_pixels_of(&j->r);
    p.left = j->r.data;
    p.out = (char *)call->scratch;
    p.m = (int32_t)j->m, p.n = (int32_t)j->n;
    p.wide = j->n % 4 == 0;
    p.unit_pixels = (int32_t)j->unit;
    p.units_per_block = j->per_block, p.block_images = j->block;
    /* images without pixels are none */
    p.images = j->image_pixels > 0 ? j->r.n[0] : 0;
    p.image_pixels = j->image_pixels > 0 ? j->image_pixels : 1;
    return p;
}

template <typename T> static sums sums_of(const fth_call *call, const job *j)
{
    sums p = {};
    FTH_ASSERT(j->at_once >= 1 && j->at_once <= j->units);
    p.units = (const char *)call->scratch;
    p.running = (char *)call->scratch + j->at_once * j->m * j->n * (int64_t)sizeof(T);
    p.out = j->w.data, p.part = j->kept.data;
    for (int d = 0; d < 4; d++) p.out_step[d] = j->w.s[d], p.part_step[d] = j->kept.s[d];
    p.per_block = j->per_block, p.block = j->block, p.super = j->super, p.total = j->total;
    p.origin = j->r.origin[0], p.all = j->units;
    p.m = (int32_t)j->m;
    p.n = fth__div_make(j->n);
    p.channels = fth__conv_div(j->w.n[1]), p.kx = fth__conv_div(j->w.n[3]);
    return p;
}

template <typename T> static fth_status run_as(const fth_call *call, const job *j)
{
    fth__conv_tiles p = tiles_of<T>(call, j);
    sums q = sums_of<T>(call, j);
    for (int64_t u = 0; u < j->units; u += j->at_once) {
        const int64_t count = least(j->at_once, j->units - u);
        p.first_unit = q.first = u, q.count = count;
        if (sizeof(T) == 4 && j->rows == 64)
            queue<T, fth__conv_most_m<T>>(call, p, count);
        else
            queue<T, 4>(call, p, count);
        FTH_CUDA_LAUNCHED(call);
        FTH_LAUNCH(add_units<T>, (unsigned)((j->m * j->n + 127) / 128), 128, fth_cuda_stream(call),
                   q);
        FTH_CUDA_LAUNCHED(call);
    }
    return FTH_OK;
}

static fth_status run_parts(const fth_call *call, job *j)
{
    sums q = sums_of<float>(call, j);
    fth__conv_weight_bind(call, &j->r, &j->v, &j->parts);
    j->parts.out = (float *)call->scratch;
    for (int64_t u = 0; u < j->units; u += j->at_once) {
        const int64_t count = least(j->at_once, j->units - u);
        j->parts.first_unit = q.first = u, q.count = count;
        fth__conv_weight_multiply(fth_cuda_stream(call), &j->parts, count);
        FTH_CUDA_LAUNCHED(call);
        FTH_LAUNCH(add_units<float>, (unsigned)((j->m * j->n + 127) / 128), 128,
                   fth_cuda_stream(call), q);
        FTH_CUDA_LAUNCHED(call);
    }
    return FTH_OK;
}

static fth_status run(const fth_call *call)
{
    job j;
    make_job(call, &j);
    if (j.m == 0 || j.n == 0 || (j.r.n[0] == 0 && !call->first)) return FTH_OK;
    if (j.by_parts) return run_parts(call, &j);
    return call->node->in[0].dtype == FTH_F32 ? run_as<float>(call, &j) : run_as<double>(call, &j);
}

static uint64_t scratch(const fth_call *call)
{
    job j;
    make_job(call, &j);
    return (uint64_t)((j.at_once + 1) * j.m * j.n * fth_dtype_size(call->node->in[0].dtype));
}

static bool supports(const fth_node *node)
{
    return fth__conv_countable(node) && fth_desc_count(&node->out[0]) < 1 << 30;
}

FTH_CUDA_KERNEL(conv2d_grad_weight) = {
    .op = "conv2d_grad_weight", .supports = supports, .scratch = scratch, .run = run};
