/* radix.cu - the stable radix sort behind sort, topk and scatter_add.
 *
 * Eight bits a pass, lowest first. Each tile counts its digits; counts become places, digit by
 * digit and tile by tile; each tile then puts its keys there. Inside a tile a warp owns
 * neighbouring keys and ranks equal digits by their lane, so equal keys never change places.
 */
#include "cuda/radix.cuh"

enum { THREADS = 256, WARPS = THREADS / 32, DIGITS = 256, BITS = 8 };

template <typename K> constexpr int each_of()
{
    return sizeof(K) == 8 ? 8 : 16;
}
static int64_t tile_of(bool wide)
{
    return THREADS * (wide ? each_of<uint64_t>() : each_of<uint32_t>());
}

static int64_t tiles_of(bool wide, int64_t n)
{
    return (n + tile_of(wide) - 1) / tile_of(wide);
}

static uint64_t room(int64_t n, uint64_t size)
{
    return ((uint64_t)n * size + 63) / 64 * 64;
}

uint64_t fth__radix_bytes(bool wide, int64_t lines, int64_t n)
{
    return 2 * room(lines * n, wide ? 8 : 4) + 2 * room(lines * n, 4) +
           room(lines * tiles_of(wide, n) * DIGITS, 4) + room(lines * DIGITS, 4);
}

fth__radix fth__radix_in(void *scratch, bool wide, int64_t lines, int64_t n)
{
    fth__radix r = {};
    char *at = (char *)scratch;
    for (int i = 0; i < 2; i++) {
        r.key[i] = at;
        at += room(lines * n, wide ? 8 : 4);
    }
    for (int i = 0; i < 2; i++) {
        r.value[i] = (uint32_t *)at;
        at += room(lines * n, 4);
    }
    r.counts = (uint32_t *)at;
    r.totals = (uint32_t *)(at + room(lines * tiles_of(wide, n) * DIGITS, 4));
    r.lines = lines;
    r.n = n;
    r.wide = wide;
    return r;
}

template <typename K> struct args {
    const K *from;
    K *to;
    const uint32_t *value; /* NULL: the position itself */
    uint32_t *value_to, *counts, *totals;
    int64_t n, tiles, line_digits;
    int shift;
};

template <typename K> static __device__ inline unsigned digit_of(K key, int shift)
{
    return (unsigned)(key >> shift) & (DIGITS - 1);
}

template <typename K> static __global__ void count(const args<K> a)
{
    __shared__ unsigned counts[DIGITS];
    const int64_t line = blockIdx.x / a.tiles, tile = blockIdx.x - line * a.tiles;
    const K *from = a.from + line * a.n;
    counts[threadIdx.x] = 0;
    __syncthreads();
    for (int j = 0; j < each_of<K>(); j++) {
        const int64_t i = tile * (THREADS * each_of<K>()) + j * THREADS + threadIdx.x;
        if (i < a.n) atomicAdd(&counts[digit_of(from[i], a.shift)], 1u);
    }
    __syncthreads();
    a.counts[(line * DIGITS + threadIdx.x) * a.tiles + tile] = counts[threadIdx.x];
}

/* Sum over the lanes up to this one. */
static __device__ inline uint32_t up_to_lane(uint32_t x)
{
    const unsigned lane = threadIdx.x & 31;
    for (unsigned d = 1; d < 32; d *= 2) {
        const uint32_t other = __shfl_up_sync(~0u, x, d);
        if (lane >= d) x += other;
    }
    return x;
}

/* Counts of one digit of one line, tile by tile, to the sum of those before; a warp each. */
template <typename K> static __global__ void place(const args<K> a)
{
    const unsigned lane = threadIdx.x & 31;
    const int64_t which = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32;
    if (which >= a.line_digits) return;
    uint32_t *counts = a.counts + which * a.tiles, done = 0;
    for (int64_t at = 0; at < a.tiles; at += 32) {
        const int64_t i = at + lane;
        const uint32_t x = i < a.tiles ? counts[i] : 0, sum = up_to_lane(x);
        if (i < a.tiles) counts[i] = done + sum - x;
        done += __shfl_sync(~0u, sum, 31);
    }
    if (lane == 0) a.totals[which] = done;
}

