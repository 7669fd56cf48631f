/* search.c - the ladder from everything at once to a refusal.
 *
 * Rungs: everything at once, unless pieces are asked for; one streaming axis; two nested axes; then
 * the same with blocks given up between their uses. On each rung updates first wait for the end
 * with whole gradients, then are cut with them. Chunks are the largest whose bytes alive at once
 * stay under the budget, confirmed by a real layout.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "mem/heap.h"
#include "plan/cache.h"
#include "plan/plan.h"
#include "plan/quick.h"

#include <string.h>
#include <sys/statvfs.h>

enum {
    /* flops per byte above which a value is rather kept: by fth__work_seconds, making a byte again
     * then takes 32 times as long as moving it */
    KEEP_RATIO = 64,
    /* units of all schedules that are tried for that, so that plans of very many units take time in
     * proportion to them */
    KEEP_WORK = 1 << 22,
    /* whole searches for a smaller floor before a refusal: a bound on its time; without it the
     * budget that is named fits too, and is just not the least */
    TIGHTEN_ROUNDS = 8,
    /* down from chunks whose layout is far above its lower bound; with four, of 1000 random graphs
     * none was more than 1.9 % above it */
    MORE_STEPS = 4,
    NEAR = 50,  /* "far above": by more than one part in so many, as FAR of layout.c */
    CLOSE = 200 /* near enough to leave a layout as it is, as good_enough there */
};

/* Seconds that only cost_of knows, round figures as those of fth__work_seconds: a byte of a file at
 * 1 GB/s, and an iteration of a loop beside its steps. */
static const double file_byte_seconds = 1e-9, iteration_seconds = 2e-5;
/* The start of a row that a loop cuts short: of a blur in pieces of 49 columns 80 ns. */
static const double row_seconds = 8e-8;

typedef struct choice {
    fth_axis_id axis[FTH__MAX_DEPTH];
    double cost;
    bool found;
    bool joined;   /* updates are cut with their gradients */
    bool relieved; /* blocks may be given up between uses */
    bool apart;    /* sums that ranks cannot join wait for the end of their pass */
} choice;

typedef struct search {
    fth_plan *p;
    uint64_t room;     /* for the arena */
    uint64_t smallest; /* least that any rung needed */
    uint64_t least;    /* lower bound of every candidate seen: none can need less */
    choice floor;      /* and how */
    int64_t *chunk;    /* per loop, of the best choice */
    int64_t n_chunk, cap_chunk;
    bool apart; /* of the choices being tried */
} search;

/* Rows that a step begins because a loop cuts them: rectangles of few columns take longer than
 * those of few rows. */
static double cut_rows(const fth_plan *p, const fth__item *it)
{
    const fth__buf *b = it->kind == FTH__STEP && it->out[0] >= 0 ? &p->buf[it->out[0]] : NULL;
    const int last = b ? b->desc.n_axes - 1 : -1;
    if (last < 1 || b->extent[last] < 1 || b->extent[last] == b->desc.size[last]) return 0.0;
    for (int s = 0; s < b->n_span; s++)
        if (b->span[s].dim == last)
            return (double)fth_desc_count(&b->desc) / (double)b->extent[last];
    return 0.0;
}

