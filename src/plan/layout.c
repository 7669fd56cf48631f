/* layout.c - offsets in the arena.
 *
 * Blocks are placed one by one, each at the lowest end of the smallest gap left by the blocks that
 * live at the same time. Several orders are tried and the smallest result kept; the lower bound is
 * the largest sum of bytes alive at once, which no layout can beat.
 */
#include "base/assert.h"
#include "mem/heap.h"
#include "mem/inject.h"
#include "plan/block.h"

#include <stdlib.h>
#include <string.h>

enum {
    IN_TIME = 1,      /* number of the order of time */
    MORE_ORDERS = 12, /* six that mean something, and as many variations of the first */
    ROUNDS = 1500,    /* of hill climbing at most, for few blocks; for more of them: */
    WORK = 1 << 22,   /* steps that looking for a better layout may take, n^2 in a round */
    /* Above the lower bound by more than one part in FAR it may take FAR_TIMES the steps. Three of
     * 10,000 random graphs were 6 to 8 % above the bound; with eight times the steps all are within
     * 5 %. */
    FAR = 50,
    FAR_TIMES = 8,
    MANY = 400,     /* blocks beyond which it is not tried: 26 rounds of WORK are left there, */
    TOO_MANY = 4096 /* and beyond which the order of time, n log n, comes first and mostly alone */
};

static uint64_t bytes_of(const fth__buf *b)
{
    return b->double_buffered ? 2 * b->bytes : b->bytes;
}

bool fth__buf_is_placed(const fth__buf *b)
{
    return b->kind == FTH__BUF_ARENA && b->in_place < 0 && b->bytes > 0 && b->t1 >= 0;
}

/* Bytes alive at every item, into p->live: each block adds itself where it begins and takes itself
 * away behind its end. */
void fth__plan_live(const fth_plan *p)
{
    FTH_ASSERT(p->cap_live >= p->n_items + 2);
    memset(p->live, 0, sizeof *p->live * (size_t)(p->n_items + 2));
    for (int64_t i = 0; i < p->n_bufs; i++) {
        const fth__buf *b = &p->buf[i];
        if (!fth__buf_is_placed(b)) continue;
        FTH_ASSERT(b->t0 >= 0 && b->t0 <= b->t1 && b->t1 < p->n_items);
        p->live[b->t0] += bytes_of(b);
        p->live[b->t1 + 1] -= bytes_of(b); /* wraps; the running sum is right again */
    }
    for (int64_t t = 1; t <= p->n_items; t++) p->live[t] += p->live[t - 1];
    FTH_ASSERT(p->live[p->n_items] == 0); /* every block ends */
}

uint64_t fth__plan_lower_bound(const fth_plan *p, int64_t *at)
{
    uint64_t most = 0;
    if (at) *at = 0;
    fth__plan_live(p);
    for (int64_t t = 0; t < p->n_items; t++) {
        if (p->live[t] <= most) continue;
        most = p->live[t];
        if (at) *at = t;
    }
    return most;
}

static int by_key(const void *a_, const void *b_)
{
    const fth__block *a = a_, *b = b_;
    if (a->key != b->key) return a->key > b->key ? -1 : 1;
    return a->buf < b->buf ? -1 : 1;
}

/* Lowest end of the smallest gap that takes block b among those placed at its time; `placed` is
 * sorted by offset. */
static uint64_t best_gap(fth__block *const *placed, int64_t n, const fth__block *b)
{
    uint64_t top = 0, best = UINT64_MAX, best_gap_bytes = UINT64_MAX;
    for (int64_t i = 0; i < n; i++) {
        const fth__block *o = placed[i];
        FTH_ASSERT(i == 0 || placed[i - 1]->offset <= o->offset);
        if (o->t1 < b->t0 || b->t1 < o->t0) continue;
        if (o->offset > top) {
            const uint64_t gap = o->offset - top;
            if (gap == b->bytes) return top; /* none is smaller, and this is the lowest such */
            if (gap > b->bytes && gap < best_gap_bytes) best = top, best_gap_bytes = gap;
        }
        if (o->offset + o->bytes > top) top = o->offset + o->bytes;
    }
    return best == UINT64_MAX ? top : best;
}

/* Blocks from the highest key to the lowest. Most orders differ from the one before by a block or
 * two, and each block knows where it goes. */
