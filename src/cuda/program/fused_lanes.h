/* fused_lanes.h - the kernel of a fused program that reduces along the innermost axis, where blocks
 * have their order.
 *
 * The threads that add a block also read it: each has its own lanes, in registers, and nothing
 * waits. Short blocks lie in one item, or are read by as many threads as an item is too short for
 * them; long ones by eight threads of one element each, which together read whole sectors and leave
 * the cache alone. What blocks come to goes to shared memory, where a row is finished, or to
 * memory. Before it stands fused_body.h.
 */
#ifndef FTH_CUDA_FUSED_LANES_H
#define FTH_CUDA_FUSED_LANES_H

/* A unit is a block, or an item that has several. */
enum {
    LONG_BLOCK = FTH__EW_LONG_BLOCK, /* and longer ones: how long is in the arguments */
    GROUP = TAIL_INSIDE || TAIL_LANES == 1 ? 1 : TAIL_LANES / VEC, /* threads of a unit */
    SPAN = GROUP * VEC,                                            /* elements they read at once */
    AHEAD = UNROLL >= 8   ? 8
            : UNROLL >= 4 ? 4
            : UNROLL >= 2 ? 2
                          : 1,
    TURNS = TAIL_INSIDE || TAIL_BLOCK <= SPAN ? 1 : TAIL_BLOCK / SPAN,
    EACH = (int)AHEAD < (int)TURNS ? (int)AHEAD : (int)TURNS, /* turns of a unit under way */
    UNITS = AHEAD / EACH,                                     /* units of a thread under way */
    OWN = TAIL_LANES == 1 ? 1 : VEC,                          /* lanes of a thread */
    TOGETHER = THREADS / GROUP                                /* units side by side */
};

FTH__MATH double fth__from_above(double v, int by)
{
    return __shfl_down_sync(0xffffffffu, v, by, GROUP);
}
FTH__MATH int64_t fth__from_above(int64_t v, int by)
{
    return __shfl_down_sync(0xffffffffu, (long long)v, by, GROUP);
}
FTH__MATH fth_c128 fth__from_above(fth_c128 v, int by)
{
    return fth_c128{__shfl_down_sync(0xffffffffu, v.re, by, GROUP),
                    __shfl_down_sync(0xffffffffu, v.im, by, GROUP)};
}

#if TAIL_INSIDE
/* A block that lies in one item. */
FTH__MATH wide fth__join_inside(const value *v)
{
    enum { LANES = TAIL_LANES, FEW = TAIL_INSIDE < LANES ? TAIL_INSIDE : LANES };
    wide lane[LANES];
#pragma unroll
    for (int k = 0; k < LANES; k++) lane[k] = fth__start();
#pragma unroll
    for (int k = 0; k < TAIL_INSIDE; k++)
        lane[k % LANES] = fth__join(TAIL_RED, lane[k % LANES], fth__widen<wide>(v[k]));
    /* lanes without elements change nothing, but for products of complex numbers */
    const int used = sizeof(wide) == 16 && TAIL_RED == FTH__JOIN_PROD ? LANES : FEW;
#pragma unroll
    for (int half = LANES / 2; half > 0; half /= 2)
#pragma unroll
        for (int k = 0; k < half; k++)
            if (half < used) lane[k] = fth__join(TAIL_RED, lane[k], lane[k + half]);
    return lane[0];
}
#endif

/* Lanes of all threads of a group become one, in the first of them. */
FTH__MATH wide fth__join_lanes(wide (&lane)[OWN])
{
#pragma unroll
    for (int half = TAIL_LANES / 2; half > 0; half /= 2)
#pragma unroll
        for (int e = 0; e < OWN; e++) {
            if (half < OWN) {
                if (e < half) lane[e] = fth__join(TAIL_RED, lane[e], lane[(e + half) % OWN]);
                continue;
            }
            const wide other = fth__from_above(lane[e], half / OWN);
            if (threadIdx.x % GROUP < (uint32_t)(half / OWN))
                lane[e] = fth__join(TAIL_RED, lane[e], other);
        }
    return lane[0];
}