/* Seconds, roughly: only to choose between axes, never for memory. */
static double cost_of(const fth_plan *p)
{
    double cost = 0.0;
    for (int64_t i = 0; i < p->n_items; i++)
        cost += (fth__work_seconds(p->item[i].flops, (double)p->item[i].moved) +
                 row_seconds * cut_rows(p, &p->item[i])) *
                fth__plan_part(p, fth__item_pass(p, &p->item[i]));
    for (int64_t i = 0; i < p->n_bufs; i++) {
        const fth__buf *b = &p->buf[i];
        if (b->input < 0 || b->kind != FTH__BUF_ARENA) continue;
        double bytes = (double)fth_desc_count(&b->desc) * (double)b->element;
        int path[FTH__MAX_DEPTH];
        const int depth = fth__sweep_path(p, b->owner_loop, path);
        for (int d = 0; d < depth; d++) {
            bool cut = false;
            for (int s = 0; s < b->n_span; s++) cut |= b->span[s].loop == path[d];
            if (!cut)
                bytes *= (double)p->loop[path[d]].n_chunks; /* read again in every iteration */
        }
        cost += bytes * file_byte_seconds * fth__plan_part(p, depth > 0 ? &p->loop[path[0]] : NULL);
    }
    for (int64_t i = 0; p->limits.min_pieces != 0 && i < p->n_bufs; i++) {
        const fth__buf *b = &p->buf[i]; /* what is read or written while nothing is computed */
        if (b->kind == FTH__BUF_ARENA && b->owner_loop < 0 && (b->input >= 0 || b->output >= 0))
            cost += (double)b->bytes * file_byte_seconds;
    }
    for (int64_t i = 0; i < p->n_loops; i++) {
        double iterations = (double)p->loop[i].n_chunks;
        const fth__sweep *pass = p->loop[i].parent >= 0 ? &p->loop[p->loop[i].parent] : NULL;
        if (pass) iterations *= (double)pass->n_chunks;
        cost += iterations * iteration_seconds * fth__plan_part(p, pass ? pass : &p->loop[i]);
        cost += fth__sweep_exchange(p, &p->loop[i]).seconds;
    }
    return cost;
}

/* The packer is not monotone: step down, inner loops first, until the layout itself fits; a few
 * steps more when it is far above its lower bound, for then blocks of several passes do not go
 * together well. */
static fth_status confirm(search *s, const choice *c, bool *fits, fth_err *err)
{
    fth_plan *p = s->p;
    for (int more = MORE_STEPS;;) {
        FTH_TRY(fth__plan_size(p, err));
        FTH_TRY(fth__plan_layout(p, false, err));
        const uint64_t near = fth__min_u64(p->lower + p->lower / NEAR, s->room);
        if (p->peak > near && p->lower <= s->room) FTH_TRY(fth__plan_layout(p, true, err));
        *fits = p->peak <= s->room;
        if (*fits && (p->peak <= near || more-- == 0)) return FTH_OK;
        int depth = FTH__MAX_DEPTH - 1;
        while (depth >= 0 && !fth__plan_smaller_chunks(p, depth)) depth--;
        if (depth >= 0) continue;
        if (p->peak < s->smallest) s->smallest = p->peak, s->floor = *c;
        return FTH_OK;
    }
}

/* The layout of the smallest chunks: a floor that a later budget of just that size will meet. */
static fth_status note_floor(search *s, const choice *c, fth_err *err)
{
    fth_plan *p = s->p;
    FTH_TRY(fth__plan_layout(p, true, err));
    if (p->peak < s->smallest) {
        s->smallest = p->peak;
        s->floor = *c;
    }
    return FTH_OK;
}

/* Open gaps one by one until a layout fits or nothing is left to give up; `bytes` are those alive
 * at once before and after. The order of gaps does not depend on the room, so what is refused here
 * names a budget that will be met. The floor is looked for here alone: these rungs begin with the
 * schedules of the earlier ones, and laying those out is wasted when a later one fits. */
static fth_status relieve(search *s, const choice *c, uint64_t *bytes, bool *fits, fth_err *err)
{
    fth_plan *p = s->p;
    choice here = *c;
    here.relieved = false;
    for (;;) {
        if (*bytes < s->least) s->least = *bytes;
        if (*bytes <= s->room || *bytes < s->smallest) FTH_TRY(note_floor(s, &here, err));
        *fits = *bytes <= s->room && p->peak <= s->room;
        if (*fits) return FTH_OK;
        FTH_TRY(fth__plan_relieve(p, &here.relieved, err));
        if (!here.relieved) return FTH_OK;
        FTH_TRY(fth__plan_retime(p, err));
        *bytes = fth__plan_lower_bound(p, NULL);
    }
}

