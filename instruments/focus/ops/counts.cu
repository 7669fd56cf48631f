/* counts.cu - counts.c and range.c on a device.
 *
 * A block counts in shared memory the values of a window that lies around the first it meets, and
 * the few others in global memory: stacks use a part of their 65536 values. Percentiles are found
 * by a block for each stack, from sums over runs of bins.
 */
#include <fathom/cuda.h>
#include <fathom/fathom.h>
#include <math.h>
#include <string.h>

namespace
{
#include "range_of.h"

enum { THREADS = 256, WINDOW = 11264, BLOCKS = 132 * 4 };
typedef unsigned long long count64;

struct counting {
    const void *data;
    const uint8_t *present;
    const int64_t *upper;
    int64_t *out;
    int64_t step[3], has_step[2], upper_step, out_step;
    int64_t n[4], origin[4], size[4]; /* of the tile; of the whole */
    int64_t every, bins;
};

template <typename T> __device__ inline uint32_t bin_of(T v)
{
    return (uint32_t)v;
}
template <> __device__ inline uint32_t bin_of<float>(float v)
{
    return fo_float_key(__float_as_uint(v)) >> 16;
}

__global__ void clear_counts(int64_t *out, int64_t stacks, int64_t step, int64_t bins)
{
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < stacks * bins;
         i += (int64_t)gridDim.x * blockDim.x)
        out[i / bins * step + i % bins] = 0;
}

/* Rows of stack s are shared out to the blocks. */
template <typename T> __global__ void count_values(counting c, int64_t s)
{
    __shared__ uint32_t window[WINDOW];
    __shared__ uint32_t base;
    const int64_t rows = c.n[1] * c.n[2];
    count64 *out = (count64 *)(c.out + s * c.out_step);
    for (int i = (int)threadIdx.x; i < WINDOW; i += THREADS) window[i] = 0;
    if (threadIdx.x == 0) {
        const int64_t row = blockIdx.x < rows ? blockIdx.x : 0;
        const uint32_t v = bin_of(((const T *)c.data)[s * c.step[0] + row / c.n[2] * c.step[1] +
                                                      row % c.n[2] * c.step[2] + c.n[3] / 2]);
        base = v > WINDOW / 2 ? v - WINDOW / 2 : 0;
    }
    __syncthreads();
    for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
        const int64_t z = row / c.n[2], y = row % c.n[2];
        if (!c.present[s * c.has_step[0] + z * c.has_step[1]]) continue;
        const T *v = (const T *)c.data + s * c.step[0] + z * c.step[1] + y * c.step[2];
        const int64_t before =
            (((c.origin[0] + s) * c.size[1] + c.origin[1] + z) * c.size[2] + c.origin[2] + y) *
                c.size[3] +
            c.origin[3];
        for (int64_t x = threadIdx.x; x < c.n[3]; x += THREADS) {
            if (c.every > 1 && (before + x) % c.every != 0) continue;
            const uint32_t bin = bin_of(v[x]), at = bin - base;
            if (at < WINDOW)
                atomicAdd(&window[at], 1u);
            else
                atomicAdd(&out[bin], (count64)1);
        }
    }
    __syncthreads();
    for (int i = (int)threadIdx.x; i < WINDOW; i += THREADS)
        if (window[i]) atomicAdd(&out[base + (uint32_t)i], (count64)window[i]);
}

/* Lower halves of the floats whose upper half is one of four. */
__global__ void count_lower(counting c, int64_t s)
{
    const int64_t rows = c.n[1] * c.n[2];
    count64 *out = (count64 *)(c.out + s * c.out_step);
    const int64_t *upper = c.upper + s * c.upper_step;
    for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
        const int64_t z = row / c.n[2], y = row % c.n[2];
        if (!c.present[s * c.has_step[0] + z * c.has_step[1]]) continue;
        const float *v = (const float *)c.data + s * c.step[0] + z * c.step[1] + y * c.step[2];
        for (int64_t x = threadIdx.x; x < c.n[3]; x += THREADS) {
            const uint32_t key = fo_float_key(__float_as_uint(v[x]));
            for (int r = 0; r < FO_RANKS; r++)
                if (key >> 16 == (uint32_t)upper[r])
                    atomicAdd(&out[(uint32_t)r * FO_BINS + (key & 0xffff)], (count64)1);
        }
    }
}

