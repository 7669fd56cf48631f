/* fathom/cuda_sort.h - for kernels of the CUDA backend: a stable radix sort and an exclusive scan.
 *
 * Both are queued on a stream, work in memory of the caller, and may read the number of elements
 * from device memory: planned for n, they process the first min(*count, n) without a wait of the
 * host. The results depend on the elements alone.
 *
 * Sort: eight bits per pass, lowest first. Each tile counts its digits; a scan over digits and
 * tiles turns the counts into positions; each tile then scatters its keys. Inside a tile a warp
 * owns neighbouring keys and ranks equal digits by lane, so the sort is stable.
 */
#ifndef FATHOM_CUDA_SORT_H
#define FATHOM_CUDA_SORT_H

#include <fathom/cuda.h>

enum { FTH_CUDA_SORT_THREADS = 256, FTH_CUDA_SORT_DIGITS = 256, FTH_CUDA_SCAN_TILE = 2048 };

static inline uint64_t fth_cuda_sort_room(int64_t n, uint64_t size)
{
    return ((uint64_t)n * size + 63) / 64 * 64;
}

/* ---- a stable sort of keys, with values ---- */

/* Keys are unsigned numbers of 16, 32 or 64 bits; `lines` of n < 2^32 lie one behind the other. */
template <typename K> struct fth_cuda_radix {
    K *key[2]; /* the caller fills key[0], and value[0] unless values are positions */
    uint32_t *value[2];
    uint32_t *counts, *totals;
    int64_t lines, n;
    const uint64_t *count; /* in the device's memory: of each line, the first so many; NULL: all */
    bool positions;        /* values begin as the position of a key in its line */
};

template <typename K> constexpr int fth_cuda_radix_each()
{
    return sizeof(K) == 8 ? 8 : 16; /* keys of a thread */
}
template <typename K> constexpr int64_t fth_cuda_radix_tile()
{
    return FTH_CUDA_SORT_THREADS * fth_cuda_radix_each<K>();
}
template <typename K> int64_t fth_cuda_radix_tiles(int64_t n)
{
    return (n + fth_cuda_radix_tile<K>() - 1) / fth_cuda_radix_tile<K>();
}

/* Bytes of workspace, and the arrays inside it. */
template <typename K> uint64_t fth_cuda_radix_bytes(int64_t lines, int64_t n)
{
    return 2 * fth_cuda_sort_room(lines * n, sizeof(K)) + 2 * fth_cuda_sort_room(lines * n, 4) +
           fth_cuda_sort_room(lines * fth_cuda_radix_tiles<K>(n) * FTH_CUDA_SORT_DIGITS, 4) +
           fth_cuda_sort_room(lines * FTH_CUDA_SORT_DIGITS, 4);
}

template <typename K> fth_cuda_radix<K> fth_cuda_radix_in(void *scratch, int64_t lines, int64_t n)
{
    fth_cuda_radix<K> r = {};
    char *at = (char *)scratch;
    for (int i = 0; i < 2; i++, at += fth_cuda_sort_room(lines * n, sizeof(K))) r.key[i] = (K *)at;
    for (int i = 0; i < 2; i++, at += fth_cuda_sort_room(lines * n, 4)) r.value[i] = (uint32_t *)at;
    r.counts = (uint32_t *)at;
    r.totals = (uint32_t *)(at + fth_cuda_sort_room(
                                     lines * fth_cuda_radix_tiles<K>(n) * FTH_CUDA_SORT_DIGITS, 4));
    r.lines = lines;
    r.n = n;
    r.positions = true;
    return r;
}

#ifdef __CUDACC__
/* One pass. */
template <typename K> struct fth_cuda_radix_pass {
    const K *from;
    K *to;
    const uint32_t *value; /* NULL: the position itself */
    uint32_t *value_to, *counts, *totals;
    const uint64_t *count;
    int64_t n, tiles, line_digits;
    int shift;
    unsigned mask;
};

static __device__ inline int64_t fth_cuda_live(const uint64_t *count, int64_t n)
{
    return count && *count < (uint64_t)n ? (int64_t)*count : n;
}

template <typename K>
static __device__ inline unsigned fth_cuda_digit(const fth_cuda_radix_pass<K> &p, K key)
{
    return (unsigned)(key >> p.shift) & p.mask;
}

