/* fused_body.h - the loops of a fused program's kernels, around a program somebody else wrote down.
 *
 * Before it stand (cuda/source.c, or interpreter.cu):
 *   N_IN N_OUT    operands
 *   VEC           neighbours in one item of the fast kernel; UNROLL items under way per thread,
 *                 UNROLL_ANY of single elements
 *   HAS_TAIL, and with it TAIL_RED (fth_red), OUT_BYTES, ROWS (the axis of items is the one that is
 *                 reduced), wide (double, int64_t, fth_c128) and value, the type of an element
 *   struct batch<W>   operands of one item of W neighbours
 *   fth__fetch<W>(args, off, batch)            reads them
 *   fth__compute<W>(args, batch, e, results)   the program on neighbour e; results are as stored
 *   fth__put<W>(args, off, results[W])         writes them
 *   fth__reduced<W>(args, batch, e)            with a tail: the element that is joined
 *   fth__hold(args, batch)                     reads what is the same everywhere
 * W is VEC or 1; the latter takes every operand at any distance.
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

template <int W, int U> FTH__MATH void fth__map(const fth__ew_args &a)
{
    const uint32_t first = blockIdx.x * (uint32_t)(THREADS * U) + threadIdx.x;
    batch<W> b[U];
    place p[U];
    fth__hold(a, b[0]);
#pragma unroll
    for (int u = 0; u < U; u++) {
        const uint32_t i = first + (uint32_t)u * THREADS;
        if (u > 0) b[u].held(b[0]);
        if (i >= a.count) continue;
        fth__locate(a, i, p[u]);
        fth__fetch<W>(a, p[u], b[u]);
    }
#pragma unroll
    for (int u = 0; u < U; u++) {
        if (first + (uint32_t)u * THREADS >= a.count) continue;
        results r[W];
#pragma unroll
        for (int e = 0; e < W; e++) fth__compute<W>(a, b[u], e, r[e]);
        fth__put<W>(a, p[u], r);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    fth_map_vec(const __grid_constant__ fth__ew_args a)
{
    fth__map<VEC, UNROLL>(a);
}
extern "C" __global__ void __launch_bounds__(THREADS)
    fth_map_any(const __grid_constant__ fth__ew_args a)
{
    fth__map<1, UNROLL_ANY>(a);
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

#if !ROWS
/* ---- the axis is not innermost: one thread per W neighbouring columns ---- */

/* One block of the axis, from place `from` to `to`, for the W columns at p. */
template <int W, int U>
FTH__MATH void fth__column(const fth__ew_args &a, const place &p, batch<W> &held, int64_t from,
                           int64_t to, wide (&acc)[W])
{
    place at;
#pragma unroll
    for (int j = 0; j < N_OPS; j++) at.off[j] = p.off[j] + from * a.operand[j].along;
#pragma unroll
    for (int e = 0; e < W; e++) acc[e] = fth__start();
    int64_t i = from;
    for (; i + U <= to; i += U) {
        batch<W> b[U];
#pragma unroll
        for (int u = 0; u < U; u++) {
            b[u].held(held);
            fth__fetch<W>(a, at, b[u]);
#pragma unroll
            for (int j = 0; j < N_OPS; j++) at.off[j] += a.operand[j].along;
        }
#pragma unroll
        for (int u = 0; u < U; u++)
#pragma unroll
            for (int e = 0; e < W; e++)
                acc[e] = fth__join(TAIL_RED, acc[e], fth__widen<wide>(fth__reduced<W>(a, b[u], e)));
    }
    for (; i < to; i++) {
        batch<W> b;
        b.held(held);
        fth__fetch<W>(a, at, b);
#pragma unroll
        for (int j = 0; j < N_OPS; j++) at.off[j] += a.operand[j].along;
#pragma unroll
        for (int e = 0; e < W; e++)
            acc[e] = fth__join(TAIL_RED, acc[e], fth__widen<wide>(fth__reduced<W>(a, b, e)));
    }
}

/* Blocks of one element: elements are added one by one. */
template <int W, int U>
FTH__MATH void fth__column_plain(const fth__ew_args &a, const place &p, batch<W> &held,
                                 fth__total<wide> (&total)[W])
{
    place at = p;
    int64_t i = 0;
    for (; i + U <= a.tail.n; i += U) {
        batch<W> b[U];
#pragma unroll
        for (int u = 0; u < U; u++) {
            b[u].held(held);
            fth__fetch<W>(a, at, b[u]);
#pragma unroll
            for (int j = 0; j < N_OPS; j++) at.off[j] += a.operand[j].along;
        }
#pragma unroll
        for (int u = 0; u < U; u++)
#pragma unroll
            for (int e = 0; e < W; e++)
                total[e].total =
                    fth__join(TAIL_RED, total[e].total,
                              fth__join(TAIL_RED, fth__start(),
                                        fth__widen<wide>(fth__reduced<W>(a, b[u], e))));
    }
    for (; i < a.tail.n; i++) {
        batch<W> b;
        b.held(held);
        fth__fetch<W>(a, at, b);
#pragma unroll
        for (int j = 0; j < N_OPS; j++) at.off[j] += a.operand[j].along;
#pragma unroll
        for (int e = 0; e < W; e++)
            total[e].total = fth__join(
                TAIL_RED, total[e].total,
                fth__join(TAIL_RED, fth__start(), fth__widen<wide>(fth__reduced<W>(a, b, e))));
    }
}

