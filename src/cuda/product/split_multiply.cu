/* split_multiply.cu - the product of packed parts by the matrix units of capability 9.0 (wgmma).
 *
 * A block of threads makes tiles of 128 by 128 elements, one after the other: those that others
 * have not begun. One thread has packed blocks of both operands copied into four rooms of shared
 * memory, in bulk, as rooms become free. Two groups of four warps multiply 64 rows each: one adds
 * its chunk to the sums while the units work for the other. The six products of parts of a chunk
 * are twelve instructions, small ones first. This file alone is compiled for sm_90a, and its
 * kernel runs only on cards of capability 9.0. Where kernels are compiled for the CPU, threads make
 * the same sums from the packed blocks by plain loops. */
#include "cuda/product/split.cuh"
#include "cuda/product/units.cuh"

static constexpr int LINES = FTH__SPLIT_LINES, CHUNK = FTH__SPLIT_CHUNK, PART = FTH__SPLIT_PART,
                     BLOCK = FTH__SPLIT_BLOCK;
static constexpr int GROUP = 128, MAKERS = 2 * GROUP, EACH = 64; /* threads; elements of one */
/* Rows of tiles that run side by side share b in the cache; where marks make some columns longer
 * than others, so many rows and columns of them. */
static constexpr int TOGETHER = 16, TALL = 32, ALIKE = 2;
static constexpr int PRODUCTS = FTH__SPLIT_PRODUCTS, CHAIN = FTH__SPLIT_CHAIN;
static constexpr uint32_t PLAIN = fth__split_scale(FTH__SPLIT_PLAIN);
#ifdef FTH_EMULATED
static constexpr int THREADS = MAKERS, SHARED = 0;
#else
static constexpr int ROOMS = 4, THREADS = MAKERS + GROUP;
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

/* The tiles of a launch in order: by groups of columns, in these by stripes of rows, in these by
 * matrices, and there column by column, so that tiles side by side share their operands in the
 * cache. Long ones come first, so that blocks of threads end together: groups are narrow where
 * columns are not alike. */
struct walk {
    const fth__split_job &p;
    int across, wide, tall, stripes;
    int first, stripe, z, at, i; /* column of the group, stripe, matrix, column in it, row */