/* A unit as one thread has it. */
struct unit {
    uint32_t row, seg; /* of the task; its first block */
    uint32_t left;     /* elements from this thread's first one on; 0: none */
    uint32_t from;     /* elements from `at` to that one */
    place at;
};

FTH__MATH uint32_t fth__unit_length(const fth__ew_args &a)
{
    return TAIL_INSIDE ? VEC : TAIL_BLOCK < LONG_BLOCK ? TAIL_BLOCK : a.seg_len;
}

/* Where a row of the task begins. */
FTH__MATH void fth__find_row(const fth__ew_args &a, const task &t, uint32_t row, place &at)
{
    fth__locate(a, t.row0 + row, at);
#pragma unroll
    for (int j = 0; j < N_IN; j++) at.off[j] += t.from * a.operand[j].along;
}

/* begin: of the first row. */
FTH__MATH void fth__find_unit(const fth__ew_args &a, const task &t, const place &begin, uint32_t i,
                              unit &u)
{
    const uint32_t length = fth__unit_length(a), mine = threadIdx.x % GROUP * VEC;
    u.row = t.rows == 1 ? 0 : fth__divide(i, a.row_magic, a.row_shift);
    const uint32_t k = i - u.row * a.units, from = k * length;
    u.seg = TAIL_INSIDE ? from / (TAIL_INSIDE ? TAIL_INSIDE : 1) : k;
    const uint32_t rest = u.row < t.rows && from < t.n ? t.n - from : 0;
    const uint32_t whole = rest < length ? rest : length;
    u.left = whole > mine ? whole - mine : 0;
    u.from = from + mine + (a.flat ? u.row * t.n : 0);
    u.at = begin;
    if (!a.flat && u.left > 0) fth__find_row(a, t, u.row, u.at);
}

FTH__MATH void fth__keep(const fth__ew_args &a, const task &t, uint32_t row, uint32_t seg, wide v,
                         wide *part)
{
    if (a.tail.partial)
        *(wide *)fth__partial(a, (int64_t)t.seg + seg, t.row0) = v;
    else
        part[row * a.part_pitch + seg] = v;
}

/* One element of each of its lanes after the other; or whole blocks that lie in the item. */
FTH__MATH void fth__join_item(const fth__ew_args &a, const task &t, const unit &u, const batch &b,
                              wide (&lane)[OWN], wide *part)
{
#if TAIL_INSIDE
    value v[VEC];
#pragma unroll
    for (int e = 0; e < VEC; e++) v[e] = fth__reduced(a, b, e);
#pragma unroll
    for (int e = 0; e < VEC; e += TAIL_INSIDE)
        fth__keep(a, t, u.row, u.seg + (uint32_t)(e / TAIL_INSIDE), fth__join_inside(v + e), part);
    (void)lane;
#else
#pragma unroll
    for (int e = 0; e < VEC; e++)
        lane[e % OWN] = fth__join(TAIL_RED, lane[e % OWN], fth__widen<wide>(fth__reduced(a, b, e)));
    (void)t, (void)u, (void)part;
#endif
}

/* All loads of a turn are under way before the first is used. WHOLE: no unit ends early. */
template <bool WHOLE>
FTH__MATH void fth__walk_units(const fth__ew_args &a, const task &t, const batch &held,
                               const unit (&u)[UNITS], wide (&lane)[UNITS][OWN], wide *part)
{
    const uint32_t turns = TAIL_BLOCK < LONG_BLOCK || TAIL_INSIDE ? TURNS : a.seg_len / SPAN;
#pragma unroll 1
    for (uint32_t s = 0; s < turns; s += EACH) {
        batch b[UNITS][EACH];
#pragma unroll
        for (int k = 0; k < UNITS; k++)
#pragma unroll
            for (int i = 0; i < EACH; i++) {
                b[k][i].held(held);
                if (WHOLE || (s + (uint32_t)i) * SPAN < u[k].left)
                    fth__fetch(a, u[k].at, (int64_t)(u[k].from + s * SPAN) + i * SPAN, b[k][i]);
            }
#pragma unroll
        for (int k = 0; k < UNITS; k++)
#pragma unroll
            for (int i = 0; i < EACH; i++)
                if (WHOLE || (s + (uint32_t)i) * SPAN < u[k].left)
                    fth__join_item(a, t, u[k], b[k][i], lane[k], part);
    }
}

