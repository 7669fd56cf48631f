/* scan.cu - running sum, product, minimum or maximum along an axis.
 *
 * The blocks of the reference (ops/scan.c) give the order. Many lines: a thread has a line and does
 * what the loop does. Few lines: a thread has a block; every block is folded, what came before each
 * is put together line by line, and the blocks run again with it. Neighbours along an innermost
 * axis go through squares in shared memory, so that memory is read and written in whole lines.
 */
#include "base/assert.h"
#include "cuda/device/device.h"
#include "cuda/walk/lines.cuh"

extern "C" {
#include "graph/grid.h"
#include "ops/ops.h"
#include "ops/scalar.h"
}

enum {
    WARPS = 2, /* each has a square of 32 by 32 in shared memory, 16 KiB for complex numbers */
    THREADS = WARPS * 32,
    FAR_THREADS = 128,
    LONG = 64, /* blocks of a line that are fetched at once, while one warp adds in order */
    LONG_THREADS = 128, /* that warp, and three that fetch */
};
/* Lines that occupy the card with a thread each, so that none is cut. */
static constexpr int64_t MANY_LINES = 1 << 14;

template <typename W> struct args {
    fth__dev_lines l;
    W none;
    W *parts;              /* of each block of each line: its fold, then what came before it */
    int64_t chunk, chunks; /* elements that a thread has; pieces of a line */
    int64_t block;
    int red, from, to;             /* dtypes */
    bool exclusive, reverse, fold; /* fold: only the sum of each chunk is wanted */
    bool first, keep;              /* carry in, carry out */
};

/* Carried pieces start on the grid, so chunks counted from the piece are blocks of the axis. */
static int64_t chunk_of(const fth_call *call, int dim, int64_t lines)
{
    const int64_t n = call->out[0].extent[dim];
    return lines >= MANY_LINES ? n : fth__grid_reduce(call->node->in[0].size[dim]);
}

static int dim_of(const fth_node *node)
{
    return fth_desc_find(&node->in[0], ((const fth__scan_attr *)node->attr)->axis);
}

static int64_t lines_of(const fth_call *call, int dim)
{
    int64_t lines = 1;
    for (int i = 0; i < call->node->out[0].n_axes; i++)
        if (i != dim) lines *= call->out[0].extent[i];
    return lines;
}

static uint64_t scratch(const fth_call *call)
{
    const int dim = dim_of(call->node);
    const int64_t n = call->out[0].extent[dim], lines = lines_of(call, dim);
    const int64_t chunk = chunk_of(call, dim, lines);
    if (n <= chunk) return 0;
    return (uint64_t)(lines * ((n + chunk - 1) / chunk)) *
           (fth_dtype_is_complex(call->node->in[0].dtype) ? sizeof(fth_c128) : sizeof(double));
}

static __device__ inline double put_together(int red, double a, double x)
{
    switch (red) {
    case FTH_RED_SUM: return a + x;
    case FTH_RED_PROD: return a * x;
    default: break;
    }
    if (a != a || x != x) return a != a ? a : x;
    return (red == FTH_RED_MIN ? x < a : x > a) ? x : a;
}
static __device__ inline int64_t put_together(int red, int64_t a, int64_t x)
{
    switch (red) {
    case FTH_RED_SUM: return (int64_t)((uint64_t)a + (uint64_t)x);
    case FTH_RED_PROD: return (int64_t)((uint64_t)a * (uint64_t)x);
    default: return (red == FTH_RED_MIN ? x < a : x > a) ? x : a;
    }
}
static __device__ inline fth_c128 put_together(int red, fth_c128 a, fth_c128 x)
{
    if (red == FTH_RED_SUM) return fth_c128{a.re + x.re, a.im + x.im};
    return fth_c128{a.re * x.re - a.im * x.im, a.re * x.im + a.im * x.re};
}

/* What one thread works on: a chunk of a line, walked from its first element in the scan's order.
 */
template <typename W> struct work {
    const char *in;
    char *out;
    int64_t n, at; /* elements; index of the next one in the piece */
    W before, inside;
    W *part;
    char *state;
    bool any;
};

template <typename W> static __device__ work<W> begin(const args<W> &a, int64_t line, int64_t chunk)
{
    const fth__place p = fth__walk_at(a.l.line, line);
    const int64_t nth = a.reverse ? a.chunks - 1 - chunk : chunk;
    const int64_t lo = nth * a.chunk;
    work<W> w;
    w.n = a.l.n - lo < a.chunk ? a.l.n - lo : a.chunk;
    w.at = a.reverse ? lo + w.n - 1 : lo;
    w.in = a.l.in + p.at[0] + w.at * a.l.step;
    w.out = a.l.out + p.at[1] + w.at * a.l.out_step;
    w.state = a.l.state + p.at[2];
    w.part = a.parts + line * a.chunks + chunk;
    w.before = w.inside = a.none;
    w.any = false;
    if (a.chunks > 1) {
        if (!a.fold) w.before = *w.part;
    } else if (!a.first) {
        w.before = *(const W *)w.state;
    }
    return w;
}

