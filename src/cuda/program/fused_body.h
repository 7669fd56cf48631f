/* fused_body.h - the loops of a fused program's kernel, around a program somebody else wrote down.
 *
 * Before it stand (cuda/program/source.c):
 *   N_IN N_OUT    operands
 *   VEC           neighbours in one item: 1 takes every operand at any distance
 *   UNROLL        items under way per thread
 *   struct batch                       operands of one item
 *   fth__hold(args, batch)             reads what is the same everywhere
 *   fth__fetch(args, place, at, batch)  reads the rest, `at` elements along the tail from there
 *   fth__compute(args, batch, e, results)   the program on neighbour e; results are as stored
 *   fth__put(args, place, results[VEC])     writes them
 * HAS_TAIL, and with it instead of the last two
 *   fth__reduced(args, batch, e)       the element that is joined
 *   BLOCKS        blocks of threads that have to fit a multiprocessor: with it the compiler leaves
 *                 loads where they stand, before everything that uses them
 *   wide value    types: of sums (double, int64_t, fth_c128), of an element
 *   TAIL_RED      fth_red;  TAIL_TO  dtype of a result, OUT_BYTES of it
 *   ROWS          the axis of items is the one that is reduced
 *   TAIL_BRIEF    blocks are single elements, and are never cut
 *   TAIL_LANES    1 or 8;  TAIL_BLOCK  elements of a block, 64 for longer ones too
 *   TAIL_SUPER    blocks are gathered in superblocks first
 *   TAIL_TINY     elements of a row that one thread reads; else 0
 *   TAIL_INSIDE   elements of a block, where every block lies inside one item; else 0
 *   TAIL_FREE     rows are long, and no order can change what they come to
 *   TAIL_SMALL    sums of u8 and u16; 2: of the bytes of the first operand as they are
 * Where an item reduces another axis first, batch and its functions are those of fused_inner.h.
 * One kernel comes out: what a program does not need only takes time to compile.
 */
#ifndef FTH_CUDA_FUSED_BODY_H
#define FTH_CUDA_FUSED_BODY_H

#include "cuda/program/join.h"

enum { THREADS = FTH__EW_THREADS };
/* Shared memory whose size the launch says. */
#ifndef FTH__SHARED
#define FTH__SHARED(name) extern __shared__ uint4 name[]
#endif

FTH__MATH uint32_t fth__divide(uint32_t n, uint32_t magic, uint32_t shift)
{
    return (__umulhi(n, magic) + n) >> shift;
}

/* Where item `i` lies in each operand. */
FTH__MATH void fth__locate(const fth__ew_args &a, uint32_t i, place &p)
{
#pragma unroll
    for (int j = 0; j < N_OPS; j++) p.off[j] = 0;
#pragma unroll 1
    for (int k = a.n_axes - 1; k > 0; k--) {
        const uint32_t q = fth__divide(i, a.magic[k], a.shift[k]), r = i - q * a.extent[k];
#pragma unroll
        for (int j = 0; j < N_OPS; j++) p.off[j] += (int64_t)r * a.operand[j].stride[k];
        i = q;
    }
#pragma unroll
    for (int j = 0; j < N_OPS; j++) p.off[j] += (int64_t)i * a.operand[j].stride[0];
}

#if !HAS_TAIL

extern "C" __global__ void __launch_bounds__(THREADS)
    fth_kernel(const fth__ew_args __grid_constant__ a)
{
    const uint32_t first = blockIdx.x * (uint32_t)(THREADS * UNROLL) + threadIdx.x;
    batch b[UNROLL];
    place p[UNROLL];
    fth__hold(a, b[0]);
#pragma unroll
    for (int u = 0; u < UNROLL; u++) {
        const uint32_t i = first + (uint32_t)u * THREADS;
        if (u > 0) b[u].held(b[0]);
        if (i >= a.count) continue;
        fth__locate(a, i, p[u]);
        fth__fetch(a, p[u], 0, b[u]);
    }
#pragma unroll
    for (int u = 0; u < UNROLL; u++) {
        if (first + (uint32_t)u * THREADS >= a.count) continue;
        results r[VEC];
#pragma unroll
        for (int e = 0; e < VEC; e++) fth__compute(a, b[u], e, r[e]);
        fth__put(a, p[u], r);
    }
}