/* Depths of loops; -1: an axis asked for cuts nothing. */
static int loop_depths(const fth_plan *p, const choice *c)
{
    int asked = 0;
    for (int d = 0; d < FTH__MAX_DEPTH; d++) {
        if (c->axis[d] < 0) continue;
        bool cut = false;
        for (int64_t i = 0; i < p->n_loops; i++) cut |= p->loop[i].depth == d;
        if (!cut) return -1;
        asked++;
    }
    return asked;
}

/* Try one choice of axes; leaves its schedule in the plan. */
static fth_status try_axes(search *s, choice *c, fth_err *err)
{
    fth_plan *p = s->p;
    c->found = false;
    p->joined = c->joined;
    p->apart = c->apart;
    fth_err local = {0};
    FTH_TRY(fth__plan_schedule(p, c->axis, err));
    const int depths = loop_depths(p, c);
    if (depths < 0) return FTH_OK;
    fth__plan_smallest_chunks(p);
    uint64_t bytes;
    const fth_status st = fth__plan_measure(p, &bytes, &local);
    if (st == FTH_E_NO_FIT) return FTH_OK; /* this order of passes cannot work */
    if (st != FTH_OK) {
        if (err && err->status == FTH_OK) *err = local;
        return st;
    }
    if (bytes < s->least) s->least = bytes;
    bool fits = bytes <= s->room;
    /* relieved: it may fit and yet not be packed */
    if (c->relieved) FTH_TRY(relieve(s, c, &bytes, &fits, err));
    if (!fits) return FTH_OK;
    for (int d = 0; d < depths; d++) {
        if (d > 0) FTH_TRY(fth__plan_measure(p, &bytes, err));
        FTH_TRY(fth__plan_largest_chunks(p, d, s->room, err));
    }
    FTH_TRY(confirm(s, c, &c->found, err));
    c->cost = cost_of(p);
    return FTH_OK;
}

/* Build again what an earlier search found, and lay it out as well as can be. */
static fth_status rebuild(search *s, const choice *c, bool *fits, fth_err *err)
{
    fth_plan *p = s->p;
    uint64_t bytes;
    p->joined = c->joined;
    p->apart = c->apart;
    FTH_TRY(fth__plan_schedule(p, c->axis, err));
    *fits = false;
    if (p->n_loops != s->n_chunk) return FTH_OK;
    if (c->relieved) { /* gaps are opened for the smallest chunks, as when it was found */
        fth__plan_smallest_chunks(p);
        FTH_TRY(fth__plan_measure(p, &bytes, err));
        FTH_TRY(relieve(s, c, &bytes, fits, err));
    }
    for (int64_t i = 0; i < p->n_loops; i++) fth__sweep_set_chunk(&p->loop[i], s->chunk[i]);
    FTH_TRY(fth__plan_size(p, err));
    FTH_TRY(fth__plan_layout(p, true, err));
    *fits = p->peak <= s->room;
    return FTH_OK;
}

/* Axes worth trying: those that some value of the program has, with more than one element. */
static bool worth(const fth_plan *p, fth_axis_id a)
{
    if (p->graph->axis[a]->size < 2) return false;
    for (int64_t i = 0; i < p->n_units; i++)
        for (int o = 0; o < p->unit[i].node->n_out; o++)
            if (fth_desc_find(&p->unit[i].node->out[o], a) >= 0) return true;
    for (int64_t i = 0; i < p->n_units; i++)
        for (int k = 0; k < p->unit[i].node->n_in; k++)
            if (fth_desc_find(&p->unit[i].node->in[k], a) >= 0) return true;
    return false;
}

