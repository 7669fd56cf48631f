/* variance.cu - variance along one axis, divided by n, in the order of the CPU's loop.
 *
 * A thread computes the moments of one block (along an innermost axis 32 of them swap elements in
 * shared memory, so that it is read in whole lines); a warp then joins the blocks of a line in
 * order. The quotients of a join depend on counts alone, so its lanes divide for 32 blocks at once
 * and only short sums are left to the chain. Lines are taken in rounds, so the workspace stays
 * small.
 */
#include "base/assert.h"
#include "cuda/device/device.h"
#include "cuda/walk/lines.cuh"

extern "C" {
#include "ops/reduce.h"
}

enum {
    THREADS = 256, /* of join_long: one warp joins in order, seven prepare its next steps */
    WARPS = 2,     /* with a square of 32 by 32 each in shared memory */
    LONG = 64,     /* steps that are prepared at once */
};
static constexpr int64_t SIDE = 32;       /* of a square: lanes of a warp */
static constexpr int64_t ROUND = 1 << 20; /* blocks at once, one line at least: 16 MiB of scratch */

typedef struct moments {
    double mean, m2;
} moments;

typedef struct args {
    fth__dev_lines l;
    moments *parts;
    int64_t block, blocks;   /* elements of a block; blocks of a line */
    int64_t line_lo, line_n; /* this round's */
    int64_t size;            /* of the whole axis */
    int dtype;
    bool first, last;
} args;

template <int T> static __global__ void of_blocks(const args a)
{
    typedef typename fth__elem<T>::type type;
    const int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (k >= a.line_n * a.blocks) return;
    const int64_t by = a.l.near ? a.blocks : a.line_n;
    const int64_t q = (int64_t)fth__walk_div((uint64_t)k, (uint64_t)by), r = k - q * by;
    const int64_t line = a.l.near ? q : r, block = a.l.near ? r : q;
    const char *in =
        a.l.in + fth__walk_at(a.l.line, a.line_lo + line).at[0] + block * a.block * a.l.step;
    const int64_t left = a.l.n - block * a.block, n = left < a.block ? left : a.block;
    double sum = 0.0, m2 = 0.0;
    for (int64_t i = 0; i < n; i++) sum += fth__elem<T>::get(*(const type *)(in + i * a.l.step));
    const double mean = sum / (double)n;
    for (int64_t i = 0; i < n; i++) {
        const double d = fth__elem<T>::get(*(const type *)(in + i * a.l.step)) - mean;
        m2 += d * d;
    }
    a.parts[line * a.blocks + block] = moments{mean, m2};
}

/* One pass over the blocks of a warp's lanes: f(element) for each of a lane's own, in order. */
template <typename type, class F>
static __device__ inline void each_own(const char *in, int64_t n, int64_t step, int64_t block,
                                       type (*square)[SIDE + 1], F f)
{
    const int lane = (int)threadIdx.x & 31;
    for (int64_t c = 0; c < block; c += SIDE) {
        for (int r = 0; r < SIDE; r++) {
            const char *row = (const char *)__shfl_sync(~0u, (uint64_t)in, r);
            if (c + lane < __shfl_sync(~0u, n, r))
                square[r][lane] = *(const type *)(row + (c + lane) * step);
        }
        __syncwarp();
        for (int i = 0; i < SIDE && c + i < n; i++) f(square[lane][i]);
        __syncwarp();
    }
}

template <int T> static __global__ void of_near_blocks(const args a)
{
    typedef typename fth__elem<T>::type type;
    __shared__ type squares[WARPS][SIDE][SIDE + 1];
    const int64_t k = (int64_t)blockIdx.x * (WARPS * SIDE) + threadIdx.x;
    const int64_t line = (int64_t)fth__walk_div((uint64_t)k, (uint64_t)a.blocks);
    const int64_t block = k - line * a.blocks, left = a.l.n - block * a.block;
    const char *in = NULL;
    int64_t n = 0;
    if (k < a.line_n * a.blocks) {
        n = left < a.block ? left : a.block;
        in = a.l.in + fth__walk_at(a.l.line, a.line_lo + line).at[0] + block * a.block * a.l.step;
    }
    type(*square)[SIDE + 1] = squares[threadIdx.x / 32];
    double sum = 0.0, m2 = 0.0;
    each_own<type>(in, n, a.l.step, a.block, square, [&](type x) { sum += fth__elem<T>::get(x); });
    const double mean = sum / (double)n;
    each_own<type>(in, n, a.l.step, a.block, square, [&](type x) {
        const double d = fth__elem<T>::get(x) - mean;
        m2 += d * d;
    });
    if (n > 0) a.parts[line * a.blocks + block] = moments{mean, m2};
}

static __global__ void join(const args a)
{
    const int lane = (int)threadIdx.x & 31;
    const int64_t line = ((int64_t)blockIdx.x * THREADS + threadIdx.x) / 32;
    if (line >= a.line_n) return;
    const fth__place p = fth__walk_at(a.l.line, a.line_lo + line);
    moments s = {0.0, 0.0};
    if (!a.first) s = *(const moments *)(a.l.state + p.at[2]);
    for (int64_t at = 0; at < a.blocks; at += 32) {
        const int64_t b = at + lane, left = a.l.n - b * a.block;
        moments part = {0.0, 0.0};
        if (b < a.blocks) part = a.parts[line * a.blocks + b];
        /* n elements before the block, m in it */
        const double n = (double)(a.l.lo + b * a.block),
                     m = (double)(left < a.block ? left : a.block);
        const double all = n + m, share = m / all, weight = n * m / all;
        for (int i = 0; i < 32 && at + i < a.blocks; i++) {
            const moments x = {__shfl_sync(~0u, part.mean, i), __shfl_sync(~0u, part.m2, i)};
            const double by = __shfl_sync(~0u, share, i), of = __shfl_sync(~0u, weight, i);
            const double d = x.mean - s.mean;
            const bool none = a.l.lo + at + i == 0;
            s = none ? x : moments{s.mean + d * by, s.m2 + x.m2 + d * d * of};
        }
    }
    if (lane > 0) return;
    if (a.last)
        fth__wide_store(a.dtype, a.l.out + p.at[1], s.m2 / (double)a.size);
    else
        *(moments *)(a.l.state + p.at[2]) = s;
}

