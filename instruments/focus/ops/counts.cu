/* counts.cu - counts.c and range.c on a device.
 *
 * A block counts in all of the shared memory that there is: a window of most of the 65536 values,
 * around the first that it meets, or several tables of few values. What lies outside is counted in
 * global memory. Percentiles are found by a block for each stack, from sums over runs of bins.
 */
#include <fathom/cuda.h>
#include <fathom/fathom.h>
#include <math.h>
#include <string.h>

namespace
{
#include "range_of.h"

constexpr int THREADS = 1024, WARP = 32, BLOCKS = 132, LOWER_BLOCKS = 132 * 4, MOST_TABLES = 16;
typedef unsigned long long count64;

struct counting {
    const void *data;
    const uint8_t *present;
    const int64_t *upper;
    int64_t *out;
    int64_t step[3], has_step[2], upper_step, out_step;
    int64_t n[4], origin[4], size[4]; /* of the tile; of the whole */
    int64_t every, bins;
    int64_t lines, length; /* runs of values without a gap, and values of each */
    bool planes;           /* lines are planes, not rows */
    uint32_t window, tables;
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

/* Where a block counts. */
struct tally {
    uint32_t *own; /* the table of this warp */
    uint32_t base, window;
    count64 *out;
    __device__ inline void add(uint32_t bin) const
    {
        const uint32_t at = bin - base;
        if (at < window)
            atomicAdd(&own[at], 1u);
        else
            atomicAdd(&out[bin], (count64)1);
    }
};

template <typename T> __device__ inline const T *line_of(const counting &c, int64_t s, int64_t line)
{
    const T *data = (const T *)c.data + s * c.step[0];
    if (c.planes) return data + line * c.step[1];
    return data + line / c.n[2] * c.step[1] + line % c.n[2] * c.step[2];
}
__device__ inline bool line_there(const counting &c, int64_t s, int64_t line)
{
    const int64_t z = c.planes ? line : line / c.n[2];
    return c.present[s * c.has_step[0] + z * c.has_step[1]] != 0;
}

/* 16 bytes at once, the next ones on their way. */
template <typename T> __device__ void count_wide(const counting &c, int64_t s, const tally &t)
{
    enum { EACH = 16 / sizeof(T) };
    union {
        uint4 word;
        T v[EACH];
    } now, next = {};
    const uint32_t per_line = (uint32_t)(c.length / EACH);
    const int64_t all = c.lines * per_line, step = (int64_t)gridDim.x * THREADS;
    bool has = false;
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x - step; i < all; i += step) {
        const int64_t after = i + step;
        const bool had = has;
        now = next;
        has = false;
        if (after < all) {
            const int64_t line = after / per_line, at = after - line * per_line;
            has = line_there(c, s, line);
            if (has) next.word = ((const uint4 *)line_of<T>(c, s, line))[at];
        }
        if (!had) continue;
#pragma unroll
        for (int k = 0; k < EACH; k++) t.add(bin_of(now.v[k]));
    }
}

/* Every so manyth value. */
template <typename T> __device__ void count_each(const counting &c, int64_t s, const tally &t)
{
    for (int64_t line = blockIdx.x; line < c.lines; line += gridDim.x) {
        if (!line_there(c, s, line)) continue;
        const T *v = line_of<T>(c, s, line);
        const int64_t z = c.planes ? line : line / c.n[2], y = c.planes ? 0 : line % c.n[2];
        const int64_t before =
            (((c.origin[0] + s) * c.size[1] + c.origin[1] + z) * c.size[2] + c.origin[2] + y) *
                c.size[3] +
            c.origin[3];
        for (int64_t x = threadIdx.x; x < c.length; x += THREADS)
            if (c.every == 1 || (before + x) % c.every == 0) t.add(bin_of(v[x]));
    }
}

template <typename T, bool WIDE>
__global__ void __launch_bounds__(THREADS, 1) count_values(counting c)
{
    FTH_SHARED(uint32_t, table);
    __shared__ uint32_t base;
    const int64_t s = blockIdx.y;
    for (uint32_t i = threadIdx.x; i < c.window * c.tables; i += THREADS) table[i] = 0;
    if (threadIdx.x == 0) {
        const int64_t line = (int64_t)blockIdx.x < c.lines ? (int64_t)blockIdx.x : 0;
        const uint32_t v = bin_of(line_of<T>(c, s, line)[c.length / 2]),
                       most = (uint32_t)c.bins - c.window,
                       from = v > c.window / 2 ? v - c.window / 2 : 0;
        base = from < most ? from : most;
    }
    __syncthreads();
    const tally t = {table + threadIdx.x / WARP % c.tables * c.window, base, c.window,
                     (count64 *)(c.out + s * c.out_step)};
    if (WIDE)
        count_wide<T>(c, s, t);
    else
        count_each<T>(c, s, t);
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < c.window; i += THREADS) {
        count64 n = 0;
        for (uint32_t k = 0; k < c.tables; k++) n += table[k * c.window + i];
        if (n) atomicAdd(&t.out[base + i], n);
    }
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
        for (int64_t x = threadIdx.x; x < c.n[3]; x += blockDim.x) {
            const uint32_t key = fo_float_key(__float_as_uint(v[x]));
            for (int r = 0; r < FO_RANKS; r++)
                if (key >> 16 == (uint32_t)upper[r])
                    atomicAdd(&out[(uint32_t)r * FO_BINS + (key & 0xffff)], (count64)1);
        }
    }
}

