/* segment.c - cutting a list of units into passes over one streaming axis.
 *
 * A unit follows the axis (STREAM: makes a piece per chunk), sums it away (ACC: its result exists
 * after the pass) or has nothing to do with it (WHOLE: made once, between passes). A streamed value
 * that somebody needs whole is kept whole, and that somebody waits for the next pass. Values that
 * are streamed in one pass and needed in a later one are made again there.
 */
#include "base/assert.h"
#include "mem/heap.h"
#include "plan/plan.h"

#include <string.h>

enum { FROM_OUTSIDE = -1 };

typedef struct state {
    fth_plan *p;
    const int *units;
    int n;
    fth__segment *s;
    const fth__segment *outer; /* of the loops around */
    int n_outer;
    int *made_by; /* per value: unit of this segment that makes it, or FROM_OUTSIDE */
} state;

static bool same_map(const fth__map *a, const fth__map *b)
{
    return a->num * b->den == b->num * a->den && a->row_ptr == b->row_ptr;
}

/* An axis that a loop around already cuts stays with that loop. */
static bool taken(const state *st, fth_axis_id axis)
{
    for (int d = 0; d < st->n_outer; d++)
        if (st->outer[d].map[axis].in) return true;
    return false;
}

/* Where an axis that follows by `from` leads through a relation; false: not piece by piece. */
static bool follow(const fth__map *from, const fth_relation *r, fth__map *next)
{
    *next = *from;
    switch (r->along) {
    case FTH_SAME:
    case FTH_CARRY: return true;
    case FTH_SPREAD:
        next->row_ptr = r->row_ptr;
        next->rows = r->rows;
        return !from->row_ptr;
    case FTH_COLLECT: next->row_ptr = NULL; return from->row_ptr == r->row_ptr;
    case FTH_HALO: /* input = output * mul / div - lo, so output = (input + lo) * div / mul */
        next->num = from->num * r->div;
        next->den = from->den * r->mul;
        next->off = (from->off + (r->lo == -r->hi ? r->lo : 0)) * r->div / r->mul;
        return !from->row_ptr;
    case FTH_ACCUMULATE:
    case FTH_WHOLE: break;
    }
    return false;
}

/* The streaming axis takes along the entries of its rows. */
static void seed_maps(state *st, fth_axis_id axis)
{
    const fth_graph *g = st->p->graph;
    fth__map *map = st->s->map;
    map[axis] = (fth__map){.in = true, .num = 1, .den = 1};
    for (int64_t a = 0; a < g->n_axes; a++)
        if (g->axis[a]->row_ptr && g->axis[a]->rows == axis && !taken(st, (fth_axis_id)a))
            map[a] = (fth__map){.in = true,
                                .num = 1,
                                .den = 1,
                                .row_ptr = g->axis[a]->row_ptr,
                                .rows = g->axis[axis]->size};
}

/* Which other axes move with the streaming axis, and how: of several operands as the longest does.
 * Two ways with different scales: no. */
static bool spread_maps(state *st)
{
    fth__map *map = st->s->map;
    for (int i = 0; i < st->n; i++) {
        const fth__unit *u = &st->p->unit[st->units[i]];
        int64_t longest[FTH_MAX_AXES] = {0}; /* per output axis that this unit is the first of */
        for (int k = 0; k < u->node->n_in; k++)
            for (int d = 0; d < u->node->in[k].n_axes; d++) {
                const fth_relation *r = &u->rel[k][d];
                const fth__map *from = &map[u->node->in[k].axis[d]];
                if (r->out_dim < 0 || !from->in) continue;
                FTH_ASSERT(r->out_dim < u->node->out[0].n_axes);
                fth__map *to = &map[u->node->out[0].axis[r->out_dim]];
                fth__map next;
                if (taken(st, u->node->out[0].axis[r->out_dim]) || !follow(from, r, &next))
                    continue;
                if (to->in && !same_map(to, &next)) return false;
                int64_t *first = &longest[r->out_dim];
                const int64_t size = u->node->in[k].size[d] + 1;
                if (to->in && (*first == 0 || size <= *first)) continue;
                *to = next;
                *first = size;
            }
    }
    return true;
}