/* The choice whose schedule is in the plan is the best so far. */
static fth_status take_best(search *s, choice *best, const choice *c, fth_err *err)
{
    const fth_plan *p = s->p;
    FTH_TRY(fth__grow(p->mem, &s->chunk, &s->cap_chunk, p->n_loops, err));
    s->n_chunk = p->n_loops;
    for (int64_t i = 0; i < p->n_loops; i++) s->chunk[i] = p->loop[i].chunk;
    *best = *c;
    return FTH_OK;
}

static fth_status try_all(search *s, int depths, bool joined, bool relieved, choice *best,
                          fth_err *err)
{
    fth_plan *p = s->p;
    const fth_axis_id n = (fth_axis_id)p->graph->n_axes;
    const char *stream = p->limits.stream;
    const fth_axis_id forced = stream && stream[0] ? fth_axis_find(p->graph, stream) : -1;
    for (fth_axis_id a = 0; a < (depths > 0 ? n : 1); a++) {
        if (depths > 0 && (!worth(p, a) || (forced >= 0 && a != forced))) continue;
        for (fth_axis_id b = 0; b < (depths == 2 ? n : 1); b++) {
            choice c = {.axis = {depths > 0 ? a : -1, depths == 2 ? b : -1},
                        .joined = joined,
                        .relieved = relieved,
                        .apart = s->apart};
            if (depths == 2 && (a == b || !worth(p, b))) continue;
            FTH_TRY(try_axes(s, &c, err));
            if (c.found && (!best->found || c.cost < best->cost))
                FTH_TRY(take_best(s, best, &c, err));
        }
    }
    return FTH_OK;
}

/* How often the steps of the plan make each unit, and how much work that is. */
typedef struct remade {
    int times;
    double flops;
} remade;

static void count_remade(const fth_plan *p, remade *of)
{
    memset(of, 0, sizeof *of * (size_t)p->n_units);
    for (int64_t t = 0; t < p->n_items; t++) {
        if (p->item[t].kind != FTH__STEP) continue;
        FTH_ASSERT(p->item[t].unit >= 0 && p->item[t].unit < p->n_units);
        of[p->item[t].unit].times++;
        of[p->item[t].unit].flops = p->item[t].flops;
    }
}

static fth_status keep_some(search *s, choice *best, bool *tried, remade *of, fth_err *err)
{
    fth_plan *p = s->p;
    int64_t trials = KEEP_WORK / (p->n_units + 1);
    count_remade(p, of);
    for (int64_t i = 0; i < p->n_units && trials >= 0; i++) {
        const fth_node *n = p->unit[i].node;
        const double bytes =
            (double)fth_desc_count(&n->out[0]) * (double)fth_dtype_size(n->out[0].dtype);
        if (of[i].times < 2 || n->n_out != 1 || bytes > (double)s->room ||
            (of[i].flops < KEEP_RATIO * bytes && !p->limits.no_recompute))
            continue;
        p->keep[n->out_val[0].id] = *tried = true;
        choice c = *best;
        FTH_TRY(try_axes(s, &c, err));
        const bool better = c.found && (c.cost < best->cost || p->limits.no_recompute);
        p->keep[n->out_val[0].id] = better;
        if (better) FTH_TRY(take_best(s, best, &c, err));
        count_remade(p, of); /* of the schedule that was just tried */
        trials--;
    }
    return FTH_OK;
}

/* Values made in several passes that cost much and weigh little: keep those that still fit. */
static fth_status keep_values(search *s, choice *best, bool *tried, fth_err *err)
{
    remade *of = NULL;
    *tried = false;
    FTH_TRY(fth__heap_take(s->p->mem, s->p->n_units + 1, sizeof *of, (void **)&of, err));
    const fth_status st = keep_some(s, best, tried, of, err);
    fth__heap_free(s->p->mem, of);
    return st;
}

