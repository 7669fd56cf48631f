/* tail.cu - partials of blocks become totals: in order, whatever made them.
 *
 * Blocks of one superblock are joined one after the other by one thread per output, while the other
 * threads of its block fetch; superblocks side by side. No order can change what integers come to:
 * all threads join those. Then superblocks are joined in order, with
 * what earlier pieces of the axis left.
 */
#include "base/assert.h"
#include "cuda/program/fused.h"
#include "cuda/program/join.h"

#include <type_traits>

namespace
{

enum {
    THREADS = 256,
    TILE = 2048,  /* partials in shared memory: 32 KiB of complex ones */
    SIDE = 32,    /* outputs of a block of threads: the lanes of a warp */
    AT_ONCE = 16, /* loads in flight per thread before the first is joined */
};

struct finish {
    fth__ew_tail t;
    uint32_t count;
    int32_t n_axes;
    uint32_t extent[FTH__EW_AXES], magic[FTH__EW_AXES], shift[FTH__EW_AXES];
    fth__ew_operand out, kept;
    int32_t out_bytes;
    char *super;       /* totals of superblocks: groups x count */
    int64_t per, skip; /* blocks per superblock; of the first one, those that came before */
    int64_t groups;
};

__device__ void locate(const finish &f, uint32_t i, char **out, char **kept)
{
    int64_t to = 0, at = 0;
    for (int k = f.n_axes - 1; k >= 0; k--) {
        const uint32_t q = (__umulhi(i, f.magic[k]) + i) >> f.shift[k];
        const uint32_t r = k > 0 ? i - q * f.extent[k] : i;
        to += (int64_t)r * f.out.stride[k];
        at += (int64_t)r * f.kept.stride[k];
        i = q;
    }
    *out = f.out.data + to * f.out_bytes;
    *kept = f.kept.data + at * f.t.state;
}

/* The same in any order: rows of threads take every so many blocks, and then one another. */
template <class W, int RED>
__device__ W join_all(const finish &f, W acc, W *tile, uint32_t first, uint32_t side, int64_t from,
                      int64_t to)
{
    const uint32_t rows = THREADS / side, row = threadIdx.x / side, lane = threadIdx.x % side;
    const W *partial = (const W *)f.t.partial + first + lane;
    if (row > 0) fth__join_start(RED, f.t.to, &acc);
#pragma unroll 8
    for (int64_t s = from + row; row < rows && s < to; s += rows)
        acc = fth__join(RED, acc, partial[s * f.count]);
    if (row < rows) tile[row * side + lane] = acc;
    __syncthreads();
    for (uint32_t r = 1; row == 0 && r < rows; r++)
        acc = fth__join(RED, acc, tile[r * side + lane]);
    return acc;
}

template <class W, int RED>
__global__ void __launch_bounds__(THREADS) join_blocks(const finish __grid_constant__ f)
{
    __shared__ W tile[TILE];
    const fth__ew_tail &t = f.t;
    const uint32_t first = blockIdx.x * SIDE;
    const uint32_t most = SIDE, left = f.count - first, side = left < most ? left : most;
    const int64_t group = blockIdx.y;
    int64_t from = group * f.per - f.skip, to = from + f.per;
    from = from < 0 ? 0 : from + t.joined;
    to = to < t.segments ? to : t.segments;
    const bool mine = threadIdx.x < side;
    fth__total<W> total;
    char *out, *kept;
    W acc;
    fth__join_start(RED, t.to, &acc);
    if (mine) {
        locate(f, first + threadIdx.x, &out, &kept);
        total.begin(RED, t, out, kept);
        if (t.has_super && group == 0) acc = total.super;
        if (t.joined > 0) acc = ((const W *)f.super)[group * f.count + first + threadIdx.x];
        if (!t.has_super) acc = total.total;
    }
    const int64_t each = TILE / side;
    if constexpr (std::is_same<W, int64_t>::value) {
        acc = join_all<W, RED>(f, acc, tile, first, side, from, to);
        from = to;
    }
    for (int64_t s = from; s < to; s += each) {
        const int64_t n = to - s < each ? to - s : each;
        __syncthreads();
        for (uint32_t i = threadIdx.x; i < (uint32_t)n * side; i += THREADS)
            tile[i] = ((const W *)t.partial)[(s + i / side) * f.count + first + i % side];
        __syncthreads();
        if (!mine) continue;
#pragma unroll 16
        for (uint32_t i = 0; i < (uint32_t)n; i++)
            acc = fth__join(RED, acc, tile[i * side + threadIdx.x]);
    }
    if (!mine) return;
    if (t.has_super) {
        ((W *)f.super)[group * f.count + first + threadIdx.x] = acc;
        return;
    }
    total.total = acc;
    total.end(t, out, kept);
}

template <class W, int RED>
__global__ void __launch_bounds__(THREADS) join_supers(const finish __grid_constant__ f)
{
    const fth__ew_tail &t = f.t;
    for (uint32_t i = blockIdx.x * THREADS + threadIdx.x; i < f.count; i += gridDim.x * THREADS) {
        fth__total<W> total;
        char *out, *kept;
        locate(f, i, &out, &kept);
        total.begin(RED, t, out, kept);
        const bool whole = (t.lo + t.n) % t.super == 0 || t.lo + t.n == t.whole;
        for (int64_t g = 0; g < f.groups; g += AT_ONCE) {
            W x[AT_ONCE]; /* all under way before the first is joined */
#pragma unroll
            for (int k = 0; k < AT_ONCE; k++)
                if (g + k < f.groups) x[k] = ((const W *)f.super)[(g + k) * f.count + i];
#pragma unroll
            for (int k = 0; k < AT_ONCE; k++) {
                if (g + k >= f.groups) continue;
                total.super = x[k];
                if (g + k + 1 < f.groups || whole) total.close(RED, t.to);
            }
        }
        total.end(t, out, kept);
    }
}

template <class W, int RED> fth_status queue(const fth_call *call, const finish *f)
{
    FTH_ASSERT(f->count > 0 && f->groups >= 1 && f->groups <= 65535); /* of the grid's y */
    const unsigned x = (f->count + SIDE - 1) / SIDE;
    FTH_LAUNCH((join_blocks<W, RED>), dim3(x, (unsigned)f->groups), THREADS, fth_cuda_stream(call),
               *f);
    FTH_CUDA_LAUNCHED(call);
    if (!f->t.has_super) return FTH_OK;
    FTH_LAUNCH((join_supers<W, RED>), fth_cuda_blocks(f->count, THREADS), THREADS,
               fth_cuda_stream(call), *f);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

fth_status queue_real(const fth_call *call, const finish *f)
{
    switch (f->t.red) {
    case FTH__JOIN_SUM: return queue<double, FTH__JOIN_SUM>(call, f);
    case FTH__JOIN_PROD: return queue<double, FTH__JOIN_PROD>(call, f);
    case FTH__JOIN_MIN: return queue<double, FTH__JOIN_MIN>(call, f);
    default: return queue<double, FTH__JOIN_MAX>(call, f);
    }
}

fth_status queue_int(const fth_call *call, const finish *f)
{
    switch (f->t.red) {
    case FTH__JOIN_SUM: return queue<int64_t, FTH__JOIN_SUM>(call, f);
    case FTH__JOIN_PROD: return queue<int64_t, FTH__JOIN_PROD>(call, f);
    case FTH__JOIN_MIN: return queue<int64_t, FTH__JOIN_MIN>(call, f);
    case FTH__JOIN_MAX: return queue<int64_t, FTH__JOIN_MAX>(call, f);
    case FTH__JOIN_ANY: return queue<int64_t, FTH__JOIN_ANY>(call, f);
    default: return queue<int64_t, FTH__JOIN_ALL>(call, f);
    }
}

} // namespace

/* A piece that begins inside a superblock touches one more than its length says. */
static int64_t groups_of(const fth__ew_order *order, int64_t n)
{
    return order->has_super ? n / order->super + 2 : 0;
}

uint64_t fth__ew_finish_bytes(const fth__ew_order *order, int64_t n, int64_t items, uint64_t wide)
{
    return (uint64_t)(groups_of(order, n) * items) * wide;
}

fth_status fth__ew_finish(const fth_call *call, const fth__ew_args *a, int out, fth_dtype from)
{
    finish f = {};
    f.t = a->tail;
    f.count = a->count;
    f.n_axes = a->n_axes;
    for (int k = 0; k < a->n_axes; k++) {
        f.extent[k] = a->extent[k];
        f.magic[k] = a->magic[k];
        f.shift[k] = a->shift[k];
    }
    f.out = a->operand[out];
    f.kept = a->operand[out + 1];
    f.out_bytes = (int32_t)fth_dtype_size(call->node->out[0].dtype);
    f.per = a->tail.segments;
    f.groups = 1;
    if (a->tail.has_super) {
        const int64_t wide = fth_dtype_is_complex(from) ? 16 : 8;
        f.per = a->tail.super / a->tail.block;
        f.skip = a->tail.lo / a->tail.block % f.per;
        f.groups = (f.skip + a->tail.segments + f.per - 1) / f.per;
        f.super = a->tail.partial + a->tail.segments * (int64_t)a->count * wide;
    }
    FTH_ASSERT(f.t.partial && f.per > 0);
    FTH_ASSERT(!f.t.has_super || (f.t.super % f.t.block == 0 && f.groups <= f.t.n / f.t.super + 2));
    if (fth_dtype_is_real(from)) return queue_real(call, &f);
    if (!fth_dtype_is_complex(from)) return queue_int(call, &f);
    return a->tail.red == FTH__JOIN_SUM ? queue<fth_c128, FTH__JOIN_SUM>(call, &f)
                                        : queue<fth_c128, FTH__JOIN_PROD>(call, &f);
}