#else

FTH__MATH wide fth__start()
{
    wide v;
    fth__join_start(TAIL_RED, TAIL_TO, &v);
    return v;
}

/* A block of one element, joined with the start as every block is. Sums leave that out: no total is
 * a negative zero, which it would change. */
FTH__MATH wide fth__join_single(wide total, wide v)
{
    return fth__join(TAIL_RED, total,
                     TAIL_RED == FTH__JOIN_SUM ? v : fth__join(TAIL_RED, fth__start(), v));
}

FTH__MATH char *fth__partial(const fth__ew_args &a, int64_t segment, uint32_t item)
{
    return a.tail.partial + (segment * (int64_t)a.count + item) * (int64_t)sizeof(wide);
}

/* Where the result of neighbour e goes, and what is kept of it between pieces. */
FTH__MATH char *fth__out(const fth__ew_args &a, const place &p, int e)
{
    const fth__ew_operand &o = a.operand[N_IN];
    return o.data + (p.off[N_IN] + e * o.step) * OUT_BYTES;
}
FTH__MATH char *fth__kept(const fth__ew_args &a, const place &p, int e)
{
    const fth__ew_operand &o = a.operand[N_IN + 1];
    return o.data + (p.off[N_IN + 1] + e * o.step) * a.tail.state;
}

#define BY_FOUR (TAIL_SMALL == 2 && VEC % 4 == 0)
#if BY_FOUR
/* Four bytes of an item as one number. */
FTH__MATH uint32_t fth__four(const batch &b, int k)
{
    uint32_t w;
    memcpy(&w, b.a0 + 4 * k, sizeof w);
    return w;
}
#endif

#if !ROWS
/* ---- the axis is not innermost: one thread per VEC neighbouring columns ---- */

#if TAIL_SMALL
/* Sums of so many small numbers that they fit few bits: in the halves of 32 for bytes, where one
 * instruction adds two of them, else in 32. */
struct tally {
    enum { MOST = BY_FOUR ? 256 : 1 << 16 };
    uint32_t sum[VEC];

    FTH__METHOD void clear()
    {
#pragma unroll
        for (int e = 0; e < VEC; e++) sum[e] = 0;
    }
    FTH__METHOD void add(const fth__ew_args &a, const batch &b)
    {
#if BY_FOUR
#pragma unroll
        for (int k = 0; k < VEC / 4; k++) {
            const uint32_t w = fth__four(b, k);
            sum[2 * k] += __byte_perm(w, 0, 0x4240);     /* bytes 0 and 2 */
            sum[2 * k + 1] += __byte_perm(w, 0, 0x4341); /* 1 and 3 */
        }
        (void)a;
#else
#pragma unroll
        for (int e = 0; e < VEC; e++) sum[e] += (uint32_t)fth__reduced(a, b, e);
#endif
    }
    FTH__METHOD void give(wide (&acc)[VEC]) const
    {
#pragma unroll
        for (int e = 0; e < VEC; e++) {
            const uint32_t w = sum[BY_FOUR ? e / 4 * 2 + e % 2 : e];
            acc[e] += (wide)(!BY_FOUR ? w : e % 4 < 2 ? w & 0xffffu : w >> 16);
        }
    }
};

/* Places `from` to `to` of the axis, for the columns at p, in any order. */
FTH__MATH void fth__column(const fth__ew_args &a, const place &p, const batch &held, int64_t from,
                           int64_t to, uint32_t, wide (&acc)[VEC], fth__total<wide> (&)[VEC])
{
    place at = p;
#pragma unroll
    for (int j = 0; j < N_IN; j++) at.off[j] += from * a.operand[j].along;
#pragma unroll 1
    for (int64_t i = from; i < to;) {
        const int64_t end = to - i < tally::MOST ? to : i + tally::MOST;
        tally some;
        some.clear();
#pragma unroll 1
        for (; i + UNROLL <= end; i += UNROLL) {
            batch b[UNROLL];
#pragma unroll
            for (int u = 0; u < UNROLL; u++) {
                b[u].held(held);
                fth__fetch(a, at, 0, b[u]);
#pragma unroll
                for (int j = 0; j < N_IN; j++) at.off[j] += a.operand[j].along;
            }
#pragma unroll
            for (int u = 0; u < UNROLL; u++) some.add(a, b[u]);
        }
#pragma unroll 1
        for (; i < end; i++) {
            batch b = held;
            fth__fetch(a, at, 0, b);
#pragma unroll
            for (int j = 0; j < N_IN; j++) at.off[j] += a.operand[j].along;
            some.add(a, b);
        }
        some.give(acc);
    }
}
#else