static fth_status check_scratch(const fth_plan *p, fth_err *err)
{
    const uint64_t need = fth__plan_scratch_bytes(p);
    if (need == 0) return FTH_OK;
    uint64_t room = p->limits.scratch_bytes;
    struct statvfs fs;
    if (room == 0 && statvfs(p->ctx->scratch_dir, &fs) == 0)
        room = (uint64_t)fs.f_bavail * (uint64_t)fs.f_frsize;
    if (need <= room) return FTH_OK;
    char a[24], b[24];
    return FTH_FAIL(err, FTH_E_SCRATCH, "the plan spills %s and '%s' has room for %s",
                    fth_mem_format_size(need, a, sizeof a), p->ctx->scratch_dir,
                    fth_mem_format_size(room, b, sizeof b));
}

static void remember(const search *s, const choice *c)
{
    const fth_plan *p = s->p;
    fth__decision d = {.joined = c->joined,
                       .relieved = c->relieved,
                       .apart = c->apart,
                       .sharing = p->sharing,
                       .at_once = p->at_once,
                       .n_loops = (int)p->n_loops};
    memcpy(d.axis, c->axis, sizeof d.axis);
    if (p->n_loops > FTH__CACHE_LOOPS) return;
    for (int64_t i = 0; i < p->n_loops; i++) d.chunk[i] = p->loop[i].chunk;
    for (int64_t v = 0; v < p->graph->n_values; v++) {
        if (!p->keep[v]) continue;
        if (d.n_kept == FTH__CACHE_KEPT) return;
        d.kept[d.n_kept++] = (uint32_t)v;
    }
    fth__plan_cache_put(p->ctx->plans, p->key, &d);
}

/* Do again what an earlier search for the same program decided; false: it does not fit any more. */
static fth_status recall(search *s, bool *found, fth_err *err)
{
    fth_plan *p = s->p;
    fth__decision d;
    *found = fth__plan_cache_get(p->ctx->plans, p->key, &d);
    if (!*found) return FTH_OK;
    choice c = {.joined = d.joined, .relieved = d.relieved, .apart = d.apart};
    const bool sharing = p->sharing;
    p->sharing = d.sharing;
    p->at_once = d.at_once;
    memcpy(c.axis, d.axis, sizeof c.axis);
    FTH_TRY(fth__grow(p->mem, &s->chunk, &s->cap_chunk, d.n_loops, err));
    s->n_chunk = d.n_loops;
    for (int i = 0; i < d.n_loops; i++) s->chunk[i] = d.chunk[i];
    for (int i = 0; i < d.n_kept; i++) p->keep[d.kept[i]] = true;
    FTH_TRY(rebuild(s, &c, found, err));
    for (int i = 0; !*found && i < d.n_kept; i++) p->keep[d.kept[i]] = false;
    if (!*found) p->sharing = sharing;
    return FTH_OK;
}

/* Streaming so many axes, with updates that wait for the end and then, if there are such, with
 * updates in pieces. */
static fth_status try_depths(search *s, int depths, bool relieved, choice *best, fth_err *err)
{
    const fth_plan *p = s->p;
    bool joins = false;
    FTH_TRY(try_all(s, depths, false, relieved, best, err));
    for (int64_t i = 0; i < p->n_units; i++) joins |= p->unit[i].joins;
    return joins && depths > 0 && !best->found ? try_all(s, depths, true, relieved, best, err)
                                               : FTH_OK;
}

static bool has_unjoinable(const fth_plan *p)
{
    for (int64_t i = 0; i < p->n_units; i++)
        for (int k = 0; k < p->unit[i].node->n_in; k++)
            for (int d = 0; d < p->unit[i].node->in[k].n_axes; d++)
                if (p->unit[i].rel[k][d].along == FTH_ACCUMULATE &&
                    !fth__unit_may_join(&p->unit[i], p->unit[i].node->in[k].axis[d]))
                    return true;
    return false;
}

/* Ranks share passes, so a plan of passes may be faster even if everything fits at once. *whole: it
 * is not, and the schedule of everything at once is at hand. */