    __device__ explicit walk(const fth__split_job &job)
        : p(job), across(blocks_of(job.n)), first(0), stripe(0), z(0), at(0), i(0)
    {
        const bool alike = p.a.side == FTH__DOT_FULL && p.b.side == FTH__DOT_FULL;
        wide = alike ? across : ALIKE;
        tall = alike ? TOGETHER : TALL;
        stripes = (blocks_of(job.m) + tall - 1) / tall;
    }
    __device__ int column() const
    {
        const int c = first + at;
        return p.b.side == FTH__DOT_BELOW ? across - 1 - c : c;
    }
    __device__ fth__split_span rows() const
    {
        const int lo = (p.a.side == FTH__DOT_BELOW ? stripes - 1 - stripe : stripe) * tall,
                  hi = lo + tall;
        const fth__split_span all = rows_of(p, column());
        return {all.lo > lo ? all.lo : lo, all.hi < hi ? all.hi : hi};
    }
    /* The next column; false: there is none. */
    __device__ bool step()
    {
        if (++at < wide && first + at < across) return true;
        at = 0;
        if (++z < p.batch) return true;
        z = 0;
        if (++stripe < stripes) return true;
        stripe = 0;
        first += wide;
        return first < across;
    }
    /* So many tiles on; false: that is behind the last. */
    __device__ bool skip(int n)
    {
        i += n;
        do {
            const fth__split_span in = rows();
            const int count = in.hi > in.lo ? in.hi - in.lo : 0;
            if (i < count) return true;
            i -= count;
        } while (step());
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

static __device__ inline fth__split_factors factors_of(uint32_t scale)
{
    return {__int_as_float((int)(scale & 0xffff0000u)), __int_as_float((int)(scale << 16))};
}

/* Add a chunk of which some lines were scaled. Lines that were left out have sums of zeros here.
 * Most often a is scaled alone. */
static __device__ inline void add_scaled(const place &at, const uint32_t *of_a,
                                         const uint32_t *of_b, bool b_too, const float (&sum)[EACH],
                                         float (&total)[EACH])
{
    const fth__split_factors a[2] = {factors_of(of_a[at.row]), factors_of(of_a[at.row + 8])};
    if (!b_too) {
#pragma unroll
        for (int i = 0; i < EACH; i++)
            total[i] = fmaf(sum[i] * a[i / 2 % 2].one, a[i / 2 % 2].two, total[i]);
        return;
    }
#pragma unroll
    for (int g = 0; g < EACH; g += 4) { /* two columns at a time; the first is even */
        const uint2 scale = *(const uint2 *)(of_b + col_of(at, g));
        const fth__split_factors b[2] = {factors_of(scale.x), factors_of(scale.y)};
#pragma unroll
        for (int i = g; i < g + 4; i++) {
            const fth__split_factors &x = a[i / 2 % 2], &y = b[i % 2];
            total[i] = fmaf(sum[i] * (x.one * y.one), x.two * y.two, total[i]);
        }
    }
}

/* Add the chunk of elements whose row or column was left out. They are rare: one after the other,
 * with a search for the register. */
static __device__ inline void add_plain(const fth__split_job &p, const place &at, int chunk,
                                        const uint32_t *of_a, const uint32_t *of_b,
                                        float (&total)[EACH])
{
#pragma unroll 1
    for (int i = 0; i < EACH; i++) {
        const int row = row_of(at, i), col = col_of(at, i);
        if (of_a[row] != PLAIN && of_b[col] != PLAIN) continue;
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
    const uint32_t *of_a = (const uint32_t *)(a + FTH__SPLIT_SCALES),
                   *of_b = (const uint32_t *)(b + FTH__SPLIT_SCALES);
    add_scaled(at, of_a, of_b, *(const int *)(b + FTH__SPLIT_ANY) != 0, sum, total);
    if (special(a, b) & FTH__SPLIT_SOME_PLAIN) add_plain(p, at, chunk, of_a, of_b, total);
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

static void make_tile(const fth__split_job &p, const tile &t)
{
    constexpr int SIXTEEN = 2 * LINES * 16; /* bytes from one 16 of k to the next */
    const place at = place_of(t);
    const int rows = (int)threadIdx.x / GROUP * FTH__UNITS_ROWS * 16; /* of a: bytes before them */
    float total[EACH] = {}, sum[EACH], all[EACH] = {};
    if (p.add) touch<false>(p, at, all);
    for (int c = t.live.lo; c < t.live.hi; c++) {
        const char *a = block_at(p.a, t.z, t.row, c), *b = block_at(p.b, t.z, t.column, c);
        for (int q = 0; q < PRODUCTS; q++)
            for (int k = 0; k < CHUNK / 16; k++) {
                const char *of_a = a + fth__split_part_a(q) * PART + k * SIXTEEN + rows,
                           *of_b = b + fth__split_part_b(q) * PART + k * SIXTEEN;
                fth__units_multiply(sum, fth__units_describe(of_a, LINES * 16, 128),
                                    fth__units_describe(of_b, LINES * 16, 128), q + k > 0);
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

/* ---- the units ---- */

/* Ask the units for a chunk; what is in sum is theirs until they are waited for. */
static __device__ inline void ask(const char *a, const char *b, float (&sum)[EACH])
{
    constexpr int SIXTEEN = 2 * LINES * 16; /* bytes from one 16 of k to the next */
    const fth__units_matrix of_a = fth__units_describe(a, LINES * 16, 128),
                            of_b = fth__units_describe(b, LINES * 16, 128);
    fth__units_settle(sum);
    fth__units_begin();
#pragma unroll
    for (int q = 0; q < PRODUCTS; q++)
#pragma unroll
        for (int k = 0; k < CHUNK / 16; k++)
            fth__units_multiply(
                sum, of_a + (uint64_t)((fth__split_part_a(q) * PART + k * SIXTEEN) / 16),
                of_b + (uint64_t)((fth__split_part_b(q) * PART + k * SIXTEEN) / 16), q + k > 0);
    fth__units_commit();
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
struct rooms {
    room *at;
    fth__units_barrier *full, *empty;
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

/* One thread has the chunks of all tiles of its block copied, ahead of those who multiply. A room
 * is filled when both groups are done with what was there; the phase before the first counts as
 * over. Which tile comes next is known before this one is copied. Who asks last, after all tiles
 * have been given away, leaves the count as it was found, for the next launch. */
static __device__ void fetch(const fth__split_job &p, const rooms &r)
{
    walk w(p);
    turn now;
    int at = (int)blockIdx.x;
    for (bool go = w.skip(at); go;) {
        const tile t = w.get();
        const int asked = atomicAdd(p.a.given, 1), next = (int)gridDim.x + asked;
        for (int c = t.live.lo; c < t.live.hi; c++, now.next()) {
            room &to = r.at[now.room];
            fth__units_barrier *arrives = &r.full[now.room];
            fth__units_wait(&r.empty[now.room], now.parity ^ 1u);
            to.n = {t, c};
            fth__units_expect(arrives, 2 * BLOCK);
            fth__units_copy(to.a, block_at(p.a, t.z, t.row, c), BLOCK, arrives);
            fth__units_copy(to.b, block_at(p.b, t.z, t.column, c), BLOCK, arrives);
        }
        if (asked == p.tiles - 1) *p.a.given = 0;
        go = next < p.tiles && w.skip(next - at);
        at = next;
    }
    fth__units_wait(&r.empty[now.room], now.parity ^ 1u);
    r.at[now.room].n.c = -1;
    fth__units_arrive(&r.full[now.room]);
}

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

static __device__ inline void make_chunk(const fth__split_job &p, const room &here, int c,
                                         float (&sum)[EACH], float (&total)[EACH],
                                         float (&all)[EACH])
{
    ask(here.a + (int)threadIdx.x / GROUP * 64 * 16, here.b, sum);
    if (c == here.n.t.live.lo) {
#pragma unroll
        for (int i = 0; i < EACH; i++) all[i] = total[i] = 0;
        if (p.add) touch<false>(p, place_of(here.n.t), all);
    }
    fth__units_finish<0>();
    fth__units_settle(sum);
    add_chunk(p, place_of(here.n.t), here, c, sum, total);
}

static __device__ void make_tiles(const fth__split_job &p, const rooms &r)
{
    const int lane = (int)threadIdx.x % 32;
    float total[EACH] = {}, sum[EACH] = {}, all[EACH] = {};
    for (turn now;; now.next()) {
        const room &here = r.at[now.room];
        fth__units_wait(&r.full[now.room], now.parity);
        const int c = __shfl_sync(~0u, here.n.c, 0);
        if (c < 0) break;
        const fth__split_span live = here.n.t.live;
        const place at = place_of(here.n.t);
        make_chunk(p, here, c, sum, total, all);
        __syncwarp();
        if (lane == 0) fth__units_arrive(&r.empty[now.room]);
        if (is_last(c, live.hi)) end_chain(total, all);
        if (c + 1 == live.hi) touch<true>(p, at, all);
    }
    if (may_be_empty(p)) clear_tiles(p);
}

static __global__ void __launch_bounds__(THREADS, 1)
    multiply(const fth__split_job __grid_constant__ p)
{
    __shared__ fth__units_barrier full[ROOMS], empty[ROOMS];
    FTH_SHARED(room, at);
    const rooms r = {at, full, empty};
    if (threadIdx.x == 0) {
        for (int i = 0; i < ROOMS; i++) {
            fth__units_make(&full[i], 1);
            fth__units_make(&empty[i], MAKERS / 32);
        }
        fth__units_made();
    }
    __syncthreads();
    if (threadIdx.x >= MAKERS) {
        fth__units_give<56>();
        if (threadIdx.x == MAKERS) fetch(p, r);
    } else {
        fth__units_take<224>();
        make_tiles(p, r);
    }
}

#endif

void fth__cuda_split_multiply(cudaStream_t stream, const fth__split_job *job, int processors)
{
    fth__split_job p = *job;
    p.tiles = 0;
    for (int i = 0; i < blocks_of(p.n); i++) {
        const fth__split_span rows = rows_of(p, i);
        p.tiles += (rows.hi - rows.lo) * p.batch;
    }
    if (p.tiles == 0) return;
    FTH_LAUNCH_SHARED(multiply, (unsigned)(p.tiles < processors ? p.tiles : processors), THREADS,
                      SHARED, stream, p);
}
