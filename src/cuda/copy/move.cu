/* move.cu - the copies behind every operation that only moves data. */
#include "cuda/copy/move.cuh"

#include "base/assert.h"
#include "cuda/copy/shift.cuh"
#include "cuda/copy/turn.cuh"

#include <string.h>

/* Each thread takes U places, a block's width apart: all of them are read before the first is
 * written. */
template <class T, int U>
static __global__ void copy_units(const fth__places<2> __grid_constant__ w, char *dst,
                                  const char *src)
{
    const uint32_t first = blockIdx.x * (FTH__SPACE_THREADS * U) + threadIdx.x;
    T v[U];
    int64_t to[U];
#pragma unroll
    for (int u = 0; u < U; u++) {
        const uint32_t i = first + u * FTH__SPACE_THREADS;
        if (i >= w.count) continue;
        int64_t at[2];
        fth__place_at(w, i, at);
        v[u] = *(const T *)(src + at[1]);
        to[u] = at[0];
    }
#pragma unroll
    for (int u = 0; u < U; u++)
        if (first + u * FTH__SPACE_THREADS < w.count) *(T *)(dst + to[u]) = v[u];
}

/* The same where the innermost axis is long: a block stays in one line of it and divides nothing.
 */
template <class T, int U>
static __global__ void copy_lines(const fth__places<3> __grid_constant__ w, char *dst,
                                  const char *src, int64_t first, int64_t extent, int64_t dst_step,
                                  int64_t src_step)
{
    int64_t at[3];
    fth__place_at(w, blockIdx.x, at);
    const int64_t i = first + at[2] + threadIdx.x;
    dst += at[0] + i * dst_step;
    src += at[1] + i * src_step;
    T v[U];
#pragma unroll
    for (int u = 0; u < U; u++)
        if (i + u * FTH__SPACE_THREADS < extent)
            v[u] = *(const T *)(src + u * FTH__SPACE_THREADS * src_step);
#pragma unroll
    for (int u = 0; u < U; u++)
        if (i + u * FTH__SPACE_THREADS < extent)
            *(T *)(dst + u * FTH__SPACE_THREADS * dst_step) = v[u];
}

template <class T>
static __global__ void fill_units(const fth__places<1> __grid_constant__ w, char *dst, T v)
{
    for (FTH__EACH_PLACE(w, i)) {
        int64_t at[1];
        fth__place_at(w, i, at);
        *(T *)(dst + at[0]) = v;
    }
}

/* Lines of several axes, and blocks that are at least three quarters full. */
template <class T, int U>
static bool queue_lines(const fth_call *call, const fth__space<2> &s, char *dst, const char *src)
{
    const int last = s.n - 1;
    const int64_t each = FTH__SPACE_THREADS * U, extent = s.extent[last],
                  blocks = (extent + each - 1) / each;
    if (last == 0 || 4 * extent < 3 * blocks * each) return false;
    fth__space<3> lines;
    for (int i = 0; i < last; i++) lines.add(s.extent[i], s.step[i][0], s.step[i][1], 0);
    lines.add(blocks, 0, 0, each);
    fth__space_each(lines, [&](const fth__places<3> &w, const int64_t *base) {
        FTH_LAUNCH((copy_lines<T, U>), w.count, FTH__SPACE_THREADS, fth_cuda_stream(call), w,
                   dst + base[0], src + base[1], base[2], extent, s.step[last][0], s.step[last][1]);
    });
    return true;
}

template <class T, int U>
static void queue_copy(const fth_call *call, const fth__space<2> &s, char *dst, const char *src)
{
    if (queue_lines<T, U>(call, s, dst, src)) return;
    fth__space_pieces(s, [&](const fth__places<2> &w, const int64_t *base) {
        FTH_LAUNCH((copy_units<T, U>), fth__place_blocks(w.count, U), FTH__SPACE_THREADS,
                   fth_cuda_stream(call), w, dst + base[0], src + base[1]);
    });
}

