/* compact.cu - the rows of a value where a mask is true, in order.
 *
 * Three launches: trues of each tile of the mask are counted, the counts become places, and each
 * tile lists its own rows and copies them. The list lies in shared memory, so the workspace is one
 * number per tile.
 */
#include "base/assert.h"
#include "cuda/device/device.h"
#include "cuda/walk/walk.cuh"

extern "C" {
#include "ops/indexing.h"
#include "ops/ops.h"
}

enum {
    THREADS = 256,
    EACH = 8, /* rows per thread: their mask bytes are one load of 8 */
    TILE = THREADS * EACH,
    AHEAD = 4, /* rows in flight per thread */
};
/* Units of a row per block of threads, so that TILE * CHUNK < 2^31 is counted by 32 bits; and the
 * limit of CUDA for the y and z of a grid. */
static constexpr int64_t CHUNK = 1 << 14, MOST_LAYERS = 65535;

static int64_t tiles_of(const fth_call *call)
{
    return (call->in[1].extent[0] + TILE - 1) / TILE;
}

static uint64_t scratch(const fth_call *call)
{
    return (uint64_t)tiles_of(call) * sizeof(int64_t);
}

/* Sum over the lanes before this one, and over all of them. */
static __device__ inline int before_in_warp(int x, int *all)
{
    const int lane = (int)threadIdx.x & 31;
    int sum = x;
    for (int d = 1; d < 32; d *= 2) {
        const int other = __shfl_up_sync(~0u, sum, (unsigned)d);
        if (lane >= d) sum += other;
    }
    *all = __shfl_sync(~0u, sum, 31);
    return sum - x;
}

/* Sum over the threads before this one, and over all of the block. */
static __device__ int before_in_block(int x, int *all)
{
    __shared__ int of_warp[THREADS / 32];
    int mine, sum = 0;
    int before = before_in_warp(x, &mine);
    if ((threadIdx.x & 31) == 31) of_warp[threadIdx.x / 32] = mine;
    __syncthreads();
    for (int w = 0; w < THREADS / 32; w++) {
        if (w == (int)threadIdx.x / 32) before += sum;
        sum += of_warp[w];
    }
    __syncthreads();
    *all = sum;
    return before;
}

/* The eight rows of this thread as bits. */
static __device__ inline uint32_t rows_of(const uint8_t *mask, int64_t n)
{
    const int64_t at = (int64_t)blockIdx.x * TILE + (int64_t)threadIdx.x * EACH;
    uint32_t bits = 0;
    if (at + EACH <= n && ((uintptr_t)mask & (EACH - 1)) == 0) {
        const uint2 w = *(const uint2 *)(mask + at);
        for (int i = 0; i < 4; i++) {
            bits |= (w.x >> 8 * i & 255) != 0 ? 1u << i : 0;
            bits |= (w.y >> 8 * i & 255) != 0 ? 16u << i : 0;
        }
        return bits;
    }
    for (int i = 0; i < EACH; i++)
        if (at + i < n && mask[at + i]) bits |= 1u << i;
    return bits;
}

static __global__ void count(const uint8_t *mask, int64_t n, int64_t *counts)
{
    int all;
    (void)before_in_block(__popc(rows_of(mask, n)), &all);
    if (threadIdx.x == 0) counts[blockIdx.x] = all;
}

/* Counts of tiles to places of their first row; one block. */
static __global__ void place(int64_t *counts, int64_t tiles, int64_t want, fth_fault *fault)
{
    int64_t done = 0;
    for (int64_t at = 0; at < tiles; at += THREADS) {
        const int64_t i = at + threadIdx.x;
        int all;
        const int before = before_in_block(i < tiles ? (int)counts[i] : 0, &all);
        if (i < tiles) counts[i] = done + before;
        done += all;
    }
    if (threadIdx.x == 0 && done != want) fth_cuda_complain(fault, 0, done, 0);
}

typedef struct args {
    fth__walk others; /* every axis that is not in a row: of the result and of v; bytes */
    char *out;
    const char *v;
    const uint8_t *mask;
    const int64_t *places;
    int64_t n, want, out_step, v_step; /* rows, and bytes between them */
    int64_t units;                     /* of a row */
    fth__divisor whole, rest;          /* by the units of a chunk, and of the last one */
} args;

/* n units of the listed rows, in order. */
template <typename T>
static __device__ void copy_rows(const args &a, T *out, const T *v, const uint16_t *list,
                                 uint32_t n, fth__divisor by)
{
    for (uint32_t at = threadIdx.x; at < n; at += THREADS * AHEAD) {
        T x[AHEAD], *to[AHEAD];
#pragma unroll
        for (int j = 0; j < AHEAD; j++) {
            const uint32_t k = at + (uint32_t)j * THREADS;
            if (k >= n) continue;
            const uint32_t row = fth__quotient(k, by), unit = k - row * by.d;
            x[j] = ((const T *)((const char *)v + list[row] * a.v_step))[unit];
            to[j] = (T *)((char *)out + row * a.out_step) + unit;
        }
#pragma unroll
        for (int j = 0; j < AHEAD; j++)
            if (at + (uint32_t)j * THREADS < n) *to[j] = x[j];
    }
}