template <typename T> void launch_counts(const fth_call *call, counting c)
{
    const int64_t element = (int64_t)sizeof(T), room = fth_cuda_most_shared() / 4 - 64;
    c.planes = c.step[2] == c.n[3] && c.n[3] == c.size[3];
    c.lines = c.planes ? c.n[1] : c.n[1] * c.n[2];
    c.length = c.planes ? c.n[2] * c.n[3] : c.n[3];
    c.window = (uint32_t)(c.bins < room ? c.bins : room);
    c.tables = (uint32_t)(room / c.window < MOST_TABLES ? room / c.window : (int64_t)MOST_TABLES);
    const bool wide = c.every == 1 && (uintptr_t)c.data % 16 == 0 && c.length * element % 16 == 0 &&
                      c.step[0] * element % 16 == 0 && c.step[1] * element % 16 == 0 &&
                      (c.planes || c.step[2] * element % 16 == 0);
    const int64_t want = (c.lines * c.length + 16 * THREADS - 1) / (16 * THREADS);
    const dim3 grid((unsigned)(want < BLOCKS ? want : (int64_t)BLOCKS), (unsigned)c.n[0]);
    const int64_t bytes = 4 * (int64_t)c.window * c.tables;
    const cudaStream_t stream = fth_cuda_stream(call);
    if (wide)
        FTH_LAUNCH_SHARED((count_values<T, true>), grid, THREADS, bytes, stream, c);
    else
        FTH_LAUNCH_SHARED((count_values<T, false>), grid, THREADS, bytes, stream, c);
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
    const unsigned blocks = (unsigned)(rows < LOWER_BLOCKS ? rows : (int64_t)LOWER_BLOCKS);
    if (rows == 0 || c.n[3] == 0 || c.n[0] == 0)
        ; /* nothing here */
    else if (node->n_in == 3)
        for (int64_t s = 0; s < c.n[0]; s++) FTH_LAUNCH(count_lower, blocks, 256, stream, c, s);
    else if (t == FTH_U8)
        launch_counts<uint8_t>(call, c);
    else if (t == FTH_U16)
        launch_counts<uint16_t>(call, c);
    else
        launch_counts<float>(call, c);
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

/* Sums over runs of bins, and how many values lie before each run. All threads of the block. */
constexpr int RUN = 64, RUNS = FO_BINS / RUN, PLACES = FO_RANKS + 2;
static_assert(RUNS == THREADS, "a thread for each run");
struct run_sums {
    int64_t sum[RUNS], before[RUNS], warp[THREADS / WARP];
};

__device__ void sum_runs(const int64_t *counts, int64_t bins, run_sums *r)
{
    const int lane = (int)threadIdx.x % WARP, warp = (int)threadIdx.x / WARP;
    constexpr int AT_ONCE = 8;
    for (int run = warp; run < RUNS; run += AT_ONCE * THREADS / WARP) {
        int64_t n[AT_ONCE];
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) {
            const int64_t i = (int64_t)(run + k * (THREADS / WARP)) * RUN + 2 * lane;
            n[k] = i < bins ? counts[i] + counts[i + 1] : 0; /* an even number of bins */
        }
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) {
            for (int by = WARP / 2; by > 0; by /= 2) n[k] += __shfl_xor_sync(~0u, n[k], by);
            if (lane == 0) r->sum[run + k * (THREADS / WARP)] = n[k];
        }
    }
    __syncthreads();
    const int64_t own = r->sum[threadIdx.x];
    int64_t n = own;
    for (int by = 1; by < WARP; by *= 2) {
        const int64_t other = __shfl_up_sync(~0u, n, by);
        if (lane >= by) n += other;
    }
    if (lane == WARP - 1) r->warp[warp] = n;
    __syncthreads();
    int64_t ahead = 0;
    for (int k = 0; k < warp; k++) ahead += r->warp[k];
    r->before[threadIdx.x] = ahead + n - own;
    __syncthreads();
}
__device__ inline int64_t sum_all(const run_sums *r)
{
    return r->before[RUNS - 1] + r->sum[RUNS - 1];
}

