/* ranked.cu - elements at places of the sorted order along an axis, and where they stand.
 *
 * Short lines are put in order in shared memory, a block each. Of long ones the key of each place
 * is found digit by digit from the first: the elements that agree so far are counted by their next
 * digit, and the counts say which it is. Counts are whole numbers, so their order cannot be seen.
 */
#include "base/assert.h"
#include "cuda/device/device.h"
#include "cuda/sort/order.cuh"

extern "C" {
#include "ops/ranked.h"
}

enum { THREADS = 256, DIGITS = 256 };
/* Elements of a line that a block counts, and lines at once, which bounds the scratch. */
static constexpr int64_t PIECE = 1 << 14, ROUND = 4096;

/* Of one place of one line. */
typedef struct wanted {
    uint64_t key;  /* its digits so far, in their bits */
    int64_t place; /* among those that agree */
} wanted;

typedef struct args {
    fth__walk line[FTH__RANKS]; /* in the operand, result r and its positions; bytes */
    int64_t rank[FTH__RANKS];
    char *value[FTH__RANKS], *position[FTH__RANKS]; /* NULL: not wanted */
    const char *in;
    int64_t n, step, lines, pieces;
    int dtype, size, ranks;
    /* scratch of a round; of each line and rank: */
    wanted *state;
    unsigned *counts; /* DIGITS */
    unsigned *equal;  /* elements with the key in each piece */
} args;

static int dim_of(const fth_node *node)
{
    return fth_desc_find(&node->in[0], ((const fth__ranked_attr *)node->attr)->axis);
}

static bool supports(const fth_node *node)
{
    return node->in[0].size[dim_of(node)] <= UINT32_MAX;
}

static __device__ inline uint64_t key_at(const args &a, const char *line, int64_t i)
{
    return fth__key_of(a.dtype, line + i * a.step, false);
}

static __device__ inline void put(const args &a, int64_t line, int r, int64_t from)
{
    const fth__place p = fth__walk_at(a.line[r], line);
    if (a.position[r]) *(int64_t *)(a.position[r] + p.at[2]) = from;
    if (!a.value[r]) return;
    const char *x = a.in + p.at[0] + from * a.step;
    char *to = a.value[r] + p.at[1];
    for (int b = 0; b < a.size; b++) to[b] = x[b];
}

template <int CAP> static __global__ void short_lines(const args a, unsigned size)
{
    __shared__ fth__short<CAP> s;
    for (int64_t line = blockIdx.x; line < a.lines; line += gridDim.x) {
        const char *in = a.in + fth__walk_at(a.line[0], line).at[0];
        __syncthreads();
        for (unsigned i = threadIdx.x; i < size; i += blockDim.x) {
            s.place[i] = i;
            s.key[i] = i < a.n ? key_at(a, in, i) : ~(uint64_t)0;
        }
        fth__short_sort(s, size);
        for (int r = (int)threadIdx.x; r < a.ranks; r += (int)blockDim.x)
            put(a, line, r, s.place[a.rank[r]]);
    }
}

static __global__ void begin(const args a, int64_t lines)
{
    for (int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x; k < lines * a.ranks;
         k += (int64_t)gridDim.x * THREADS) {
        a.state[k].key = 0;
        a.state[k].place = a.rank[k % a.ranks];
        for (int d = 0; d < DIGITS; d++) a.counts[k * DIGITS + d] = 0;
    }
}

/* A block has a piece of a line: its elements that agree with `done` digits, by the next. */
static __global__ void count(const args a, int64_t line_lo, int done)
{
    __shared__ unsigned counts[FTH__RANKS][DIGITS];
    const int64_t line = (int64_t)fth__walk_div(blockIdx.x, (uint64_t)a.pieces);
    const int64_t lo = ((int64_t)blockIdx.x - line * a.pieces) * PIECE;
    const int64_t hi = lo + PIECE < a.n ? lo + PIECE : a.n;
    const char *in = a.in + fth__walk_at(a.line[0], line_lo + line).at[0];
    const wanted *state = a.state + line * a.ranks;
    const int shift = 8 * (a.size - 1 - done);
    for (int r = 0; r < a.ranks; r++)
        for (unsigned d = threadIdx.x; d < DIGITS; d += THREADS) counts[r][d] = 0;
    __syncthreads();
    for (int64_t i = lo + threadIdx.x; i < hi; i += THREADS) {
        const uint64_t key = key_at(a, in, i);
        for (int r = 0; r < a.ranks; r++)
            if (done == 0 || (key ^ state[r].key) >> shift >> 8 == 0)
                atomicAdd(&counts[r][(key >> shift) & 255], 1u);
    }
    __syncthreads();
    for (int r = 0; r < a.ranks; r++)
        for (unsigned d = threadIdx.x; d < DIGITS; d += THREADS)
            if (counts[r][d]) atomicAdd(&a.counts[(line * a.ranks + r) * DIGITS + d], counts[r][d]);
}