template <typename K> static __global__ void fth_cuda_radix_count(const fth_cuda_radix_pass<K> p)
{
    __shared__ unsigned counts[FTH_CUDA_SORT_DIGITS];
    const int64_t line = blockIdx.x / p.tiles, tile = blockIdx.x - line * p.tiles,
                  first = tile * fth_cuda_radix_tile<K>(), n = fth_cuda_live(p.count, p.n);
    if (first >= n) return;
    const K *from = p.from + line * p.n;
    counts[threadIdx.x] = 0;
    __syncthreads();
    for (int j = 0; j < fth_cuda_radix_each<K>(); j++) {
        const int64_t i = first + j * FTH_CUDA_SORT_THREADS + threadIdx.x;
        if (i < n) atomicAdd(&counts[fth_cuda_digit(p, from[i])], 1u);
    }
    __syncthreads();
    p.counts[(line * FTH_CUDA_SORT_DIGITS + threadIdx.x) * p.tiles + tile] = counts[threadIdx.x];
}

/* Sum over the lanes up to this one. */
template <typename T> static __device__ inline T fth_cuda_up_to_lane(T x)
{
    const unsigned lane = threadIdx.x & 31;
    for (unsigned d = 1; d < 32; d *= 2) {
        const T other = __shfl_up_sync(~0u, x, d);
        if (lane >= d) x += other;
    }
    return x;
}

/* Counts of one digit of one line, tile by tile, to the sum of those before; a warp each. */
template <typename K> static __global__ void fth_cuda_radix_place(const fth_cuda_radix_pass<K> p)
{
    const unsigned lane = threadIdx.x & 31;
    const int64_t which = (int64_t)blockIdx.x * (FTH_CUDA_SORT_THREADS / 32) + threadIdx.x / 32,
                  n = fth_cuda_live(p.count, p.n),
                  tiles = (n + fth_cuda_radix_tile<K>() - 1) / fth_cuda_radix_tile<K>();
    if (which >= p.line_digits) return;
    constexpr int EACH = 8; /* of a lane at a time, so that many loads are on their way */
    uint32_t *counts = p.counts + which * p.tiles, done = 0;
    for (int64_t at = 0; at < tiles; at += 32 * EACH) {
        const int64_t first = at + lane * EACH;
        uint32_t x[EACH], mine = 0;
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            x[j] = first + j < tiles ? counts[first + j] : 0;
            mine += x[j];
        }
        const uint32_t sum = fth_cuda_up_to_lane(mine);
        uint32_t before = done + sum - mine;
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            if (first + j < tiles) counts[first + j] = before;
            before += x[j];
        }
        done += __shfl_sync(~0u, sum, 31);
    }
    if (lane == 0) p.totals[which] = done;
}

/* Sum of x over the threads before this one, of a block of 256. */
template <typename T> static __device__ T fth_cuda_before(T x, T *all)
{
    __shared__ T of_warp[FTH_CUDA_SORT_THREADS / 32];
    const T sum = fth_cuda_up_to_lane(x);
    T before = sum - x, total = 0;
    __syncthreads(); /* whoever called this before has read */
    if ((threadIdx.x & 31) == 31) of_warp[threadIdx.x / 32] = sum;
    __syncthreads();
    for (unsigned w = 0; w < FTH_CUDA_SORT_THREADS / 32; w++) {
        if (w < threadIdx.x / 32) before += of_warp[w];
        total += of_warp[w];
    }
    if (all) *all = total;
    return before;
}

/* Lanes with the same digit as this one. */
static __device__ inline unsigned fth_cuda_same_digit(unsigned digit)
{
    unsigned same = ~0u;
    for (int bit = 0; bit <= 8; bit++) {
        const unsigned yes = __ballot_sync(~0u, digit >> bit & 1);
        same &= digit >> bit & 1 ? yes : ~yes;
    }
    return same;
}

/* Keys are put in order inside their tile first, so that those of a digit are written side by side.
 */
