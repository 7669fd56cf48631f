/* topk.cu - the k largest or smallest elements along an axis, in order, and their positions.
 *
 * A line is cut into tiles that fit shared memory; the best k of each tile are the candidates of
 * the next round, until one tile is left. Where k is too large for that the line is sorted. Keys
 * with their places are all different, so it does not matter how a line is cut.
 */
#include "base/assert.h"
#include "cuda/device/device.h"
#include "cuda/sort/order.cuh"
#include "cuda/sort/radix.cuh"

extern "C" {
#include "ops/ops.h"
}

enum { THREADS = 256 };
/* A round leaves about a quarter of the candidates, or fewer; for a larger k lines are sorted.
 * ROUND: candidates at once, one line at least, which bounds the scratch. */
static constexpr int64_t MOST_K = FTH__SHORT / 4, ROUND = 1 << 20;

typedef struct list { /* of each line: m candidates */
    uint64_t *key;
    uint32_t *place;
    int64_t m;
} list;

static int dim_of(const fth_node *node)
{
    return fth_desc_find(&node->in[0], ((const fth__topk_attr *)node->attr)->axis);
}

static bool supports(const fth_node *node)
{
    return node->in[0].size[dim_of(node)] <= UINT32_MAX;
}

static int64_t tiles_of(int64_t n)
{
    return (n + FTH__SHORT - 1) / FTH__SHORT;
}

/* A tile of each line from the elements (from.key NULL) or from candidates; its best k into the
 * next list, or into the result (to.key NULL). */
template <int CAP>
static __global__ void choose(const fth__ordering o, int64_t line_lo, int64_t lines, list from,
                              list to, int64_t tiles, unsigned size)
{
    __shared__ fth__short<CAP> s;
    for (int64_t item = blockIdx.x; item < lines * tiles; item += gridDim.x) {
        const int64_t line = (int64_t)fth__walk_div((uint64_t)item, (uint64_t)tiles);
        const int64_t tile = item - line * tiles;
        const fth__place p = fth__walk_at(o.line, line_lo + line);
        __syncthreads();
        for (unsigned i = threadIdx.x; i < size; i += blockDim.x) {
            const int64_t at = tile * FTH__SHORT + i;
            s.key[i] = ~(uint64_t)0;
            s.place[i] = ~0u; /* behind everything, as nothing is that far */
            if (at >= from.m) continue;
            s.key[i] = from.key ? from.key[line * from.m + at]
                                : fth__key_of(o.dtype, o.in + p.at[0] + at * o.step, o.descending);
            s.place[i] = from.key ? from.place[line * from.m + at] : (uint32_t)at;
        }
        fth__short_sort(s, size);
        for (unsigned i = threadIdx.x; i < o.k; i += blockDim.x) {
            if (!to.key) {
                fth__ordering_put(o, p, i, s.place[i]);
                continue;
            }
            const int64_t at = line * to.m + tile * o.k + i;
            to.key[at] = i < size ? s.key[i] : ~(uint64_t)0;
            to.place[at] = i < size ? s.place[i] : ~0u;
        }
    }
}

template <typename K> static __global__ void make_keys(const fth__ordering o, int64_t line, K *keys)
{
    const fth__place p = fth__walk_at(o.line, line);
    for (int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x; k < o.n;
         k += (int64_t)gridDim.x * THREADS)
        keys[k] = (K)fth__key_of(o.dtype, o.in + p.at[0] + k * o.step, o.descending);
}

static __global__ void take(const fth__ordering o, int64_t line, const uint32_t *from)
{
    const fth__place p = fth__walk_at(o.line, line);
    for (int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x; k < o.k;
         k += (int64_t)gridDim.x * THREADS)
        fth__ordering_put(o, p, k, from[k]);
}

static int key_bytes(const fth_node *node)
{
    return fth__radix_key(fth_dtype_size(node->in[0].dtype));
}

/* Candidates of a line after the first round. */
static int64_t candidates(int64_t n, int64_t k)
{
    return tiles_of(n) * k;
}

static int64_t lines_at_once(const fth_call *call, int dim, int64_t n, int64_t k)
{
    const int64_t lines = fth__ordering_lines(call, dim), m = candidates(n, k);
    const int64_t most = m < ROUND ? ROUND / (m + 1) + 1 : 1;
    return lines < most ? lines : most;
}

static uint64_t list_bytes(int64_t lines, int64_t m)
{
    return (uint64_t)(lines * m) * 8 + ((uint64_t)(lines * m) * 4 + 63) / 64 * 64;
}