/* The digit that the wanted place falls to; counts are cleared for the next one. */
static __global__ void choose(const args a, int64_t lines, int done)
{
    const int shift = 8 * (a.size - 1 - done);
    for (int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x; k < lines * a.ranks;
         k += (int64_t)gridDim.x * THREADS) {
        unsigned *counts = a.counts + k * DIGITS;
        wanted w = a.state[k];
        int64_t before = 0;
        bool found = false;
        for (int d = 0; d < DIGITS; d++) {
            const int64_t here = counts[d];
            counts[d] = 0;
            if (!found && w.place < before + here) {
                found = true;
                w.key |= (uint64_t)d << shift;
                w.place -= before;
            }
            before += here;
        }
        a.state[k] = w;
    }
}

/* A block has a piece of a line: how many have the key. */
static __global__ void count_equal(const args a, int64_t line_lo)
{
    __shared__ unsigned equal[FTH__RANKS];
    const int64_t line = (int64_t)fth__walk_div(blockIdx.x, (uint64_t)a.pieces);
    const int64_t piece = (int64_t)blockIdx.x - line * a.pieces, lo = piece * PIECE;
    const int64_t hi = lo + PIECE < a.n ? lo + PIECE : a.n;
    const char *in = a.in + fth__walk_at(a.line[0], line_lo + line).at[0];
    if (threadIdx.x < FTH__RANKS) equal[threadIdx.x] = 0;
    __syncthreads();
    for (int64_t i = lo + threadIdx.x; i < hi; i += THREADS) {
        const uint64_t key = key_at(a, in, i);
        for (int r = 0; r < a.ranks; r++)
            if (key == a.state[line * a.ranks + r].key) atomicAdd(&equal[r], 1u);
    }
    __syncthreads();
    if ((int)threadIdx.x < a.ranks)
        a.equal[(line * a.ranks + threadIdx.x) * a.pieces + piece] = equal[threadIdx.x];
}

/* A block has a line and a rank: the piece that has the wanted one of the equals, then, of the
 * neighbours that each thread has of it, those. */
static __global__ void find(const args a, int64_t line_lo)
{
    __shared__ unsigned equal[THREADS];
    const int64_t line = (int64_t)fth__walk_div(blockIdx.x, (uint64_t)a.ranks);
    const int r = (int)((int64_t)blockIdx.x - line * a.ranks);
    const wanted w = a.state[blockIdx.x];
    const unsigned *pieces = a.equal + (int64_t)blockIdx.x * a.pieces;
    const char *in = a.in + fth__walk_at(a.line[0], line_lo + line).at[0];
    int64_t piece = 0, before = 0;
    while (piece < a.pieces - 1 && before + pieces[piece] <= w.place) before += pieces[piece++];
    const int64_t each = PIECE / THREADS, lo = piece * PIECE + (int64_t)threadIdx.x * each;
    unsigned mine = 0;
    for (int64_t i = lo; i < lo + each && i < a.n; i++) mine += key_at(a, in, i) == w.key;
    equal[threadIdx.x] = mine;
    __syncthreads();
    for (unsigned k = 0; k < threadIdx.x; k++) before += equal[k];
    if (w.place < before || w.place >= before + mine) return;
    for (int64_t i = lo;; i++)
        if (key_at(a, in, i) == w.key && before++ == w.place) {
            put(a, line_lo + line, r, i);
            return;
        }
}

static int64_t pieces_of(int64_t n)
{
    return (n + PIECE - 1) / PIECE;
}