/* Where the digit of this thread begins in its line: a thread has a digit. */
static __device__ uint32_t digit_begins(const uint32_t *totals)
{
    __shared__ uint32_t of_warp[WARPS];
    const uint32_t x = totals[threadIdx.x], sum = up_to_lane(x);
    uint32_t before = sum - x;
    if ((threadIdx.x & 31) == 31) of_warp[threadIdx.x / 32] = sum;
    __syncthreads();
    for (unsigned w = 0; w < threadIdx.x / 32; w++) before += of_warp[w];
    return before;
}

/* Lanes with the same digit as this one. */
static __device__ inline unsigned same_digit(unsigned digit)
{
    unsigned same = ~0u;
    for (int bit = 0; bit <= BITS; bit++) {
        const unsigned yes = __ballot_sync(~0u, digit >> bit & 1);
        same &= digit >> bit & 1 ? yes : ~yes;
    }
    return same;
}

template <typename K> static __global__ void put(const args<K> a)
{
    __shared__ uint32_t places[WARPS][DIGITS];
    constexpr int EACH = each_of<K>();
    const int64_t line = blockIdx.x / a.tiles, tile = blockIdx.x - line * a.tiles;
    const unsigned lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    const int64_t first = tile * (THREADS * EACH) + warp * (32 * EACH) + lane;
    const K *from = a.from + line * a.n;
    K key[EACH];
    uint32_t rank[EACH];
    for (unsigned d = lane; d < DIGITS; d += 32) places[warp][d] = 0;
    __syncwarp();
#pragma unroll
    for (int j = 0; j < EACH; j++) {
        const bool there = first + j * 32 < a.n;
        if (there) key[j] = from[first + j * 32];
        const unsigned digit = there ? digit_of(key[j], a.shift) : (unsigned)DIGITS;
        const unsigned same = same_digit(digit), before = same & ((1u << lane) - 1);
        uint32_t seen = 0;
        if (there) seen = places[warp][digit];
        __syncwarp();
        if (there && before == 0) places[warp][digit] = seen + (uint32_t)__popc(same);
        __syncwarp();
        rank[j] = seen + (uint32_t)__popc(before);
    }
    uint32_t sum = digit_begins(a.totals + line * DIGITS) +
                   a.counts[(line * DIGITS + threadIdx.x) * a.tiles + tile];
    for (int w = 0; w < WARPS; w++) { /* digit_begins has waited for all of the block */
        const uint32_t x = places[w][threadIdx.x];
        places[w][threadIdx.x] = sum;
        sum += x;
    }
    __syncthreads();
#pragma unroll
    for (int j = 0; j < EACH; j++) {
        const int64_t i = first + j * 32;
        if (i >= a.n) continue;
        const int64_t to = line * a.n + places[warp][digit_of(key[j], a.shift)] + rank[j];
        a.to[to] = key[j];
        a.value_to[to] = a.value ? a.value[line * a.n + i] : (uint32_t)i;
    }
}

template <typename K> static int sort(const fth__radix *r, int bits, cudaStream_t stream)
{
    args<K> a = {};
    a.counts = r->counts;
    a.totals = r->totals;
    a.n = r->n;
    a.tiles = tiles_of(r->wide, r->n);
    a.line_digits = r->lines * DIGITS;
    int at = 0;
    const unsigned blocks = (unsigned)(r->lines * a.tiles);
    for (a.shift = 0; a.shift < bits || a.shift == 0; a.shift += BITS) {
        a.from = (const K *)r->key[at];
        a.to = (K *)r->key[1 - at];
        a.value = a.shift ? r->value[at] : NULL;
        a.value_to = r->value[1 - at];
        FTH_LAUNCH(count<K>, blocks, THREADS, stream, a);
        FTH_LAUNCH(place<K>, (unsigned)((a.line_digits + WARPS - 1) / WARPS), THREADS, stream, a);
        FTH_LAUNCH(put<K>, blocks, THREADS, stream, a);
        at = 1 - at;
    }
    return at;
}

int fth__radix_sort(const fth__radix *r, int bits, cudaStream_t stream)
{
    return r->wide ? sort<uint64_t>(r, bits, stream) : sort<uint32_t>(r, bits, stream);
}
