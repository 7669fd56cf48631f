/* places.c - indices to places, and elements taken from them one by one. */
#include "cpu/places.h"

#include "base/assert.h"
#include "ops/indexing.h"

#include <string.h>

enum {
    FAR = 4 << 20,   /* bytes of a table: up to here it comes as fast without prefetches */
    AHEAD = 48,      /* indices: 16 are slower for 256 MB, 64 no faster */
    ROWS_AHEAD = 32, /* rows of 16 bytes from 128 MB: 16 take 1.4 times as long, 4 take 2.6 */
    ROW_BYTES = 512, /* fetched of a row; what follows the processor fetches by itself */
    FETCHED = 64     /* bytes that come with one */
};

const int64_t *fth__places(fth_dtype t, int64_t n, const char *index, int64_t step, int64_t limit,
                           int64_t *room)
{
    const fth__place_loops *loops = FTH_ISA_BEST(fth__place_loops);
    const void *dense = index;
    FTH_ASSERT(n <= FTH__PLACES);
    if (step != fth_dtype_size(t)) {
        for (int64_t i = 0; i < n; i++) room[i] = fth__index_get(t, index + i * step);
        return loops->i64(n, room, limit) ? room : NULL;
    }
    if (t == FTH_I64) return loops->i64(n, dense, limit) ? dense : NULL;
    return (t == FTH_I32 ? loops->i32(n, dense, limit, room) : loops->u32(n, dense, limit, room))
               ? room
               : NULL;
}

const char *fth__misplaced(fth_dtype t, int64_t n, const char *index, int64_t step, int64_t limit)
{
    FTH_ASSERT(n > 0);
    for (int64_t i = 0; i < n - 1; i++, index += step) {
        const int64_t k = fth__index_get(t, index);
        if (k < 0 || k >= limit) break;
    }
    return index;
}

/* Elements of one size; neighbours of a dense axis need no products. */
#define TAKE(bytes)                                                                                \
    static void take_##bytes(const fth__take *t, int64_t n, const int64_t *place,                  \
                             const char *from, char *to)                                           \
    {                                                                                              \
        const int64_t by = t->by, from_step = t->from_step, to_step = t->to_step;                  \
        if (by == (bytes) && from_step == 0 && to_step == (bytes)) {                               \
            for (int64_t i = 0; i < n; i++)                                                        \
                memcpy(to + i * (bytes), from + place[i] * (bytes), bytes);                        \
            return;                                                                                \
        }                                                                                          \
        for (int64_t i = 0; i < n; i++)                                                            \
            memcpy(to + i * to_step, from + place[i] * by + i * from_step, bytes);                 \
    }
TAKE(1)
TAKE(2)
TAKE(4)
TAKE(8)
TAKE(12)
TAKE(16)
TAKE(24)
TAKE(32)

static void take_any(const fth__take *t, int64_t n, const int64_t *place, const char *from,
                     char *to)
{
    for (int64_t i = 0; i < n; i++)
        memcpy(to + i * t->to_step, from + place[i] * t->by + i * t->from_step, (size_t)t->size);
}

static void take_some(const fth__take *t, int64_t n, const int64_t *place, const char *from,
                      char *to)
{
    switch (t->size) {
    case 1: take_1(t, n, place, from, to); break;
    case 2: take_2(t, n, place, from, to); break;
    case 4: take_4(t, n, place, from, to); break;
    case 8: take_8(t, n, place, from, to); break;
    case 12: take_12(t, n, place, from, to); break;
    case 16: take_16(t, n, place, from, to); break;
    case 24: take_24(t, n, place, from, to); break;
    case 32: take_32(t, n, place, from, to); break;
    default: take_any(t, n, place, from, to); break;
    }
}

/* The place may be anywhere: no pointer to it, which C does not allow. */
static inline __attribute__((always_inline)) void fetch(const char *from, uint64_t offset)
{
    __builtin_prefetch((const void *)((uintptr_t)from + offset), 0, 3);
}
static bool is_far(const fth__take *t)
{
    return t->limit > FAR / (t->by > 0 ? t->by : FAR);
}

static void fetch_rows(const fth__take *t, int64_t n, const int64_t *place, const char *from)
{
    const int64_t bytes = t->size < ROW_BYTES ? t->size : ROW_BYTES;
    for (int64_t i = 0; i < n; i++)
        for (int64_t b = 0; b < bytes; b += FETCHED)
            fetch(from, (uint64_t)(place[i] * t->by + i * t->from_step + b));
}