/* An element joins the block that acc is in; blocks of one were joined with the start themselves.
 */
FTH__MATH wide fth__joined(const fth__ew_args &a, const batch &b, int e, wide acc)
{
    const wide v = fth__widen<wide>(fth__reduced(a, b, e));
    return TAIL_BRIEF ? fth__join_single(acc, v) : fth__join(TAIL_RED, acc, v);
}

/* Places `from` to `to` of the axis, for the columns at p. All loads of a turn are under way before
 * the first is used. Blocks that end inside (`last` is their last place) go to the totals. */
FTH__MATH void fth__column(const fth__ew_args &a, const place &p, const batch &held, int64_t from,
                           int64_t to, uint32_t last, wide (&acc)[VEC],
                           fth__total<wide> (&total)[VEC])
{
    place at = p;
    int64_t i = from;
#pragma unroll
    for (int j = 0; j < N_IN; j++) at.off[j] += from * a.operand[j].along;
#pragma unroll 1
    for (; i + UNROLL <= to; i += UNROLL) {
        batch b[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            b[u].held(held);
            fth__fetch(a, at, 0, b[u]);
#pragma unroll
            for (int j = 0; j < N_IN; j++) at.off[j] += a.operand[j].along;
        }
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
#pragma unroll
            for (int e = 0; e < VEC; e++) acc[e] = fth__joined(a, b[u], e, acc[e]);
            if (TAIL_BRIEF || ((uint32_t)(i + u) & last) != last) continue;
#pragma unroll
            for (int e = 0; e < VEC; e++) {
                total[e].total = fth__join(TAIL_RED, total[e].total, acc[e]);
                acc[e] = fth__start();
            }
        }
    }
#pragma unroll 1
    for (; i < to; i++) {
        batch b = held;
        fth__fetch(a, at, 0, b);
#pragma unroll
        for (int j = 0; j < N_IN; j++) at.off[j] += a.operand[j].along;
#pragma unroll
        for (int e = 0; e < VEC; e++) {
            acc[e] = fth__joined(a, b, e, acc[e]);
            if (TAIL_BRIEF || ((uint32_t)i & last) != last) continue;
            total[e].total = fth__join(TAIL_RED, total[e].total, acc[e]);
            acc[e] = fth__start();
        }
    }
}
#endif

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    fth_kernel(const fth__ew_args __grid_constant__ a)
{
    const fth__ew_tail &t = a.tail;
    const bool whole = TAIL_BRIEF || !t.partial; /* the output is finished here */
    const uint32_t id = blockIdx.x * (uint32_t)THREADS + threadIdx.x, items = a.count / VEC;
    const uint32_t row = whole ? 0 : fth__divide(id, a.row_magic, a.row_shift);
    const uint32_t i = id - row * items;
    int64_t s = whole ? 0 : (int64_t)blockIdx.y * a.chunks + row;
    if (i >= items || (!whole && (row >= a.chunks || s >= t.segments))) return;
    /* one block of the axis, or all of them: those that are in no superblock at once */
    const bool at_once = TAIL_BRIEF || (whole && !TAIL_SUPER);
    const uint32_t last = at_once ? (uint32_t)t.block - 1 : 0xffffffffu;
    place p;
    batch held;
    fth__total<wide> total[VEC];
    wide acc[VEC];
    fth__locate(a, i, p);
    fth__hold(a, held);
#pragma unroll
    for (int e = 0; e < VEC; e++)
        if (whole)
            total[e].begin(TAIL_RED, t, fth__out(a, p, e), fth__kept(a, p, e));
        else
            total[e].start(TAIL_RED, TAIL_TO);
#pragma unroll 1
    for (;;) {
        const int64_t from = s * t.block, end = at_once ? t.n : from + t.block;
        const int64_t to = end < t.n ? end : t.n;
#pragma unroll
        for (int e = 0; e < VEC; e++) acc[e] = TAIL_BRIEF ? total[e].total : fth__start();
        fth__column(a, p, held, from, to, last, acc, total);
        s++;
        if (at_once || !whole || s >= t.segments) break;
#pragma unroll
        for (int e = 0; e < VEC; e++) total[e].add(TAIL_RED, t, acc[e], t.lo + to);
    }
#pragma unroll
    for (int e = 0; e < VEC; e++) {
        if (!whole) {
            *(wide *)fth__partial(a, s - 1, i * VEC + (uint32_t)e) = acc[e];
            continue;
        }
        if (TAIL_BRIEF)
            total[e].total = acc[e];
        else if (TAIL_SMALL || !at_once || (t.n & last) != 0)
            total[e].add(TAIL_RED, t, acc[e], t.lo + t.n);
        total[e].end(t, fth__out(a, p, e), fth__kept(a, p, e));
    }
}

