/* quick.c - pieces for speed where everything at once fits.
 *
 * Everything at once takes the most memory, all of which a first run touches for the first time,
 * and sends every value through memory. In pieces values stay in a cache and the arena is small,
 * but iterations cost, and some values are made twice. So a few ways to cut the program are
 * predicted and the quickest is taken; of those that are nearly as quick the one with the smallest
 * arena.
 */
#include "plan/quick.h"

#include "base/assert.h"
#include "base/checked.h"
#include "mem/heap.h"
#include "plan/rates.h"

#include <string.h>

enum {
    MOST_AXES = 6,     /* that are tried, those of most bytes first */
    LADDER = 4,        /* sizes of chunks on each */
    MOST_UNITS = 4096, /* larger programs are planned as they were: each try takes time */
};

/* A plan is only left for one that is quicker by more than predictions are good for: of one run,
 * and of the runs after it, which find the memory in place; those may take a little more time where
 * a plan takes so small a part of the memory. */
static const double worth_first = 0.97, worth_later = 1.05, worth_small = 1.1;
enum { SMALL_PART = 10 };
/* Arenas are compared among plans that take at most this much longer than the quickest. */
static const double as_quick = 1.05;
/* Planning may take this share of what is predicted at most, at so many seconds for each unit of a
 * schedule that is tried. */
static const double planning_share = 0.05, unit_seconds = 4e-6;

typedef struct trial {
    double first, later;
    uint64_t bytes; /* alive at once */
} trial;

static trial look(fth_plan *p, uint64_t bytes)
{
    fth__plan_predict(p, bytes);
    return (trial){.first = p->seconds + p->touch_seconds, .later = p->seconds, .bytes = bytes};
}

static double bytes_along(const fth_plan *p, fth_axis_id axis)
{
    double bytes = 0.0;
    for (int64_t i = 0; i < p->n_bufs; i++) {
        const fth__buf *b = &p->buf[i];
        if (b->kind == FTH__BUF_ARENA && fth_desc_find(&b->desc, axis) >= 0)
            bytes += (double)b->bytes;
    }
    return bytes;
}

/* Axes that most bytes of the plan of everything at once would be cut along, in that order. */
static int choose_axes(const fth_plan *p, fth_axis_id *axis)
{
    double weight[MOST_AXES];
    int n = 0;
    for (fth_axis_id a = 0; a < (fth_axis_id)p->graph->n_axes; a++) {
        if (p->graph->axis[a]->size < 2) continue;
        const double bytes = bytes_along(p, a);
        if (4.0 * bytes < (double)p->peak) continue;
        int at = n < MOST_AXES ? n++ : MOST_AXES;
        for (; at > 0 && bytes > weight[at - 1]; at--) {
            if (at == MOST_AXES) continue;
            weight[at] = weight[at - 1];
            axis[at] = axis[at - 1];
        }
        if (at < MOST_AXES) weight[at] = bytes, axis[at] = a;
    }
    return n;
}

bool fth__plan_may_quicken(const fth_plan *p)
{
    return !p->device_memory && p->ranks < 2 && !p->limits.keep && !p->limits.stream &&
           p->limits.min_pieces == 0 && !p->limits.no_fuse && p->n_units <= MOST_UNITS &&
           p->peak > 0;
}

static fth_status note(const fth_plan *p, fth__quick *q, fth_axis_id axis, const trial *t,
                       fth_err *err)
{
    FTH_TRY(fth__grow(p->mem, &q->chunk, &q->cap_chunk, p->n_loops, err));
    q->n_chunk = p->n_loops;
    for (int64_t i = 0; i < p->n_loops; i++) q->chunk[i] = p->loop[i].chunk;
    q->axis = axis;
    q->first = t->first;
    q->later = t->later;
    q->bytes = t->bytes;
    q->found = true;
    return FTH_OK;
}

static bool is_worth(const trial *t, const fth__quick *whole)
{
    const double later = t->bytes < whole->bytes / SMALL_PART ? worth_small : worth_later;
    return t->first < whole->first * worth_first && t->later < whole->later * later &&
           t->bytes < whole->bytes;
}

/* Quicker, or nearly as quick as the quickest with less memory. */
static bool is_better(const trial *t, const fth__quick *q)
{
    if (t->first * as_quick < q->quickest) return true;
    return t->first <= q->quickest * as_quick && t->bytes < q->bytes;
}