static int64_t lines_at_once(const fth_call *call)
{
    int64_t lines = 1;
    for (int i = 0; i < call->node->out[0].n_axes; i++) lines *= call->out[0].extent[i];
    return lines < ROUND ? lines : ROUND;
}

/* Bytes of the arrays of a round; they follow one another. */
static uint64_t scratch(const fth_call *call)
{
    const fth__ranked_attr *attr = (const fth__ranked_attr *)call->node->attr;
    const int64_t n = call->in[0].extent[dim_of(call->node)];
    if (n <= FTH__SHORT) return 0;
    return (uint64_t)(lines_at_once(call) * attr->n) *
           (sizeof(wanted) + (DIGITS + (uint64_t)pieces_of(n)) * sizeof(unsigned));
}

static void long_lines(const fth_call *call, args a)
{
    const cudaStream_t stream = fth_cuda_stream(call);
    const int64_t round = lines_at_once(call), all = round * a.ranks;
    a.state = (wanted *)call->scratch;
    a.counts = (unsigned *)(a.state + all);
    a.equal = a.counts + all * DIGITS;
    for (int64_t lo = 0; lo < a.lines; lo += round) {
        const int64_t lines = a.lines - lo < round ? a.lines - lo : round;
        const unsigned each = fth_cuda_blocks(lines * a.ranks, THREADS);
        FTH_LAUNCH(begin, each, THREADS, stream, a, lines);
        for (int done = 0; done < a.size; done++) {
            FTH_LAUNCH(count, (unsigned)(lines * a.pieces), THREADS, stream, a, lo, done);
            FTH_LAUNCH(choose, each, THREADS, stream, a, lines, done);
        }
        FTH_LAUNCH(count_equal, (unsigned)(lines * a.pieces), THREADS, stream, a, lo);
        FTH_LAUNCH(find, (unsigned)(lines * a.ranks), THREADS, stream, a, lo);
    }
}

static void prepare(args *a, const fth_call *call)
{
    const fth_desc *d = &call->node->in[0];
    const fth__ranked_attr *attr = (const fth__ranked_attr *)call->node->attr;
    const fth_tile *in = &call->in[0];
    const int64_t word = sizeof(int64_t);
    *a = {};
    a->dtype = (int)d->dtype;
    a->size = (int)fth_dtype_size(d->dtype);
    a->ranks = attr->n;
    a->in = (const char *)in->data;
    for (int r = 0; r < attr->n; r++) {
        a->line[r] = fth__walk_none();
        a->rank[r] = attr->rank[r];
        a->value[r] = (char *)call->out[r].data;
        a->position[r] = (char *)call->out[attr->n + r].data;
    }
    for (int i = 0, to = 0; i < d->n_axes; i++) {
        if (d->axis[i] == attr->axis) {
            a->n = in->extent[i];
            a->step = in->stride[i] * a->size;
            continue;
        }
        const fth_tile *out = &call->out[0];
        a->in += (out->origin[to] - in->origin[i]) * in->stride[i] * a->size;
        for (int r = 0; r < attr->n; r++)
            fth__walk_add(&a->line[r], out->extent[to], in->stride[i] * a->size,
                          call->out[r].stride[to] * a->size,
                          call->out[attr->n + r].stride[to] * word);
        to++;
    }
    a->lines = a->line[0].count;
    a->pieces = pieces_of(a->n);
}

static fth_status run(const fth_call *call)
{
    args a;
    prepare(&a, call);
    if (a.lines == 0) return FTH_OK;
    const unsigned size = fth__short_size(a.n <= FTH__SHORT ? a.n : 1);
    const unsigned blocks = fth_cuda_blocks(a.lines * 32, 32);
    if (a.n > FTH__SHORT)
        long_lines(call, a);
    else if (a.n <= FTH__SHORTEST)
        FTH_LAUNCH(short_lines<FTH__SHORTEST>, blocks, fth__short_threads(size),
                   fth_cuda_stream(call), a, size);
    else
        FTH_LAUNCH(short_lines<FTH__SHORT>, blocks, fth__short_threads(size), fth_cuda_stream(call),
                   a, size);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

FTH_CUDA_KERNEL(ranked) = {.op = "ranked", .supports = supports, .scratch = scratch, .run = run};
