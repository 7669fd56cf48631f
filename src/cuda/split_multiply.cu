/* split_multiply.cu - the product of packed parts by the matrix units of capability 9.0 (wgmma).
 *
 * A block of threads makes tiles of 128 by 128 elements, one after the other. One thread has packed
 * blocks of both operands copied into four rooms of shared memory, in bulk, as rooms become free,
 * those of the next tile while the last is written. Two groups of four warps multiply 64 rows each:
 * the six products of parts of a chunk by twelve instructions, small ones first, then the chunk is
 * added to the sums while the units work for the other group. This file alone is compiled for
 * sm_90a, and its kernel runs only on cards of capability 9.0. Where kernels are compiled for the
 * CPU, threads make the same sums from the packed blocks by plain loops. */
#include "cuda/split.cuh"
#include "cuda/units.cuh"

static constexpr int LINES = FTH__SPLIT_LINES, CHUNK = FTH__SPLIT_CHUNK, PART = FTH__SPLIT_PART,
                     BLOCK = FTH__SPLIT_BLOCK;
static constexpr int THREADS = 2 * 128, EACH = 64; /* elements of a thread */
static constexpr int TOGETHER = 16; /* rows of tiles that run side by side share b in the cache */
static constexpr int PRODUCTS = FTH__SPLIT_PRODUCTS, CHAIN = FTH__SPLIT_CHAIN;
#ifdef FTH_EMULATED
static constexpr int SHARED = 0, PROCESSORS = 3; /* so that blocks of threads have several tiles */
#else
static constexpr int ROOMS = 4, PROCESSORS = 132;
#endif
/* ---- tiles ---- */

static __host__ __device__ inline int blocks_of(int n)
{
    return (n + LINES - 1) / LINES;
}
static __host__ __device__ inline int clamp(int64_t v, int most)
{
    return v < 0 ? 0 : v < most ? (int)v : most;
}

/* Rows of tiles of a column that have elements of the asked side. */
static __host__ __device__ inline fth__split_span rows_of(const fth__split_job &p, int column)
{
    const int down = blocks_of(p.m);
    const int64_t by = p.b.first - p.a.first + (int64_t)column * LINES; /* from the first row */
    if (p.side == FTH__DOT_BELOW) return {clamp(by < 0 ? 0 : by / LINES, down), down};
    if (p.side == FTH__DOT_ABOVE)
        return {0, clamp(by < -LINES ? 0 : (by + 2 * LINES - 1) / LINES, down)};
    return {0, down};
}

/* A tile of the batch: blocks of lines, and the chunks of k that both are not zeros in. */
struct tile {
    int z, row, column;
    fth__split_span live;
};

/* The tiles of a launch in order. Those of a matrix go by stripes of rows, column by column, so
 * that tiles side by side share their operands in the cache; the long ones go first, so that blocks
 * of threads end together. */
struct walk {
    const fth__split_job &p;
    int z, at, i; /* matrix, column of a stripe, row in that */
    int across, stripes;

    __device__ explicit walk(const fth__split_job &job)
        : p(job), z(0), at(0), i(0), across(blocks_of(job.n)),
          stripes((blocks_of(job.m) + TOGETHER - 1) / TOGETHER)
    {
    }
    __device__ int column() const
    {
        const int c = at % across;
        return p.b.side == FTH__DOT_BELOW ? across - 1 - c : c;
    }
    __device__ fth__split_span rows() const
    {
        const int s = at / across,
                  lo = (p.a.side == FTH__DOT_BELOW ? stripes - 1 - s : s) * TOGETHER,
                  hi = lo + TOGETHER;
        const fth__split_span all = rows_of(p, column());
        return {all.lo > lo ? all.lo : lo, all.hi < hi ? all.hi : hi};
    }
    /* So many tiles on; false: that is behind the last. */
    __device__ bool skip(int n)
    {
        for (i += n; z < p.batch;) {
            const fth__split_span in = rows();
            const int count = in.hi > in.lo ? in.hi - in.lo : 0;
            if (i < count) return true;
            i -= count;
            if (++at < stripes * across) continue;
            at = 0;
            z++;
        }
        return false;
    }
    __device__ tile get() const
    {
        const int chunks = (p.k + CHUNK - 1) / CHUNK, row = rows().lo + i;
        const fth__split_span a = fth__split_live(p.a, row, chunks),
                              b = fth__split_live(p.b, column(), chunks);
        return {z, row, column(), {a.lo > b.lo ? a.lo : b.lo, a.hi < b.hi ? a.hi : b.hi}};
    }
};

