/* fused_body.h - the loops of a fused program's kernel, around a program somebody else wrote down.
 *
 * Before it stand (cuda/source.c):
 *   N_IN N_OUT    operands
 *   VEC           neighbours in one item: 1 takes every operand at any distance
 *   UNROLL        items under way per thread
 *   struct batch                       operands of one item
 *   fth__hold(args, batch)             reads what is the same everywhere
 *   fth__fetch(args, place, batch)     reads the rest
 *   fth__compute(args, batch, e, results)   the program on neighbour e; results are as stored
 *   fth__put(args, place, results[VEC])     writes them
 * HAS_TAIL, and with it instead of the last two
 *   fth__reduced(args, batch, e)       the element that is joined
 *   wide value    types: of sums (double, int64_t, fth_c128), of an element
 *   TAIL_RED      fth_red;  OUT_BYTES of a result
 *   ROWS          the axis of items is the one that is reduced
 *   TAIL_BRIEF    blocks are single elements, and are never cut
 *   TAIL_LANES    1 or 8;  TAIL_EIGHT  eight threads join a segment
 * One kernel comes out: what a program does not need only takes time to compile.
 */
#ifndef FTH_CUDA_FUSED_BODY_H
#define FTH_CUDA_FUSED_BODY_H

#include "cuda/join.h"

enum { THREADS = 256 };
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
    fth_kernel(const __grid_constant__ fth__ew_args a)
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
        fth__fetch(a, p[u], b[u]);
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
    fth__join_start(TAIL_RED, &v);
    return v;
}

FTH__MATH char *fth__partial(const fth__ew_args &a, int64_t segment, uint32_t item)
{
    return a.tail.partial + (segment * (int64_t)a.count + item) * (int64_t)sizeof(wide);
}

FTH__MATH void fth__begin(const fth__ew_args &a, const place &p, int e, fth__total<wide> &total)
{
    const fth__ew_operand &out = a.operand[N_IN], &kept = a.operand[N_IN + 1];
    total.begin(TAIL_RED, a.tail, out.data + (p.off[N_IN] + e * out.step) * OUT_BYTES,
                kept.data + (p.off[N_IN + 1] + e * kept.step) * a.tail.state);
}

#if !ROWS
/* ---- the axis is not innermost: one thread per VEC neighbouring columns ---- */