static void sort_blocks(fth__block *b, int64_t n)
{
    for (int64_t i = 1; i < n; i++) {
        if (by_key(&b[i - 1], &b[i]) < 0) continue;
        const fth__block moved = b[i];
        int64_t at = i - 1;
        while (at > 0 && by_key(&b[at - 1], &moved) > 0) at--;
        memmove(&b[at + 1], &b[at], sizeof moved * (size_t)(i - at));
        b[at] = moved;
    }
    for (int64_t i = 1; i < n; i++) FTH_ASSERT(by_key(&b[i - 1], &b[i]) < 0);
}

static uint64_t place_all(fth__block *b, int64_t n, fth__block **placed)
{
    uint64_t top = 0;
    for (int64_t i = 0; i < n; i++) {
        b[i].offset = best_gap(placed, i, &b[i]);
        int64_t at = i;
        while (at > 0 && placed[at - 1]->offset > b[i].offset) at--;
        memmove(&placed[at + 1], &placed[at], sizeof *placed * (size_t)(i - at));
        placed[at] = &b[i];
        FTH_ASSERT(b[i].offset % FTH__ALIGN == 0 && b[i].bytes % FTH__ALIGN == 0);
        if (b[i].offset + b[i].bytes > top) top = b[i].offset + b[i].bytes;
    }
    return top;
}

/* Any mixer does, as long as it stays the same: plans of one program are equal on every machine. */
static uint64_t mix(uint64_t x)
{
    x ^= x >> 31;
    x *= 0x9e3779b97f4a7c15u;
    return x ^ (x >> 29);
}

/* For the lower 20 bits of a key: whatever is larger counts as the most. */
static uint64_t low_bits(uint64_t x)
{
    return x < (uint64_t)1 << 20 ? x : ((uint64_t)1 << 20) - 1;
}

/* Order number k: largest first, in order of time, longest first, area first, what is there at the
 * busiest moments first, then variations of largest first by a fixed pseudo-random factor. */
static uint64_t order_key(const fth__block *b, int k)
{
    const uint64_t length = (uint64_t)(b->t1 - b->t0 + 1);
    switch (k) {
    case 0: return b->bytes;
    case IN_TIME: return UINT64_MAX - (uint64_t)b->t0;
    case 2: return (length << 40) + (b->bytes >> 24);
    case 3: return b->bytes / 64 * length;
    case 4: return (b->press / FTH__ALIGN << 20) + low_bits(length);
    case 5: return (b->press / FTH__ALIGN << 20) + low_bits(b->bytes / FTH__ALIGN);
    default:
        return (
            uint64_t)((double)b->bytes *
                      (0.5 + (double)(mix((uint64_t)k * 7919u + (uint64_t)b->buf) >> 40) / 0x1p24));
    }
}

/* Half a percent above what no layout can beat: the rest is not worth more rounds. */
static uint64_t good_enough(const fth_plan *p)
{
    return p->lower + p->lower / 200;
}

static void keep(fth_plan *p, const fth__block *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++) p->buf[b[i].buf].offset = b[i].offset;
    for (int64_t i = 0; i < p->n_bufs; i++) {
        FTH_ASSERT(p->buf[p->buf[i].root].in_place < 0);
        p->buf[i].offset = p->buf[p->buf[i].root].offset;
    }
}

/* Hill climbing over orders: a block that ends at the top came too late, so it (or, now and then,
 * any other) moves to an earlier place; orders that are no worse are kept. The numbers are pseudo-
 * random and fixed: the same program is laid out the same way every time. */