static __device__ inline const char *block_at(const fth__split_side &s, int z, int block, int chunk)
{
    return s.packed + z * s.next + (block * s.pitch + chunk) * BLOCK;
}

/* The elements of a thread in a tile: element i is at row (i / 2 % 2) * 8 and column i / 4 * 8 +
 * i % 2 from the first. */
struct place {
    int z, m0, n0, row, col;
};

static __device__ inline place place_of(const tile &t)
{
    const int i = (int)threadIdx.x, lane = i % 32;
    return {t.z, t.row * LINES, t.column * LINES, i / 32 * 16 + lane / 4, lane % 4 * 2};
}
static __device__ inline int row_of(const place &at, int i)
{
    return at.row + i / 2 % 2 * 8;
}
static __device__ inline int col_of(const place &at, int i)
{
    return at.col + i / 4 * 8 + i % 2;
}

/* Of both blocks: 0, or what was done to any of their lines. */
static __device__ inline int special(const char *a, const char *b)
{
    return *(const int *)(a + FTH__SPLIT_ANY) | *(const int *)(b + FTH__SPLIT_ANY);
}

/* The chunk of one element whose row or column is not finite. */
static __device__ float plain_sum(const fth__split_job &p, int z, int m, int n, int chunk)
{
    const int end = chunk + CHUNK < p.k ? chunk + CHUNK : p.k;
    const float *a = p.a.from + z * p.a.step + m * p.a.line,
                *b = p.b.from + z * p.b.step + n * p.b.line;
    float sum = 0;
    for (int k = chunk; k < end && m < p.m && n < p.n; k++)
        sum = fmaf(a[k * p.a.deep], b[k * p.b.deep], sum);
    return sum;
}

/* Add a chunk of which some lines were scaled. Lines that were left out have sums of zeros here.
 * Most often a is scaled alone. */
static __device__ inline void add_scaled(const place &at, const signed char *of_a,
                                         const signed char *of_b, bool b_too,
                                         const float (&sum)[EACH], float (&total)[EACH])
{
    const fth__split_factors a[2] = {fth__split_factors_of(of_a[at.row]),
                                     fth__split_factors_of(of_a[at.row + 8])};
#pragma unroll
    for (int g = 0; g < EACH; g += 4) {
        fth__split_factors b[2] = {{1, 1}, {1, 1}};
        if (b_too) { /* two columns at a time; the first is even */
            const char2 scale = *(const char2 *)(of_b + col_of(at, g));
            b[0] = fth__split_factors_of(scale.x), b[1] = fth__split_factors_of(scale.y);
        }
#pragma unroll
        for (int i = g; i < g + 4; i++) {
            const fth__split_factors &x = a[i / 2 % 2], &y = b[i % 2];
            total[i] += sum[i] * (x.one * y.one) * (x.two * y.two);
        }
    }
}

/* Add the chunk of elements whose row or column was left out. They are rare: one after the other,
 * with a search for the register. */
