/* sort.cu - stable sort along an axis, and where each element came from.
 *
 * Short lines are put in order in shared memory, a block each. Long ones become keys for the radix
 * sort, some lines at a time; the values are then taken in the order found, with their own bits.
 */
#include "base/assert.h"
#include "cuda/device/device.h"
#include "cuda/sort/order.cuh"
#include "cuda/sort/radix.cuh"

extern "C" {
#include "ops/ops.h"
}

enum { THREADS = 256 };
/* Elements of a round, one line at least: enough to fill the card, and a bound of the scratch. */
static constexpr int64_t ROUND = 1 << 22;

template <int CAP> static __global__ void short_lines(const fth__ordering o, unsigned size)
{
    __shared__ fth__short<CAP> s;
    for (int64_t line = blockIdx.x; line < o.line.count; line += gridDim.x) {
        const fth__place p = fth__walk_at(o.line, line);
        __syncthreads();
        for (unsigned i = threadIdx.x; i < size; i += blockDim.x) {
            s.place[i] = i;
            s.key[i] = ~(uint64_t)0;
            if (i < o.n) s.key[i] = fth__key_of(o.dtype, o.in + p.at[0] + i * o.step, o.descending);
        }
        fth__short_sort(s, size);
        for (unsigned i = threadIdx.x; i < o.n; i += blockDim.x)
            fth__ordering_put(o, p, i, s.place[i]);
    }
}

template <typename K>
static __global__ void make_keys(const fth__ordering o, int64_t line_lo, int64_t lines, K *keys)
{
    for (int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x; k < lines * o.n;
         k += (int64_t)gridDim.x * THREADS) {
        const int64_t line = (int64_t)fth__walk_div((uint64_t)k, (uint64_t)o.n);
        const fth__place p = fth__walk_at(o.line, line_lo + line);
        keys[k] = (K)fth__key_of(o.dtype, o.in + p.at[0] + (k - line * o.n) * o.step, o.descending);
    }
}

static __global__ void take(const fth__ordering o, int64_t line_lo, int64_t lines,
                            const uint32_t *from)
{
    for (int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x; k < lines * o.n;
         k += (int64_t)gridDim.x * THREADS) {
        const int64_t line = (int64_t)fth__walk_div((uint64_t)k, (uint64_t)o.n);
        fth__ordering_put(o, fth__walk_at(o.line, line_lo + line), k - line * o.n, from[k]);
    }
}

static int dim_of(const fth_node *node)
{
    return fth_desc_find(&node->in[0], ((const fth__axis_attr *)node->attr)->axis);
}

static bool supports(const fth_node *node)
{
    return node->in[0].size[dim_of(node)] <= UINT32_MAX;
}

static int64_t lines_at_once(const fth_call *call, int dim)
{
    const int64_t n = call->in[0].extent[dim], lines = fth__ordering_lines(call, dim);
    const int64_t most = n < ROUND ? ROUND / n : 1;
    return lines < most ? lines : most;
}

static int key_bytes(const fth_node *node)
{
    return fth__radix_key(fth_dtype_size(node->in[0].dtype));
}

static uint64_t scratch(const fth_call *call)
{
    const int dim = dim_of(call->node);
    const int64_t n = call->in[0].extent[dim];
    if (n <= FTH__SHORT) return 0;
    return fth__radix_bytes(key_bytes(call->node), lines_at_once(call, dim), n);
}

static void long_lines(const fth_call *call, const fth__ordering &o, int dim)
{
    const cudaStream_t stream = fth_cuda_stream(call);
    const int64_t round = lines_at_once(call, dim);
    for (int64_t lo = 0; lo < o.line.count; lo += round) {
        const int64_t lines = o.line.count - lo < round ? o.line.count - lo : round;
        FTH_ASSERT(fth__radix_bytes(key_bytes(call->node), lines, o.n) <= scratch(call));
        const fth__radix r = fth__radix_in(call->scratch, key_bytes(call->node), lines, o.n);
        const unsigned blocks = fth_cuda_blocks(lines * o.n, THREADS);
        if (r.key_bytes == 8)
            FTH_LAUNCH(make_keys<uint64_t>, blocks, THREADS, stream, o, lo, lines,
                       (uint64_t *)r.key[0]);
        else if (r.key_bytes == 4)
            FTH_LAUNCH(make_keys<uint32_t>, blocks, THREADS, stream, o, lo, lines,
                       (uint32_t *)r.key[0]);
        else
            FTH_LAUNCH(make_keys<uint16_t>, blocks, THREADS, stream, o, lo, lines,
                       (uint16_t *)r.key[0]);
        const int at = fth__radix_sort(&r, o.size * 8, stream);
        FTH_LAUNCH(take, blocks, THREADS, stream, o, lo, lines, (const uint32_t *)r.value[at]);
    }
}

static fth_status run(const fth_call *call)
{
    const fth_node *node = call->node;
    const int dim = dim_of(node);
    fth__ordering o;
    fth__ordering_init(&o, call, dim, ((const fth__axis_attr *)node->attr)->flag != 0);
    if (o.n == 0 || o.line.count == 0) return FTH_OK;
    const unsigned size = fth__short_size(o.n <= FTH__SHORT ? o.n : 1);
    const unsigned blocks = fth_cuda_blocks(o.line.count * 32, 32);
    if (o.n > FTH__SHORT)
        long_lines(call, o, dim);
    else if (o.n <= FTH__SHORTEST)
        FTH_LAUNCH(short_lines<FTH__SHORTEST>, blocks, fth__short_threads(size),
                   fth_cuda_stream(call), o, size);
    else
        FTH_LAUNCH(short_lines<FTH__SHORT>, blocks, fth__short_threads(size), fth_cuda_stream(call),
                   o, size);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

FTH_CUDA_KERNEL(sort) = {.op = "sort", .supports = supports, .scratch = scratch, .run = run};