typedef struct votes {
    int stream_dim; /* dimension of out[0]; -1 */
    bool acc, carry, conflict;
    fth_axis_id summed; /* acc: the axis; -1 */
} votes;

static votes ask(const state *st, const fth__unit *u)
{
    votes v = {.stream_dim = -1, .summed = -1};
    const fth__map *map = st->s->map;
    for (int k = 0; k < u->node->n_in; k++)
        for (int d = 0; d < u->node->in[k].n_axes; d++) {
            const fth_relation *r = &u->rel[k][d];
            if (!map[u->node->in[k].axis[d]].in) continue;
            if (r->along == FTH_ACCUMULATE) {
                /* chunks of two axes at once would only meet on the diagonal */
                if (v.acc && v.summed != u->node->in[k].axis[d]) v.conflict = true;
                v.acc = true;
                v.summed = u->node->in[k].axis[d];
            }
            if (r->along == FTH_CARRY) v.carry = true;
            if (r->out_dim < 0) continue;
            fth__map next;
            if (!map[u->node->out[0].axis[r->out_dim]].in ||
                !follow(&map[u->node->in[k].axis[d]], r, &next))
                v.conflict = true;
            if (v.stream_dim >= 0 && v.stream_dim != r->out_dim) v.conflict = true;
            v.stream_dim = r->out_dim;
        }
    /* an output axis that no input has */
    const fth_desc *o = &u->node->out[0];
    for (int d = 0; v.stream_dim < 0 && !v.acc && d < o->n_axes; d++) {
        bool related = false;
        for (int k = 0; k < u->node->n_in; k++)
            for (int e = 0; e < u->node->in[k].n_axes; e++) related |= u->rel[k][e].out_dim == d;
        if (map[o->axis[d]].in && !related && (u->node->op->flags & FTH_OP_FREE_AXES))
            v.stream_dim = d;
    }
    if (v.acc && v.stream_dim >= 0) v.conflict = true;
    return v;
}

static int max_int(int a, int b)
{
    return a > b ? a : b;
}

/* A part of the operand is needed when quite another one is at hand, as of the ends of an axis that
 * are copied to its other side: in one pass more of what it is made of would wait than it has. */
static bool is_far(const fth__segment *s, const fth__unit *u, int k, int d)
{
    const fth_relation *r = &u->rel[k][d];
    fth__map at;
    if (r->along != FTH_HALO || r->out_dim < 0 || !follow(&s->map[u->node->in[k].axis[d]], r, &at))
        return false;
    const fth__map *to = &s->map[u->node->out[0].axis[r->out_dim]];
    const int64_t by = (to->off - at.off) * r->mul / r->div;
    return to->in && !to->row_ptr && (by < 0 ? -by : by) >= 2 * u->node->in[k].size[d];
}

/* First pass in which input k of u can be used; marks what must be whole. */
static int input_pass(state *st, const fth__unit *u, int k, bool streamed)
{
    const uint32_t id = u->node->in_val[k].id;
    const int maker = st->made_by[id];
    if (maker == FROM_OUTSIDE) return 0;
    const fth__segment *s = st->s;
    const fth__role role = s->role[maker];
    if (role == FTH__ROLE_WHOLE) return s->pass[maker];
    if (role == FTH__ROLE_ACC) return s->pass[maker] + 1;
    bool piecewise = false, whole = !streamed;
    for (int d = 0; d < u->node->in[k].n_axes; d++) {
        const fth_relation *r = &u->rel[k][d];
        if (!s->map[u->node->in[k].axis[d]].in) continue;
        if (r->along == FTH_WHOLE || is_far(s, u, k, d))
            whole = true;
        else
            piecewise = true;
    }
    if (!whole && piecewise) return s->pass[maker];
    st->s->whole[id] = true;
    return s->pass[maker] + 1;
}

static int64_t unit_grid(const fth__unit *u, int in, int dim)
{
    const int64_t g = u->node->op->grid ? u->node->op->grid(u->node, in, dim) : 1;
    return g > 0 ? g : 1;
}

static int64_t gcd(int64_t a, int64_t b)
{
    while (b) {
        const int64_t t = a % b;
        a = b;
        b = t;
    }
    return a;
}

