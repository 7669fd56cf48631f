/* argreduce.cu - position of the largest or smallest element along an axis.
 *
 * Order cannot change the answer: of two candidates the better wins, of equals the first. Lines are
 * cut into as many pieces as fill the device; the pieces' best meet in a second launch. Along an
 * innermost axis a warp has a piece, elsewhere a thread.
 */
#include "base/assert.h"
#include "cuda/device/device.h"
#include "cuda/walk/lines.cuh"

extern "C" {
#include "ops/ops.h"
}

enum {
    THREADS = 256,
    AHEAD = 4, /* loads in flight per lane: one at a time left the memory idle (H200) */
};
/* Threads that occupy the device: half of the 2048 that each of 132 multiprocessors holds. */
static constexpr int64_t FILL = 132 * 1024;

template <typename W> struct best {
    W value;
    int64_t where; /* global index; -1: nothing yet */
};

template <typename W> struct args {
    fth__dev_lines l;
    best<W> *parts;
    int64_t pieces, piece; /* of a line; elements of one */
    int lanes;             /* threads of a piece: 32 or 1 */
    bool largest, first, last;
};

static __device__ inline bool is_nan(double x)
{
    return x != x;
}
static __device__ inline bool is_nan(int64_t)
{
    return false;
}

/* Is x to be preferred to y, wherever they stand? */
template <typename W> static __device__ inline bool better(W x, W y, bool largest)
{
    return (largest ? x > y : x < y) || (is_nan(x) && !is_nan(y));
}

template <typename W> static __device__ inline best<W> best_of(best<W> a, best<W> b, bool largest)
{
    if (a.where < 0) return b;
    if (b.where < 0 || better(a.value, b.value, largest)) return a;
    if (better(b.value, a.value, largest)) return b;
    return b.where < a.where ? b : a;
}

template <typename W>
static __device__ inline best<W> best_of_lanes(best<W> b, int lanes, bool largest)
{
    for (int d = 1; d < lanes; d *= 2) {
        const best<W> other = {__shfl_xor_sync(~0u, b.value, d), __shfl_xor_sync(~0u, b.where, d)};
        b = best_of(b, other, largest);
    }
    return b;
}

template <typename W> static __device__ void finish(const args<W> &a, fth__place p, best<W> b)
{
    int64_t *out = (int64_t *)(a.l.out + p.at[1]);
    W *state = (W *)(a.l.state + p.at[2]);
    if (!a.first) b = best_of(best<W>{*state, *out}, b, a.largest);
    *out = b.where;
    if (!a.last) *state = b.value;
}

template <int T, typename W> static __global__ void search(const args<W> a)
{
    typedef typename fth__elem<T>::type type;
    const int64_t k = ((int64_t)blockIdx.x * THREADS + threadIdx.x) / a.lanes;
    const int lane = (int)threadIdx.x & (a.lanes - 1);
    if (k >= a.l.line.count * a.pieces) return; /* whole warps where lanes share a piece */
    const int64_t by = a.lanes == 1 ? a.l.line.count : a.pieces;
    const int64_t q = (int64_t)fth__walk_div((uint64_t)k, (uint64_t)by), r = k - q * by;
    const int64_t line = a.lanes == 1 ? r : q, piece = a.lanes == 1 ? q : r;
    const fth__place p = fth__walk_at(a.l.line, line);
    const int64_t lo = piece * a.piece;
    const int64_t hi = lo + a.piece < a.l.n ? lo + a.piece : a.l.n;
    const char *in = a.l.in + p.at[0];
    best<W> b = {0, -1};
    for (int64_t i = lo + lane; i < hi; i += AHEAD * a.lanes) {
        W x[AHEAD];
#pragma unroll
        for (int j = 0; j < AHEAD; j++)
            if (i + j * a.lanes < hi)
                x[j] = fth__elem<T>::get(*(const type *)(in + (i + j * a.lanes) * a.l.step));
#pragma unroll
        for (int j = 0; j < AHEAD; j++)
            if (i + j * a.lanes < hi && (b.where < 0 || better(x[j], b.value, a.largest)))
                b = best<W>{x[j], a.l.lo + i + j * a.lanes};
    }
    b = best_of_lanes(b, a.lanes, a.largest);
    if (lane > 0) return;
    if (a.pieces > 1)
        a.parts[piece * a.l.line.count + line] = b;
    else
        finish(a, p, b);
}

