/* split.cu - f32 operands as three bf16 each, packed as the matrix units read them, and the order
 * of launches. The product itself is split_multiply.cu.
 *
 * A line of a chunk whose numbers are very large or very small is scaled by a power of two, which
 * is taken back when the chunk is added, so that no part is lost. One with an infinity or a NaN is
 * left to plain fma, for its own row or column alone. Both depend on the line alone, never on its
 * neighbours.
 */
#include "cuda/product/split.cuh"

#include "base/assert.h"
#include "cuda/device/device.h"

extern "C" {
#include "graph/context.h"
#include "graph/graph.h"
}

static constexpr int LINES = FTH__SPLIT_LINES, CHUNK = FTH__SPLIT_CHUNK, EIGHT = 8;
typedef struct packing {
    fth__split_side s;
    int32_t lines, k, chunks, blocks; /* blocks of lines */
} packing;

static __device__ inline int scale_of(const float *line)
{
    fth__split_range range;
    for (int i = 0; i < CHUNK; i++) range.take(line[i]);
    return range.scale();
}

/* A chunk of 128 lines, zeros beyond the end. Half of what a thread reads is on its way before it
 * writes any of it. */
static __device__ inline void bring(const packing &p, const float *from, int first, int k0, int t,
                                    float (&tile)[LINES][CHUNK + 1])
{
    constexpr int AT_ONCE = CHUNK / 2;
    const bool along_k = p.s.deep <= p.s.line;
    for (int i0 = 0; i0 < CHUNK; i0 += AT_ONCE) {
        float v[AT_ONCE];
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            const int i = (i0 + u) * LINES + t;
            const int line = along_k ? i / CHUNK : t, k = along_k ? t % CHUNK : i0 + u;
            const bool in = first + line < p.lines && k0 + k < p.k;
            v[u] = in ? from[line * p.s.line + k * p.s.deep] : 0.0f;
        }
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            const int i = (i0 + u) * LINES + t;
            tile[along_k ? i / CHUNK : t][along_k ? t % CHUNK : i0 + u] = v[u];
        }
    }
}

/* A block of threads packs 128 lines of one chunk: fetched along what lies close together, then a
 * line a thread. Lines and numbers beyond the end are zeros; blocks of zeros by a mark are never
 * read, and are not written. */
static __global__ void __launch_bounds__(LINES) pack(const packing __grid_constant__ p)
{
    __shared__ float tile[LINES][CHUNK + 1];
    const int chunk = (int)(blockIdx.x % (unsigned)p.chunks), t = (int)threadIdx.x;
    const unsigned rest = blockIdx.x / (unsigned)p.chunks;
    const int block = (int)(rest % (unsigned)p.blocks), first = block * LINES, k0 = chunk * CHUNK;
    const int64_t z = rest / (unsigned)p.blocks;
    if (p.s.given && blockIdx.x == 0 && t == 0) *p.s.given = 0;
    const fth__split_span live = fth__split_live(p.s, block, p.chunks);
    if (chunk < live.lo || chunk >= live.hi) return;
    const float *from = p.s.from + z * p.s.step + first * p.s.line + k0 * p.s.deep;
    bring(p, from, first, k0, t, tile);
    __syncthreads();
    char *to = p.s.packed + z * p.s.next + (block * p.s.pitch + chunk) * FTH__SPLIT_BLOCK;
    const int scale = scale_of(tile[t]), scaled = __syncthreads_or(scale != 0),
              plain = __syncthreads_or(scale == FTH__SPLIT_PLAIN);
    const float by = scale == FTH__SPLIT_PLAIN ? 0.0f : fth__split_power(scale);
    if (scale == FTH__SPLIT_PLAIN) /* such a line has no parts */
        for (int i = 0; i < CHUNK; i++) tile[t][i] = 0.0f;
    for (int e = 0; e < CHUNK / EIGHT; e++)
        fth__split_eight(to + (e * LINES + t) * EIGHT * 2, FTH__SPLIT_PART, &tile[t][e * EIGHT],
                         by);
    ((uint32_t *)(to + FTH__SPLIT_SCALES))[t] = fth__split_scale(scale);
    if (t == 0)
        *(int *)(to + FTH__SPLIT_ANY) =
            (scaled ? FTH__SPLIT_SOME_SCALED : 0) | (plain ? FTH__SPLIT_SOME_PLAIN : 0);
}