/* The chunk, counted on the driver, must give whole grid blocks on every axis that follows. */
static bool use_grid(fth__segment *s, const fth__map *m, int64_t grid)
{
    FTH_ASSERT(m->in && m->num >= 1 && m->den >= 1 && grid >= 1 && s->grid >= 1);
    /* need chunk * num / den to be a multiple of grid */
    if (m->row_ptr) grid = 1; /* of the rows; entries have no other (off_grid) */
    const int64_t want = grid * m->den, unit = want / gcd(want, m->num);
    const int64_t lcm = s->grid / gcd(s->grid, unit) * unit;
    if (lcm > ((int64_t)1 << 40)) return false; /* no axis is as long, and products still fit */
    FTH_ASSERT(lcm % unit == 0 && lcm % s->grid == 0);
    s->grid = lcm;
    return true;
}

/* No chunk of the driver gives whole grid blocks of this axis: it is one block, or shifted, or of
 * rows that end anywhere. */
static bool off_grid(const fth__map *m, int64_t grid, int64_t size)
{
    return (grid > 1 && grid >= size) || m->off % grid != 0 || (m->row_ptr && grid > 1);
}

/* A unit whose grid covers the whole axis cannot be cut along it: it stays out of the loop, rather
 * than force one chunk on everything else. */
static bool uncuttable(const fth__unit *u, const fth__segment *s, int stream_dim)
{
    const fth_node *n = u->node;
    if (stream_dim >= 0 && off_grid(&s->map[n->out[0].axis[stream_dim]],
                                    unit_grid(u, -1, stream_dim), n->out[0].size[stream_dim]))
        return true;
    for (int k = 0; k < n->n_in; k++)
        for (int d = 0; d < n->in[k].n_axes; d++) {
            const fth_along along = u->rel[k][d].along;
            const bool ordered = along == FTH_ACCUMULATE || along == FTH_CARRY;
            const fth__map *m = &s->map[n->in[k].axis[d]];
            if (ordered && m->in && off_grid(m, unit_grid(u, k, d), n->in[k].size[d])) return true;
        }
    return false;
}

/* A sum that ranks cannot join would have each of them do the whole pass. */
static bool waits_apart(const state *st, const fth__unit *u, const votes *v)
{
    return st->p->apart && st->n_outer == 0 && v->acc && !fth__unit_may_join(u, v->summed);
}

static bool classify(state *st)
{
    fth__segment *s = st->s;
    for (int i = 0; i < st->n; i++) {
        const int ui = st->units[i];
        const fth__unit *u = &st->p->unit[ui];
        const votes v = ask(st, u);
        const bool waits = (u->update && !(st->p->joined && u->joins)) || waits_apart(st, u, &v);
        const bool follows = !waits && !v.conflict && (v.acc || v.stream_dim >= 0) &&
                             !uncuttable(u, s, v.acc ? -1 : v.stream_dim);
        s->role[ui] = !follows ? FTH__ROLE_WHOLE : v.acc ? FTH__ROLE_ACC : FTH__ROLE_STREAM;
        s->sdim[ui] = (int8_t)(follows && !v.acc ? v.stream_dim : -1);
        s->carry[ui] = (int8_t)(follows && v.carry);
        int pass = 0;
        for (int k = 0; k < u->node->n_in; k++) pass = max_int(pass, input_pass(st, u, k, follows));
        s->pass[ui] = pass;
        if (follows) s->n_pass = max_int(s->n_pass, pass + 1);
        for (int o = 0; o < u->node->n_out; o++) st->made_by[u->node->out_val[o].id] = ui;
        if (!follows) continue;
        bool ok = true;
        if (s->sdim[ui] >= 0)
            ok = use_grid(s, &s->map[u->node->out[0].axis[s->sdim[ui]]],
                          unit_grid(u, -1, s->sdim[ui]));
        for (int k = 0; ok && k < u->node->n_in; k++)
            for (int d = 0; ok && d < u->node->in[k].n_axes; d++) {
                const fth__map *m = &s->map[u->node->in[k].axis[d]];
                if (m->in &&
                    (u->rel[k][d].along == FTH_ACCUMULATE || u->rel[k][d].along == FTH_CARRY))
                    ok = use_grid(s, m, unit_grid(u, k, d));
                else if (m->in)
                    ok = use_grid(s, m, 1);
            }
        if (!ok) return false;
    }
    return true;
}

