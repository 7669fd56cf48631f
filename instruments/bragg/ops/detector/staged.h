/* staged.h - the reference's serial stream of random numbers, generated ahead by a block of
 * threads.
 *
 * How many numbers a pixel takes depends on their values, so one thread has to process the pixels
 * in order. But the stream itself does not depend on the pixels: seeds are powers of 16807 and
 * every thread computes its own; only the shuffle, one lookup in a table of 32 per number, is
 * serial. So AHEAD numbers are generated at a time: seeds by all threads, the shuffle by one, and
 * floats of them by all again. The serial thread reads them from shared memory, and where they end
 * in the middle of a pixel it draws the next ones itself. Unused numbers are rolled back at the
 * end.
 *
 * Included in the namespace of a .cu file, in place of ../random.c. start, fill and settle are
 * called by all threads of the block, the others by the serial thread.
 */
#ifndef BRAGG_OPS_STAGED_H
#define BRAGG_OPS_STAGED_H

#include "../../random/random.h"

enum { STAGED_THREADS = 256, AHEAD = 1024, TABLE_ENTRIES = 32 };

struct staged {
    br_ran1 r;     /* first member: deviates get its address and draw from here */
    int64_t *seed; /* of the stream */
    int32_t n, at; /* generated, and used of them */
    int32_t even;  /* the generator is in its usual range: numbers can be generated ahead */
    int64_t y, before, table[TABLE_ENTRIES]; /* the generator before they were generated */
    uint32_t power[AHEAD], next[AHEAD];      /* 16807^(i+1), and the seeds of the stream */
    union {
        int32_t raw[AHEAD]; /* numbers of the table, and the floats made from them */
        float u[AHEAD];
    };
};

static BR_BOTH float staged_draw(br_ran1 *r, int64_t *seed);
#define BR_DRAW staged_draw
#include "../../random/random.c"
#undef BR_DRAW

/* Rare: once in AHEAD numbers. */
static BR_APART BR_BOTH float draw_one(br_ran1 *r, int64_t *seed)
{
    return br_uniform(r, seed);
}

static BR_BOTH float staged_draw(br_ran1 *r, int64_t *seed)
{
    staged *s = (staged *)r;
    return s->at < s->n && seed == s->seed ? s->u[s->at++] : draw_one(r, seed);
}

/* br_poisson, where `g` is exp(-mean) of a small mean and `at` is s.at held in a register: most
 * pixels have a small mean and take one or two numbers. */
static __device__ float staged_poisson(staged &s, float mean, float g, int &at)
{
    if (!(mean < 12)) {
        s.at = at;
        const float n = br_poisson(&s.r, mean, s.seed);
        at = s.at;
        return n;
    }
    if (mean != s.r.mean) {
        s.r.mean = mean;
        s.r.g = g;
    }
    const float least = s.r.g;
    float n = -1, t = 1;
    do {
        n += 1;
        t *= at < s.n ? s.u[at++] : draw_one(&s.r, s.seed);
    } while (t > least);
    return n;
}

/* Modulo 2^31 - 1; both are below it. */
static __device__ uint32_t times(uint32_t a, uint32_t b)
{
    const uint64_t p = (uint64_t)a * b, folded = (p & 0x7fffffffu) + (p >> 31);
    return (uint32_t)(folded >= 0x7fffffffu ? folded - 0x7fffffffu : folded);
}

/* After the generator itself was set; `seed` may be s.r.seed. */
static __device__ void staged_start(staged &s, int64_t *seed)
{
    for (int i = (int)threadIdx.x; i < AHEAD; i += STAGED_THREADS) {
        uint32_t p = 1, a = 16807;
        for (uint32_t n = (uint32_t)i + 1; n > 0; n >>= 1, a = times(a, a))
            if (n & 1u) p = times(p, a);
        s.power[i] = p;
    }
    if (threadIdx.x == 0) {
        s.seed = seed;
        s.n = s.at = s.even = 0;
    }
    __syncthreads();
}

/* The first fill takes any seed; draws before it go one by one. */
static __device__ bool is_even(const staged &s)
{
    bool even = *s.seed > 0 && *s.seed < M && s.r.y > 0 && s.r.y < M;
    for (int i = 0; i < TABLE_ENTRIES; i++) even = even && s.r.table[i] > 0 && s.r.table[i] < M;
    return even;
}

/* The serial part: `count` numbers of the table go to `to` (NULL: discarded). */
static __device__ void shuffle(staged &s, int count, int32_t *to)
{
    uint32_t y = (uint32_t)s.r.y; /* latency bound: each step waits for the one before */
    for (int i = 0; i < count; i++) {
        int64_t *const place = &s.r.table[y / (uint32_t)DIVIDE];
        y = (uint32_t)*place;
        *place = s.next[i];
        if (to) to[i] = (int32_t)y;
    }
    s.r.y = y;
}

/* Generates more numbers when all are used; none while they cannot be generated ahead. */
static __device__ void staged_fill(staged &s)
{
    const int t = (int)threadIdx.x;
    if (t == 0) {
        s.at = s.n = 0;
        s.even = s.even || is_even(s);
    }
    __syncthreads();
    if (!s.even) return;
    for (int i = t; i < AHEAD; i += STAGED_THREADS)
        s.next[i] = times(s.power[i], (uint32_t)*s.seed);
    if (t < TABLE_ENTRIES) s.table[t] = s.r.table[t];
    __syncthreads();
    if (t == 0) {
        s.y = s.r.y;
        s.before = *s.seed;
        shuffle(s, AHEAD, s.raw);
        *s.seed = s.next[AHEAD - 1];
        s.n = AHEAD;
    }
    __syncthreads();
    for (int i = t; i < AHEAD; i += STAGED_THREADS) s.u[i] = unit(s.raw[i]);
    __syncthreads();
}

/* The generator as it is after the last number that was used. */
static __device__ void staged_settle(staged &s)
{
    const int t = (int)threadIdx.x;
    __syncthreads();
    if (s.at < s.n && t < TABLE_ENTRIES) s.r.table[t] = s.table[t];
    __syncthreads();
    if (t == 0 && s.at < s.n) {
        s.r.y = s.y;
        *s.seed = s.at > 0 ? s.next[s.at - 1] : s.before;
        shuffle(s, s.at, NULL);
        s.n = s.at = 0;
    }
    __syncthreads();
}

#endif