/* A warp has a line. */
template <typename W> static __global__ void meet(const args<W> a)
{
    const int64_t line = ((int64_t)blockIdx.x * THREADS + threadIdx.x) / 32;
    const int lane = (int)threadIdx.x & 31;
    if (line >= a.l.line.count) return;
    best<W> b = {0, -1};
    for (int64_t i = lane; i < a.pieces; i += 32)
        b = best_of(b, a.parts[i * a.l.line.count + line], a.largest);
    b = best_of_lanes(b, 32, a.largest);
    if (lane == 0) finish(a, fth__walk_at(a.l.line, line), b);
}

static int dim_of(const fth_node *node)
{
    return fth_desc_find(&node->in[0], ((const fth__axis_attr *)node->attr)->axis);
}

/* An innermost axis of some length is shared by a warp. */
static int lanes_of(const fth_node *node, int dim, int64_t n)
{
    return dim == node->in[0].n_axes - 1 && n >= 16 ? 32 : 1;
}

static int64_t pieces_of(const fth_call *call, int dim, int lanes)
{
    const int64_t lines = fth_cuda_count(&call->node->out[0], &call->out[0]);
    return fth__dev_pieces(lines, call->in[0].extent[dim], FILL / lanes, lanes == 1 ? 64 : 2048);
}

static uint64_t scratch(const fth_call *call)
{
    const int dim = dim_of(call->node), lanes = lanes_of(call->node, dim, call->in[0].extent[dim]);
    const int64_t pieces = pieces_of(call, dim, lanes);
    if (pieces == 1) return 0;
    return (uint64_t)(pieces * fth_cuda_count(&call->node->out[0], &call->out[0])) *
           sizeof(best<double>);
}

template <int T> static void run_as(const fth_call *call)
{
    typedef typename fth__elem<T>::wide wide;
    const int dim = dim_of(call->node);
    args<wide> a = {};
    fth__dev_lines_init(&a.l, call, dim, false);
    if (a.l.line.count == 0) return;
    a.lanes = lanes_of(call->node, dim, a.l.n);
    a.pieces = pieces_of(call, dim, a.lanes);
    a.piece = (a.l.n + a.pieces - 1) / a.pieces;
    a.parts = (best<wide> *)call->scratch;
    a.largest = ((const fth__axis_attr *)call->node->attr)->flag != 0;
    a.first = call->first;
    a.last = call->last;
    FTH_ASSERT(a.pieces >= 1 && a.piece * a.pieces >= a.l.n);
    FTH_ASSERT(a.pieces == 1 ||
               (uint64_t)(a.pieces * a.l.line.count) * sizeof(best<wide>) <= scratch(call));
    const int64_t threads = a.l.line.count * a.pieces * a.lanes;
    const cudaStream_t stream = fth_cuda_stream(call);
    FTH_LAUNCH((search<T, wide>), (unsigned)((threads + THREADS - 1) / THREADS), THREADS, stream,
               a);
    if (a.pieces > 1)
        FTH_LAUNCH(meet<wide>, (unsigned)((a.l.line.count * 32 + THREADS - 1) / THREADS), THREADS,
                   stream, a);
}

static fth_status run(const fth_call *call)
{
    switch (call->node->in[0].dtype) {
        FTH__CASE_INT(run_as, call)
        FTH__CASE_REAL(run_as, call)
    default: break;
    }
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

FTH_CUDA_KERNEL(argreduce) = {.op = "argreduce", .scratch = scratch, .run = run};