/* Updates that are cut have a pass of their own, the last: what else is done in it makes their
 * gradients, so that it can wait until nothing fails any more. */
static void part_updates(state *st)
{
    fth__segment *s = st->s;
    const int last = s->n_pass;
    for (int i = 0; i < st->n; i++) {
        const int ui = st->units[i];
        if (!st->p->unit[ui].update || s->role[ui] != FTH__ROLE_STREAM) continue;
        s->pass[ui] = last;
        s->n_pass = last + 1;
    }
}

/* A WHOLE unit may wait until just before the first pass (or the end) that needs it: its result
 * then lives shorter. Units are visited last first, so readers are placed before what they read,
 * and each tells those it reads from. */
static void delay_whole(state *st, int *latest)
{
    fth__segment *s = st->s;
    for (int i = 0; i < st->n; i++) latest[st->units[i]] = s->n_pass;
    for (int i = st->n - 1; i >= 0; i--) {
        const int ui = st->units[i];
        const fth_node *n = st->p->unit[ui].node;
        if (s->role[ui] == FTH__ROLE_WHOLE) s->pass[ui] = max_int(s->pass[ui], latest[ui]);
        for (int k = 0; k < n->n_in; k++) {
            const int from = st->made_by[n->in_val[k].id];
            FTH_ASSERT(from == FROM_OUTSIDE || (from < ui && s->pass[from] <= s->pass[ui]));
            if (from != FROM_OUTSIDE && s->pass[ui] < latest[from]) latest[from] = s->pass[ui];
        }
    }
}

fth_status fth__segment_make(fth_plan *p, const int *units, int n, fth_axis_id axis,
                             const fth__segment *outer, int n_outer, fth__segment *s, bool *useful,
                             fth_err *err)
{
    const fth_graph *g = p->graph;
    memset(s, 0, sizeof *s);
    s->grid = 1;
    *useful = false;
    state st = {.p = p, .units = units, .n = n, .s = s, .outer = outer, .n_outer = n_outer};
    FTH_TRY(fth__heap_take(p->mem, g->n_axes + 1, sizeof *s->map, (void **)&s->map, err));
    FTH_TRY(fth__heap_take(p->mem, p->n_units + 1, sizeof *s->role, (void **)&s->role, err));
    FTH_TRY(fth__heap_take(p->mem, p->n_units + 1, sizeof *s->pass, (void **)&s->pass, err));
    FTH_TRY(fth__heap_take(p->mem, p->n_units + 1, sizeof *s->sdim, (void **)&s->sdim, err));
    FTH_TRY(fth__heap_take(p->mem, p->n_units + 1, sizeof *s->carry, (void **)&s->carry, err));
    FTH_TRY(fth__heap_take(p->mem, g->n_values, sizeof *s->whole, (void **)&s->whole, err));
    FTH_TRY(fth__heap_take(p->mem, g->n_values + p->n_units, sizeof *st.made_by,
                           (void **)&st.made_by, err)); /* and, behind it, room per unit */
    for (int64_t i = 0; i < g->n_values; i++) st.made_by[i] = FROM_OUTSIDE;
    seed_maps(&st, axis);
    if (!taken(&st, axis) && spread_maps(&st) && classify(&st)) {
        part_updates(&st);
        delay_whole(&st, st.made_by + g->n_values);
        *useful = s->n_pass > 0;
        for (int i = 0; i < n; i++)
            FTH_ASSERT(s->pass[units[i]] >= 0 && s->pass[units[i]] <= s->n_pass);
    }
    fth__heap_free(p->mem, st.made_by);
    return FTH_OK;
}

void fth__segment_clear(fth_plan *p, fth__segment *s)
{
    fth__heap_free(p->mem, s->map);
    fth__heap_free(p->mem, s->role);
    fth__heap_free(p->mem, s->pass);
    fth__heap_free(p->mem, s->sdim);
    fth__heap_free(p->mem, s->carry);
    fth__heap_free(p->mem, s->whole);
    memset(s, 0, sizeof *s);
}