template <class T>
static void queue_fill(const fth_call *call, const fth__space<1> &s, char *dst, const void *element)
{
    T v;
    memcpy((void *)&v, element, sizeof v); /* of any type, pairs too */
    fth__space_pieces(s, [&](const fth__places<1> &w, const int64_t *base) {
        FTH_LAUNCH((fill_units<T>), fth__place_blocks(w.count, 4), FTH__SPACE_THREADS,
                   fth_cuda_stream(call), w, dst + base[0], v);
    });
}

/* Largest power of two up to 16 that divides every address and step but those of `except`. */
template <int K>
static int64_t unit_of(const fth__space<K> &s, const void *a, const void *b, int except)
{
    uint64_t all = (uintptr_t)a | (uintptr_t)b | 16;
    for (int i = 0; i < s.n; i++)
        for (int k = 0; i != except && k < K; k++) all |= (uint64_t)s.step[i][k];
    return (int64_t)(all & (0 - all));
}

/* Put runs without a gap together; bytes of what is moved at once. The space is joined. */
template <int K>
static int64_t choose_unit(fth__space<K> *s, int64_t size, const void *a, const void *b)
{
    const int last = s->n - 1;
    for (int k = 0; k < K; k++)
        if (s->step[last][k] != size) return size;
    int64_t unit = unit_of(*s, a, b, last);
    while (s->extent[last] * size % unit != 0) unit /= 2;
    FTH_ASSERT(unit >= 1 && unit <= 16 && s->extent[last] * size % unit == 0);
    s->extent[last] = s->extent[last] * size / unit;
    for (int k = 0; k < K; k++) s->step[last][k] = unit;
    return unit;
}

void fth__cuda_move(const fth_call *call, const fth__move *m)
{
    fth__space<2> s;
    for (int i = 0; i < m->n; i++) {
        if (m->extent[i] <= 0) return;
        s.add(m->extent[i], m->dst_step[i], m->src_step[i]);
    }
    s.join();
    if (s.count() == 1) s.step[0][0] = s.step[0][1] = m->size;
    FTH_ASSERT(m->size >= 1 && m->size <= 16 && (m->size & (m->size - 1)) == 0);
    if (fth__cuda_turn(call, s, m->size, m->dst, m->src)) return;
    if (fth__cuda_shift(call, s, m->size, m->dst, m->src)) return;
    switch (choose_unit(&s, m->size, m->dst, m->src)) {
    case 1: queue_copy<uint8_t, 8>(call, s, m->dst, m->src); break;
    case 2: queue_copy<uint16_t, 8>(call, s, m->dst, m->src); break;
    case 4: queue_copy<uint32_t, 8>(call, s, m->dst, m->src); break;
    case 8: queue_copy<uint2, 4>(call, s, m->dst, m->src); break;
    default: queue_copy<uint4, 4>(call, s, m->dst, m->src); break;
    }
}

/* The element again and again: whatever unit is chosen begins with a whole one. */
static void repeat(unsigned char *pattern, const void *element, int64_t size)
{
    for (int64_t i = 0; i < 16; i++) pattern[i] = ((const unsigned char *)element)[i % size];
}

void fth__cuda_fill(const fth_call *call, const fth__move *m, const void *element)
{
    unsigned char pattern[16];
    fth__space<1> s;
    for (int i = 0; i < m->n; i++) {
        if (m->extent[i] <= 0) return;
        s.add(m->extent[i], m->dst_step[i]);
    }
    s.join();
    if (s.count() == 1) s.step[0][0] = m->size;
    FTH_ASSERT(m->size >= 1 && m->size <= 16 && (m->size & (m->size - 1)) == 0);
    repeat(pattern, element, m->size);
    switch (choose_unit(&s, m->size, m->dst, m->dst)) {
    case 1: queue_fill<uint8_t>(call, s, m->dst, pattern); break;
    case 2: queue_fill<uint16_t>(call, s, m->dst, pattern); break;
    case 4: queue_fill<uint32_t>(call, s, m->dst, pattern); break;
    case 8: queue_fill<uint2>(call, s, m->dst, pattern); break;
    default: queue_fill<uint4>(call, s, m->dst, pattern); break;
    }
}
