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
constexpr int64_t STAGE = 16 << 20; /* bytes that rows pass through where they close up */

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

struct chunk {
    const uint32_t *word; /* rows that go */
    const int64_t *before;
    int64_t n, kept, first, end; /* rows of the chunk */
};

/* Rows that stay before row `row` of a block's begin, or before the end. */
__device__ inline int64_t kept_before(const chunk &c, int64_t row)
{
    return row >= c.n ? c.kept : row - c.before[row / BLOCK];
}

template <int C> __global__ void take_rows(const float *at, float *stage, int any, const chunk c)
{
    const int columns = width<C>(any);
    const int lane = (int)(threadIdx.x % WORD), all = WORD * columns;
    const int64_t base = kept_before(c, c.first);
    for (int64_t w = c.first / WORD + first_warp(); w * WORD < c.end; w += all_warps()) {
        const marked gone = look(c.word, c.before, w);
        const int rows = (int)(c.end - w * WORD < WORD ? c.end - w * WORD : WORD);
        const uint32_t stays = ~gone.bits & (rows < WORD ? (1u << rows) - 1 : 0xffffffffu);
        const float *from = at + w * WORD * columns;
        float *to = stage + (w * WORD - gone.before - base) * columns;
        for (int e = lane; e < all; e += WORD) {
            const int r = e / columns;
            if (stays >> r & 1) to[rank_in(stays, r) * columns + e - r * columns] = from[e];
        }
    }
}

__global__ void put_rows(float *at, const float *stage, int columns, const chunk c)
{
    const int64_t base = kept_before(c, c.first), all = (kept_before(c, c.end) - base) * columns,
                  step = (int64_t)gridDim.x * blockDim.x;
    float *to = at + base * columns;
    for (int64_t e = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; e < all; e += step)
        to[e] = stage[e];
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

/* Whole blocks of rows that pass through the stage at once. */
int64_t rows_at_once(int columns)
{
    return STAGE / ((int64_t)columns * (int64_t)sizeof(float)) / BLOCK * BLOCK;
}

uint64_t close_scratch(const fth_call *call)
{
    const int columns = columns_of(call, 0);
    if (columns == 0) return 0;
    const int64_t most = rows_at_once(columns), n = call->in[0].extent[0];
    return (uint64_t)(n < most ? n : most) * (uint64_t)columns * sizeof(float);
}

bool supports_close(const fth_node *node)
{
    int64_t columns = 1;
    for (int d = 1; d < node->in[0].n_axes; d++) columns *= node->in[0].size[d];
    return columns <= STAGE / BLOCK / (int64_t)sizeof(float);
}

fth_status run_close(const fth_call *call)
{
    FTH_TRY(begin(call, 0));
    const gs_closing *a = (const gs_closing *)call->node->attr;
    const int columns = columns_of(call, 0);
    if (columns == 0 || a->n == 0) return FTH_OK;
    const int64_t most = rows_at_once(columns);
    float *at = (float *)call->out[0].data, *stage = (float *)call->scratch;
    chunk c = {};
    c.word = (const uint32_t *)call->in[GS_CLOSE_WORDS].data;
    c.before = (const int64_t *)call->in[GS_CLOSE_BEFORE].data;
    c.n = a->n;
    c.kept = a->kept;
    for (c.first = a->first / BLOCK * BLOCK; c.first < a->n; c.first = c.end) {
        c.end = c.first + most < a->n ? c.first + most : a->n;
        const unsigned blocks = blocks_of((c.end - c.first + WORD - 1) / WORD);
        BY_COLUMNS(take_rows, blocks, (const float *)at, stage, columns, c)
        FTH_LAUNCH(put_rows, blocks, THREADS, fth_cuda_stream(call), at, (const float *)stage,
                   columns, c);
    }
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}
} // namespace

FTH_CUDA_KERNEL(splat_candidates) = {.op = "splat_candidates", .run = run_candidates};
FTH_CUDA_KERNEL(splat_unwanted) = {.op = "splat_unwanted", .run = run_unwanted};
FTH_CUDA_KERNEL(splat_split) = {.op = "splat_split", .run = run_split};
FTH_CUDA_KERNEL(splat_copy) = {.op = "splat_copy", .run = run_copy};
FTH_CUDA_KERNEL(splat_close) = {
    .op = "splat_close", .supports = supports_close, .scratch = close_scratch, .run = run_close};