#elif TAIL_TINY
#include "cuda/program/fused_tiny.h"
#else
/* ---- the axis is innermost ----
 *
 * A block of threads has tasks: some rows, or one chunk of a row after another. */

struct task {
    uint32_t row0, rows, chunk, n; /* n elements of each row */
    uint32_t seg;                  /* the first block of the axis */
    int64_t from;
};

FTH__MATH task fth__task_of(const fth__ew_args &a, uint32_t k)
{
    task t;
    const uint32_t row = a.chunks > 1 ? k / a.chunks : 0;
    t.chunk = a.chunks > 1 ? k - row * a.chunks : 0;
    t.row0 = a.chunks > 1 ? row : k * a.rows;
    t.rows = a.count - t.row0 < a.rows ? a.count - t.row0 : a.rows;
    uint32_t end = (uint32_t)a.tail.segments;
    t.seg = t.chunk * a.segs;
#if TAIL_SUPER
    /* the same part of every superblock */
    const uint32_t group = t.chunk / a.group_chunks, last = group * a.group + a.group_to;
    t.seg = group * a.group + a.group_from + (t.chunk - group * a.group_chunks) * a.segs;
    end = last < end ? last : end;
#endif
    const uint32_t left = t.seg < end ? end - t.seg : 0;
    t.from = (int64_t)t.seg * a.seg_len;
    const int64_t most = (int64_t)(left < a.segs ? left : a.segs) * a.seg_len;
    t.n = (uint32_t)(most > 0 && a.tail.n - t.from < most ? a.tail.n - t.from : most);
    return t;
}

/* What a row is finished from: its elements, where blocks are single ones, or its blocks. */
#if TAIL_BRIEF
typedef value part_value;
#else
typedef wide part_value;
#endif

/* The next COUNT of them, of which `left` are there. All are read before the first is joined. */
template <uint32_t COUNT>
FTH__MATH wide fth__join_next(const fth__ew_args &a, const part_value *v, uint32_t left, wide total)
{
    wide x[COUNT];
#if TAIL_BRIEF
    if (!a.crossing) {
#pragma unroll
        for (uint32_t k = 0; k < COUNT; k += VEC) {
            value few[VEC];
            if (k < left) fth__read<value, VEC>(few, v + k);
#pragma unroll
            for (uint32_t e = 0; e < VEC; e++) x[k + e] = fth__widen<wide>(few[e]);
        }
    } else
#endif
#pragma unroll
        for (uint32_t k = 0; k < COUNT; k++)
            if (k < left) x[k] = fth__widen<wide>(v[k]);
#pragma unroll
    for (uint32_t k = 0; k < COUNT; k++)
        if (k < left)
            total = TAIL_BRIEF ? fth__join_single(total, x[k]) : fth__join(TAIL_RED, total, x[k]);
    (void)a;
    return total;
}