static __device__ inline void add_plain(const fth__split_job &p, const place &at, int chunk,
                                        const signed char *of_a, const signed char *of_b,
                                        float (&total)[EACH])
{
#pragma unroll 1
    for (int i = 0; i < EACH; i++) {
        const int row = row_of(at, i), col = col_of(at, i);
        if (of_a[row] != FTH__SPLIT_PLAIN && of_b[col] != FTH__SPLIT_PLAIN) continue;
        const float v = plain_sum(p, at.z, at.m0 + row, at.n0 + col, chunk);
#pragma unroll
        for (int j = 0; j < EACH; j++) total[j] = j == i ? total[j] + v : total[j];
    }
}

/* The same of blocks where any of it was. */
static __device__ inline void add_special(const fth__split_job &p, const place &at, int chunk,
                                          const char *a, const char *b, const float (&sum)[EACH],
                                          float (&total)[EACH])
{
    const signed char *of_a = (const signed char *)a + FTH__SPLIT_SCALES,
                      *of_b = (const signed char *)b + FTH__SPLIT_SCALES;
    add_scaled(at, of_a, of_b, *(const int *)(b + FTH__SPLIT_ANY) != 0, sum, total);
    if (special(a, b) >= FTH__SPLIT_PLAIN) add_plain(p, at, chunk, of_a, of_b, total);
}

/* Elements of the result, read or written. Their addresses are made when they are needed: kept over
 * a tile they would take the registers of the sums. */
template <bool WRITE>
static __device__ inline void touch_any(const fth__split_job &p, const place &at, float *c,
                                        float (&v)[EACH])
{
    const int rows = p.m - at.m0 - at.row, cols = p.n - at.n0 - at.col; /* from the first on */
#pragma unroll
    for (int g = 0; g < EACH; g += 4, c += 8 * p.cn)
#pragma unroll
        for (int i = g; i < g + 4; i++) {
            float *e = c + i / 2 % 2 * 8 * p.cm + i % 2 * p.cn;
            if (i / 2 % 2 * 8 >= rows || i / 4 * 8 + i % 2 >= cols) continue;
            if (WRITE)
                *e = v[i];
            else
                v[i] = *e;
        }
}

/* The same of a whole tile whose rows lie next to themselves, two at a time. */
template <bool WRITE>
static __device__ inline void touch_pairs(const fth__split_job &p, float *c, float (&v)[EACH])
{
#pragma unroll
    for (int i = 0; i < EACH; i += 2) {
        float2 *e = (float2 *)(c + i / 2 % 2 * 8 * p.cm + i / 4 * 8);
        if (WRITE) {
            *e = make_float2(v[i], v[i + 1]);
        } else {
            const float2 two = *e;
            v[i] = two.x, v[i + 1] = two.y;
        }
    }
}

template <bool WRITE>
static __device__ inline void touch(const fth__split_job &p, const place &at, float (&v)[EACH])
{
    float *c = p.c + at.z * p.step_c + (at.m0 + at.row) * p.cm + (at.n0 + at.col) * p.cn;
#ifndef FTH_EMULATED
    asm volatile("" : "+l"(c));
#endif
    if (p.cn == 1 && p.cm % 2 == 0 && ((uintptr_t)c & 7u) == 0 && at.m0 + LINES <= p.m &&
        at.n0 + LINES <= p.n)
        touch_pairs<WRITE>(p, c, v);
    else
        touch_any<WRITE>(p, at, c, v);
}

/* Add the sums of a chain to those before, and begin the next. */
static __device__ inline void end_chain(float (&total)[EACH], float (&all)[EACH])
{
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        all[i] += total[i];
        total[i] = 0;
    }
}

/* Does a chain end with this chunk? */
static __device__ inline bool is_last(int c, int end)
{
    return (c + 1) % CHAIN == 0 || c + 1 == end;
}

#ifdef FTH_EMULATED

static float number(const char *block, int part, int line, int k)
{
    uint16_t v;
    memcpy(&v, block + part * PART + ((k / 8 * LINES + line) * 8 + k % 8) * 2, sizeof v);
    return __int_as_float((int)((uint32_t)v << 16));
}

