/* search.c - the largest chunks that fit, and the ladder when nothing does.
 *
 * Rungs: everything at once; one streaming axis; two nested axes. On each rung the chunk is the
 * largest multiple of the grid whose exact peak stays under the budget, found by bisection on the
 * lower bound and confirmed by a real layout; then chunks are evened out.
 */
#include "base/checked.h"
#include "plan/plan.h"

#include <math.h>

typedef struct choice {
    fth_axis_id axis[FTH__MAX_DEPTH];
    int64_t chunk[FTH__MAX_DEPTH];
    double cost;
    bool found;
} choice;

typedef struct search {
    fth_plan *p;
    uint64_t room;     /* for the arena */
    uint64_t smallest; /* least that any rung needed */
    choice floor;      /* and how */
} search;

static int64_t depth_grid(const fth_plan *p, int depth)
{
    int64_t grid = 1;
    for (int64_t i = 0; i < p->n_loops; i++)
        if (p->loop[i].depth == depth && p->loop[i].grid > grid) grid = p->loop[i].grid;
    return grid;
}

static int64_t depth_size(const fth_plan *p, int depth)
{
    int64_t size = 0;
    for (int64_t i = 0; i < p->n_loops; i++)
        if (p->loop[i].depth == depth) size = fth__max_i64(size, p->loop[i].size);
    return size;
}

/* Chunks of all loops of a depth; each loop rounds up to its own grid. */
static void set_chunk(fth_plan *p, int depth, int64_t chunk)
{
    for (int64_t i = 0; i < p->n_loops; i++) {
        fth__sweep *l = &p->loop[i];
        if (l->depth != depth) continue;
        int64_t c = fth__ceil_div_i64(chunk, l->grid) * l->grid;
        if (c > l->size) c = l->size > 0 ? l->size : 1;
        fth__sweep_set_chunk(l, c);
    }
}

static fth_status measure(fth_plan *p, uint64_t *bytes, fth_err *err)
{
    FTH_TRY(fth__plan_size(p, err));
    *bytes = fth__plan_lower_bound(p);
    return FTH_OK;
}

/* Seconds, roughly: only to choose between axes, never for memory. */
static double cost_of(const fth_plan *p)
{
    double cost = 0.0;
    for (int64_t i = 0; i < p->n_items; i++)
        cost += p->item[i].flops * 5e-11 + (double)p->item[i].moved * 1e-10;
    for (int64_t i = 0; i < p->n_bufs; i++) {
        const fth__buf *b = &p->buf[i];
        if (b->input < 0 || b->kind != FTH__BUF_ARENA) continue;
        double bytes = (double)fth_desc_count(&b->desc) * (double)b->element;
        int path[FTH__MAX_DEPTH];
        const int depth = fth__sweep_path(p, b->home, path);
        for (int d = 0; d < depth; d++) {
            bool cut = false;
            for (int s = 0; s < b->n_span; s++) cut |= b->span[s].loop == path[d];
            if (!cut) bytes *= (double)p->loop[path[d]].n_chunks; /* read again in every turn */
        }
        cost += bytes * 1e-9;
    }
    for (int64_t i = 0; i < p->n_loops; i++) {
        double turns = (double)p->loop[i].n_chunks;
        if (p->loop[i].parent >= 0) turns *= (double)p->loop[p->loop[i].parent].n_chunks;
        cost += turns * 2e-5;
    }
    return cost;
}

/* Largest chunk of one depth that fits, others as they are. */
static fth_status largest_chunk(search *s, int depth, int64_t *out, fth_err *err)
{
    fth_plan *p = s->p;
    const int64_t grid = depth_grid(p, depth),
                  blocks = fth__ceil_div_i64(depth_size(p, depth), grid);
    int64_t lo = 1, hi = blocks > 0 ? blocks : 1; /* lo fits */
    uint64_t bytes;
    while (lo < hi) {
        const int64_t mid = lo + (hi - lo + 1) / 2;
        set_chunk(p, depth, mid * grid);
        FTH_TRY(measure(p, &bytes, err));
        if (bytes <= s->room)
            lo = mid;
        else
            hi = mid - 1;
    }
    const int64_t turns = fth__ceil_div_i64(blocks > 0 ? blocks : 1, lo);
    *out = fth__ceil_div_i64(blocks > 0 ? blocks : 1, turns) * grid; /* evened out */
    set_chunk(p, depth, *out);
    return FTH_OK;
}