static int64_t blocks_of(int64_t n, int64_t size)
{
    return (n + size - 1) / size;
}
static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

fth_status fth__cuda_split_pack(const fth_call *call, const fth__split_side *side, int64_t lines,
                                int64_t k, int64_t batch)
{
    const packing p = {*side, (int32_t)lines, (int32_t)k, (int32_t)blocks_of(k, CHUNK),
                       (int32_t)blocks_of(lines, LINES)};
    const int64_t blocks = (int64_t)p.chunks * p.blocks * batch;
    if (blocks == 0) return FTH_OK;
    FTH_ASSERT(blocks <= INT32_MAX);
    FTH_LAUNCH(pack, (unsigned)blocks, LINES, fth_cuda_stream(call), p);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

/* ---- what takes this way ---- */

/* Where the units save more than packing costs: at about 115 Tflop/s instead of 48, with ten bytes
 * read and written for a packed number. Products that do not fill a card by themselves or as a
 * batch, and short ones, are as fast by cuBLASLt. */
static bool pays(const fth__dot_shape *s)
{
    constexpr double LEAST_TILES = 96, LEAST_SIDES = 240, LEAST_WORK = 0x1p29;
    constexpr int64_t LEAST_K = 256;
    const double m = (double)s->m.size, n = (double)s->n.size;
    double batches = 1, work = m * n * (double)s->k.size * fth__dot_share(s);
    for (int i = 0; i < s->n_loop; i++) batches *= (double)s->loop[i].size;
    for (int i = 0; i < s->n_sum; i++) work *= (double)s->sum[i].size;
    const double tiles =
        (double)(blocks_of(s->m.size, LINES) * blocks_of(s->n.size, LINES)) * batches;
    return m * n >= LEAST_SIDES * (m + n) && s->k.size >= LEAST_K && tiles >= LEAST_TILES &&
           work * batches >= LEAST_WORK;
}

/* The matrix units are asked for in the words of capability 9.0. Where kernels are emulated small
 * products go this way too, and calls of tests that have no device in their context. */
static bool is_wanted(const fth_node *node, const fth__dot_shape *s)
{
    const fth_context *ctx = node->graph ? node->graph->ctx : NULL;
#ifdef FTH_EMULATED
    enum { LEAST_SIDE = 40, LEAST_K = 64 };
    return (!ctx || !ctx->gpu || !ctx->plain_products) && s->m.size >= LEAST_SIDE &&
           s->n.size >= LEAST_SIDE && s->k.size >= LEAST_K;
#else
    return ctx && ctx->gpu && !ctx->plain_products && ctx->gpu->info.major == 9 &&
           ctx->gpu->info.minor == 0 && pays(s);
#endif
}

bool fth__cuda_split_takes(const fth_node *node, const fth__dot_shape *s)
{
    return s->dtype == FTH_F32 && s->m.a >= 0 && s->n.b >= 0 && s->k.a >= 0 && is_wanted(node, s);
}

/* ---- how much at a time ---- */

/* Bytes of packed operands, of a batch that comes in parts and of others; and elements of k that
 * are packed at a time. Where the room is not enough, a launch has so many of k, and so many tiles
 * of matrices of a batch, rather than fewer: each tile is read and written once more for every
 * launch, which takes what 250 of k take. */
#ifdef FTH_EMULATED
static constexpr uint64_t ROOM = (uint64_t)4 << 20, LESS_ROOM = ROOM / 2;
#else
static constexpr uint64_t ROOM = (uint64_t)416 << 20, LESS_ROOM = (uint64_t)160 << 20;
#endif
static constexpr int64_t MOST_K = 4 * FTH__SPLIT_K, LONG_K = 2 * FTH__SPLIT_K, ENOUGH_TILES = 1056;

typedef struct cut {
    int64_t m, n, k, batch;
    bool shared_a, shared_b; /* by the matrices of a batch */
} cut;

/* Memory is short where a batch comes in parts: then more of it at a time is worth more than long
 * pieces of k. */
static uint64_t room_for(const fth__dot_shape *s, int64_t batch)
{
    int64_t whole = 1;
    for (int i = 0; i < s->n_loop; i++) whole *= s->loop[i].size;
    return batch < whole ? LESS_ROOM : ROOM;
}

static int64_t half_of(int64_t n, int64_t grid)
{
    return blocks_of(n / 2, grid) * grid;
}

uint64_t fth__cuda_split_bytes(int64_t lines, int64_t k)
{
    return (uint64_t)(blocks_of(lines, LINES) * blocks_of(k, CHUNK)) * FTH__SPLIT_BLOCK;
}

static uint64_t bytes_of(const cut &c)
{
    return fth__cuda_split_bytes(c.m, c.k) * (uint64_t)(c.shared_a ? 1 : c.batch) +
           fth__cuda_split_bytes(c.n, c.k) * (uint64_t)(c.shared_b ? 1 : c.batch);
}

/* Other summed axes go inside every chain, wherever k is cut. */
static cut whole_of(const fth__dot_shape *s, int64_t m, int64_t n, int64_t k, int64_t batch)
{
    return {m, n, least(k, s->n_sum > 0 ? FTH__SPLIT_K : MOST_K), batch, false, false};
}

static void shrink(cut *c, uint64_t room)
{
    while (bytes_of(*c) > room) {
        FTH_ASSERT(c->m > 0 && c->n > 0 && c->k > 0);
        const int64_t less = (c->batch + 1) / 2,
                      tiles = less * blocks_of(c->m, LINES) * blocks_of(c->n, LINES);
        const bool full = c->batch > 1 && tiles >= ENOUGH_TILES;
        if (c->k > LONG_K || (c->k > FTH__SPLIT_K && !full))
            c->k = half_of(c->k, FTH__SPLIT_K);
        else if (c->batch > 1)
            c->batch = less;
        else if (c->m > c->n)
            c->m = half_of(c->m, LINES);
        else
            c->n = half_of(c->n, LINES);
    }
}

uint64_t fth__cuda_split_scratch(const fth__dot_shape *s, int64_t m, int64_t n, int64_t k,
                                 int64_t batch)
{
    cut c = whole_of(s, m, n, k, batch);
    c.shared_a = c.shared_b = true;
    for (int i = 0; i < s->n_loop; i++) {
        c.shared_a = c.shared_a && s->loop[i].a < 0;
        c.shared_b = c.shared_b && s->loop[i].b < 0;
    }
    shrink(&c, room_for(s, batch));
    return FTH__SPLIT_HEAD + bytes_of(c);
}

/* ---- running ---- */

static fth__dot_side turned(fth__dot_side side)
{
    return side == FTH__DOT_BELOW ? FTH__DOT_ABOVE : side == FTH__DOT_ABOVE ? FTH__DOT_BELOW : side;
}

fth__split_job fth__cuda_split_job(const fth__dot_shape *s, const fth__cuda_product *p)
{
    fth__split_job j = {};
    FTH_ASSERT(p->m <= INT32_MAX && p->n <= INT32_MAX && p->k <= INT32_MAX &&
               p->batch <= INT32_MAX);
    j.a.from = (const float *)p->a, j.b.from = (const float *)p->b, j.c = (float *)p->c;
    j.a.line = p->am, j.a.deep = p->ak, j.a.step = p->step_a;
    j.b.line = p->bn, j.b.deep = p->bk, j.b.step = p->step_b;
    j.a.first = p->m0 - p->k0, j.b.first = p->n0 - p->k0;
    j.a.side = s->side_a, j.b.side = turned(s->side_b), j.side = s->side;
    j.cm = p->cm, j.cn = p->cn, j.step_c = p->step_c;
    j.m = (int32_t)p->m, j.n = (int32_t)p->n, j.k = (int32_t)p->k, j.batch = (int32_t)p->batch;
    j.add = p->add;
    return j;
}

fth_status fth__cuda_split_queue(const fth_call *call, const fth__split_job *job)
{
    if (job->m == 0 || job->n == 0 || job->batch == 0) return FTH_OK;
    fth__cuda_split_multiply(fth_cuda_stream(call), job, call->device->multiprocessors);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

/* Matrices [z, z + c.batch) over one piece of k, at one place of the other summed axes: rows in
 * pieces, columns in pieces inside them. */
static fth_status run_piece(const fth_call *call, const fth__split_job &all, const cut &c,
                            char *room)
{
    fth__split_job j = all;
    const uint64_t bytes_a = fth__cuda_split_bytes(c.m, c.k);
    const int64_t matrices_a = c.shared_a ? 1 : all.batch, matrices_b = c.shared_b ? 1 : all.batch;
    j.a.pitch = j.b.pitch = blocks_of(all.k, CHUNK);
    j.a.given = (int *)(void *)room;
    j.a.packed = room + FTH__SPLIT_HEAD, j.a.next = c.shared_a ? 0 : (int64_t)bytes_a;
    j.b.packed = j.a.packed + bytes_a * (uint64_t)(c.shared_a ? 1 : c.batch);
    j.b.next = c.shared_b ? 0 : (int64_t)fth__cuda_split_bytes(c.n, c.k);
    for (int64_t m = 0; m < all.m; m += c.m) {
        j.m = (int32_t)least(c.m, all.m - m);
        j.a.from = all.a.from + m * all.a.line, j.a.first = all.a.first + m;
        FTH_TRY(fth__cuda_split_pack(call, &j.a, j.m, j.k, matrices_a));
        for (int64_t n = 0; n < all.n; n += c.n) {
            j.n = (int32_t)least(c.n, all.n - n);
            j.b.from = all.b.from + n * all.b.line, j.b.first = all.b.first + n;
            j.c = all.c + m * all.cm + n * all.cn;
            if (m == 0 || c.n < all.n)
                FTH_TRY(fth__cuda_split_pack(call, &j.b, j.n, j.k, matrices_b));
            FTH_TRY(fth__cuda_split_queue(call, &j));
        }
    }
    return FTH_OK;
}

/* All of the batch over one piece of k. */
static fth_status run_batch(const fth_call *call, const fth__cuda_product *p,
                            const fth__split_job &all, const cut &c)
{
    for (int64_t z = 0; z < p->batch; z += c.batch) {
        fth__split_job j = all;
        j.batch = (int32_t)least(c.batch, p->batch - z);
        j.a.from += z * j.a.step, j.b.from += z * j.b.step, j.c += z * j.step_c;
        FTH_TRY(run_piece(call, j, c, p->scratch));
    }
    return FTH_OK;
}

fth_status fth__cuda_split_run(const fth_call *call, const fth__dot_shape *s,
                               const fth__cuda_product *p)
{
    const int64_t places = p->sums.count, length = places > 0 ? p->k : 0;
    cut c = whole_of(s, p->m, p->n, length, p->batch);
    c.shared_a = p->step_a == 0, c.shared_b = p->step_b == 0;
    shrink(&c, p->room - FTH__SPLIT_HEAD);
    FTH_ASSERT(FTH__SPLIT_HEAD + bytes_of(c) <= p->room);
    FTH_ASSERT(c.k % FTH__SPLIT_K == 0 ||
               c.k >= length); /* chains end where they do without cuts */
    fth__split_job j = fth__cuda_split_job(s, p);
    const fth__split_job first = j;
    for (int64_t k = 0; k < length || k == 0; k += c.k) {
        int64_t at[FTH_MAX_AXES] = {};
        j.k = (int32_t)least(c.k, length - k);
        j.a.first = first.a.first - k, j.b.first = first.b.first - k;
        for (int64_t i = 0; i < places || i == 0; i++) {
            j.a.from = first.a.from + k * j.a.deep, j.b.from = first.b.from + k * j.b.deep;
            for (int d = 0; d < p->sums.n; d++)
                j.a.from += at[d] * p->sums.a[d], j.b.from += at[d] * p->sums.b[d];
            FTH_TRY(run_batch(call, p, j, c));
            j.add = true;
            for (int d = p->sums.n - 1; d >= 0 && ++at[d] == p->sums.extent[d]; d--) at[d] = 0;
        }
        if (c.k == 0) break;
    }
    return FTH_OK;
}