template <typename T> static __global__ void move_rows(const args a)
{
    __shared__ uint16_t list[TILE];
    const uint32_t bits = rows_of(a.mask, a.n);
    int kept;
    int to = before_in_block(__popc(bits), &kept);
    for (int i = 0; i < EACH; i++)
        if (bits >> i & 1) list[to++] = (uint16_t)(threadIdx.x * EACH + (unsigned)i);
    __syncthreads();
    const int64_t first = a.places[blockIdx.x];
    if (first >= a.want) return;
    if (kept > a.want - first) kept = (int)(a.want - first); /* the count is wrong: complained of */
    for (int64_t layer = blockIdx.z; layer < a.others.count; layer += gridDim.z) {
        const fth__place p = fth__walk_at(a.others, layer);
        T *out = (T *)(a.out + p.at[0] + first * a.out_step);
        const T *v = (const T *)(a.v + p.at[1] + (int64_t)blockIdx.x * TILE * a.v_step);
        for (int64_t lo = (int64_t)blockIdx.y * CHUNK; lo < a.units;
             lo += (int64_t)gridDim.y * CHUNK) {
            const fth__divisor by = a.units - lo < CHUNK ? a.rest : a.whole;
            copy_rows<T>(a, out + lo, v + lo, list, (uint32_t)kept * by.d, by);
        }
    }
}

/* The axes that are not in a row, and the bytes of a row; returns the unit they can be moved in. */
static int plan(const fth_call *call, int dim, args *a)
{
    const fth_desc *d = &call->node->out[0];
    const fth_tile *v = &call->in[0], *out = &call->out[0];
    const int64_t size = fth_dtype_size(d->dtype);
    int64_t bytes = size, end = d->n_axes;
    a->v = (const char *)v->data;
    for (int i = 0; i < d->n_axes; i++)
        if (i != dim) a->v += (out->origin[i] - v->origin[i]) * v->stride[i] * size;
    while (end - 1 > dim && (out->extent[end - 1] == 1 || (v->stride[end - 1] * size == bytes &&
                                                           out->stride[end - 1] * size == bytes)))
        bytes *= out->extent[--end];
    a->others = fth__walk_none();
    for (int i = 0; i < end; i++)
        if (i != dim)
            fth__walk_add(&a->others, out->extent[i], out->stride[i] * size, v->stride[i] * size,
                          0);
    a->out = (char *)out->data;
    a->out_step = out->stride[dim] * size;
    a->v_step = v->stride[dim] * size;
    uint64_t all = (uint64_t)bytes | (uint64_t)a->out_step | (uint64_t)a->v_step |
                   (uint64_t)(uintptr_t)a->out | (uint64_t)(uintptr_t)a->v;
    for (int i = 0; i < a->others.n; i++)
        all |= (uint64_t)a->others.step[i][0] | (uint64_t)a->others.step[i][1];
    const int unit = fth__unit_of(all);
    a->units = bytes / unit;
    a->whole = fth__divisor_of(CHUNK);
    a->rest = fth__divisor_of((uint32_t)(a->units % CHUNK ? a->units % CHUNK : CHUNK));
    return unit;
}

static fth_status run(const fth_call *call)
{
    const fth_node *node = call->node;
    const int dim = fth_desc_find(&node->in[0], ((const fth__compact_attr *)node->attr)->axis);
    const int64_t tiles = tiles_of(call);
    const cudaStream_t stream = fth_cuda_stream(call);
    int64_t *places = (int64_t *)call->scratch;
    args a = {};
    a.n = call->in[1].extent[0];
    a.want = call->out[0].extent[dim];
    a.mask = (const uint8_t *)call->in[1].data;
    a.places = places;
    if (tiles > 0) FTH_LAUNCH(count, (unsigned)tiles, THREADS, stream, a.mask, a.n, places);
    FTH_LAUNCH(place, 1, THREADS, stream, places, tiles, a.want, call->fault);
    FTH_CUDA_LAUNCHED(call);
    if (tiles == 0 || fth_cuda_count(&node->out[0], &call->out[0]) == 0) return FTH_OK;
    const int unit = plan(call, dim, &a);
    FTH_ASSERT(a.units > 0 && tiles <= INT32_MAX);
    const int64_t chunks = (a.units + CHUNK - 1) / CHUNK;
    const dim3 blocks((unsigned)tiles, (unsigned)(chunks < MOST_LAYERS ? chunks : MOST_LAYERS),
                      (unsigned)(a.others.count < MOST_LAYERS ? a.others.count : MOST_LAYERS));
    switch (unit) {
    case 1: FTH_LAUNCH(move_rows<uint8_t>, blocks, THREADS, stream, a); break;
    case 2: FTH_LAUNCH(move_rows<uint16_t>, blocks, THREADS, stream, a); break;
    case 4: FTH_LAUNCH(move_rows<uint32_t>, blocks, THREADS, stream, a); break;
    case 8: FTH_LAUNCH(move_rows<uint2>, blocks, THREADS, stream, a); break;
    default: FTH_LAUNCH(move_rows<uint4>, blocks, THREADS, stream, a); break;
    }
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

static fth_status explain(const fth_node *node, const fth_fault *fault, fth_err *err)
{
    return fth__compact_fail(node, fault->value, err);
}

FTH_CUDA_KERNEL(compact) = {.op = "compact", .scratch = scratch, .run = run, .explain = explain};