fth_status counts_run(const fth_call *call)
{
    const fth_node *node = call->node;
    const fo_counts_attr *a = (const fo_counts_attr *)node->attr;
    const fth_tile *in = &call->in[0], *out = &call->out[0];
    const fth_dtype t = node->in[0].dtype;
    counting c = {};
    c.data = in->data;
    c.present = (const uint8_t *)call->in[1].data;
    c.out = (int64_t *)out->data;
    c.out_step = a->together ? 0 : out->stride[0];
    for (int i = 0; i < 3; i++) c.step[i] = in->stride[i];
    for (int i = 0; i < 2; i++) c.has_step[i] = call->in[1].stride[i];
    if (node->n_in == 3) {
        c.upper = (const int64_t *)call->in[2].data;
        c.upper_step = call->in[2].stride[0];
    }
    for (int i = 0; i < 4; i++)
        c.n[i] = in->extent[i], c.origin[i] = in->origin[i], c.size[i] = node->in[0].size[i];
    c.every = a->step;
    c.bins = node->out[0].size[node->out[0].n_axes - 1];
    const int64_t outs = a->together ? 1 : out->extent[0];
    const cudaStream_t stream = fth_cuda_stream(call);
    if (call->first && outs > 0)
        FTH_LAUNCH(clear_counts, fth_cuda_blocks(outs * c.bins, THREADS), THREADS, stream, c.out,
                   outs, c.out_step, c.bins);
    const int64_t rows = c.n[1] * c.n[2];
    const unsigned blocks = (unsigned)(rows < BLOCKS ? rows : (int64_t)BLOCKS);
    for (int64_t s = 0; s < c.n[0] && rows > 0 && c.n[3] > 0; s++) {
        if (node->n_in == 3)
            FTH_LAUNCH(count_lower, blocks, THREADS, stream, c, s);
        else if (t == FTH_U8)
            FTH_LAUNCH((count_values<uint8_t>), blocks, THREADS, stream, c, s);
        else if (t == FTH_U16)
            FTH_LAUNCH((count_values<uint16_t>), blocks, THREADS, stream, c, s);
        else
            FTH_LAUNCH((count_values<float>), blocks, THREADS, stream, c, s);
    }
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

/* ---- percentiles: a block for each stack ---- */

struct ranking {
    const int64_t *counts, *upper, *lower;
    int64_t step[3]; /* between stacks */
    int64_t bins;
    fo_range_attr attr;
    double *out[FO_RANGES];
    int64_t *halves; /* of upper halves */
    int64_t halves_step;
};

/* Sums over THREADS runs of bins, into sum[]; all threads of the block. */
__device__ void sum_runs(const int64_t *counts, int64_t bins, int64_t *sum)
{
    const int64_t run = (bins + THREADS - 1) / THREADS, from = threadIdx.x * run;
    int64_t n = 0;
    for (int64_t i = from; i < from + run && i < bins; i++) n += counts[i];
    sum[threadIdx.x] = n;
    __syncthreads();
}

__device__ int64_t find_rank(const int64_t *counts, int64_t bins, const int64_t *sum, int64_t rank,
                             int64_t *before)
{
    const int64_t run = (bins + THREADS - 1) / THREADS;
    int64_t n = 0;
    int k = 0;
    while (k < THREADS - 1 && n + sum[k] <= rank) n += sum[k++];
    for (int64_t i = k * run; i < (k + 1) * run && i < bins; i++) {
        *before = n;
        if (n + counts[i] > rank) return i;
        n += counts[i];
    }
    *before = n;
    return 0;
}

__global__ void find_upper(ranking r)
{
    __shared__ int64_t sum[THREADS];
    const int64_t s = blockIdx.x;
    const int64_t *counts = r.counts + s * r.step[0];
    sum_runs(counts, r.bins, sum);
    if (threadIdx.x >= FO_RANKS) return;
    int64_t n = 0, rank[FO_RANKS], before;
    double share[2];
    for (int i = 0; i < THREADS; i++) n += sum[i];
    fo_ranks(n, r.attr.low, r.attr.high, rank, share);
    r.halves[s * r.halves_step + threadIdx.x] =
        find_rank(counts, r.bins, sum, rank[threadIdx.x], &before);
}

__global__ void find_range(ranking r)
{
    __shared__ int64_t sum[THREADS], place[FO_RANKS + 2], ahead[FO_RANKS], top;
    __shared__ double value[FO_RANKS];
    const int64_t s = blockIdx.x;
    const int64_t *counts = r.counts + s * r.step[0];
    const int t = (int)threadIdx.x;
    if (t == 0) top = 0;
    sum_runs(counts, r.bins, sum);
    int64_t n = 0, rank[FO_RANKS];
    double share[2];
    for (int i = 0; i < THREADS; i++) n += sum[i];
    fo_ranks(n, r.attr.low, r.attr.high, rank, share);
    if (t < FO_RANKS) {
        place[t] = find_rank(counts, r.bins, sum, rank[t], &ahead[t]);
        value[t] = (double)place[t];
    } else if (t < FO_RANKS + 2) {
        int64_t before;
        place[t] = find_rank(counts, r.bins, sum, t == FO_RANKS ? 0 : n - 1, &before);
    }
    if (!r.upper) {
        int64_t some = 0;
        for (int64_t i = r.attr.top + t; i < r.bins; i += THREADS) some += counts[i];
        if (some) atomicAdd((count64 *)&top, (count64)some);
    }
    __syncthreads();
    for (int k = 0; r.upper && k < FO_RANKS; k++) {
        const int64_t *lower = r.lower + s * r.step[2] + (int64_t)k * FO_BINS;
        __syncthreads();
        sum_runs(lower, FO_BINS, sum);
        if (t == 0) {
            int64_t before;
            value[k] = fo_float_of(r.upper[s * r.step[1] + k],
                                   find_rank(lower, FO_BINS, sum, rank[k] - ahead[k], &before));
        }
    }
    if (t != 0) return;
    fo_ranked found = {};
    double out[FO_RANGES];
    found.n = n;
    found.first = place[FO_RANKS];
    found.last = place[FO_RANKS + 1];
    found.top = top;
    found.floats = r.upper != NULL;
    for (int i = 0; i < FO_RANKS; i++) found.value[i] = value[i];
    fo_range_of(&found, share, out);
    for (int i = 0; i < FO_RANGES; i++)
        if (r.out[i]) r.out[i][s] = out[i];
}

ranking ranking_of(const fth_call *call)
{
    const fth_node *node = call->node;
    const bool stacks = node->in[0].n_axes == 2;
    ranking r = {};
    r.counts = (const int64_t *)call->in[0].data;
    r.bins = node->in[0].size[node->in[0].n_axes - 1];
    r.attr = *(const fo_range_attr *)node->attr;
    if (node->n_in == 3) {
        r.upper = (const int64_t *)call->in[1].data;
        r.lower = (const int64_t *)call->in[2].data;
    }
    for (int i = 0; i < node->n_in; i++) r.step[i] = stacks ? call->in[i].stride[0] : 0;
    return r;
}

fth_status upper_run(const fth_call *call)
{
    ranking r = ranking_of(call);
    r.halves = (int64_t *)call->out[0].data;
    r.halves_step = call->out[0].stride[0];
    if (call->out[0].extent[0] == 0) return FTH_OK;
    FTH_LAUNCH(find_upper, (unsigned)call->out[0].extent[0], THREADS, fth_cuda_stream(call), r);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

fth_status range_run(const fth_call *call)
{
    ranking r = ranking_of(call);
    const int64_t stacks = call->node->in[0].n_axes == 2 ? call->out[0].extent[0] : 1;
    for (int i = 0; i < FO_RANGES; i++) r.out[i] = (double *)call->out[i].data;
    if (stacks == 0) return FTH_OK;
    FTH_LAUNCH(find_range, (unsigned)stacks, THREADS, fth_cuda_stream(call), r);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}
} // namespace

FTH_CUDA_KERNEL(focus_counts) = {.op = "focus_counts", .run = counts_run};
FTH_CUDA_KERNEL(focus_upper_halves) = {.op = "focus_upper_halves", .run = upper_run};
FTH_CUDA_KERNEL(focus_range) = {.op = "focus_range", .run = range_run};