/* Rows that are finished here, in order. Few elements are not worth the steps of many. */
FTH__MATH void fth__finish_rows(const fth__ew_args &a, const task &t, const value *shared,
                                const wide *part)
{
    enum { MANY = TAIL_BRIEF && VEC > 8 ? VEC : 8, FEW = TAIL_BRIEF && VEC > 4 ? MANY : 4 };
#pragma unroll 1
    for (uint32_t r = threadIdx.x; r < t.rows; r += THREADS) {
        place p;
        fth__total<wide> total;
        fth__locate(a, t.row0 + r, p);
        total.begin(TAIL_RED, a.tail, fth__out(a, p, 0), fth__kept(a, p, 0));
#if TAIL_BRIEF
        const value *const v = shared + r * a.pitch;
        const uint32_t n = t.n;
#else
        const wide *const v = part + r * a.part_pitch;
        const uint32_t n = (uint32_t)a.tail.segments;
#endif
#pragma unroll 1
        for (uint32_t s = 0; s < n; s += MANY)
            total.total = n - s <= FEW ? fth__join_next<FEW>(a, v + s, n - s, total.total)
                                       : fth__join_next<MANY>(a, v + s, n - s, total.total);
        total.end(a.tail, fth__out(a, p, 0), fth__kept(a, p, 0));
    }
    (void)shared, (void)part;
}

#if TAIL_BRIEF || TAIL_FREE
/* Items of this thread: `round` of a task. */
FTH__MATH void fth__take(const fth__ew_args &a, const task &t, uint32_t round, const batch &held,
                         batch (&b)[UNROLL])
{
    const uint32_t items = t.rows * t.n / VEC;
    const uint32_t first = round * (uint32_t)(UNROLL * THREADS) + threadIdx.x;
    if (a.flat) { /* one row, or rows that follow each other */
        place p;
        fth__locate(a, t.row0, p);
        const int64_t at = t.from + (int64_t)first * VEC;
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            b[u].held(held);
            if (first + (uint32_t)u * THREADS >= items) continue;
            fth__fetch(a, p, at + u * (THREADS * VEC), b[u]);
        }
        return;
    }
#pragma unroll
    for (int u = 0; u < UNROLL; u++) {
        const uint32_t i = (first + (uint32_t)u * THREADS) * VEC;
        b[u].held(held);
        if (first + (uint32_t)u * THREADS >= items) continue;
        const uint32_t row = fth__divide(i, a.row_magic, a.row_shift);
        place p;
        fth__locate(a, t.row0 + row, p);
        fth__fetch(a, p, i - row * t.n, b[u]);
    }
}

#if TAIL_FREE
/* Small whole numbers are added in 32 bits: an item each of a thread never fills them. */
template <class V> struct fth__narrow {
    typedef wide type;
};
#if TAIL_SMALL
template <> struct fth__narrow<uint8_t> {
    typedef uint32_t type;
};
template <> struct fth__narrow<uint16_t> {
    typedef uint32_t type;
};
#endif

FTH__MATH wide fth__join_items(const fth__ew_args &a, const task &t, uint32_t round,
                               const batch (&b)[UNROLL], wide acc)
{
    const uint32_t items = t.n / VEC;
    const uint32_t first = round * (uint32_t)(UNROLL * THREADS) + threadIdx.x;
    typedef fth__narrow<value>::type sum;
    const bool narrow = sizeof(sum) < sizeof(wide);
    sum some = narrow ? (sum)0 : (sum)acc;
#pragma unroll
    for (int u = 0; u < UNROLL; u++) {
        if (first + (uint32_t)u * THREADS >= items) continue;
#if BY_FOUR
#pragma unroll
        for (int k = 0; k < VEC / 4; k++) some = __dp4a(fth__four(b[u], k), 0x01010101u, some);
        continue;
#endif
#pragma unroll
        for (int e = 0; e < VEC; e++)
            if (narrow)
                some += (sum)fth__reduced(a, b[u], e);
            else
                some = (sum)fth__join(TAIL_RED, (wide)some,
                                      fth__widen<wide>(fth__reduced(a, b[u], e)));
    }
    return narrow ? fth__join(TAIL_RED, acc, (wide)some) : (wide)some;
}