template <typename W> static __device__ inline W next(const args<W> &a, work<W> *w, W x)
{
    if (w->any && (w->at & (a.block - 1)) == (a.reverse ? a.block - 1 : 0)) {
        w->before = put_together(a.red, w->before, w->inside);
        w->inside = a.none;
    }
    w->any = true;
    w->at += a.reverse ? -1 : 1;
    const W last = w->inside;
    w->inside = put_together(a.red, last, x);
    return put_together(a.red, w->before, a.exclusive ? last : w->inside);
}

template <typename W> static __device__ void end(const args<W> &a, const work<W> *w)
{
    if (a.fold)
        *w->part = w->inside;
    else if (a.chunks == 1 && a.keep)
        *(W *)w->state = w->any ? put_together(a.red, w->before, w->inside) : w->before;
}

/* Neighbouring threads have neighbouring lines. */
template <typename W> static __global__ void far_lines(const args<W> a)
{
    const int64_t items = a.l.line.count * a.chunks;
    const int64_t step = a.reverse ? -a.l.step : a.l.step,
                  out_step = a.reverse ? -a.l.out_step : a.l.out_step;
    for (int64_t k = (int64_t)blockIdx.x * FAR_THREADS + threadIdx.x; k < items;
         k += (int64_t)gridDim.x * FAR_THREADS) {
        const int64_t chunk = (int64_t)fth__walk_div((uint64_t)k, (uint64_t)a.l.line.count);
        work<W> w = begin(a, k - chunk * a.l.line.count, chunk);
        for (int64_t i = 0; i < w.n; i++) {
            W x;
            fth__wide_load(a.from, w.in + i * step, &x);
            x = next(a, &w, x);
            if (!a.fold) fth__wide_store(a.to, w.out + i * out_step, x);
        }
        end(a, &w);
    }
}

/* A warp has 32 chunks and walks through them in squares of 32 by 32. */
template <typename W> static __global__ void near_lines(const args<W> a)
{
    __shared__ W squares[WARPS][32][33];
    W(*square)[33] = squares[threadIdx.x / 32];
    const int lane = (int)threadIdx.x & 31;
    const int64_t items = a.l.line.count * a.chunks;
    const int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    const int64_t line = (int64_t)fth__walk_div((uint64_t)k, (uint64_t)a.chunks);
    work<W> w = {};
    if (k < items) w = begin(a, line, k - line * a.chunks);
    const int64_t longest = a.chunk < a.l.n ? a.chunk : a.l.n;
    for (int64_t c = 0; c < longest; c += 32) {
        for (int r = 0; r < 32; r++) {
            const char *in = (const char *)__shfl_sync(~0u, (uint64_t)w.in, r);
            const int64_t n = __shfl_sync(~0u, w.n, r), i = c + lane;
            if (i < n)
                fth__wide_load(a.from, in + (a.reverse ? -i : i) * a.l.step, &square[r][lane]);
        }
        __syncwarp();
        for (int i = 0; i < 32 && c + i < w.n; i++) square[lane][i] = next(a, &w, square[lane][i]);
        __syncwarp();
        for (int r = 0; !a.fold && r < 32; r++) {
            char *out = (char *)__shfl_sync(~0u, (uint64_t)w.out, r);
            const int64_t n = __shfl_sync(~0u, w.n, r), i = c + lane;
            if (i < n)
                fth__wide_store(a.to, out + (a.reverse ? -i : i) * a.l.out_step, square[r][lane]);
        }
        __syncwarp();
    }
    if (k < items) end(a, &w);
}

/* Folds of a line's blocks to what came before each; a thread has a line. */
template <typename W> static __global__ void put_before(const args<W> a)
{
    const int64_t line = (int64_t)blockIdx.x * FAR_THREADS + threadIdx.x;
    if (line >= a.l.line.count) return;
    char *state = a.l.state + fth__walk_at(a.l.line, line).at[2];
    W before = a.first ? a.none : *(const W *)state;
    W *part = a.parts + line * a.chunks;
    for (int64_t i = 0; i < a.chunks; i += 8) {
        W fold[8];
#pragma unroll
        for (int j = 0; j < 8; j++)
            if (i + j < a.chunks) fold[j] = part[i + j];
#pragma unroll
        for (int j = 0; j < 8; j++)
            if (i + j < a.chunks) {
                part[i + j] = before;
                before = put_together(a.red, before, fold[j]);
            }
    }
    if (a.keep) *(W *)state = before;
}