template <typename K>
static __global__ void __launch_bounds__(FTH_CUDA_SORT_THREADS, 4)
    fth_cuda_radix_put(const fth_cuda_radix_pass<K> p)
{
    constexpr int EACH = fth_cuda_radix_each<K>(), WARPS = FTH_CUDA_SORT_THREADS / 32;
    constexpr int TILE = FTH_CUDA_SORT_THREADS * EACH;
    __shared__ uint32_t places[WARPS][FTH_CUDA_SORT_DIGITS], begins[FTH_CUDA_SORT_DIGITS];
    __shared__ K keys[TILE];
    __shared__ uint32_t values[TILE];
    const int64_t line = blockIdx.x / p.tiles, tile = blockIdx.x - line * p.tiles,
                  n = fth_cuda_live(p.count, p.n), origin = tile * TILE;
    if (origin >= n) return;
    const int here = n - origin < TILE ? (int)(n - origin) : TILE;
    const unsigned lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    const int first = (int)(warp * (32 * EACH) + lane);
    const K *from = p.from + line * p.n + origin;
    K key[EACH];
    uint32_t rank[EACH];
    for (unsigned d = lane; d < FTH_CUDA_SORT_DIGITS; d += 32) places[warp][d] = 0;
    __syncwarp();
#pragma unroll
    for (int j = 0; j < EACH; j++) key[j] = first + j * 32 < here ? from[first + j * 32] : (K)0;
#pragma unroll
    for (int j = 0; j < EACH; j++) {
        const bool there = first + j * 32 < here;
        const unsigned digit = there ? fth_cuda_digit(p, key[j]) : (unsigned)FTH_CUDA_SORT_DIGITS;
        const unsigned same = fth_cuda_same_digit(digit), before = same & ((1u << lane) - 1);
        uint32_t seen = 0;
        if (there) seen = places[warp][digit];
        __syncwarp();
        if (there && before == 0) places[warp][digit] = seen + (uint32_t)__popc(same);
        __syncwarp();
        rank[j] = seen + (uint32_t)__popc(before);
    }
    __syncthreads();
    const int64_t mine = line * FTH_CUDA_SORT_DIGITS + threadIdx.x; /* a thread has a digit */
    uint32_t count = 0;
    for (int w = 0; w < WARPS; w++) count += places[w][threadIdx.x];
    uint32_t sum = fth_cuda_before(count, (uint32_t *)NULL);
    begins[threadIdx.x] =
        fth_cuda_before(p.totals[mine], (uint32_t *)NULL) + p.counts[mine * p.tiles + tile] - sum;
    for (int w = 0; w < WARPS; w++) {
        const uint32_t x = places[w][threadIdx.x];
        places[w][threadIdx.x] = sum;
        sum += x;
    }
    __syncthreads();
#pragma unroll
    for (int j = 0; j < EACH; j++) {
        const int i = first + j * 32;
        if (i >= here) continue;
        const uint32_t to = places[warp][fth_cuda_digit(p, key[j])] + rank[j];
        keys[to] = key[j];
        values[to] = p.value ? p.value[line * p.n + origin + i] : (uint32_t)(origin + i);
    }
    __syncthreads();
    for (int i = (int)threadIdx.x; i < here; i += FTH_CUDA_SORT_THREADS) {
        const K k = keys[i];
        const uint32_t to = begins[fth_cuda_digit(p, k)] + (uint32_t)i;
        p.to[line * p.n + to] = k;
        p.value_to[line * p.n + to] = values[i];
    }
}

/* By the bits [low, high) of the keys. Afterwards key[k] is in order, value[k] has gone with it; k
 * is returned. At least one pass is made, so that positions become values. */
template <typename K>
static int fth_cuda_radix_sort(const fth_cuda_radix<K> *r, int low, int high, cudaStream_t stream)
{
    fth_cuda_radix_pass<K> p = {};
    p.counts = r->counts;
    p.totals = r->totals;
    p.count = r->count;
    p.n = r->n;
    p.tiles = fth_cuda_radix_tiles<K>(r->n);
    p.line_digits = r->lines * FTH_CUDA_SORT_DIGITS;
    const unsigned blocks = (unsigned)(r->lines * p.tiles),
                   placers = (unsigned)((p.line_digits + 7) / 8);
    int at = 0;
    if (blocks == 0) return 0;
    for (p.shift = low; p.shift < high || p.shift == low; p.shift += 8) {
        const int bits = high - p.shift < 8 ? high - p.shift : 8;
        p.mask = bits > 0 ? (1u << bits) - 1 : 0;
        p.from = r->key[at];
        p.to = r->key[1 - at];
        p.value = r->positions && p.shift == low ? NULL : r->value[at];
        p.value_to = r->value[1 - at];
        FTH_LAUNCH(fth_cuda_radix_count<K>, blocks, FTH_CUDA_SORT_THREADS, stream, p);
        FTH_LAUNCH(fth_cuda_radix_place<K>, placers, FTH_CUDA_SORT_THREADS, stream, p);
        FTH_LAUNCH(fth_cuda_radix_put<K>, blocks, FTH_CUDA_SORT_THREADS, stream, p);
        at = 1 - at;
    }
    return at;
}

/* ---- sums of those before ---- */