template <int W> FTH__MATH void fth__columns(const fth__ew_args &a)
{
    enum { U = W == 1 ? UNROLL_ANY : W >= 8 && UNROLL > 2 ? 2 : UNROLL };
    const uint32_t i = blockIdx.x * (uint32_t)THREADS + threadIdx.x;
    if (i >= a.count / W) return;
    const fth__ew_tail &t = a.tail;
    place p;
    batch<W> held;
    fth__locate(a, i, p);
    fth__hold(a, held);
    if (t.partial) {
        for (int64_t s = blockIdx.y; s < t.segments; s += gridDim.y) {
            wide acc[W];
            const int64_t from = s * t.block, to = from + t.block < t.n ? from + t.block : t.n;
            fth__column<W, U>(a, p, held, from, to, acc);
#pragma unroll
            for (int e = 0; e < W; e++) *(wide *)fth__partial(a, s, i * W + (uint32_t)e) = acc[e];
        }
        return;
    }
    fth__total<wide> total[W];
    const fth__ew_operand &out = a.operand[N_IN], &kept = a.operand[N_IN + 1];
#pragma unroll
    for (int e = 0; e < W; e++)
        total[e].begin(TAIL_RED, t, out.data + (p.off[N_IN] + e * out.step) * OUT_BYTES,
                       kept.data + (p.off[N_IN + 1] + e * kept.step) * t.state);
    if (t.block == 1 && !t.has_super)
        fth__column_plain<W, U>(a, p, held, total);
    else
        for (int64_t from = 0; from < t.n; from += t.block) {
            wide acc[W];
            const int64_t to = from + t.block < t.n ? from + t.block : t.n;
            fth__column<W, U>(a, p, held, from, to, acc);
#pragma unroll
            for (int e = 0; e < W; e++) total[e].add(t, acc[e], t.lo + to);
        }
#pragma unroll
    for (int e = 0; e < W; e++) total[e].end(t);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    fth_columns_vec(const __grid_constant__ fth__ew_args a)
{
    fth__columns<VEC>(a);
}
extern "C" __global__ void __launch_bounds__(THREADS)
    fth_columns_any(const __grid_constant__ fth__ew_args a)
{
    fth__columns<1>(a);
}

#else
/* ---- the axis is innermost: elements pass through shared memory ----
 *
 * A block of threads reads its rows (or one chunk of a row) side by side, whatever the order of the
 * additions is, and puts the elements down; then each segment is joined in its own order. */

/* Elements of the rows of this block of threads, in the order of memory. */
template <int W, int U>
FTH__MATH void fth__lay_down(const fth__ew_args &a, uint32_t row0, uint32_t rows, int64_t from,
                             uint32_t row_items, value *shared)
{
    batch<W> held;
    fth__hold(a, held);
    const uint32_t total = rows * row_items;
    for (uint32_t base = threadIdx.x; base < total; base += THREADS * U) {
        batch<W> b[U];
        uint32_t slot[U];
#pragma unroll
        for (int u = 0; u < U; u++) {
            const uint32_t i = base + (uint32_t)u * THREADS;
            b[u].held(held);
            if (i >= total) continue;
            const uint32_t row = rows == 1 ? 0 : fth__divide(i, a.row_magic, a.row_shift);
            const uint32_t at = (i - row * row_items) * W;
            place p;
            fth__locate(a, row0 + row, p);
#pragma unroll
            for (int j = 0; j < N_OPS; j++) p.off[j] += (from + at) * a.operand[j].along;
            fth__fetch<W>(a, p, b[u]);
            const uint32_t seg = a.segs > 1 ? at >> a.seg_log : 0;
            slot[u] = (row * a.segs + seg) * a.pitch + (at - (seg << a.seg_log));
        }
#pragma unroll
        for (int u = 0; u < U; u++) {
            if (base + (uint32_t)u * THREADS >= total) continue;
#pragma unroll
            for (int e = 0; e < W; e++) {
                /* neighbours of one item may lie in two short segments */
                const uint32_t over =
                    W > 1 && a.segs > 1 && a.seg_len < W ? (uint32_t)e >> a.seg_log : 0;
                shared[slot[u] + (uint32_t)e + over * (a.pitch - a.seg_len)] =
                    fth__reduced<W>(a, b[u], e);
            }
        }
    }
}

/* One segment by one thread. */
FTH__MATH wide fth__join_alone(const fth__ew_args &a, const value *v, uint32_t n)
{
    if (a.tail.lanes == 1) {
        wide acc = fth__start();
        for (uint32_t i = 0; i < n; i++) acc = fth__join(TAIL_RED, acc, fth__widen<wide>(v[i]));
        return acc;
    }
    wide lane[8];
#pragma unroll
    for (int k = 0; k < 8; k++) lane[k] = fth__start();
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
FTH__MATH wide fth__join_lanes(const value *v, uint32_t n)
{
    wide acc = fth__start();
    for (uint32_t i = threadIdx.x % 8; i < n; i += 8)
        acc = fth__join(TAIL_RED, acc, fth__widen<wide>(v[i]));
#pragma unroll
    for (int half = 4; half > 0; half /= 2) {
        const wide other = fth__from_above(acc, half);
        if (threadIdx.x % 8 < (uint32_t)half) acc = fth__join(TAIL_RED, acc, other);
    }
    return acc;
}

/* Every segment of this block of threads; segments of one row have n elements together. */
FTH__MATH void fth__join_segments(const fth__ew_args &a, uint32_t rows, uint32_t n,
                                  const value *shared, wide *part)
{
    const uint32_t total = rows * a.segs;
    const bool eight = a.tail.lanes == 8 && a.seg_len >= 64;
    const uint32_t each = eight ? 8 : 1, step = THREADS / each;
    for (uint32_t base = 0; base < total; base += step) {
        const uint32_t s = base + threadIdx.x / each, at = s % a.segs * a.seg_len;
        const uint32_t left = s < total && at < n ? n - at : 0;
        const uint32_t len = left < a.seg_len ? left : a.seg_len;
        const value *v = shared + (s < total ? s : 0) * a.pitch;
        const wide w = eight ? fth__join_lanes(v, len) : fth__join_alone(a, v, len);
        if (s < total && threadIdx.x % each == 0) part[s] = w;
    }
}

/* Rows that are finished here: their segments in order, or one by one where blocks are elements. */
FTH__MATH void fth__finish_rows(const fth__ew_args &a, uint32_t row0, uint32_t rows,
                                const value *shared, const wide *part)
{
    const fth__ew_tail &t = a.tail;
    for (uint32_t r = threadIdx.x; r < rows; r += THREADS) {
        place p;
        fth__total<wide> total;
        fth__locate(a, row0 + r, p);
        total.begin(TAIL_RED, t, a.operand[N_IN].data + p.off[N_IN] * OUT_BYTES,
                    a.operand[N_IN + 1].data + p.off[N_IN + 1] * t.state);
        if (t.block == 1) {
            for (uint32_t i = 0; i < t.n; i++)
                total.add(
                    t, fth__join(TAIL_RED, fth__start(), fth__widen<wide>(shared[r * a.pitch + i])),
                    t.lo + i + 1);
        } else {
            for (uint32_t s = 0; s < a.segs; s++) {
                const int64_t to = (int64_t)(s + 1) * t.block;
                if (to - t.block < t.n)
                    total.add(t, part[r * a.segs + s], t.lo + (to < t.n ? to : t.n));
            }
        }
        total.end(t);
    }
}

template <int W> FTH__MATH void fth__rows(const fth__ew_args &a)
{
    FTH__SHARED(memory);
    enum { U = W == 1 ? UNROLL_ANY : UNROLL };
    value *shared = (value *)memory;
    wide *part = (wide *)((char *)memory + a.part_at);
    const fth__ew_tail &t = a.tail;
    if (!t.partial) {
        const uint32_t row0 = blockIdx.x * a.rows,
                       rows = a.count - row0 < a.rows ? a.count - row0 : a.rows;
        fth__lay_down<W, U>(a, row0, rows, 0, a.row_items, shared);
        __syncthreads();
        if (t.block > 1) {
            fth__join_segments(a, rows, (uint32_t)t.n, shared, part);
            __syncthreads();
        }
        fth__finish_rows(a, row0, rows, shared, part);
        return;
    }
    const uint32_t row = blockIdx.x / a.chunks, chunk = blockIdx.x - row * a.chunks;
    const int64_t from = (int64_t)chunk * a.segs * a.seg_len, left = t.n - from;
    const int64_t most = (int64_t)a.segs * a.seg_len;
    const uint32_t n = (uint32_t)(left < most ? left : most);
    fth__lay_down<W, U>(a, row, 1, from, n / W, shared);
    __syncthreads();
    fth__join_segments(a, 1, n, shared, part);
    __syncthreads();
    for (uint32_t s = threadIdx.x; s < a.segs; s += THREADS)
        if ((int64_t)s * a.seg_len < n)
            *(wide *)fth__partial(a, (int64_t)chunk * a.segs + s, row) = part[s];
}

extern "C" __global__ void __launch_bounds__(THREADS)
    fth_rows_vec(const __grid_constant__ fth__ew_args a)
{
    fth__rows<VEC>(a);
}
extern "C" __global__ void __launch_bounds__(THREADS)
    fth_rows_any(const __grid_constant__ fth__ew_args a)
{
    fth__rows<1>(a);
}

#endif /* ROWS */
#endif /* HAS_TAIL */
#endif