/* Places `from` to `to` of the axis, for the columns at p, joined to what acc has. */
FTH__MATH void fth__column(const fth__ew_args &a, const place &p, batch &held, int64_t from,
                           int64_t to, wide (&acc)[VEC])
{
    place at;
#pragma unroll
    for (int j = 0; j < N_OPS; j++) at.off[j] = p.off[j] + from * a.operand[j].along;
#pragma unroll 1
    for (int64_t i = from; i < to; i += UNROLL) {
        batch b[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            b[u].held(held);
            if (i + u < to) fth__fetch(a, at, b[u]);
#pragma unroll
            for (int j = 0; j < N_OPS; j++) at.off[j] += a.operand[j].along;
        }
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            if (i + u >= to) continue;
#pragma unroll
            for (int e = 0; e < VEC; e++) {
                const wide v = fth__widen<wide>(fth__reduced(a, b[u], e));
                /* blocks of one element were joined with the start themselves */
                acc[e] = fth__join(TAIL_RED, acc[e],
                                   TAIL_BRIEF ? fth__join(TAIL_RED, fth__start(), v) : v);
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    fth_kernel(const __grid_constant__ fth__ew_args a)
{
    const uint32_t i = blockIdx.x * (uint32_t)THREADS + threadIdx.x;
    if (i >= a.count / VEC) return;
    const fth__ew_tail &t = a.tail;
    const bool whole = TAIL_BRIEF || !t.partial; /* the output is finished here */
    place p;
    batch held;
    fth__total<wide> total[VEC];
    wide acc[VEC];
    fth__locate(a, i, p);
    fth__hold(a, held);
#pragma unroll
    for (int e = 0; e < VEC; e++)
        if (whole) fth__begin(a, p, e, total[e]);
#if TAIL_BRIEF
#pragma unroll
    for (int e = 0; e < VEC; e++) acc[e] = total[e].total;
    fth__column(a, p, held, 0, t.n, acc);
#pragma unroll
    for (int e = 0; e < VEC; e++) total[e].total = acc[e];
#else
#pragma unroll 1
    for (int64_t s = whole ? 0 : blockIdx.y; s < t.segments; s += whole ? 1 : gridDim.y) {
        const int64_t from = s * t.block, to = from + t.block < t.n ? from + t.block : t.n;
#pragma unroll
        for (int e = 0; e < VEC; e++) acc[e] = fth__start();
        fth__column(a, p, held, from, to, acc);
#pragma unroll
        for (int e = 0; e < VEC; e++)
            if (whole)
                total[e].add(t, acc[e], t.lo + to);
            else
                *(wide *)fth__partial(a, s, i * VEC + (uint32_t)e) = acc[e];
    }
#endif
#pragma unroll
    for (int e = 0; e < VEC; e++)
        if (whole) total[e].end(t);
}

#else
/* ---- the axis is innermost: elements pass through shared memory ----
 *
 * A block of threads reads its rows (or one chunk of a row) side by side, whatever the order of the
 * additions is, and puts the elements down; then each segment is joined in its own order. */

/* Elements of the rows of this block of threads, in the order of memory. */
FTH__MATH void fth__lay_down(const fth__ew_args &a, uint32_t row0, uint32_t rows, int64_t from,
                             uint32_t row_items, value *shared)
{
    batch held;
    fth__hold(a, held);
    const uint32_t total = rows * row_items;
#pragma unroll 1
    for (uint32_t base = threadIdx.x; base < total; base += THREADS * UNROLL) {
        batch b[UNROLL];
        uint32_t slot[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            const uint32_t i = base + (uint32_t)u * THREADS;
            b[u].held(held);
            if (i >= total) continue;
            const uint32_t row = rows == 1 ? 0 : fth__divide(i, a.row_magic, a.row_shift);
            const uint32_t at = (i - row * row_items) * VEC;
            place p;
            fth__locate(a, row0 + row, p);
#pragma unroll
            for (int j = 0; j < N_OPS; j++) p.off[j] += (from + at) * a.operand[j].along;
            fth__fetch(a, p, b[u]);
            const uint32_t seg = TAIL_BRIEF || a.segs == 1 ? 0 : at >> a.seg_log;
            slot[u] = (row * a.segs + seg) * a.pitch + (at - (seg << a.seg_log));
        }
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            if (base + (uint32_t)u * THREADS >= total) continue;
#if TAIL_EIGHT
            value v[VEC]; /* segments are long and lie so that items are whole words */
#pragma unroll
            for (int e = 0; e < VEC; e++) v[e] = fth__reduced(a, b[u], e);
            fth__write<value, VEC>(shared + slot[u], v);
#else
#pragma unroll
            for (int e = 0; e < VEC; e++) {
                /* neighbours of one item may lie in two short segments */
                const uint32_t over = a.segs > 1 && a.seg_len < VEC ? (uint32_t)e >> a.seg_log : 0;
                shared[slot[u] + (uint32_t)e + over * (a.pitch - a.seg_len)] =
                    fth__reduced(a, b[u], e);
            }
#endif
        }
    }
}

#if TAIL_EIGHT
FTH__MATH double fth__from_above(double v, int by)
{
    return __shfl_down_sync(0xffffffffu, v, by, 8);
}
FTH__MATH int64_t fth__from_above(int64_t v, int by)
{
    return __shfl_down_sync(0xffffffffu, (long long)v, by, 8);
}
FTH__MATH fth_c128 fth__from_above(fth_c128 v, int by)
{
    return fth_c128{__shfl_down_sync(0xffffffffu, v.re, by, 8),
                    __shfl_down_sync(0xffffffffu, v.im, by, 8)};
}

/* One segment by eight threads, a lane each; all threads of the warp come here. */
FTH__MATH wide fth__join_segment(const value *v, uint32_t n)
{
    wide acc = fth__start();
#pragma unroll 4
    for (uint32_t i = threadIdx.x % 8; i < n; i += 8)
        acc = fth__join(TAIL_RED, acc, fth__widen<wide>(v[i]));
#pragma unroll
    for (int half = 4; half > 0; half /= 2) {
        const wide other = fth__from_above(acc, half);
        if (threadIdx.x % 8 < (uint32_t)half) acc = fth__join(TAIL_RED, acc, other);
    }
    return acc;
}
#elif TAIL_LANES == 8
/* One segment by one thread. */
FTH__MATH wide fth__join_segment(const value *v, uint32_t n)
{
    wide lane[8];
#pragma unroll
    for (int k = 0; k < 8; k++) lane[k] = fth__start();
#pragma unroll 1
    for (uint32_t i = 0; i < n; i += 8)
#pragma unroll
        for (int k = 0; k < 8; k++)
            if (i + k < n) lane[k] = fth__join(TAIL_RED, lane[k], fth__widen<wide>(v[i + k]));
#pragma unroll
    for (int half = 4; half > 0; half /= 2)
#pragma unroll
        for (int k = 0; k < half; k++) lane[k] = fth__join(TAIL_RED, lane[k], lane[k + half]);
    return lane[0];
}
#else
FTH__MATH wide fth__join_segment(const value *v, uint32_t n)
{
    wide acc = fth__start();
#pragma unroll 4
    for (uint32_t i = 0; i < n; i++) acc = fth__join(TAIL_RED, acc, fth__widen<wide>(v[i]));
    return acc;
}
#endif

/* Every segment of this block of threads; segments of one row have n elements together. */
FTH__MATH void fth__join_segments(const fth__ew_args &a, uint32_t rows, uint32_t n,
                                  const value *shared, wide *part)
{
    const uint32_t total = rows * a.segs, each = TAIL_EIGHT ? 8 : 1;
#pragma unroll 1
    for (uint32_t base = 0; base < total; base += THREADS / each) {
        const uint32_t s = base + threadIdx.x / each, at = s % a.segs * a.seg_len;
        const uint32_t left = s < total && at < n ? n - at : 0;
        const uint32_t len = left < a.seg_len ? left : a.seg_len;
        const wide w = fth__join_segment(shared + (s < total ? s : 0) * a.pitch, len);
        if (s < total && threadIdx.x % each == 0) part[s] = w;
    }
}

/* Rows that are finished here: their segments in order, or one by one where blocks are elements. */
FTH__MATH void fth__finish_rows(const fth__ew_args &a, uint32_t row0, uint32_t rows,
                                const value *shared, const wide *part)
{
    const fth__ew_tail &t = a.tail;
#pragma unroll 1
    for (uint32_t r = threadIdx.x; r < rows; r += THREADS) {
        place p;
        fth__total<wide> total;
        fth__locate(a, row0 + r, p);
        fth__begin(a, p, 0, total);
#if TAIL_BRIEF
#pragma unroll 4
        for (uint32_t i = 0; i < (uint32_t)t.n; i++)
            total.total = fth__join(
                TAIL_RED, total.total,
                fth__join(TAIL_RED, fth__start(), fth__widen<wide>(shared[r * a.pitch + i])));
#else
#pragma unroll 1
        for (uint32_t s = 0; s < (uint32_t)t.segments; s++) {
            const int64_t to = (int64_t)(s + 1) * t.block;
            total.add(t, part[r * a.segs + s], t.lo + (to < t.n ? to : t.n));
        }
#endif
        total.end(t);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    fth_kernel(const __grid_constant__ fth__ew_args a)
{
    FTH__SHARED(memory);
    value *shared = (value *)memory;
    wide *part = (wide *)((char *)memory + a.part_at);
    const fth__ew_tail &t = a.tail;
    const bool whole = TAIL_BRIEF || !t.partial; /* rows are finished here */
    const uint32_t chunk = whole ? 0 : blockIdx.x % a.chunks;
    const uint32_t row0 = whole ? blockIdx.x * a.rows : blockIdx.x / a.chunks;
    const uint32_t rows = whole && a.count - row0 < a.rows ? a.count - row0 : a.rows;
    const int64_t most = (int64_t)a.segs * a.seg_len, from = chunk * most, left = t.n - from;
    const uint32_t n = (uint32_t)(left < most ? left : most);
    fth__lay_down(a, row0, rows, from, n / VEC, shared);
    __syncthreads();
    if (!TAIL_BRIEF) {
        fth__join_segments(a, rows, n, shared, part);
        __syncthreads();
    }
    if (whole) {
        fth__finish_rows(a, row0, rows, shared, part);
        return;
    }
    for (uint32_t s = threadIdx.x; s < a.segs; s += THREADS)
        if (s * a.seg_len < n)
            *(wide *)fth__partial(a, (int64_t)chunk * a.segs + s, row0) = part[s];
}

#endif /* ROWS */
#endif /* HAS_TAIL */
#endif