/* One step of a join, and what it takes from the counts alone. */
typedef struct step {
    double mean, m2, share, weight;
} step;

static __device__ inline step step_of(const args &a, int64_t line, int64_t b)
{
    const int64_t left = a.l.n - b * a.block;
    const moments part = a.parts[line * a.blocks + b];
    const double n = (double)(a.l.lo + b * a.block), m = (double)(left < a.block ? left : a.block);
    const double all = n + m;
    return step{part.mean, part.m2, m / all, n * m / all};
}

/* The same for lines of many blocks: a thread block has a line. One warp goes along it, the others
 * prepare its next steps. */
static __global__ void join_long(const args a)
{
    __shared__ step steps[2][LONG];
    const int64_t line = blockIdx.x;
    const fth__place p = fth__walk_at(a.l.line, a.line_lo + line);
    moments s = {0.0, 0.0};
    if (!a.first) s = *(const moments *)(a.l.state + p.at[2]);
    for (int64_t i = threadIdx.x; i < LONG && i < a.blocks; i += THREADS)
        steps[0][i] = step_of(a, line, i);
    __syncthreads();
    for (int64_t at = 0; at < a.blocks; at += LONG) {
        const step *now = steps[at / LONG & 1];
        const int64_t next = at + LONG;
        for (int64_t i = (int64_t)threadIdx.x - 32; i >= 0 && i < LONG && next + i < a.blocks;
             i += THREADS - 32)
            steps[next / LONG & 1][i] = step_of(a, line, next + i);
        for (int i = 0; threadIdx.x < 32 && i < LONG && at + i < a.blocks; i++) {
            const step x = now[i];
            const double d = x.mean - s.mean;
            const bool none = a.l.lo + at + i == 0;
            s = none ? moments{x.mean, x.m2}
                     : moments{s.mean + d * x.share, s.m2 + x.m2 + d * d * x.weight};
        }
        __syncthreads();
    }
    if (threadIdx.x > 0) return;
    if (a.last)
        fth__wide_store(a.dtype, a.l.out + p.at[1], s.m2 / (double)a.size);
    else
        *(moments *)(a.l.state + p.at[2]) = s;
}

static int64_t block_of(const fth_node *node)
{
    return fth__reduce_block(node->in[0].size[fth__reduce_dim(node)]);
}

static int64_t blocks_of(const fth_call *call)
{
    const int64_t per = block_of(call->node);
    return (call->in[0].extent[fth__reduce_dim(call->node)] + per - 1) / per;
}

static int64_t lines_at_once(const fth_call *call)
{
    const int64_t lines = fth_cuda_count(&call->node->out[0], &call->out[0]);
    const int64_t blocks = blocks_of(call), most = blocks < ROUND ? ROUND / (blocks + 1) + 1 : 1;
    return lines < most ? lines : most;
}

static uint64_t scratch(const fth_call *call)
{
    return (uint64_t)(lines_at_once(call) * blocks_of(call)) * sizeof(moments);
}

template <int T> static void run_as(const args &a, cudaStream_t stream)
{
    const int64_t items = a.line_n * a.blocks, each = WARPS * SIDE;
    if (items == 0) return;
    if (a.l.near && a.block >= SIDE)
        FTH_LAUNCH(of_near_blocks<T>, (unsigned)((items + each - 1) / each), (unsigned)each, stream,
                   a);
    else
        FTH_LAUNCH(of_blocks<T>, (unsigned)((items + THREADS - 1) / THREADS), THREADS, stream, a);
}

static fth_status run(const fth_call *call)
{
    const fth_node *node = call->node;
    const cudaStream_t stream = fth_cuda_stream(call);
    const int dim = fth__reduce_dim(node);
    args a = {};
    fth__dev_lines_init(&a.l, call, dim, false);
    a.parts = (moments *)call->scratch;
    a.block = block_of(node);
    a.blocks = blocks_of(call);
    a.size = node->in[0].size[dim];
    a.dtype = (int)node->in[0].dtype;
    a.first = call->first;
    a.last = call->last;
    const int64_t round = lines_at_once(call);
    for (a.line_lo = 0; a.line_lo < a.l.line.count; a.line_lo += round) {
        const int64_t left = a.l.line.count - a.line_lo;
        a.line_n = left < round ? left : round;
        FTH_ASSERT((uint64_t)(a.line_n * a.blocks) * sizeof(moments) <= scratch(call));
        switch (node->in[0].dtype) {
            FTH__CASE_REAL(run_as, a, stream)
        default: break;
        }
        if (a.blocks > LONG)
            FTH_LAUNCH(join_long, (unsigned)a.line_n, THREADS, stream, a);
        else
            FTH_LAUNCH(join, (unsigned)((a.line_n * 32 + THREADS - 1) / THREADS), THREADS, stream,
                       a);
    }
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

FTH_CUDA_KERNEL(variance) = {.op = "variance", .scratch = scratch, .run = run};
