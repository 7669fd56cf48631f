/* logsumexp.cu - reduce's logsumexp: log of a sum of exponentials that cannot overflow.
 *
 * As on the CPU a block of the axis becomes (m, s), the largest element and the sum of exp(x - m),
 * and blocks are joined in order, all in the order of ops/logsumexp.h and to its bits. Long blocks
 * of an innermost axis are a warp's; others are one thread's.
 */
#include "base/assert.h"
#include "cuda/program/fused.h"
#include "cuda/program/number.h"

extern "C" {
#include "ops/reduce.h"
}
#include "ops/logsumexp.h"

namespace
{

enum {
    THREADS = 256,
    WARP = 32,
    MANY = 1 << 16, /* outputs that occupy the card by themselves */
    MOST_Y = 32768, /* within CUDA's limit of 65535 for the y of a grid */
};

typedef fth__lse pair;
static_assert((int)FTH__LSE_LANES == (int)WARP, "together: a lane of a sum is a thread of a warp");

struct work {
    int32_t n_axes, dtype; /* of the outputs */
    int64_t extent[FTH_MAX_AXES], in[FTH_MAX_AXES], out[FTH_MAX_AXES], kept[FTH_MAX_AXES];
    const char *from; /* strides of inputs and outputs in bytes */
    char *to;
    pair *state;   /* strides in pairs */
    pair *partial; /* segments x outputs; NULL: outputs are finished at once */
    int64_t outputs, n, step, block, segments;
    int32_t first, last;
};

__device__ void locate(const work &w, int64_t i, int64_t *in, int64_t *out, int64_t *kept)
{
    *in = *out = *kept = 0;
    for (int k = w.n_axes - 1; k >= 0; k--) {
        const int64_t r = i % w.extent[k];
        i /= w.extent[k];
        *in += r * w.in[k];
        *out += r * w.out[k];
        *kept += r * w.kept[k];
    }
}

__device__ pair begin(const work &w, int64_t kept)
{
    return w.first ? fth__lse_nothing() : w.state[kept];
}

__device__ void finish(const work &w, int64_t out, int64_t kept, pair p)
{
    if (w.last)
        fth__store_wide(w.dtype, w.to + out, fth__lse_value(p));
    else
        w.state[kept] = p;
}

template <int D> __device__ __forceinline__ double element(const char *p)
{
    return D == FTH__D_F16    ? (double)fth__dev_f16_to_f32(*(const uint16_t *)p)
           : D == FTH__D_BF16 ? (double)fth__dev_bf16_to_f32(*(const uint16_t *)p)
           : D == FTH__D_F32  ? (double)*(const float *)p
                              : *(const double *)p;
}

/* A block by one thread: lanes are summed in the order in which halving joins them, so that few
 * sums wait, sums[k] for 2^k lanes. */
template <int D> __device__ pair alone(const work &w, const char *p, int64_t n)
{
    const int lanes = w.block < FTH__LSE_LONG ? 1 : FTH__LSE_LANES;
    double m = -(double)INFINITY, sums[6] = {0.0}; /* 2^5 lanes */
    bool odd = false;
    for (int64_t i = 0; i < n; i++) {
        const double x = element<D>(p + i * w.step);
        odd |= x != x;
        m = x > m ? x : m;
    }
    if (odd) return pair{(double)NAN, (double)NAN};
    const double base = fth__lse_base(m);
    double sum = 0.0;
    for (int r = 0; r < lanes; r++) {
        const int lane = lanes == 1 ? 0 : (int)(__brev((unsigned)r) >> 27);
        sum = 0.0;
        for (int64_t i = lane; i < n; i += lanes)
            sum += fth__exp_f64(element<D>(p + i * w.step) - base);
        int k = 0;
        for (; r >> k & 1; k++) sum = sums[k] + sum;
        sums[k] = sum;
    }
    return fth__lse_of(m, sum);
}

/* A block by a warp; the result is right in lane 0. */
template <int D> __device__ pair together(const work &w, const char *p, int64_t n)
{
    double m = -(double)INFINITY, sum = 0.0;
    bool odd = false;
    for (int64_t i = threadIdx.x % WARP; i < n; i += WARP) {
        const double x = element<D>(p + i * w.step);
        odd |= x != x;
        m = x > m ? x : m;
    }
    for (int half = WARP / 2; half > 0; half /= 2) {
        const double other = __shfl_xor_sync(0xffffffffu, m, half);
        m = other > m ? other : m;
    }
    if (__any_sync(0xffffffffu, odd)) return pair{(double)NAN, (double)NAN};
    const double base = fth__lse_base(m);
    for (int64_t i = threadIdx.x % WARP; i < n; i += WARP)
        sum += fth__exp_f64(element<D>(p + i * w.step) - base);
    for (int half = WARP / 2; half > 0; half /= 2) sum += __shfl_down_sync(0xffffffffu, sum, half);
    return fth__lse_of(m, sum);
}

/* One thread or one warp per output (and per segment, where there are partials). */
template <int D, bool WARPS>
__global__ void __launch_bounds__(THREADS) sums(const work __grid_constant__ w)
{
    const int64_t each = WARPS ? WARP : 1, stride = (int64_t)gridDim.x * (THREADS / each);
    for (int64_t i = (int64_t)blockIdx.x * (THREADS / each) + threadIdx.x / each; i < w.outputs;
         i += stride) {
        int64_t in, out, kept;
        locate(w, i, &in, &out, &kept);
        pair total = w.partial ? fth__lse_nothing() : begin(w, kept);
        for (int64_t s = blockIdx.y; s < w.segments; s += gridDim.y) {
            const int64_t from = s * w.block, left = w.n - from;
            const char *p = w.from + in + from * w.step;
            const int64_t n = left < w.block ? left : w.block;
            const pair b = WARPS ? together<D>(w, p, n) : alone<D>(w, p, n);
            if (!w.partial)
                total = fth__lse_join(total, b);
            else if (threadIdx.x % each == 0)
                w.partial[s * w.outputs + i] = b;
        }
        if (!w.partial && threadIdx.x % each == 0) finish(w, out, kept, total);
    }
}

__global__ void __launch_bounds__(THREADS) totals(const work __grid_constant__ w)
{
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < w.outputs;
         i += (int64_t)gridDim.x * THREADS) {
        int64_t in, out, kept;
        locate(w, i, &in, &out, &kept);
        pair total = begin(w, kept);
        for (int64_t s = 0; s < w.segments; s++)
            total = fth__lse_join(total, w.partial[s * w.outputs + i]);
        finish(w, out, kept, total);
    }
}