/* The bins that values of these ranks lie in, n < THREADS / WARP of them, and how many values lie
 * before those; 0 where there is no such value. All threads of the block. */
__device__ void find_ranks(const int64_t *counts, int64_t bins, const run_sums *r,
                           const int64_t *rank, int n, int64_t *place, int64_t *ahead)
{
    const int lane = (int)threadIdx.x % WARP, warp = (int)threadIdx.x / WARP;
    const int64_t from = r->before[threadIdx.x], to = from + r->sum[threadIdx.x];
    if (threadIdx.x < (unsigned)n) place[threadIdx.x] = -1, ahead[threadIdx.x] = 0;
    __syncthreads();
    for (int k = 0; k < n; k++)
        if (from <= rank[k] && rank[k] < to) place[k] = threadIdx.x;
    __syncthreads();
    if (warp < n && place[warp] >= 0) {
        const int64_t i = place[warp] * RUN + 2 * lane, low = i < bins ? counts[i] : 0,
                      high = i < bins ? counts[i + 1] : 0;
        int64_t sum = low + high;
        for (int by = 1; by < WARP; by *= 2) {
            const int64_t other = __shfl_up_sync(~0u, sum, by);
            if (lane >= by) sum += other;
        }
        const int64_t here = r->before[place[warp]] + sum - low - high, wanted = rank[warp];
        __syncwarp();
        if (here <= wanted && wanted < here + low)
            place[warp] = i, ahead[warp] = here;
        else if (here + low <= wanted && wanted < here + low + high)
            place[warp] = i + 1, ahead[warp] = here + low;
    }
    __syncthreads();
    if (threadIdx.x < (unsigned)n && place[threadIdx.x] < 0) place[threadIdx.x] = 0;
    __syncthreads();
}

__global__ void __launch_bounds__(THREADS) find_upper(ranking r)
{
    __shared__ run_sums sums;
    __shared__ int64_t place[FO_RANKS], ahead[FO_RANKS];
    const int64_t s = blockIdx.x;
    const int64_t *counts = r.counts + s * r.step[0];
    int64_t rank[FO_RANKS];
    double share[2];
    sum_runs(counts, r.bins, &sums);
    fo_ranks(sum_all(&sums), r.attr.low, r.attr.high, rank, share);
    find_ranks(counts, r.bins, &sums, rank, FO_RANKS, place, ahead);
    if (threadIdx.x < FO_RANKS) r.halves[s * r.halves_step + threadIdx.x] = place[threadIdx.x];
}

__global__ void __launch_bounds__(THREADS) find_range(ranking r)
{
    __shared__ run_sums sums;
    __shared__ int64_t place[PLACES], ahead[PLACES], lower[1], before[1], top;
    __shared__ double value[FO_RANKS];
    const int64_t s = blockIdx.x;
    const int64_t *counts = r.counts + s * r.step[0];
    const int t = (int)threadIdx.x;
    int64_t rank[PLACES];
    double share[2];
    if (t == 0) top = 0;
    sum_runs(counts, r.bins, &sums);
    const int64_t n = sum_all(&sums);
    fo_ranks(n, r.attr.low, r.attr.high, rank, share);
    rank[FO_RANKS] = 0;
    rank[FO_RANKS + 1] = n - 1;
    find_ranks(counts, r.bins, &sums, rank, PLACES, place, ahead);
    if (t < FO_RANKS) value[t] = (double)place[t];
    if (!r.upper) {
        int64_t some = 0;
        for (int64_t i = r.attr.top + t; i < r.bins; i += THREADS) some += counts[i];
        if (some) atomicAdd((count64 *)&top, (count64)some);
    }
    __syncthreads();
    for (int k = 0; r.upper && k < FO_RANKS; k++) {
        const int64_t *halves = r.lower + s * r.step[2] + (int64_t)k * FO_BINS,
                      wanted = rank[k] - ahead[k];
        sum_runs(halves, FO_BINS, &sums);
        find_ranks(halves, FO_BINS, &sums, &wanted, 1, lower, before);
        if (t == 0) value[k] = fo_float_of(r.upper[s * r.step[1] + k], lower[0]);
        __syncthreads();
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