static void make_tile(const fth__split_job &p, const tile &t)
{
    const place at = place_of(t);
    float total[EACH] = {}, sum[EACH], all[EACH] = {};
    if (p.add) touch<false>(p, at, all);
    for (int c = t.live.lo; c < t.live.hi; c++) {
        const char *a = block_at(p.a, t.z, t.row, c), *b = block_at(p.b, t.z, t.column, c);
        for (int i = 0; i < EACH; i++) {
            sum[i] = 0;
            for (int q = 0; q < PRODUCTS; q++)
                for (int k = 0; k < CHUNK; k++)
                    sum[i] = fmaf(number(a, fth__split_part_a(q), row_of(at, i), k),
                                  number(b, fth__split_part_b(q), col_of(at, i), k), sum[i]);
        }
        add_special(p, at, c * CHUNK, a, b, sum, total);
        if (is_last(c, t.live.hi)) end_chain(total, all);
    }
    touch<true>(p, at, all);
}

static void multiply(const fth__split_job p)
{
    walk w(p);
    for (bool go = w.skip((int)blockIdx.x); go; go = w.skip((int)gridDim.x)) make_tile(p, w.get());
}

#else

/* Eight lines and sixteen bytes of k at a time: next to each other along the lines. */
static __device__ inline fth__units_matrix describe(const char *at)
{
    return fth__units_describe(at, LINES * 16, 128);
}

/* Ask the units for a chunk; what is in sum is theirs until they are waited for. */
static __device__ inline void ask(const char *a, const char *b, float (&sum)[EACH])
{
    constexpr int SIXTEEN = 2 * LINES * 16; /* bytes from one 16 of k to the next */
    fth__units_settle(sum);
    fth__units_begin();
#pragma unroll
    for (int q = 0; q < PRODUCTS; q++)
#pragma unroll
        for (int k = 0; k < CHUNK / 16; k++)
            fth__units_multiply(sum, describe(a + fth__split_part_a(q) * PART + k * SIXTEEN),
                                describe(b + fth__split_part_b(q) * PART + k * SIXTEEN), q + k > 0);
    fth__units_commit();
}
static __device__ inline void await(float (&sum)[EACH])
{
    fth__units_finish();
    fth__units_settle(sum);
}

/* ---- a block of threads ---- */

/* What is in a room: a chunk of a tile, or none any more. */
struct note {
    tile t;
    int c; /* -1: the end */
};
struct room {
    char a[BLOCK], b[BLOCK];
    alignas(16) note n;
};

static constexpr int SHARED = ROOMS * (int)sizeof(room);

/* Rooms in turn: which one is next, and the parity of its phase. */
struct turn {
    int room = 0;
    unsigned parity = 0;
    __device__ void next()
    {
        room = room + 1 == ROOMS ? 0 : room + 1;
        parity ^= room == 0;
    }
};

/* One thread has the chunks of all tiles of its block copied, ahead of those who multiply. */
struct fetcher {
    const fth__split_job &p;
    room *rooms;
    fth__units_barrier *full, *empty;
    walk w;
    bool go, ended;
    tile t;
    int c;
    turn at;

    /* The next tile that has chunks. */
    __device__ void begin(int skip)
    {
        for (go = w.skip(skip); go; go = w.skip((int)gridDim.x)) {
            t = w.get();
            c = t.live.lo;
            if (c < t.live.hi) return;
        }
    }

    /* A room is filled when everybody is done with what was there. The phase before the first
     * counts as over. */
    __device__ void fetch()
    {
        if (ended) return;
        room &to = rooms[at.room];
        fth__units_barrier *arrives = &full[at.room];
        fth__units_wait(&empty[at.room], at.parity ^ 1u);
        to.n = {t, go ? c : -1};
        at.next();
        ended = !go;
        if (ended) {
            fth__units_arrive(arrives);
            return;
        }
        fth__units_expect(arrives, 2 * BLOCK);
        fth__units_copy(to.a, block_at(p.a, t.z, t.row, c), BLOCK, arrives);
        fth__units_copy(to.b, block_at(p.b, t.z, t.column, c), BLOCK, arrives);
        if (++c >= t.live.hi) begin((int)gridDim.x);
    }
};