/* The packer is not monotone: step down until the layout itself fits. */
static fth_status confirm(search *s, choice *c, bool *fits, fth_err *err)
{
    fth_plan *p = s->p;
    for (;;) {
        FTH_TRY(fth__plan_size(p, err));
        FTH_TRY(fth__plan_layout(p, err));
        *fits = p->peak <= s->room;
        if (*fits) return FTH_OK;
        int depth = FTH__MAX_DEPTH - 1;
        while (depth >= 0 && (c->axis[depth] < 0 || c->chunk[depth] <= depth_grid(p, depth)))
            depth--;
        if (depth < 0) {
            if (p->peak < s->smallest) s->smallest = p->peak, s->floor = *c;
            return FTH_OK;
        }
        const int64_t grid = depth_grid(p, depth);
        const int64_t less = fth__max_i64(c->chunk[depth] / grid / 16, 1) * grid;
        c->chunk[depth] = fth__max_i64(c->chunk[depth] - less, grid);
        set_chunk(p, depth, c->chunk[depth]);
    }
}

static fth_status try_axes(search *s, choice *c, fth_err *err)
{
    fth_plan *p = s->p;
    c->found = false;
    fth_err local = {0};
    FTH_TRY(fth__plan_schedule(p, c->axis, err));
    int depths = 0;
    for (int d = 0; d < FTH__MAX_DEPTH; d++) depths += c->axis[d] >= 0 && depth_size(p, d) > 0;
    for (int d = 0; d < FTH__MAX_DEPTH; d++)
        if (c->axis[d] >= 0 && d >= depths) return FTH_OK; /* this axis cuts nothing here */
    for (int d = 0; d < depths; d++) {
        c->chunk[d] = depth_grid(p, d);
        set_chunk(p, d, c->chunk[d]);
    }
    uint64_t bytes;
    const fth_status st = measure(p, &bytes, &local);
    if (st == FTH_E_NO_FIT) return FTH_OK; /* this order of passes cannot work */
    if (st != FTH_OK) {
        if (err && err->status == FTH_OK) *err = local;
        return st;
    }
    if (bytes < s->smallest) s->smallest = bytes, s->floor = *c;
    if (bytes > s->room) return FTH_OK;
    for (int d = 0; d < depths; d++) FTH_TRY(largest_chunk(s, d, &c->chunk[d], err));
    FTH_TRY(confirm(s, c, &c->found, err));
    c->cost = cost_of(p);
    return FTH_OK;
}

/* Axes worth trying: those that some value of the program has, with more than one element. */
static bool worth(const fth_plan *p, fth_axis_id a)
{
    if (p->graph->axis[a].size < 2) return false;
    for (int64_t i = 0; i < p->n_units; i++)
        for (int o = 0; o < p->unit[i].node->n_out; o++)
            if (fth_desc_find(&p->unit[i].node->out[o], a) >= 0) return true;
    for (int64_t i = 0; i < p->n_units; i++)
        for (int k = 0; k < p->unit[i].node->n_in; k++)
            if (fth_desc_find(&p->unit[i].node->in[k], a) >= 0) return true;
    return false;
}

static void keep_better(choice *best, const choice *c)
{
    if (c->found && (!best->found || c->cost < best->cost)) *best = *c;
}

static fth_status try_all(search *s, int depths, choice *best, fth_err *err)
{
    fth_plan *p = s->p;
    const fth_axis_id n = (fth_axis_id)p->graph->n_axes;
    const fth_axis_id forced =
        p->limits.stream && p->limits.stream[0] ? fth_axis_find(p->graph, p->limits.stream) : -1;
    for (fth_axis_id a = 0; a < n; a++) {
        if (!worth(p, a) || (forced >= 0 && a != forced)) continue;
        for (fth_axis_id b = 0; b < (depths == 2 ? n : 1); b++) {
            choice c = {.axis = {a, depths == 2 ? b : -1}};
            if (depths == 2 && (a == b || !worth(p, b))) continue;
            FTH_TRY(try_axes(s, &c, err));
            keep_better(best, &c);
        }
    }
    return FTH_OK;
}

/* Make the schedule of a choice again. */
static fth_status settle(search *s, const choice *c, fth_err *err)
{
    fth_plan *p = s->p;
    FTH_TRY(fth__plan_schedule(p, c->axis, err));
    for (int d = 0; d < FTH__MAX_DEPTH; d++)
        if (c->axis[d] >= 0) set_chunk(p, d, c->chunk[d]);
    FTH_TRY(fth__plan_size(p, err));
    return fth__plan_layout(p, err);
}

fth_status fth__plan_search(fth_plan *p, fth_err *err)
{
    search s = {.p = p, .smallest = UINT64_MAX};
    s.room = p->budget > p->foreign ? p->budget - p->foreign : 0;
    choice best = {.axis = {-1, -1}};
    const bool forced = p->limits.stream && p->limits.stream[0];
    if (!forced) FTH_TRY(try_axes(&s, &best, err));
    if (best.found) return FTH_OK; /* the schedule at hand is the plan */
    const bool never = p->limits.stream && !p->limits.stream[0];
    for (int depths = 1; !never && depths <= FTH__MAX_DEPTH && !best.found; depths++)
        FTH_TRY(try_all(&s, depths, &best, err));
    if (best.found) return settle(&s, &best, err);
    FTH_TRY(settle(&s, &s.floor, err));
    return fth__plan_refuse(p, s.smallest, err);
}
