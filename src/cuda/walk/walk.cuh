/* walk.cuh - iterate over several arrays at once: the offset of the k-th element in each.
 *
 * Axes are added outermost first; adjacent axes that are contiguous in every array are merged, so
 * most walks need no division. Only for .cu files.
 */
#ifndef FTH_CUDA_WALK_CUH
#define FTH_CUDA_WALK_CUH

#include "base/assert.h"

#include <fathom/cuda.h>

enum { FTH__WALK_AXES = 2 * FTH_MAX_AXES, FTH__WALK_ARRAYS = 3 };

typedef struct fth__walk {
    int n;
    int64_t count; /* steps of the walk */
    int64_t extent[FTH__WALK_AXES], step[FTH__WALK_AXES][FTH__WALK_ARRAYS];
} fth__walk;

static inline fth__walk fth__walk_none(void)
{
    fth__walk w = {};
    w.count = 1;
    return w;
}

static inline void fth__walk_add(fth__walk *w, int64_t extent, int64_t s0, int64_t s1, int64_t s2)
{
    w->count *= extent;
    if (extent == 1) return;
    const int64_t s[FTH__WALK_ARRAYS] = {s0, s1, s2};
    bool joins = w->n > 0;
    for (int k = 0; joins && k < FTH__WALK_ARRAYS; k++)
        joins = w->step[w->n - 1][k] == extent * s[k];
    FTH_ASSERT(joins || w->n < FTH__WALK_AXES);
    const int at = joins ? w->n - 1 : w->n++;
    w->extent[at] = joins ? w->extent[at] * extent : extent;
    for (int k = 0; k < FTH__WALK_ARRAYS; k++) w->step[at][k] = s[k];
}

/* Remove the innermost axis, which the caller iterates over itself; returns its extent. */
static inline int64_t fth__walk_pop(fth__walk *w)
{
    FTH_ASSERT(w->n > 0);
    const int64_t extent = w->extent[--w->n];
    w->count = 1;
    for (int i = 0; i < w->n; i++) w->count *= w->extent[i];
    return extent;
}

#ifdef __CUDACC__
typedef struct fth__place {
    int64_t at[FTH__WALK_ARRAYS];
} fth__place;

/* 32 bits where they are enough: a 64-bit division is some hundred instructions. */
static __device__ inline uint64_t fth__walk_div(uint64_t a, uint64_t b)
{
    return (a | b) >> 32 ? a / b : (uint64_t)((uint32_t)a / (uint32_t)b);
}

static __device__ inline fth__place fth__walk_at(const fth__walk &w, int64_t k)
{
    fth__place p = {};
    for (int i = w.n - 1; i >= 0; i--) {
        const int64_t q = i > 0 ? (int64_t)fth__walk_div((uint64_t)k, (uint64_t)w.extent[i]) : 0;
        const int64_t r = k - q * w.extent[i];
        for (int a = 0; a < FTH__WALK_ARRAYS; a++) p.at[a] += r * w.step[i][a];
        k = q;
    }
    return p;
}

/* Division of numbers below 2^31 by a fixed one: two multiplications' worth. */
typedef struct fth__divisor {
    uint32_t d, m, s;
} fth__divisor;

static __device__ inline uint32_t fth__quotient(uint32_t n, fth__divisor d)
{
    return (__umulhi(n, d.m) + n) >> d.s;
}
#endif

static inline fth__divisor fth__divisor_of(uint32_t d)
{
    fth__divisor o = {};
    o.d = d;
    FTH_ASSERT(d >= 1 && d <= (uint32_t)1 << 31);
    while (((uint64_t)1 << o.s) < d) o.s++;
    o.m = (uint32_t)((((((uint64_t)1 << o.s) - d) << 32) / d) + 1);
    return o;
}

/* The largest power of two, at most 16, that divides them all: bytes that can move at once. */
static inline int fth__unit_of(uint64_t all)
{
    return (int)((all | 16) & (~(all | 16) + 1));
}

#endif