/* Blocks of the units from `first` on, as many as there are threads for. */
FTH__MATH void fth__join_units(const fth__ew_args &a, const task &t, const place &begin,
                               const batch &held, uint32_t first, wide *part)
{
    unit u[UNITS];
    wide lane[UNITS][OWN];
    bool whole = true;
#pragma unroll
    for (int k = 0; k < UNITS; k++) {
        fth__find_unit(a, t, begin, first + (uint32_t)k * TOGETHER + threadIdx.x / GROUP, u[k]);
        whole &= u[k].left + threadIdx.x % GROUP * VEC == fth__unit_length(a);
#pragma unroll
        for (int e = 0; e < OWN; e++) lane[k][e] = fth__start();
    }
    /* of short blocks many threads side by side have one that ends early */
    if (whole && !TAIL_INSIDE && TAIL_BLOCK >= LONG_BLOCK)
        fth__walk_units<true>(a, t, held, u, lane, part);
    else
        fth__walk_units<false>(a, t, held, u, lane, part);
#if !TAIL_INSIDE
#pragma unroll
    for (int k = 0; k < UNITS; k++) {
        const wide v = fth__join_lanes(lane[k]);
        if (u[k].left > 0 && threadIdx.x % GROUP == 0) fth__keep(a, t, u[k].row, u[k].seg, v, part);
    }
#endif
}

#if TAIL_SUPER
/* The first blocks of a superblock, which an earlier launch left in memory: one after the other by
 * one thread, while the others fetch. It takes long, and other blocks of threads read on. */
FTH__MATH void fth__join_ahead(const fth__ew_args &a, uint32_t job, wide *tile)
{
    enum { TILE = FTH__EW_AHEAD_TILE, EACH = TILE / THREADS };
    const uint32_t group = job / a.count, item = job - group * a.count;
    const int64_t from = (int64_t)group * a.group, last = from + a.group_from;
    const int64_t to = last < a.tail.segments ? last : a.tail.segments;
    wide x[EACH], acc = fth__start();
#pragma unroll 1
    for (int64_t s = from - TILE; s < to; s += TILE) {
        __syncthreads();
#pragma unroll
        for (int k = 0; k < EACH; k++)
            if (s >= from) tile[(uint32_t)k * THREADS + threadIdx.x] = x[k];
        __syncthreads();
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            const int64_t next = s + TILE + k * THREADS + threadIdx.x;
            if (next < to) x[k] = *(const wide *)fth__partial(a, next, item);
        }
        const uint32_t n = s < from ? 0 : (uint32_t)(to - s < TILE ? to - s : TILE);
        if (threadIdx.x > 0) continue;
#pragma unroll 16
        for (uint32_t k = 0; k < n; k++) acc = fth__join(TAIL_RED, acc, tile[k]);
    }
    if (threadIdx.x == 0) *(wide *)fth__partial(a, a.tail.segments + group, item) = acc;
}
#endif

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    fth_kernel(const fth__ew_args __grid_constant__ a)
{
    FTH__SHARED(memory);
    wide *const part = (wide *)memory;
#if TAIL_SUPER
    if (blockIdx.x < a.ahead) {
        fth__join_ahead(a, blockIdx.x, part);
        return;
    }
    const task t = fth__task_of(a, blockIdx.x - a.ahead);
#else
    const task t = fth__task_of(a, blockIdx.x);
#endif
    const uint32_t length = fth__unit_length(a);
    const uint32_t n = t.rows == 1 ? (t.n + length - 1) / length : t.rows * a.units;
    batch held;
    place begin;
    fth__hold(a, held);
    fth__find_row(a, t, 0, begin);
#pragma unroll 1
    for (uint32_t i = 0; i < n; i += TOGETHER * UNITS) fth__join_units(a, t, begin, held, i, part);
    if (a.tail.partial) return;
    __syncthreads();
    fth__finish_rows(a, t, (const value *)memory, part);
}

#endif