/* The same for lines of many blocks: a thread block has a line. One warp goes along it, the others
 * bring what it needs next. */
template <typename W> static __global__ void put_before_long(const args<W> a)
{
    __shared__ W folds[2][LONG];
    const int64_t line = blockIdx.x;
    const int lane = (int)threadIdx.x & 31;
    char *state = a.l.state + fth__walk_at(a.l.line, line).at[2];
    W *part = a.parts + line * a.chunks, before = a.none;
    if (!a.first) before = *(const W *)state;
    for (int64_t i = threadIdx.x; i < LONG && i < a.chunks; i += LONG_THREADS)
        folds[0][i] = part[i];
    __syncthreads();
    for (int64_t at = 0; at < a.chunks; at += LONG) {
        const W *now = folds[at / LONG & 1];
        const int64_t next = at + LONG, left = a.chunks - at;
        for (int64_t i = (int64_t)threadIdx.x - 32; i >= 0 && i < LONG && next + i < a.chunks;
             i += LONG_THREADS - 32)
            folds[next / LONG & 1][i] = part[next + i];
        for (int i = 0; threadIdx.x < 32 && i < LONG && i < left; i += 32) {
            W mine = a.none;
            for (int j = 0; j < 32; j++) { /* beyond the end nothing is read again */
                if (lane == j) mine = before;
                if (i + j < left) before = put_together(a.red, before, now[i + j]);
            }
            if (i + lane < left) part[at + i + lane] = mine;
        }
        __syncthreads();
    }
    if (threadIdx.x == 0 && a.keep) *(W *)state = before;
}

template <typename W> static void launch(const args<W> &a, cudaStream_t stream)
{
    const int64_t items = a.l.line.count * a.chunks;
    FTH_ASSERT(a.chunks >= 1 && a.chunk * a.chunks >= a.l.n);
    if (a.l.near)
        FTH_LAUNCH(near_lines<W>, (unsigned)((items + THREADS - 1) / THREADS), THREADS, stream, a);
    else
        FTH_LAUNCH(far_lines<W>, fth_cuda_blocks(items, FAR_THREADS), FAR_THREADS, stream, a);
}

template <typename W> static void run_as(const fth_call *call, W none)
{
    const fth_node *node = call->node;
    const fth__scan_attr *attr = (const fth__scan_attr *)node->attr;
    const int dim = dim_of(node);
    const cudaStream_t stream = fth_cuda_stream(call);
    args<W> a = {};
    fth__dev_lines_init(&a.l, call, dim, true);
    a.none = none;
    a.parts = (W *)call->scratch;
    a.chunk = chunk_of(call, dim, a.l.line.count);
    a.chunks = a.l.n <= a.chunk ? 1 : (a.l.n + a.chunk - 1) / a.chunk;
    a.block = fth__grid_reduce(node->in[0].size[dim]);
    a.red = attr->red;
    a.from = (int)node->in[0].dtype;
    a.to = (int)node->out[0].dtype;
    a.exclusive = attr->exclusive != 0;
    a.reverse = attr->reverse != 0;
    a.first = call->first || a.reverse;
    a.keep = !call->last && !a.reverse;
    FTH_ASSERT(a.chunks == 1 || (uint64_t)(a.l.line.count * a.chunks) * sizeof(W) <= scratch(call));
    if (a.l.line.count == 0) return;
    if (a.chunks > 1) {
        a.fold = true;
        launch(a, stream);
        a.fold = false;
        if (a.chunks > LONG)
            FTH_LAUNCH(put_before_long<W>, (unsigned)a.l.line.count, LONG_THREADS, stream, a);
        else
            FTH_LAUNCH(put_before<W>, (unsigned)((a.l.line.count + FAR_THREADS - 1) / FAR_THREADS),
                       FAR_THREADS, stream, a);
    }
    launch(a, stream);
}

static fth_status run(const fth_call *call)
{
    const fth_dtype t = call->node->in[0].dtype;
    const fth__wide none =
        fth__identity(((const fth__scan_attr *)call->node->attr)->red, call->node->out[0].dtype);
    switch (fth__kind_of(t)) {
    case FTH__KIND_INT: run_as<int64_t>(call, none.i); break;
    case FTH__KIND_REAL: run_as<double>(call, none.f); break;
    case FTH__KIND_COMPLEX: run_as<fth_c128>(call, none.c); break;
    }
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

FTH_CUDA_KERNEL(scan) = {.op = "scan", .scratch = scratch, .run = run};