/* With the schedule of an axis at hand, whose smallest chunks take `least` bytes: its largest
 * chunks within `room`, or those. *bytes: what the last ones took; 0: none were larger. */
static fth_status try_room(fth_plan *p, const fth__quick *whole, fth_axis_id axis, uint64_t least,
                           uint64_t room, uint64_t *bytes, fth__quick *q, fth_err *err)
{
    const uint64_t last = *bytes;
    *bytes = 0;
    if (room < least) room = least;
    if (room >= whole->bytes) return FTH_OK;
    fth__plan_smallest_chunks(p);
    FTH_TRY(fth__plan_measure(p, bytes, err));
    FTH_TRY(fth__plan_largest_chunks(p, 0, room, err));
    FTH_TRY(fth__plan_measure(p, bytes, err));
    if (*bytes == last) return FTH_OK;
    const trial t = look(p, *bytes);
    if (!is_worth(&t, whole)) return FTH_OK;
    const bool better = is_better(&t, q);
    if (t.first < q->quickest) q->quickest = t.first;
    return better ? note(p, q, axis, &t, err) : FTH_OK;
}

/* The smallest chunks of one axis; *least: their bytes, 0: it cannot be cut. */
static fth_status cut_axis(fth_plan *p, fth_axis_id axis, uint64_t *least, fth_err *err)
{
    const fth_axis_id axes[FTH__MAX_DEPTH] = {axis, -1};
    *least = 0;
    FTH_TRY(fth__plan_schedule(p, axes, err));
    if (p->n_loops == 0) return FTH_OK;
    fth__plan_smallest_chunks(p);
    fth_err local = {0};
    const fth_status s = fth__plan_measure(p, least, &local);
    if (s == FTH_E_NO_FIT) {
        *least = 0;
        return FTH_OK;
    }
    if (s != FTH_OK && err) *err = local;
    return s;
}

/* Chunks of one axis, from those of a core's cache up: by powers of two, as grids are, so that
 * workers share them evenly. */
static fth_status try_axis(fth_plan *p, const fth__quick *whole, fth_axis_id axis, fth__quick *q,
                           fth_err *err)
{
    uint64_t least, bytes = 1;
    FTH_TRY(cut_axis(p, axis, &least, err));
    uint64_t room =
        (uint64_t)(p->ctx->rates->of[FTH__RATE_CORE_CACHE] * 1048576.0) / 2 * (uint64_t)p->threads;
    for (int i = 0; least > 0 && bytes > 0 && i < LADDER; i++, room *= 4)
        FTH_TRY(try_room(p, whole, axis, least, room, &bytes, q, err));
    return FTH_OK;
}

/* Between the rungs of the ladder: halves of what was taken, as long as they are as quick. */
static fth_status try_halves(fth_plan *p, const fth__quick *whole, fth__quick *q, fth_err *err)
{
    uint64_t least, last = UINT64_MAX;
    FTH_TRY(cut_axis(p, q->axis, &least, err));
    while (least > 0 && q->bytes < last && q->bytes / 2 > least) {
        uint64_t bytes = last = q->bytes;
        FTH_TRY(try_room(p, whole, q->axis, least, last / 2, &bytes, q, err));
    }
    return FTH_OK;
}

fth_status fth__plan_quicken(fth_plan *p, fth__quick *q, fth_err *err)
{
    fth_axis_id axis[MOST_AXES];
    const trial t = look(p, p->peak);
    fth__quick whole = {.first = t.first, .later = t.later, .bytes = t.bytes};
    q->found = false;
    q->first = whole.first;
    q->later = whole.later;
    q->bytes = whole.bytes;
    q->quickest = whole.first;
    const double units = (double)(p->n_units + 4);
    int tries = (int)(fth__min_i64(
        MOST_AXES, (int64_t)(planning_share * whole.first / (unit_seconds * units * LADDER))));
    const int n = tries > 0 ? choose_axes(p, axis) : 0;
    for (int i = 0; i < n && i < tries; i++) FTH_TRY(try_axis(p, &whole, axis[i], q, err));
    if (q->found) FTH_TRY(try_halves(p, &whole, q, err));
    q->tried = n > 0 && tries > 0;
    return FTH_OK;
}