/* Zeros to tiles that marks leave nothing of. */
static __device__ inline bool may_be_empty(const fth__split_job &p)
{
    return !p.add && (p.k == 0 || p.a.side != FTH__DOT_FULL || p.b.side != FTH__DOT_FULL);
}
static __device__ void clear_tiles(const fth__split_job &p)
{
    float none[EACH] = {};
    walk w(p);
    for (bool go = w.skip((int)blockIdx.x); go; go = w.skip((int)gridDim.x)) {
        const tile t = w.get();
        if (t.live.lo >= t.live.hi) touch<true>(p, place_of(t), none);
    }
}

static __device__ inline void add_chunk(const fth__split_job &p, const place &at, const room &here,
                                        int c, const float (&sum)[EACH], float (&total)[EACH])
{
    if (special(here.a, here.b)) {
        add_special(p, at, c * CHUNK, here.a, here.b, sum, total);
        return;
    }
#pragma unroll
    for (int i = 0; i < EACH; i++) total[i] += sum[i];
}

static __global__ void __launch_bounds__(THREADS, 1)
    multiply(const __grid_constant__ fth__split_job p)
{
    __shared__ fth__units_barrier full[ROOMS], empty[ROOMS];
    FTH_SHARED(room, rooms);
    const int lane = (int)threadIdx.x % 32, group = (int)threadIdx.x / 128;
    if (threadIdx.x == 0) {
        for (int r = 0; r < ROOMS; r++) {
            fth__units_make(&full[r], 1);
            fth__units_make(&empty[r], THREADS / 32);
        }
        fth__units_made();
    }
    __syncthreads();
    fetcher ahead = {p, rooms, full, empty, walk(p), false, false, {}, 0, {}};
    if (threadIdx.x == 0) {
        ahead.begin((int)blockIdx.x);
        for (int i = 0; i < ROOMS - 1; i++) ahead.fetch();
    }
    float total[EACH] = {}, sum[EACH] = {}, all[EACH] = {};
    for (turn now;; now.next()) {
        const room &here = rooms[now.room];
        fth__units_wait(&full[now.room], now.parity);
        const int c = __shfl_sync(~0u, here.n.c, 0);
        if (c < 0) break;
        const place at = place_of(here.n.t);
        const fth__split_span live = here.n.t.live;
        if (c == live.lo) {
#pragma unroll
            for (int i = 0; i < EACH; i++) all[i] = total[i] = 0;
            if (p.add) touch<false>(p, at, all);
        }
        ask(here.a + group * 64 * 16, here.b, sum);
        if (threadIdx.x == 0) ahead.fetch();
        __syncwarp();
        await(sum);
        add_chunk(p, at, here, c, sum, total);
        __syncwarp();
        if (lane == 0) fth__units_arrive(&empty[now.room]);
        if (is_last(c, live.hi)) end_chain(total, all);
        if (c + 1 == live.hi) touch<true>(p, at, all);
    }
    if (may_be_empty(p)) clear_tiles(p);
}

#endif

void fth__cuda_split_multiply(cudaStream_t stream, const fth__split_job *job)
{
    int64_t tiles = 0;
    for (int i = 0; i < blocks_of(job->n); i++) {
        const fth__split_span rows = rows_of(*job, i);
        tiles += (int64_t)(rows.hi - rows.lo) * job->batch;
    }
    if (tiles == 0) return;
    FTH_LAUNCH_SHARED(multiply, (unsigned)(tiles < PROCESSORS ? tiles : PROCESSORS), THREADS,
                      SHARED, stream, *job);
}