static void improve(fth_plan *p, fth__block *b, int64_t n, fth__block **placed)
{
    if (n < 2 || p->peak <= good_enough(p)) return;
    for (int64_t i = 0; i < n; i++) b[i].key = order_key(&b[i], 0);
    qsort(b, (size_t)n, sizeof *b, by_key);
    uint64_t top = place_all(b, n, placed), dice = 88172645463325252u;
    for (int64_t i = 0; i < n; i++)
        b[i].key = (uint64_t)(n - i) << 20; /* room between neighbours */
    const int64_t rounds = WORK / (n * n) < ROUNDS ? WORK / (n * n) : ROUNDS;
    const uint64_t far = p->lower + p->lower / FAR;
    for (int64_t round = 0; p->peak > good_enough(p); round++) {
        if (round >= (p->peak > far ? FAR_TIMES * rounds : rounds)) break;
        dice = mix(dice + (uint64_t)round);
        int64_t pick = (int64_t)(dice % (uint64_t)n);
        for (int64_t k = 0; round % 4 != 0 && k < n; k++) {
            const int64_t i = (pick + k) % n;
            if (b[i].offset + b[i].bytes < top) continue;
            pick = i;
            break;
        }
        const int who = b[pick].buf;
        const uint64_t old = b[pick].key;
        const int64_t before = (int64_t)((dice >> 20) % (uint64_t)n);
        b[pick].key = b[before].key + 1;
        sort_blocks(b, n);
        const uint64_t now = place_all(b, n, placed);
        FTH_ASSERT(now >= p->lower);
        for (int64_t i = 0; now > top && i < n; i++)
            if (b[i].buf == who) b[i].key = old;
        if (now > top) continue;
        top = now;
        for (int64_t i = 0; i < n; i++) b[i].key = (uint64_t)(n - i) << 20;
        if (top >= p->peak) continue;
        p->peak = top;
        keep(p, b, n);
    }
}

static fth_status try_order(fth_plan *p, fth__block *b, int64_t n, int order, fth__block **placed,
                            fth_err *err)
{
    for (int64_t i = 0; i < n; i++) b[i].key = order_key(&b[i], order);
    qsort(b, (size_t)n, sizeof *b, by_key);
    uint64_t top;
    if (order == IN_TIME)
        FTH_TRY(fth__place_in_time(p->mem, b, n, p->n_items, &top, err));
    else
        top = place_all(b, n, placed);
    FTH_ASSERT(top >= p->lower); /* no layout beats the most bytes alive at once */
    if (top >= p->peak) return FTH_OK;
    p->peak = top;
    keep(p, b, n);
    return FTH_OK;
}

static fth_status try_orders(fth_plan *p, fth__block *b, int64_t n, bool hard, fth__block **placed,
                             fth_err *err)
{
    p->peak = UINT64_MAX;
    if (n > TOO_MANY) { /* the order of time alone takes n log n steps; others n^2 */
        FTH_TRY(try_order(p, b, n, IN_TIME, placed, err));
        const bool far = hard && p->peak > p->lower + p->lower / FAR;
        return far && n <= FAR_TIMES * TOO_MANY ? try_order(p, b, n, 0, placed, err) : FTH_OK;
    }
    for (int64_t i = 0; hard && n <= MANY && i < n; i++)
        for (int64_t t = b[i].t0; t <= b[i].t1; t++)
            if (p->live[t] > b[i].press) b[i].press = p->live[t];
    const int orders = n > MANY || !hard ? 2 : MORE_ORDERS;
    for (int k = 0; k < orders && p->peak > good_enough(p); k++)
        FTH_TRY(try_order(p, b, n, k, placed, err));
    if (hard && n <= MANY) improve(p, b, n, placed);
    return FTH_OK;
}

fth_status fth__plan_layout(fth_plan *p, bool hard, fth_err *err)
{
    fth__block *b = NULL, **placed = NULL;
    int64_t n = 0;
    fth_status s = fth__heap_take(p->mem, p->n_bufs + 1, sizeof *b, (void **)&b, err);
    if (s == FTH_OK)
        s = fth__heap_take(p->mem, p->n_bufs + 1, sizeof *placed, (void **)&placed, err);
    for (int64_t i = 0; s == FTH_OK && i < p->n_bufs; i++)
        if (fth__buf_is_placed(&p->buf[i]))
            b[n++] =
                (fth__block){(int)i, bytes_of(&p->buf[i]), 0, 0, p->buf[i].t0, p->buf[i].t1, 0};
    if (s == FTH_OK) {
        p->lower = fth__plan_lower_bound(p, NULL);
        s = try_orders(p, b, n, hard, placed, err);
    }
    if (s == FTH_OK) {
        p->faults = p->peak; /* faults of kernels lie behind everything else */
        p->peak += (uint64_t)p->n_faults * FTH__ALIGN;
        p->lower += (uint64_t)p->n_faults * FTH__ALIGN;
        /* as the ledger will count it: large arenas are whole pages */
        if (p->peak > 0) p->peak = fth__mem_cost(p->pool, FTH_MEM_ANY, p->peak);
    }
    fth__heap_free(p->mem, b);
    fth__heap_free(p->mem, placed);
    return s;
}
