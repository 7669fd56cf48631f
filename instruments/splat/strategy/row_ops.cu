/* row_ops.cu - densification of rows on a device.
 *
 * A warp has 32 rows: the word of their marks, and their ranks from the words of the block before
 * it and the count of earlier blocks. The numbers of rows that lie together are read and written
 * together, so rows that become two, all or few of them, are whole sectors.
 */
#include <fathom/cuda.h>
#include <fathom/fathom.h>

#include <math.h>

#define GS_BOTH __host__ __device__

namespace
{
#include "children.h"
#include "row_ops.h"

enum { THREADS = 256, WORD = 32, BLOCK = 1024, WORDS = BLOCK / WORD };

__device__ inline int64_t first_warp()
{
    return ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / WORD;
}
__device__ inline int64_t all_warps()
{
    return (int64_t)gridDim.x * blockDim.x / WORD;
}

/* The marks of word w, and how many rows are marked before it. All lanes of a warp ask. */
struct marked {
    uint32_t bits;
    int64_t before;
};
__device__ inline marked look(const uint32_t *word, const int64_t *before, int64_t w)
{
    const int lane = (int)(threadIdx.x % WORD), at = (int)(w % WORDS);
    const uint32_t mine = word[w - at + lane];
    int earlier = lane < at ? __popc(mine) : 0;
    for (int k = WORD / 2; k > 0; k /= 2) earlier += __shfl_xor_sync(0xffffffffu, earlier, k);
    return {__shfl_sync(0xffffffffu, mine, at), before[w / WORDS] + earlier};
}
__device__ inline int rank_in(uint32_t bits, int r)
{
    return __popc(bits & ((1u << r) - 1));
}

/* ---- marks ---- */

__global__ void candidates(const float *seen, const float *scaling, int64_t n, int64_t words,
                           float high, float small, uint32_t *dup, uint32_t *split)
{
    const int lane = (int)(threadIdx.x % WORD);
    for (int64_t w = first_warp(); w < words; w += all_warps()) {
        const int64_t row = w * WORD + lane;
        const bool grows = row < n && gs_gradient(seen + 2 * row) > high;
        const bool tiny = grows && gs_largest(scaling + 3 * row) <= small;
        const uint32_t copies = __ballot_sync(0xffffffffu, grows && tiny),
                       splits = __ballot_sync(0xffffffffu, grows && !tiny);
        if (lane == 0 && dup) dup[w] = copies;
        if (lane == 0 && split) split[w] = splits;
    }
}

__global__ void unwanted(const float *scaling, const float *rotation, const float *opacity,
                         int64_t n, int64_t words, float faint, float huge, uint32_t *gone)
{
    const int lane = (int)(threadIdx.x % WORD);
    for (int64_t w = first_warp(); w < words; w += all_warps()) {
        const int64_t row = w * WORD + lane;
        const bool goes = row < n && gs_is_unwanted(scaling + 3 * row, rotation + 4 * row,
                                                    opacity[row], faint, huge);
        const uint32_t bits = __ballot_sync(0xffffffffu, goes);
        if (lane == 0) gone[w] = bits;
    }
}

/* A warp counts a block of rows. */
__global__ void count_blocks(const uint32_t *word, int64_t *before, int64_t blocks)
{
    const int lane = (int)(threadIdx.x % WORD);
    for (int64_t b = first_warp(); b < blocks; b += all_warps()) {
        int n = __popc(word[b * WORDS + lane]);
        for (int k = WORD / 2; k > 0; k /= 2) n += __shfl_xor_sync(0xffffffffu, n, k);
        if (lane == 0) before[b] = n;
    }
}

__device__ inline int64_t marked_in(const uint32_t *word, int64_t b)
{
    int64_t n = 0;
    for (int w = 0; w < WORDS; w++) n += __popc(word[b * WORDS + w]);
    return n;
}

/* Counts of blocks become those of all before them. One block of 1024 threads, each with some that
 * follow each other. Where only the total is wanted `before` is NULL, and the words are counted
 * here. */
__global__ void __launch_bounds__(1024)
    add_blocks(const uint32_t *word, int64_t *before, int64_t blocks, int64_t *count)
{
    __shared__ int64_t of_warp[WORD];
    const int lane = (int)(threadIdx.x % WORD), warp = (int)(threadIdx.x / WORD);
    const int64_t each = (blocks + 1023) / 1024, from = (int64_t)threadIdx.x * each,
                  end = from + each < blocks ? from + each : blocks;
    int64_t mine = 0;
    for (int64_t b = from; b < end; b++) mine += before ? before[b] : marked_in(word, b);
    int64_t sum = mine; /* of the lanes up to this one */
    for (int k = 1; k < WORD; k *= 2) {
        const int64_t other = __shfl_up_sync(0xffffffffu, sum, (unsigned)k);
        if (lane >= k) sum += other;
    }
    if (lane == WORD - 1) of_warp[warp] = sum;
    __syncthreads();
    sum -= mine;
    for (int w = 0; w < warp; w++) sum += of_warp[w];
    for (int64_t b = from; before && b < end; b++) {
        const int64_t here = before[b];
        before[b] = sum;
        sum += here;
    }
    if (threadIdx.x == 1023 && count) *count = before ? sum : sum + mine;
}

/* ---- random numbers: those of fth_random_normal_at ---- */

__device__ inline double normal_at(uint64_t key, uint32_t iteration, uint64_t index)
{
    uint32_t a = (uint32_t)index, b = (uint32_t)(index >> 32), c = iteration, d = GS_STREAM_SPLIT,
             k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int round = 0; round < 10; round++) {
        const uint64_t p = (uint64_t)a * 0xD2511F53u, q = (uint64_t)c * 0xCD9E8D57u;
        a = (uint32_t)(q >> 32) ^ b ^ k0;
        b = (uint32_t)q;
        c = (uint32_t)(p >> 32) ^ d ^ k1;
        d = (uint32_t)p;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    const double u = 1 - ((double)(b >> 6) * 134217728.0 + (double)(a >> 5)) * 0x1p-53,
                 angle = ((double)(d >> 6) * 134217728.0 + (double)(c >> 5)) * 0x1p-53;
    return sqrt(-2 * log(u)) * cos(6.2831853071795865 * angle);
}

/* ---- growing ---- */

struct growth {
    const uint32_t *word[2]; /* of duplicates and splits */
    const int64_t *before[2];
    int64_t n, words, to[2]; /* where copies and second children begin */
};

struct shapes {
    float *means, *scaling, *rotation, *opacity;
};

__device__ inline void split_row(const shapes &s, int64_t row, int64_t second, const gs_growth &a)
{
    float mean[2][3], q[4];
    for (int k = 0; k < 4; k++) q[k] = s.rotation[4 * row + k];
    for (int child = 0; child < 2; child++) {
        double e[3];
        for (int k = 0; k < 3; k++)
            e[k] = normal_at((uint64_t)a.seed, (uint32_t)a.iteration,
                             (uint64_t)gs_child_index(row, child, k));
        gs_child_mean(s.means + 3 * row, s.scaling + 3 * row, q, e, mean[child]);
    }
    const float opacity = a.revised_opacity ? gs_child_opacity(s.opacity[row]) : s.opacity[row];
    for (int k = 0; k < 3; k++) {
        const float scaling = gs_child_scaling(s.scaling[3 * row + k]);
        s.scaling[3 * row + k] = s.scaling[3 * second + k] = scaling;
        s.means[3 * row + k] = mean[0][k];
        s.means[3 * second + k] = mean[1][k];
    }
    for (int k = 0; k < 4; k++) s.rotation[4 * second + k] = q[k];
    s.opacity[row] = s.opacity[second] = opacity;
}

__device__ inline void copy_row(const shapes &s, int64_t row, int64_t to)
{
    for (int k = 0; k < 3; k++) {
        s.means[3 * to + k] = s.means[3 * row + k];
        s.scaling[3 * to + k] = s.scaling[3 * row + k];
    }
    for (int k = 0; k < 4; k++) s.rotation[4 * to + k] = s.rotation[4 * row + k];
    s.opacity[to] = s.opacity[row];
}

__global__ void split(const shapes s, const growth f, const gs_growth a)
{
    const int lane = (int)(threadIdx.x % WORD);
    for (int64_t w = first_warp(); w < f.words; w += all_warps()) {
        const marked dup = look(f.word[0], f.before[0], w), two = look(f.word[1], f.before[1], w);
        const int64_t row = w * WORD + lane;
        if (dup.bits >> lane & 1) copy_row(s, row, f.to[0] + dup.before + rank_in(dup.bits, lane));
        if (two.bits >> lane & 1)
            split_row(s, row, f.to[1] + two.before + rank_in(two.bits, lane), a);
    }
}

/* Numbers of a row: known to the compiler where C is not 0, so that it divides by a constant. */
template <int C> __device__ inline int width(int columns)
{
    return C ? C : columns;
}
#define BY_COLUMNS(kernel, blocks, ...)                                                            \
    switch (columns) {                                                                             \
    case 1: FTH_LAUNCH(kernel<1>, blocks, THREADS, fth_cuda_stream(call), __VA_ARGS__); break;     \
    case 3: FTH_LAUNCH(kernel<3>, blocks, THREADS, fth_cuda_stream(call), __VA_ARGS__); break;     \
    case 4: FTH_LAUNCH(kernel<4>, blocks, THREADS, fth_cuda_stream(call), __VA_ARGS__); break;     \
    case 45: FTH_LAUNCH(kernel<45>, blocks, THREADS, fth_cuda_stream(call), __VA_ARGS__); break;   \
    default: FTH_LAUNCH(kernel<0>, blocks, THREADS, fth_cuda_stream(call), __VA_ARGS__);           \
    }

/* Numbers of marked rows of one word go to rows that follow each other. */
__device__ __forceinline__ void copy_word(float *at, marked m, int64_t w, int64_t to, int columns)
{
    const int lane = (int)(threadIdx.x % WORD), all = WORD * columns;
    const float *from = at + w * WORD * columns;
    float *target = at + (to + m.before) * columns;
    if (m.bits == 0) return;
    if (m.bits == 0xffffffffu) {
#pragma unroll 4
        for (int e = lane; e < all; e += WORD) target[e] = from[e];
        return;
    }
    for (int e = lane; e < all; e += WORD) {
        const int r = e / columns;
        if (m.bits >> r & 1) target[rank_in(m.bits, r) * columns + e - r * columns] = from[e];
    }
}

template <int C> __global__ void copy_rows(float *at, int any, const growth f)
{
    const int columns = width<C>(any);
    for (int64_t w = first_warp(); w < f.words; w += all_warps())
        for (int k = 0; k < 2; k++)
            copy_word(at, look(f.word[k], f.before[k], w), w, f.to[k], columns);
}

template <int C> __global__ void clear_rows(float *at, int any, const uint32_t *word, int64_t words)
{
    const int columns = width<C>(any);
    const int lane = (int)(threadIdx.x % WORD);
    for (int64_t w = first_warp(); w < words; w += all_warps()) {
        const uint32_t bits = word[w];
        float *to = at + w * WORD * columns;
        const bool all = bits == 0xffffffffu;
        for (int e = lane; bits != 0 && e < WORD * columns; e += WORD)
            if (all || bits >> e / columns & 1) to[e] = 0;
    }
}

/* ---- closing up ---- */

/* Rows move down where they lie, chunk by chunk: a block has one in shared memory, says so, and
 * writes it when the chunks whose place it takes have been read. Chunks are given out in order, so
 * those have been by blocks that run or have ended, and nobody waits for ever. */
constexpr int CLOSE_BYTES = 48 << 10, CLOSE_BLOCKS = 4 /* of a multiprocessor */, UNDER_WAY = 8;

struct closing {
    const uint32_t *word; /* rows that go */
    const int64_t *before;
    int64_t n, kept;   /* rows, and those that stay */
    int64_t rows;      /* of a chunk, whole words */
    uint32_t *next;    /* the chunk to give out */
    uint32_t *is_read; /* [chunk] */
};

/* Rows that stay before one that begins a word, or before the end. All lanes of a warp ask. */
__device__ inline int64_t kept_before(const closing &c, int64_t row)
{
    return row >= c.n ? c.kept : row - look(c.word, c.before, row / WORD).before;
}

/* Rows of one word that stay, one behind the other. */
template <int C>
__device__ inline void take_word(const closing &c, const float *at, int columns, int64_t w,
                                 int64_t base, float *staged)
{
    const int lane = (int)(threadIdx.x % WORD), all = WORD * columns;
    const marked gone = look(c.word, c.before, w);
    const int rows = (int)(c.n - w * WORD < WORD ? c.n - w * WORD : WORD);
    const uint32_t stays = ~gone.bits & (rows < WORD ? (1u << rows) - 1 : 0xffffffffu);
    const float *from = at + w * WORD * columns;
    float *to = staged + (w * WORD - gone.before - base) * columns;
    for (int first = lane; first < all; first += WORD * UNDER_WAY) {
        float got[UNDER_WAY];
#pragma unroll
        for (int k = 0; k < UNDER_WAY; k++) {
            const int e = first + WORD * k;
            if (e < all && stays >> e / columns & 1) got[k] = __ldcs(from + e);
        }
#pragma unroll
        for (int k = 0; k < UNDER_WAY; k++) {
            const int e = first + WORD * k, r = e / columns;
            if (e < all && stays >> r & 1)
                to[rank_in(stays, r) * columns + e - r * columns] = got[k];
        }
    }
}

/* Chunks before `mine` that rows [from, end) lie in have been read. One thread asks. */
__device__ inline void wait_for(const closing &c, int64_t mine, int64_t from, int64_t end)
{
    const int64_t last = (end - 1) / c.rows;
    for (int64_t k = from / c.rows; k <= last && k < mine; k++)
        while (((volatile const uint32_t *)c.is_read)[k] == 0) {
        }
    __threadfence();
}

template <int C>
__global__ void __launch_bounds__(THREADS, CLOSE_BLOCKS)
    close_rows(float *at, int any, const closing c)
{
    __shared__ uint32_t given;
    FTH_SHARED(float, staged);
    const int columns = width<C>(any);
    for (;;) {
        __syncthreads(); /* the chunk before is written */
        if (threadIdx.x == 0) given = atomicAdd(c.next, 1u);
        __syncthreads();
        const int64_t mine = given, from = mine * c.rows,
                      end = from + c.rows < c.n ? from + c.rows : c.n;
        if (from >= c.n) return;
        const int64_t base = kept_before(c, from), kept = kept_before(c, end) - base;
        const bool stays = base == from && kept == end - from; /* where it is */
        for (int64_t w = from / WORD + threadIdx.x / WORD; !stays && w * WORD < end;
             w += THREADS / WORD)
            take_word<C>(c, at, columns, w, base, staged);
        __syncthreads();
        if (threadIdx.x == 0) {
            __threadfence();
            ((volatile uint32_t *)c.is_read)[mine] = 1;
            if (kept > 0 && !stays) wait_for(c, mine, base, base + kept);
        }
        __syncthreads();
        if (stays) continue;
        float *to = at + base * columns;
        for (int e = (int)threadIdx.x; e < kept * columns; e += THREADS) __stcs(to + e, staged[e]);
    }
}

/* ---- calls ---- */

int columns_of(const fth_call *call, int i)
{
    int64_t columns = 1;
    for (int d = 1; d < call->node->in[i].n_axes; d++) columns *= call->in[i].extent[d];
    return (int)columns;
}

unsigned blocks_of(int64_t words)
{
    return fth_cuda_blocks(words * WORD, THREADS);
}

/* Where the output lies elsewhere, it begins as the input. */
fth_status begin(const fth_call *call, int i)
{
    const uint64_t bytes = (uint64_t)(call->in[i].extent[0] * columns_of(call, i)) * sizeof(float);
    if (call->out[i].data == call->in[i].data || bytes == 0) return FTH_OK;
    FTH_CUDA_TRY(cudaMemcpyAsync(call->out[i].data, call->in[i].data, bytes,
                                 cudaMemcpyDeviceToDevice, fth_cuda_stream(call)),
                 "copying rows", call->err);
    return FTH_OK;
}

growth growth_of(const fth_call *call, int first)
{
    const gs_growth *a = (const gs_growth *)call->node->attr;
    const fth_tile *m = &call->in[first];
    growth f = {};
    for (int k = 0; k < 2; k++) {
        f.word[k] = (const uint32_t *)m[GS_DUP_WORDS + k].data;
        f.before[k] = (const int64_t *)m[GS_DUP_BEFORE + k].data;
    }
    f.n = a->n;
    f.words = m[0].extent[0];
    f.to[0] = a->n;
    f.to[1] = a->n + a->dups;
    return f;
}

fth_status run_candidates(const fth_call *call)
{
    const gs_candidates *a = (const gs_candidates *)call->node->attr;
    const int64_t words = call->out[0].extent[0];
    if (words == 0) return FTH_OK;
    FTH_LAUNCH(candidates, blocks_of(words), THREADS, fth_cuda_stream(call),
               (const float *)call->in[0].data, (const float *)call->in[1].data,
               call->in[0].extent[0], words, a->high, a->small, (uint32_t *)call->out[0].data,
               (uint32_t *)call->out[1].data);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

fth_status run_unwanted(const fth_call *call)
{
    const gs_unwanted *a = (const gs_unwanted *)call->node->attr;
    const int64_t words = call->out[0].extent[0];
    if (words == 0) return FTH_OK;
    FTH_LAUNCH(unwanted, blocks_of(words), THREADS, fth_cuda_stream(call),
               (const float *)call->in[0].data, (const float *)call->in[1].data,
               (const float *)call->in[2].data, call->in[0].extent[0], words, a->faint, a->huge,
               (uint32_t *)call->out[0].data);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

fth_status run_count(const fth_call *call)
{
    const int64_t blocks = call->out[0].extent[0];
    const uint32_t *word = (const uint32_t *)call->in[0].data;
    int64_t *before = (int64_t *)call->out[0].data; /* NULL: only the total is wanted */
    if (blocks > 0 && before)
        FTH_LAUNCH(count_blocks, blocks_of(blocks), THREADS, fth_cuda_stream(call), word, before,
                   blocks);
    FTH_LAUNCH(add_blocks, 1, 1024, fth_cuda_stream(call), word, before, blocks,
               (int64_t *)call->out[1].data);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

fth_status run_split(const fth_call *call)
{
    for (int i = 0; i < GS_SPLIT_PARTS; i++) FTH_TRY(begin(call, i));
    const growth f = growth_of(call, GS_SPLIT_PARTS);
    const shapes s = {
        (float *)call->out[GS_SPLIT_MEANS].data, (float *)call->out[GS_SPLIT_SCALING].data,
        (float *)call->out[GS_SPLIT_ROTATION].data, (float *)call->out[GS_SPLIT_OPACITY].data};
    if (f.words == 0) return FTH_OK;
    FTH_LAUNCH(split, blocks_of(f.words), THREADS, fth_cuda_stream(call), s, f,
               *(const gs_growth *)call->node->attr);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

fth_status run_copy(const fth_call *call)
{
    FTH_TRY(begin(call, 0));
    const gs_growth *a = (const gs_growth *)call->node->attr;
    const growth f = growth_of(call, 1);
    const int columns = columns_of(call, 0);
    if (f.words == 0 || columns == 0) return FTH_OK;
    float *at = (float *)call->out[0].data;
    if (a->moments)
        BY_COLUMNS(clear_rows, blocks_of(f.words), at, columns, f.word[1], f.words)
    else
        BY_COLUMNS(copy_rows, blocks_of(f.words), at, columns, f)
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

/* Whole words of rows that a block has at once. */
int64_t rows_at_once(int columns)
{
    return CLOSE_BYTES / (columns * (int)sizeof(float)) / WORD * WORD;
}

uint64_t close_scratch(const fth_call *call)
{
    const int columns = columns_of(call, 0);
    if (columns == 0) return 0;
    const int64_t rows = rows_at_once(columns), n = call->in[0].extent[0];
    return (uint64_t)((n + rows - 1) / rows + 1) * sizeof(uint32_t);
}

bool supports_close(const fth_node *node)
{
    int64_t columns = 1;
    for (int d = 1; d < node->in[0].n_axes; d++) columns *= node->in[0].size[d];
    return columns <= CLOSE_BYTES / WORD / (int64_t)sizeof(float);
}

fth_status run_close(const fth_call *call)
{
    FTH_TRY(begin(call, 0));
    const gs_closing *a = (const gs_closing *)call->node->attr;
    const cudaStream_t stream = fth_cuda_stream(call);
    const int columns = columns_of(call, 0);
    if (columns == 0 || a->n == 0) return FTH_OK;
    float *at = (float *)call->out[0].data;
    closing c = {};
    c.word = (const uint32_t *)call->in[GS_CLOSE_WORDS].data;
    c.before = (const int64_t *)call->in[GS_CLOSE_BEFORE].data;
    c.n = a->n;
    c.kept = a->kept;
    c.rows = rows_at_once(columns);
    c.next = (uint32_t *)call->scratch;
    c.is_read = c.next + 1;
    const int64_t chunks = (c.n + c.rows - 1) / c.rows;
    FTH_CUDA_TRY(cudaMemsetAsync(c.next, 0, (size_t)(chunks + 1) * sizeof(uint32_t), stream),
                 "closing up rows", call->err);
    const unsigned blocks = (unsigned)(chunks < 1024 ? chunks : 1024);
    const size_t bytes = (size_t)c.rows * (size_t)columns * sizeof(float);
    switch (columns) {
    case 1: FTH_LAUNCH_SHARED(close_rows<1>, blocks, THREADS, bytes, stream, at, 1, c); break;
    case 3: FTH_LAUNCH_SHARED(close_rows<3>, blocks, THREADS, bytes, stream, at, 3, c); break;
    case 4: FTH_LAUNCH_SHARED(close_rows<4>, blocks, THREADS, bytes, stream, at, 4, c); break;
    case 45: FTH_LAUNCH_SHARED(close_rows<45>, blocks, THREADS, bytes, stream, at, 45, c); break;
    default: FTH_LAUNCH_SHARED(close_rows<0>, blocks, THREADS, bytes, stream, at, columns, c);
    }
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}
} // namespace

FTH_CUDA_KERNEL(splat_candidates) = {.op = "splat_candidates", .run = run_candidates};
FTH_CUDA_KERNEL(splat_unwanted) = {.op = "splat_unwanted", .run = run_unwanted};
FTH_CUDA_KERNEL(splat_count) = {.op = "splat_count", .run = run_count};
FTH_CUDA_KERNEL(splat_split) = {.op = "splat_split", .run = run_split};
FTH_CUDA_KERNEL(splat_copy) = {.op = "splat_copy", .run = run_copy};
FTH_CUDA_KERNEL(splat_close) = {
    .op = "splat_close", .supports = supports_close, .scratch = close_scratch, .run = run_close};