static fth_status try_shared(search *s, choice *best, bool forced, bool *whole, fth_err *err)
{
    choice plain = {.axis = {-1, -1}};
    FTH_TRY(try_depths(s, 1, false, best, err));
    s->apart = has_unjoinable(s->p);
    if (s->apart) FTH_TRY(try_depths(s, 1, false, best, err));
    s->apart = false;
    if (forced || !best->found) return FTH_OK;
    FTH_TRY(try_axes(s, &plain, err));
    *whole = plain.found && plain.cost <= best->cost;
    if (*whole) *best = plain;
    return FTH_OK;
}

/* Everything at once fits, and is laid out: take pieces where they are quicker.
 */
static fth_status quicken(search *s, choice *best, fth_err *err)
{
    fth_plan *p = s->p;
    if (!fth__plan_may_quicken(p)) return FTH_OK;
    const uint64_t whole = p->peak;
    fth__quick q = {0};
    fth_status status = fth__plan_quicken(p, &q, err);
    choice plain = *best, pieces = {.axis = {q.axis, -1}};
    bool fits = false;
    if (status == FTH_OK && q.found) {
        status = fth__grow(p->mem, &s->chunk, &s->cap_chunk, q.n_chunk, err);
        s->n_chunk = q.n_chunk;
        for (int64_t i = 0; status == FTH_OK && i < q.n_chunk; i++) s->chunk[i] = q.chunk[i];
        if (status == FTH_OK) status = rebuild(s, &pieces, &fits, err);
    }
    fth__heap_free(p->mem, q.chunk);
    if (status != FTH_OK || !q.tried) return status;
    pieces.found = true;
    if (fits && p->peak < whole)
        *best = pieces;
    else
        status = try_axes(s, &plain, err);
    return status;
}

static fth_status search_anew(search *s, choice *best, fth_err *err)
{
    fth_plan *p = s->p;
    const bool forced = p->limits.stream && p->limits.stream[0];
    const bool never = p->limits.stream && !p->limits.stream[0];
    bool whole = false;
    p->at_once = false;
    if (p->sharing && !never && p->limits.min_pieces == 0)
        FTH_TRY(try_shared(s, best, forced, &whole, err));
    if (whole) return FTH_OK;
    if (p->limits.min_pieces != 0 && !never && !best->found)
        FTH_TRY(try_depths(s, 1, false, best, err));
    if (!forced && !best->found) {
        FTH_TRY(try_axes(s, best, err));
        p->at_once = best->found;
        if (best->found) return quicken(s, best, err); /* the schedule at hand is the plan */
    }
    for (int relieved = 0; relieved < 2 && !best->found; relieved++)
        for (int depths = relieved && !forced ? 0 : 1; depths <= FTH__MAX_DEPTH && !best->found;
             depths++)
            if (depths == 0 || !never) FTH_TRY(try_depths(s, depths, relieved, best, err));
    if (!best->found && s->smallest == UINT64_MAX) { /* the axis asked for cuts nothing */
        *best = (choice){.axis = {-1, -1}, .relieved = true};
        return try_axes(s, best, err);
    }
    if (!best->found) return try_axes(s, &s->floor, err); /* for the refusal to list */
    bool tried = false;
    FTH_TRY(rebuild(s, best, &best->found, err));
    if (p->recomputed > 0) FTH_TRY(keep_values(s, best, &tried, err));
    return tried ? rebuild(s, best, &best->found, err) : FTH_OK;
}

static search new_search(fth_plan *p, uint64_t room)
{
    return (search){.p = p,
                    .room = room,
                    .smallest = UINT64_MAX,
                    .least = UINT64_MAX,
                    .floor = {.axis = {-1, -1}}};
}

/* Would a search with this room find a plan? *peak: what it needs. */
static fth_status try_room(fth_plan *p, uint64_t room, bool *found, uint64_t *peak, fth_err *err)
{
    search s = new_search(p, room);
    choice best = {.axis = {-1, -1}};
    const fth_status status = search_anew(&s, &best, err);
    fth__heap_free(p->mem, s.chunk);
    memset(p->keep, 0, sizeof *p->keep * (size_t)p->graph->n_values);
    *found = best.found;
    *peak = p->peak;
    return status;
}