static list list_at(char *at, int64_t lines, int64_t m)
{
    list l;
    l.key = (uint64_t *)at;
    l.place = (uint32_t *)(at + (uint64_t)(lines * m) * 8);
    l.m = m;
    return l;
}

static uint64_t scratch(const fth_call *call)
{
    const int dim = dim_of(call->node);
    const int64_t n = call->in[0].extent[dim], k = call->out[0].extent[dim];
    if (n <= FTH__SHORT) return 0;
    if (k > MOST_K) return fth__radix_bytes(key_bytes(call->node), 1, n);
    const int64_t m = candidates(n, k), lines = lines_at_once(call, dim, n, k);
    return (list_bytes(lines, m) + 63) / 64 * 64 + list_bytes(lines, candidates(m, k));
}

static void launch(const fth_call *call, const fth__ordering &o, int64_t lo, int64_t lines,
                   list from, list to, int64_t tiles)
{
    const unsigned size = fth__short_size(from.m < FTH__SHORT ? from.m : (int64_t)FTH__SHORT);
    const unsigned blocks = fth_cuda_blocks(lines * tiles * 32, 32);
    if (size <= FTH__SHORTEST)
        FTH_LAUNCH(choose<FTH__SHORTEST>, blocks, fth__short_threads(size), fth_cuda_stream(call),
                   o, lo, lines, from, to, tiles, size);
    else
        FTH_LAUNCH(choose<FTH__SHORT>, blocks, fth__short_threads(size), fth_cuda_stream(call), o,
                   lo, lines, from, to, tiles, size);
}

static void by_rounds(const fth_call *call, const fth__ordering &o, int dim)
{
    const int64_t at_once = lines_at_once(call, dim, o.n, o.k), m = candidates(o.n, o.k);
    char *room[2] = {(char *)call->scratch,
                     (char *)call->scratch + (list_bytes(at_once, m) + 63) / 64 * 64};
    for (int64_t lo = 0; lo < o.line.count; lo += at_once) {
        const int64_t lines = o.line.count - lo < at_once ? o.line.count - lo : at_once;
        list from = {NULL, NULL, o.n};
        for (int turn = 0;; turn = 1 - turn) {
            const int64_t tiles = tiles_of(from.m);
            list to = {NULL, NULL, 0};
            if (tiles > 1) to = list_at(room[turn], lines, tiles * o.k);
            FTH_ASSERT(tiles == 1 || tiles * o.k < from.m); /* each round leaves fewer candidates */
            FTH_ASSERT(tiles == 1 || list_bytes(lines, tiles * o.k) <= scratch(call));
            launch(call, o, lo, lines, from, to, tiles);
            if (tiles == 1) break;
            from = to;
        }
    }
}

static void by_sort(const fth_call *call, const fth__ordering &o)
{
    const cudaStream_t stream = fth_cuda_stream(call);
    const fth__radix r = fth__radix_in(call->scratch, key_bytes(call->node), 1, o.n);
    const unsigned blocks = fth_cuda_blocks(o.n, THREADS);
    FTH_ASSERT(fth__radix_bytes(r.key_bytes, 1, o.n) <= scratch(call));
    for (int64_t line = 0; line < o.line.count; line++) {
        if (r.key_bytes == 8)
            FTH_LAUNCH(make_keys<uint64_t>, blocks, THREADS, stream, o, line, (uint64_t *)r.key[0]);
        else if (r.key_bytes == 4)
            FTH_LAUNCH(make_keys<uint32_t>, blocks, THREADS, stream, o, line, (uint32_t *)r.key[0]);
        else
            FTH_LAUNCH(make_keys<uint16_t>, blocks, THREADS, stream, o, line, (uint16_t *)r.key[0]);
        const int at = fth__radix_sort(&r, o.size * 8, stream);
        FTH_LAUNCH(take, fth_cuda_blocks(o.k, THREADS), THREADS, stream, o, line,
                   (const uint32_t *)r.value[at]);
    }
}

static fth_status run(const fth_call *call)
{
    const int dim = dim_of(call->node);
    fth__ordering o;
    fth__ordering_init(&o, call, dim, ((const fth__topk_attr *)call->node->attr)->largest != 0);
    if (o.k == 0 || o.line.count == 0) return FTH_OK;
    if (o.n > FTH__SHORT && o.k > MOST_K)
        by_sort(call, o);
    else
        by_rounds(call, o, dim);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

FTH_CUDA_KERNEL(topk) = {.op = "topk", .supports = supports, .scratch = scratch, .run = run};