void fth__take_places(const fth__take *t, int64_t n, const int64_t *place, const char *from,
                      char *to)
{
    if (!is_far(t)) {
        take_some(t, n, place, from, to);
        return;
    }
    fetch_rows(t, n < ROWS_AHEAD ? n : ROWS_AHEAD, place, from);
    for (int64_t i = 0; i < n; i += ROWS_AHEAD) {
        const int64_t next = i + ROWS_AHEAD, more = n - next < ROWS_AHEAD ? n - next : ROWS_AHEAD;
        if (more > 0) fetch_rows(t, more, place + next, from + next * t->from_step);
        take_some(t, more > 0 ? ROWS_AHEAD : n - i, place + i, from + i * t->from_step,
                  to + i * t->to_step);
    }
}

/* -1: k is not in [0, last]; else 0. */
static inline int64_t before_or_after(int64_t k, int64_t last)
{
    return (int64_t)((uint64_t)k | ((uint64_t)last - (uint64_t)k)) >> 63;
}

/* Where memory is what is waited for, the test is free in the loop. It even pays: loads that follow
 * each other more closely get in the way of the prefetches (32 MB of f64: 4.1 ns an element where
 * all were tested before, 3.5 here). */
#define TAKE_FAR(index_t, bytes)                                                                   \
    static bool far_##index_t##_##bytes(const fth__take *t, int64_t n, const void *index_,         \
                                        const char *from, char *to)                                \
    {                                                                                              \
        const index_t *index = index_;                                                             \
        const int64_t last = t->limit - 1, by = t->by, ahead = n > AHEAD ? n - AHEAD : 0;          \
        int64_t outside = 0, i = 0;                                                                \
        for (; i < ahead; i++) {                                                                   \
            const int64_t k = index[i], out = before_or_after(k, last);                            \
            fetch(from, (uint64_t)index[i + AHEAD] * (uint64_t)by);                                \
            outside |= out;                                                                        \
            memcpy(to + i * (bytes), from + (k & ~out) * by, bytes);                               \
        }                                                                                          \
        for (; i < n; i++) {                                                                       \
            const int64_t k = index[i], out = before_or_after(k, last);                            \
            outside |= out;                                                                        \
            memcpy(to + i * (bytes), from + (k & ~out) * by, bytes);                               \
        }                                                                                          \
        return outside == 0;                                                                       \
    }

/* A table in a cache: a test that never fails costs less than a pass over the indices before. */
#define TAKE_NEAR(index_t, bytes)                                                                  \
    static bool near_##index_t##_##bytes(const fth__take *t, int64_t n, const void *index_,        \
                                         const char *from, char *to)                               \
    {                                                                                              \
        const index_t *index = index_;                                                             \
        const uint64_t limit = (uint64_t)t->limit;                                                 \
        const int64_t by = t->by;                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const int64_t k = index[i];                                                            \
            if ((uint64_t)k >= limit) return false;                                                \
            memcpy(to + i * (bytes), from + k * by, bytes);                                        \
        }                                                                                          \
        return true;                                                                               \
    }
#define TAKE_BY(index_t)                                                                           \
    TAKE_FAR(index_t, 4)                                                                           \
    TAKE_FAR(index_t, 8)                                                                           \
    TAKE_FAR(index_t, 16)                                                                          \
    TAKE_NEAR(index_t, 4)                                                                          \
    TAKE_NEAR(index_t, 8)                                                                          \
    TAKE_NEAR(index_t, 16)
TAKE_BY(int32_t)
TAKE_BY(uint32_t)
TAKE_BY(int64_t)

fth__take_dense_fn *fth__take_dense(const fth__take *t, fth_dtype index, int64_t step)
{
#define ROW(way, index_t)                                                                          \
    {                                                                                              \
        way##_##index_t##_4, way##_##index_t##_8, way##_##index_t##_16                             \
    }
#define BOTH(index_t)                                                                              \
    {                                                                                              \
        ROW(near, index_t), ROW(far, index_t)                                                      \
    }
    static fth__take_dense_fn *const loops[FTH_DTYPE_COUNT][2][3] = {
        [FTH_I32] = BOTH(int32_t), [FTH_U32] = BOTH(uint32_t), [FTH_I64] = BOTH(int64_t)};
#undef BOTH
#undef ROW
    const bool far = is_far(t);
    if (step != fth_dtype_size(index) || t->from_step != 0 || t->to_step != t->size) return NULL;
    return t->size == 4    ? loops[index][far][0]
           : t->size == 8  ? loops[index][far][1]
           : t->size == 16 ? loops[index][far][2]
                           : NULL;
}