/* A search finds no plan with `no` bytes and one with `yes`: where between them that begins. */
static fth_status narrow(fth_plan *p, uint64_t no, uint64_t yes, uint64_t *smallest, fth_err *err)
{
    FTH_ASSERT(no < yes);
    while (yes - no > 1) {
        const uint64_t room = no + (yes - no) / 2;
        bool found;
        uint64_t peak;
        FTH_TRY(try_room(p, room, &found, &peak, err));
        *(found ? &yes : &no) = room;
    }
    *smallest = yes;
    return FTH_OK;
}

/* The floor is what the smallest chunks were packed into. Larger ones are sometimes packed better;
 * so ask for a little less until that is refused: what is named fits, and nothing below it. */
static fth_status tighten(search *s, fth_err *err)
{
    fth_plan *p = s->p;
    bool found = true;
    if (s->least >= s->smallest) return FTH_OK;
    for (int round = 0; round < TIGHTEN_ROUNDS && s->least < s->smallest; round++) {
        const uint64_t room = s->smallest - 1;
        uint64_t peak;
        FTH_TRY(try_room(p, room, &found, &peak, err));
        if (!found) break;
        bool again;
        FTH_TRY(try_room(p, peak, &again, &s->smallest, err));
        if (!again) FTH_TRY(narrow(p, peak, room, &s->smallest, err));
    }
    return try_axes(s, &s->floor, err);
}

static fth_status find(search *s, fth_err *err)
{
    fth_plan *p = s->p;
    bool known;
    FTH_TRY(recall(s, &known, err));
    const bool held = p->foreign > p->budget; /* by the caller, and too much by itself */
    if (known && !held) return check_scratch(p, err);
    s->smallest = UINT64_MAX;
    choice best = {.axis = {-1, -1}};
    FTH_TRY(search_anew(s, &best, err));
    if (!best.found && p->sharing) { /* what ranks exchange may be what is too much */
        p->sharing = false;
        *s = (search){.p = p,
                      .room = s->room,
                      .smallest = UINT64_MAX,
                      .least = UINT64_MAX,
                      .floor = {.axis = {-1, -1}},
                      .chunk = s->chunk,
                      .cap_chunk = s->cap_chunk};
        best = (choice){.axis = {-1, -1}};
        FTH_TRY(search_anew(s, &best, err));
    }
    if (!best.found && p->draft) return FTH_FAIL(err, FTH_E_NO_FIT, "it does not fit");
    if (!best.found) {
        const uint64_t smallest = s->smallest;
        FTH_TRY(tighten(s, err));
        return fth__plan_refuse(p, s->smallest < smallest ? s->smallest : smallest, err);
    }
    if (held) return fth__plan_refuse(p, p->peak, err);
    if (p->peak > p->lower + p->lower / CLOSE) FTH_TRY(fth__plan_layout(p, true, err));
    remember(s, &best);
    return check_scratch(p, err);
}

fth_status fth__plan_search(fth_plan *p, fth_err *err)
{
    search s = new_search(p, p->budget > p->foreign ? p->budget - p->foreign : 0);
    p->key = fth__plan_key(p);
    fth_status status = find(&s, err);
    if (status == FTH_OK && p->device_memory) status = fth__plan_spread(p, err);
    if (status == FTH_OK) status = fth__plan_check_strict(p, err);
    if (status == FTH_OK) fth__plan_predict(p, p->peak);
    FTH_ASSERT(status != FTH_OK || (p->peak <= s.room && p->peak + p->foreign <= p->budget));
    if (status == FTH_OK) fth__plan_assert_layout(p);
    fth__heap_free(p->mem, s.chunk);
    return status;
}
