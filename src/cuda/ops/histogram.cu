/* histogram.cu - counts of the elements along an axis in equal bins of [lo, hi).
 *
 * Counts are whole numbers, so the order of additions cannot be seen. A block has a piece of a line
 * and counts it in shared memory where the bins fit there and the piece is long; otherwise every
 * element adds one where it belongs.
 */
#include "base/assert.h"
#include "cuda/device/device.h"
#include "cuda/walk/lines.cuh"

extern "C" {
#include "ops/ops.h"
}

/* Bins that fit in 16 KiB of shared memory, which leaves room for many resident blocks. */
enum { THREADS = 256, SHARED_BINS = 4096 };
/* Elements per block of threads: four times SHARED_BINS, so that clearing and adding the bins is a
 * small part of its work. */
static constexpr int64_t PIECE = 1 << 14;

typedef struct args {
    fth__dev_lines l;
    double lo, hi, scale;
    int64_t bins, pieces;
    bool shared;
} args;

typedef unsigned long long count64;

static __global__ void clear(const args a)
{
    const int64_t n = a.l.line.count * a.bins;
    for (int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x; k < n;
         k += (int64_t)gridDim.x * THREADS) {
        const int64_t line = (int64_t)fth__walk_div((uint64_t)k, (uint64_t)a.bins);
        ((int64_t *)(a.l.out + fth__walk_at(a.l.line, line).at[1]))[k - line * a.bins] = 0;
    }
}

/* -1: outside, or NaN. */
template <int T> static __device__ inline int64_t bin_of(const args &a, const char *p)
{
    const double x = (double)fth__elem<T>::get(*(const typename fth__elem<T>::type *)p);
    if (!(x >= a.lo && x < a.hi)) return -1;
    const int64_t bin =
        (int64_t)((x - a.lo) * a.scale); /* may round up to the end for x below hi */
    return bin < a.bins ? bin : a.bins - 1;
}

/* A block has a piece of a line. */
template <int T> static __global__ void count_pieces(const args a)
{
    __shared__ unsigned counts[SHARED_BINS];
    const int64_t line = (int64_t)fth__walk_div(blockIdx.x, (uint64_t)a.pieces);
    const int64_t lo = ((int64_t)blockIdx.x - line * a.pieces) * PIECE;
    const int64_t hi = lo + PIECE < a.l.n ? lo + PIECE : a.l.n;
    const fth__place p = fth__walk_at(a.l.line, line);
    for (int64_t b = threadIdx.x; b < a.bins; b += THREADS) counts[b] = 0;
    __syncthreads();
    for (int64_t i = lo + threadIdx.x; i < hi; i += THREADS) {
        const int64_t bin = bin_of<T>(a, a.l.in + p.at[0] + i * a.l.step);
        if (bin >= 0) atomicAdd(&counts[bin], 1u);
    }
    __syncthreads();
    count64 *out = (count64 *)(a.l.out + p.at[1]);
    for (int64_t b = threadIdx.x; b < a.bins; b += THREADS)
        if (counts[b]) atomicAdd(&out[b], (count64)counts[b]);
}

template <int T> static __global__ void count_each(const args a)
{
    const int64_t n = a.l.line.count * a.l.n, by = a.l.near ? a.l.n : a.l.line.count;
    for (int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x; k < n;
         k += (int64_t)gridDim.x * THREADS) {
        const int64_t q = (int64_t)fth__walk_div((uint64_t)k, (uint64_t)by), r = k - q * by;
        const fth__place p = fth__walk_at(a.l.line, a.l.near ? q : r);
        const int64_t bin = bin_of<T>(a, a.l.in + p.at[0] + (a.l.near ? r : q) * a.l.step);
        if (bin >= 0) atomicAdd((count64 *)(a.l.out + p.at[1]) + bin, (count64)1);
    }
}

template <int T> static void run_as(const args &a, cudaStream_t stream)
{
    if (a.shared)
        FTH_LAUNCH(count_pieces<T>, (unsigned)(a.l.line.count * a.pieces), THREADS, stream, a);
    else
        FTH_LAUNCH(count_each<T>, fth_cuda_blocks(a.l.line.count * a.l.n, THREADS), THREADS, stream,
                   a);
}

static fth_status run(const fth_call *call)
{
    const fth_node *node = call->node;
    const fth__histogram_attr *attr = (const fth__histogram_attr *)node->attr;
    const cudaStream_t stream = fth_cuda_stream(call);
    args a = {};
    fth__dev_lines_init(&a.l, call, fth_desc_find(&node->in[0], attr->axis), false);
    a.lo = attr->lo;
    a.hi = attr->hi;
    a.bins = call->out[0].extent[node->out[0].n_axes - 1];
    a.scale = (double)a.bins / (attr->hi - attr->lo);
    a.pieces = (a.l.n + PIECE - 1) / PIECE;
    a.shared = a.bins <= SHARED_BINS && a.bins * 4 <= a.l.n && a.l.near &&
               a.l.line.count * a.pieces <= INT32_MAX;
    FTH_ASSERT(attr->lo < attr->hi); /* infer refuses others */
    if (a.bins == 0 || a.l.line.count == 0) return FTH_OK;
    if (call->first)
        FTH_LAUNCH(clear, fth_cuda_blocks(a.l.line.count * a.bins, THREADS), THREADS, stream, a);
    switch (a.l.n > 0 ? node->in[0].dtype : FTH_DTYPE_COUNT) {
        FTH__CASE(U8, run_as, a, stream)
        FTH__CASE(U16, run_as, a, stream)
        FTH__CASE(I32, run_as, a, stream)
        FTH__CASE(I64, run_as, a, stream)
        FTH__CASE(U32, run_as, a, stream)
        FTH__CASE(I16, run_as, a, stream)
        FTH__CASE(I8, run_as, a, stream)
        FTH__CASE_REAL(run_as, a, stream)
    default: break;
    }
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

FTH_CUDA_KERNEL(histogram) = {.op = "histogram", .run = run};
