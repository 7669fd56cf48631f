/* nearest.c - see nearest.h.
 *
 * Nodes are ranges of the array and are split in the middle, so there is nothing to store but the
 * order; which side a node is split along follows from its places again when it is walked.
 */
#include "nearest.h"

#include <math.h>

enum { LEAF = 8 };

uint64_t pt_places_bytes(int64_t n)
{
    return sizeof(int32_t) * (uint64_t)n + 64;
}

static double along(const pt_places *p, int32_t i, int side)
{
    return side ? p->y[i] : p->x[i];
}

/* Order along a side: by coordinate, then by number, so that it is total. */
static bool before(const pt_places *p, int32_t a, int32_t b, int side)
{
    const double u = along(p, a, side), v = along(p, b, side);
    return u < v || (u == v && a < b);
}

/* Put what belongs at `middle` of [lo, hi) there, smaller ones before it. */
static void halve(const pt_places *p, int64_t lo, int64_t hi, int64_t middle, int side)
{
    int32_t *v = p->order;
    while (hi - lo > 1) {
        const int32_t pivot = v[lo + (hi - lo) / 2];
        int64_t i = lo, j = hi - 1;
        while (i <= j) {
            while (before(p, v[i], pivot, side)) i++;
            while (before(p, pivot, v[j], side)) j--;
            if (i > j) break;
            const int32_t keep = v[i];
            v[i++] = v[j];
            v[j--] = keep;
        }
        if (middle <= j)
            hi = j + 1;
        else if (middle >= i)
            lo = i;
        else
            return;
    }
}

/* Along y where that is the longer one. */
static int side_of(const pt_places *p, int64_t lo, int64_t hi)
{
    double low[2] = {HUGE_VAL, HUGE_VAL}, high[2] = {-HUGE_VAL, -HUGE_VAL};
    for (int64_t i = lo; i < hi; i++)
        for (int d = 0; d < 2; d++) {
            const double v = along(p, p->order[i], d);
            if (v < low[d]) low[d] = v;
            if (v > high[d]) high[d] = v;
        }
    return high[1] - low[1] > high[0] - low[0];
}

/* The side a node was split along is kept as the sign of its middle number: ~i for y. */
static void grow(const pt_places *p, int64_t lo, int64_t hi)
{
    if (hi - lo <= LEAF) return;
    const int64_t middle = lo + (hi - lo) / 2;
    const int side = side_of(p, lo, hi);
    halve(p, lo, hi, middle, side);
    grow(p, lo, middle);
    grow(p, middle + 1, hi);
    if (side) p->order[middle] = ~p->order[middle];
}

fth_status pt_places_create(pt_places *p, fth_mem *mem, const double *x, const double *y, int64_t n,
                            fth_err *err)
{
    *p = (pt_places){.mem = mem, .x = x, .y = y, .n = n};
    if (n >= INT32_MAX)
        return FTH_FAIL(err, FTH_E_FILE_SHAPE, "%lld positions: fewer than 2^31 - 1 are possible",
                        (long long)n);
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, sizeof *p->order * (uint64_t)(n > 0 ? n : 1),
                         "tree of positions", (void **)&p->order, err));
    for (int64_t i = 0; i < n; i++) p->order[i] = (int32_t)i;
    grow(p, 0, n);
    return FTH_OK;
}

void pt_places_clear(pt_places *p)
{
    if (p->order) fth_mem_release(p->mem, p->order, NULL);
    *p = (pt_places){0};
}

/* ---- searching ---- */

typedef struct search {
    const pt_places *p;
    double x, y;
    int64_t k, found;
    int32_t *out; /* sorted by (distance, number) */
    double *d2;
} search;

static void offer(search *s, int32_t i)
{
    const double dx = s->p->x[i] - s->x, dy = s->p->y[i] - s->y, d = dx * dx + dy * dy;
    int64_t at = s->found;
    while (at > 0 && (d < s->d2[at - 1] || (d == s->d2[at - 1] && i < s->out[at - 1]))) at--;
    if (at >= s->k) return;
    if (s->found < s->k) s->found++;
    for (int64_t j = s->found - 1; j > at; j--) {
        s->d2[j] = s->d2[j - 1];
        s->out[j] = s->out[j - 1];
    }
    s->d2[at] = d;
    s->out[at] = i;
}

static void walk(search *s, int64_t lo, int64_t hi)
{
    if (hi - lo <= LEAF) {
        for (int64_t i = lo; i < hi; i++) offer(s, s->p->order[i]);
        return;
    }
    const int64_t middle = lo + (hi - lo) / 2;
    const int32_t kept = s->p->order[middle], at = kept < 0 ? ~kept : kept;
    const double d = (kept < 0 ? s->y - s->p->y[at] : s->x - s->p->x[at]);
    offer(s, at);
    const bool left = d < 0;
    walk(s, left ? lo : middle + 1, left ? middle : hi);
    /* equal distances may still have lower numbers */
    if (s->found < s->k || d * d <= s->d2[s->k - 1])
        walk(s, left ? middle + 1 : lo, left ? hi : middle);
}

void pt_places_nearest(const pt_places *p, int64_t at, int64_t k, int32_t *out, double *d2)
{
    search s = {.p = p, .x = p->x[at], .y = p->y[at], .k = k, .out = out, .d2 = d2};
    walk(&s, 0, p->n);
}