template <int D> void queue(const fth_call *call, const work *w, bool warps)
{
    FTH_ASSERT(w->outputs > 0 && w->block > 0 && w->segments * w->block >= w->n);
    const int64_t most = MOST_Y;
    const unsigned y = (unsigned)(!w->partial ? 1 : w->segments < most ? w->segments : most);
    if (warps)
        FTH_LAUNCH((sums<D, true>), dim3(fth_cuda_blocks(w->outputs, THREADS / WARP), y), THREADS,
                   fth_cuda_stream(call), *w);
    else
        FTH_LAUNCH((sums<D, false>), dim3(fth_cuda_blocks(w->outputs, THREADS), y), THREADS,
                   fth_cuda_stream(call), *w);
}

/* Partials only where outputs alone leave threads without work, and blocks are long enough for them
 * to be few. From extents alone. */
bool has_partials(int64_t block, int64_t segments, int64_t outputs)
{
    return block >= FTH__LSE_LONG && segments > 1 && outputs < MANY;
}

void set_axes(work *w, const fth_call *call, int dim)
{
    const fth_node *node = call->node;
    const int64_t size = fth_dtype_size(node->in[0].dtype);
    w->n_axes = node->out[0].n_axes;
    w->outputs = 1;
    for (int k = 0; k < w->n_axes; k++) {
        w->extent[k] = call->out[0].extent[k];
        w->in[k] = call->in[0].stride[k < dim ? k : k + 1] * size;
        w->out[k] = call->out[0].stride[k] * size;
        w->kept[k] = call->state[0].stride[k];
        w->outputs *= w->extent[k];
    }
}

} // namespace

uint64_t fth__cuda_logsumexp_scratch(const fth_call *call)
{
    const int dim = fth__reduce_dim(call->node);
    const int64_t block = fth__reduce_block(call->node->in[0].size[dim]),
                  segments = (call->in[0].extent[dim] + block - 1) / block,
                  outputs = fth_cuda_count(&call->node->out[0], &call->out[0]);
    return has_partials(block, segments, outputs) ? (uint64_t)(segments * outputs) * sizeof(pair)
                                                  : 0;
}

fth_status fth__cuda_logsumexp(const fth_call *call)
{
    const fth_node *node = call->node;
    const int dim = fth__reduce_dim(node);
    const fth_dtype t = node->in[0].dtype;
    work w = {};
    set_axes(&w, call, dim);
    if (w.outputs == 0) return FTH_OK;
    w.dtype = t;
    w.from = (const char *)call->in[0].data;
    w.to = (char *)call->out[0].data;
    w.state = (pair *)call->state[0].data;
    w.n = call->in[0].extent[dim];
    w.step = call->in[0].stride[dim] * fth_dtype_size(t);
    w.block = fth__reduce_block(node->in[0].size[dim]);
    w.segments = (w.n + w.block - 1) / w.block;
    w.first = call->first;
    w.last = call->last;
    if (has_partials(w.block, w.segments, w.outputs)) w.partial = (pair *)call->scratch;
    FTH_ASSERT(!w.partial || (uint64_t)(w.segments * w.outputs) * sizeof(pair) <=
                                 fth__cuda_logsumexp_scratch(call));
    const bool warps = dim == node->in[0].n_axes - 1 && w.block >= FTH__LSE_LONG;
    if (t == FTH_F16) queue<FTH__D_F16>(call, &w, warps);
    if (t == FTH_BF16) queue<FTH__D_BF16>(call, &w, warps);
    if (t == FTH_F32) queue<FTH__D_F32>(call, &w, warps);
    if (t == FTH_F64) queue<FTH__D_F64>(call, &w, warps);
    FTH_CUDA_LAUNCHED(call);
    if (!w.partial) return FTH_OK;
    FTH_LAUNCH(totals, fth_cuda_blocks(w.outputs, THREADS), THREADS, fth_cuda_stream(call), w);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}