/* What all threads have, in part[0] for the first of them. */
FTH__MATH void fth__join_threads(wide acc, wide *part)
{
#pragma unroll
    for (int half = 16; half > 0; half /= 2)
        acc = fth__join(TAIL_RED, acc, __shfl_down_sync(0xffffffffu, (long long)acc, half));
    __syncthreads();
    if (threadIdx.x % 32 == 0) part[1 + threadIdx.x / 32] = acc;
    __syncthreads();
    if (threadIdx.x > 0) return;
#pragma unroll
    for (int k = 1; k < THREADS / 32; k++) acc = fth__join(TAIL_RED, acc, part[1 + k]);
    part[0] = acc;
}
#endif

#if TAIL_BRIEF
/* Elements of this thread to where they are joined from. */
FTH__MATH void fth__put_down(const fth__ew_args &a, const task &t, uint32_t round,
                             const batch (&b)[UNROLL], value *shared)
{
    const uint32_t items = t.rows * t.n / VEC;
    const uint32_t first = round * (uint32_t)(UNROLL * THREADS) + threadIdx.x;
#pragma unroll
    for (int u = 0; u < UNROLL; u++) {
        const uint32_t i = (first + (uint32_t)u * THREADS) * VEC;
        if (first + (uint32_t)u * THREADS >= items) continue;
        value v[VEC];
#pragma unroll
        for (int e = 0; e < VEC; e++) v[e] = fth__reduced(a, b[u], e);
        if (a.pitch == t.n) { /* there is nothing between rows */
            fth__lay<value, VEC>(shared + i, v);
            continue;
        }
        const uint32_t row = t.rows == 1 ? 0 : fth__divide(i, a.row_magic, a.row_shift);
        uint32_t at = i - row * t.n, slot = row * a.pitch + at;
        if (!a.crossing) {
            fth__lay<value, VEC>(shared + slot, v);
            continue;
        }
#pragma unroll
        for (int e = 0; e < VEC; e++) {
            shared[slot++] = v[e];
            if (++at < t.n) continue;
            at = 0;
            slot += a.pitch - t.n;
        }
    }
}
#endif

#if TAIL_FREE
/* What a task came to becomes a result, or a block that goes to memory. */
FTH__MATH void fth__settle(const fth__ew_args &a, const task &t, const wide *part)
{
    if (!a.tail.partial)
        fth__finish_rows(a, t, (const value *)part, part);
    else if (threadIdx.x == 0)
        *(wide *)fth__partial(a, (int64_t)t.seg, t.row0) = part[0];
}
#endif

/* It reads a task side by side, whatever the order of additions is, and while the next task is on
 * its way joins what it has: in any order, or one element after the other from shared memory. */
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    fth_kernel(const fth__ew_args __grid_constant__ a)
{
    FTH__SHARED(memory);
    value *const shared = (value *)memory;
    wide *const part = (wide *)((char *)memory + a.part_at);
    const uint32_t first = blockIdx.x * a.loops, left = a.tasks - first;
    const int32_t n = (int32_t)((left < a.loops ? left : a.loops) * a.rounds);
    batch held, b[UNROLL];
    fth__hold(a, held);
#if TAIL_FREE
    wide acc = fth__start();
#endif
#pragma unroll 1
    for (int32_t i = -1; i < n; i++) {
        const bool full = (uint32_t)(i + 1) % a.rounds == 0 && i >= 0;
        const task t = fth__task_of(a, first + (uint32_t)(i < 0 ? 0 : i) / a.rounds);
        if (i >= 0) {
            const uint32_t round = (uint32_t)i % a.rounds;
#if TAIL_FREE
            acc = fth__join_items(a, t, round, b, acc);
#else
            fth__put_down(a, t, round, b, shared);
            if (full) __syncthreads();
#endif
        }
        if (i + 1 < n)
            fth__take(a, fth__task_of(a, first + (uint32_t)(i + 1) / a.rounds),
                      (uint32_t)(i + 1) % a.rounds, held, b);
        if (!full) continue;
#if TAIL_FREE
        fth__join_threads(acc, part);
        acc = fth__start();
        fth__settle(a, t, part);
#else
        fth__finish_rows(a, t, shared, part);
        __syncthreads();
#endif
    }
}
#else
#include "cuda/program/fused_lanes.h"
#endif

#endif /* ROWS */
#endif /* HAS_TAIL */
#endif
