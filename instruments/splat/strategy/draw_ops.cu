/* draw_ops.cu - draws of MCMC on a device.
 *
 * Opacities of a block of 1024 rows are made by its threads and added by one of them, in order, and
 * the sums of blocks likewise, so they are those of the host but for the last digits of exp. A warp
 * then walks through the block of its draw. How often a row was drawn is counted in whole numbers,
 * which any order gives.
 */
#include <fathom/cuda.h>
#include <fathom/fathom.h>

#include <math.h>

#define GS_BOTH __host__ __device__

namespace
{
#include "activate.h"
#include "draw_ops.h"

enum { THREADS = 256, WORD = 32, BLOCK = 1024, WORDS = BLOCK / WORD };

struct urn {
    const float *opacity;
    const uint32_t *word; /* of rows that are not drawn; NULL: none */
    const int64_t *before;
    int64_t n, draws, blocks, words, rows; /* rows: there may be more than can be drawn */
    double *after;                         /* sums of blocks, then up to the end of each */
    uint32_t *count;                       /* [n]: how often a row was drawn */
    int64_t *from, *to;
    uint8_t *times;
    uint32_t *fresh;
    uint64_t seed;
    uint32_t iteration, stream;
    bool clears; /* moments of dead rows begin anew, too */
};

__device__ inline bool is_dead(const urn &u, int64_t row)
{
    return u.word && u.word[row / WORD] >> row % WORD & 1;
}

__device__ inline double weight(const urn &u, int64_t row)
{
    return row < u.n && !is_dead(u, row) ? gs_sigmoid((double)u.opacity[row]) : 0;
}

__global__ void __launch_bounds__(THREADS) add_blocks(const urn u)
{
    __shared__ double w[BLOCK];
    const int64_t first = (int64_t)blockIdx.x * BLOCK;
    for (int k = (int)threadIdx.x; k < BLOCK; k += THREADS) w[k] = weight(u, first + k);
    __syncthreads();
    if (threadIdx.x > 0) return;
    double sum = 0;
    for (int k = 0; k < BLOCK; k++) sum += w[k];
    u.after[blockIdx.x] = sum;
}

/* One block of threads. */
__global__ void __launch_bounds__(THREADS) join_blocks(const urn u)
{
    __shared__ double s[THREADS];
    double total = 0;
    for (int64_t first = 0; first < u.blocks; first += THREADS) {
        const int64_t mine = first + threadIdx.x;
        s[threadIdx.x] = mine < u.blocks ? u.after[mine] : 0;
        __syncthreads();
        for (int k = 0; k < THREADS && threadIdx.x == 0; k++) s[k] = total += s[k];
        __syncthreads();
        if (mine < u.blocks) u.after[mine] = s[threadIdx.x];
        __syncthreads();
    }
}

/* The number of fth_random_uniform_at. */
__device__ inline double uniform_at(const urn &u, uint64_t index)
{
    uint32_t a = (uint32_t)index, b = (uint32_t)(index >> 32), c = u.iteration, d = u.stream,
             k0 = (uint32_t)u.seed, k1 = (uint32_t)(u.seed >> 32);
    for (int round = 0; round < 10; round++) {
        const uint64_t p = (uint64_t)a * 0xD2511F53u, q = (uint64_t)c * 0xCD9E8D57u;
        a = (uint32_t)(q >> 32) ^ b ^ k0;
        b = (uint32_t)q;
        c = (uint32_t)(p >> 32) ^ d ^ k1;
        d = (uint32_t)p;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return ((double)(b >> 6) * 134217728.0 + (double)(a >> 5)) * 0x1p-53;
}

/* The first block that ends above the value; the last one, should rounding leave none. */
__device__ inline int64_t find_block(const urn &u, double value)
{
    int64_t low = 0, high = u.blocks - 1;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (u.after[middle] > value)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* By all lanes of a warp, which add the same numbers in the same order. */
__device__ inline int64_t find_row(const urn &u, double value)
{
    const int lane = (int)(threadIdx.x % WORD);
    const int64_t b = find_block(u, value), first = b * BLOCK;
    const double before = b > 0 ? u.after[b - 1] : 0;
    double sum = 0;
    int64_t last = -1; /* that can be drawn */
    for (int64_t from = first; from < first + BLOCK && from < u.n; from += WORD) {
        const double mine = weight(u, from + lane);
        for (int k = 0; k < WORD; k++) {
            const double w = __shfl_sync(0xffffffffu, mine, k);
            sum += w;
            if (w > 0) last = from + k;
            if (before + sum > value && from + k < u.n) return from + k;
        }
    }
    return last >= 0 ? last : first;
}

__global__ void __launch_bounds__(THREADS) draw(const urn u)
{
    const int64_t warps = (int64_t)gridDim.x * THREADS / WORD;
    const double total = u.after[u.blocks - 1];
    for (int64_t j = ((int64_t)blockIdx.x * THREADS + threadIdx.x) / WORD; j < u.draws;
         j += warps) {
        const int64_t row = find_row(u, total * uniform_at(u, (uint64_t)j));
        if (threadIdx.x % WORD > 0) continue;
        u.from[j] = row;
        if (!u.word) u.to[j] = u.n + j;
        atomicAdd(&u.count[row], 1u);
    }
}

/* Dead rows in their order take the copies. */
__global__ void __launch_bounds__(THREADS) list_dead(const urn u)
{
    const int64_t step = (int64_t)gridDim.x * THREADS;
    for (int64_t row = (int64_t)blockIdx.x * THREADS + threadIdx.x; row < u.n; row += step) {
        if (!is_dead(u, row)) continue;
        int64_t rank = u.before[row / BLOCK];
        for (int64_t w = row / BLOCK * WORDS; w < row / WORD; w++) rank += __popc(u.word[w]);
        rank += __popc(u.word[row / WORD] & ((1u << row % WORD) - 1));
        if (rank < u.draws) u.to[rank] = row;
    }
}

/* A warp has a word of marks. */
__global__ void __launch_bounds__(THREADS) tell_rows(const urn u)
{
    const int lane = (int)(threadIdx.x % WORD);
    const int64_t warps = (int64_t)gridDim.x * THREADS / WORD;
    for (int64_t w = ((int64_t)blockIdx.x * THREADS + threadIdx.x) / WORD; w < u.words;
         w += warps) {
        const int64_t row = w * WORD + lane;
        const uint32_t count = row < u.n ? u.count[row] : 0;
        const bool anew = count > 0 || (u.clears && row < u.n && is_dead(u, row));
        const uint32_t bits = __ballot_sync(0xffffffffu, anew);
        if (lane == 0) u.fresh[w] = bits;
        if (row < u.rows) u.times[row] = (uint8_t)(count < 255 ? count : 255);
    }
}

/* ---- calls ---- */

uint64_t sums_bytes(int64_t n)
{
    return ((uint64_t)(n + BLOCK - 1) / BLOCK * sizeof(double) + 63) / 64 * 64;
}

uint64_t scratch(const fth_call *call)
{
    const int64_t n = ((const gs_drawing *)call->node->attr)->n;
    return sums_bytes(n) + (uint64_t)n * sizeof(uint32_t);
}

fth_status run(const fth_call *call)
{
    const gs_drawing *a = (const gs_drawing *)call->node->attr;
    const cudaStream_t stream = fth_cuda_stream(call);
    urn u = {};
    u.opacity = (const float *)call->in[GS_DRAW_OPACITY].data;
    if (call->node->n_in == GS_DRAW_INPUTS) {
        u.word = (const uint32_t *)call->in[GS_DRAW_WORDS].data;
        u.before = (const int64_t *)call->in[GS_DRAW_BEFORE].data;
        u.clears = !a->keep_dead_moments;
    }
    u.n = a->n;
    u.rows = call->in[GS_DRAW_OPACITY].extent[0];
    u.draws = call->out[GS_DRAW_FROM].extent[0];
    u.blocks = (a->n + BLOCK - 1) / BLOCK;
    u.words = call->out[GS_DRAW_FRESH].extent[0];
    u.after = (double *)call->scratch;
    u.count = (uint32_t *)((char *)call->scratch + sums_bytes(a->n));
    u.from = (int64_t *)call->out[GS_DRAW_FROM].data;
    u.to = (int64_t *)call->out[GS_DRAW_TO].data;
    u.times = (uint8_t *)call->out[GS_DRAW_TIMES].data;
    u.fresh = (uint32_t *)call->out[GS_DRAW_FRESH].data;
    u.seed = (uint64_t)a->seed;
    u.iteration = (uint32_t)a->iteration;
    u.stream = (uint32_t)a->stream;
    if (u.n == 0 || u.draws == 0) return FTH_OK;
    FTH_CUDA_TRY(cudaMemsetAsync(u.count, 0, (size_t)u.n * sizeof *u.count, stream),
                 "clearing counts", call->err);
    FTH_LAUNCH(add_blocks, (unsigned)u.blocks, THREADS, stream, u);
    FTH_LAUNCH(join_blocks, 1, THREADS, stream, u);
    FTH_LAUNCH(draw, fth_cuda_blocks(u.draws * WORD, THREADS), THREADS, stream, u);
    if (u.word) FTH_LAUNCH(list_dead, fth_cuda_blocks(u.n, THREADS), THREADS, stream, u);
    FTH_LAUNCH(tell_rows, fth_cuda_blocks(u.words * WORD, THREADS), THREADS, stream, u);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}
} // namespace

FTH_CUDA_KERNEL(splat_draw) = {.op = "splat_draw", .scratch = scratch, .run = run};