template <typename T> struct fth_cuda_scan_work {
    const T *in;
    T *out;
    uint64_t *sums, *total;
    const uint64_t *count;
    int64_t n, tiles;
};

template <typename T> static __global__ void fth_cuda_scan_sums(const fth_cuda_scan_work<T> w)
{
    const int64_t first = (int64_t)blockIdx.x * FTH_CUDA_SCAN_TILE, n = fth_cuda_live(w.count, w.n);
    uint64_t sum = 0, all;
    if (first >= n) return;
    for (int j = 0; j < FTH_CUDA_SCAN_TILE; j += FTH_CUDA_SORT_THREADS)
        if (first + j + threadIdx.x < n) sum += w.in[first + j + threadIdx.x];
    (void)fth_cuda_before(sum, &all);
    if (threadIdx.x == 0) w.sums[blockIdx.x] = all;
}

/* One block: sums of tiles to the sums of those before, in order. */
template <typename T> static __global__ void fth_cuda_scan_tops(const fth_cuda_scan_work<T> w)
{
    const int64_t n = fth_cuda_live(w.count, w.n),
                  tiles = (n + FTH_CUDA_SCAN_TILE - 1) / FTH_CUDA_SCAN_TILE;
    constexpr int EACH = 8;
    uint64_t done = 0, all, x[EACH];
    for (int64_t at = 0; at < tiles; at += FTH_CUDA_SORT_THREADS * EACH) {
        const int64_t first = at + threadIdx.x * EACH;
        uint64_t mine = 0;
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            x[j] = first + j < tiles ? w.sums[first + j] : 0;
            mine += x[j];
        }
        uint64_t before = done + fth_cuda_before(mine, &all);
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            if (first + j < tiles) w.sums[first + j] = before;
            before += x[j];
        }
        done += all;
    }
    if (threadIdx.x == 0 && w.total) *w.total = done;
}

template <typename T> static __global__ void fth_cuda_scan_put(const fth_cuda_scan_work<T> w)
{
    constexpr int EACH = FTH_CUDA_SCAN_TILE / FTH_CUDA_SORT_THREADS;
    const int64_t first = (int64_t)blockIdx.x * FTH_CUDA_SCAN_TILE + threadIdx.x * EACH,
                  n = fth_cuda_live(w.count, w.n);
    if ((int64_t)blockIdx.x * FTH_CUDA_SCAN_TILE >= n) return;
    T x[EACH];
    uint64_t sum = 0;
#pragma unroll
    for (int j = 0; j < EACH; j++) {
        x[j] = first + j < n ? w.in[first + j] : (T)0;
        sum += x[j];
    }
    uint64_t done = w.sums[blockIdx.x] + fth_cuda_before(sum, (uint64_t *)NULL);
#pragma unroll
    for (int j = 0; j < EACH; j++) {
        if (first + j < n) w.out[first + j] = (T)done;
        done += x[j];
    }
}

static inline uint64_t fth_cuda_scan_bytes(int64_t n)
{
    return fth_cuda_sort_room((n + FTH_CUDA_SCAN_TILE - 1) / FTH_CUDA_SCAN_TILE, 8);
}

/* out[i] = in[0] + .. + in[i - 1], of unsigned numbers; in and out may be the same. *total, in the
 * device's memory, becomes the sum of all, in 64 bits, of nothing 0; `count` as in the sort, NULL:
 * n. */
template <typename T>
static void fth_cuda_scan(const T *in, T *out, int64_t n, const uint64_t *count, uint64_t *total,
                          void *scratch, cudaStream_t stream)
{
    fth_cuda_scan_work<T> w = {};
    w.in = in;
    w.out = out;
    w.sums = (uint64_t *)scratch;
    w.total = total;
    w.count = count;
    w.n = n;
    w.tiles = (n + FTH_CUDA_SCAN_TILE - 1) / FTH_CUDA_SCAN_TILE;
    if (w.tiles)
        FTH_LAUNCH(fth_cuda_scan_sums<T>, (unsigned)w.tiles, FTH_CUDA_SORT_THREADS, stream, w);
    FTH_LAUNCH(fth_cuda_scan_tops<T>, 1, FTH_CUDA_SORT_THREADS, stream, w);
    if (w.tiles)
        FTH_LAUNCH(fth_cuda_scan_put<T>, (unsigned)w.tiles, FTH_CUDA_SORT_THREADS, stream, w);
}
#endif

#endif /* FATHOM_CUDA_SORT_H */
