/* size.c - how much of everything an iteration needs: halos, extents, bytes, workspace.
 *
 * Steps are visited last first: what a reader needs beyond its own part widens the step that makes
 * it. Regions are affine in the chunk number but for the places where they are clipped, so a few
 * chunks stand for all.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "mem/heap.h"
#include "plan/plan.h"

#include <string.h>

/* The buffer behind views, and the region of it that a region of the view means. */
static const fth__buf *behind_views(const fth_plan *p, const fth__buf *b, fth__range *r)
{
    while (b->kind == FTH__BUF_VIEW) {
        FTH_ASSERT(b->unit >= 0 && b->unit < p->n_units && b->base >= 0 && b->base < p->n_bufs);
        const fth__unit *u = &p->unit[b->unit];
        fth__range in[FTH_MAX_AXES];
        for (int d = 0; d < u->node->in[0].n_axes; d++) {
            const fth_relation *rel = &u->rel[0][d];
            in[d] = (fth__range){0, u->node->in[0].size[d]};
            if (rel->out_dim >= 0)
                in[d] = fth__relation_need(rel, r[rel->out_dim], u->node->in[0].size[d]);
        }
        memcpy(r, in, sizeof in);
        b = &p->buf[b->base];
    }
    return b;
}

static int64_t out_grid(const fth__unit *u, int dim)
{
    const int64_t g = u->node->op->grid ? u->node->op->grid(u->node, -1, dim) : 1;
    return g > 0 ? g : 1;
}

/* What a step makes, and the state it carries, are as wide as the step. */
static void widen_spans(fth_plan *p, const fth__item *it, int buf, const fth__sweep *l)
{
    for (int s = 0; buf >= 0 && s < p->buf[buf].n_span; s++) {
        fth__span *span = &p->buf[buf].span[s];
        if (&p->loop[span->loop] != l) continue;
        span->lo = it->halo_lo[l->depth];
        span->hi = it->halo_hi[l->depth];
    }
}

/* Entries of rows come with their chunk: how many more a neighbour's row has is not one number. */
static fth_status refuse_entries(const fth_plan *p, const fth__sweep *l, fth_axis_id axis,
                                 fth_err *err)
{
    if (!l->map[axis].row_ptr) return FTH_OK;
    return FTH_FAIL(err, FTH_E_NO_FIT, "entries along '%s' are read beyond their chunk of '%s'",
                    p->graph->axis[axis]->name, p->graph->axis[l->axis]->name);
}

/* Widen whoever fills `b` so that it covers `need` of dimension dim in iteration k of loop l. */
static fth_status widen(fth_plan *p, fth__buf *b, const fth__sweep *l, int64_t k, int dim,
                        fth__range need, fth_err *err)
{
    FTH_ASSERT(dim < b->desc.n_axes && b->kind != FTH__BUF_VIEW);
    if (need.lo >= need.hi) return FTH_OK;
    const fth__range part = fth__sweep_part(l, b->desc.axis[dim], b->desc.size[dim], k);
    int64_t lo = fth__max_i64(part.lo - need.lo, 0), hi = fth__max_i64(need.hi - part.hi, 0);
    if (lo == 0 && hi == 0) return FTH_OK;
    const int made = b->maker;
    if (made >= 0) {
        fth__item *it = &p->item[made];
        const int sdim = it->sdim[l->depth];
        int path[FTH__MAX_DEPTH];
        const bool inside =
            fth__sweep_path(p, it->loop, path) > l->depth && &p->loop[path[l->depth]] == l;
        if (!inside || sdim < 0) return FTH_OK; /* whole before the loop began */
        FTH_TRY(refuse_entries(p, l, b->desc.axis[dim], err));
        if (it->acc >= 0 && it->acc <= l->depth)
            return FTH_FAIL(err, FTH_E_NO_FIT,
                            "a running value along '%s' is read beyond its chunk",
                            p->graph->axis[l->axis]->name);
        const int64_t grid = out_grid(&p->unit[it->unit], sdim);
        lo = fth__ceil_div_i64(lo, grid) * grid;
        hi = fth__ceil_div_i64(hi, grid) * grid;
        it->halo_lo[l->depth] = fth__max_i64(it->halo_lo[l->depth], lo);
        it->halo_hi[l->depth] = fth__max_i64(it->halo_hi[l->depth], hi);
        for (int o = 0; o < p->unit[it->unit].node->n_out; o++) {
            widen_spans(p, it, it->out[o], l);
            widen_spans(p, it, it->state[o], l);
        }
        return FTH_OK;
    }
    for (int s = 0; s < b->n_span; s++)
        if (&p->loop[b->span[s].loop] == l) {
            FTH_TRY(refuse_entries(p, l, b->desc.axis[dim], err));
            b->span[s].lo = fth__max_i64(b->span[s].lo, lo);
            b->span[s].hi = fth__max_i64(b->span[s].hi, hi);
        }
    return FTH_OK;
}

/* Dimension of a buffer that dimension d of the storage behind it is, unchanged and under the same
 * name; -1. */
static int seen_as(const fth_plan *p, const fth__buf *b, int d)
{
    if (b->kind != FTH__BUF_VIEW) return d;
    const int up = seen_as(p, &p->buf[b->base], d);
    const fth__unit *u = &p->unit[b->unit];
    const int dim = up < 0 || u->rel[0][up].along != FTH_SAME ? -1 : u->rel[0][up].out_dim;
    return dim >= 0 && b->desc.axis[dim] == u->node->in[0].axis[up] ? dim : -1;
}

/* The step reads of every axis that follows the loop at depth i just the loop's own part: then no
 * iteration of it widens anything, and none has to be looked at. */
static bool stays_in_part(const fth_plan *p, const fth__item *it, const fth__sweep *l, int i)
{
    const fth__unit *u = &p->unit[it->unit];
    if (it->halo_lo[i] > 0 || it->halo_hi[i] > 0) return false;
    for (int k = 0; k < u->node->n_in; k++) {
        const fth__buf *b = &p->buf[fth__buf_storage(p, it->in[k])];
        for (int d = 0; d < b->desc.n_axes; d++) {
            if (!l->map[b->desc.axis[d]].in) continue;
            const int dim = seen_as(p, &p->buf[it->in[k]], d);
            if (dim < 0) return false;
            const fth_relation *r = &u->rel[k][dim];
            if (r->along == FTH_ACCUMULATE && it->acc == i) continue;
            const bool same = r->along == FTH_SAME || r->along == FTH_CARRY;
            if (!same || r->out_dim < 0 || r->out_dim != it->sdim[i] ||
                u->node->out[0].axis[r->out_dim] != b->desc.axis[d])
                return false;
            for (int j = 0; j < FTH__MAX_DEPTH; j++) /* or another loop says what part it is */
                if (j != i && it->sdim[j] == r->out_dim) return false;
        }
    }
    return true;
}

/* Where the region that a step makes is clipped: its axis begins and ends, and so does what its
 * halo adds. */
static int add_region(const fth_plan *p, const fth__item *it, const fth__sweep *l, int64_t *list,
                      int count)
{
    const int dim = it->sdim[l->depth];
    if (dim < 0) return count;
    const fth_desc *d = &p->unit[it->unit].node->out[0];
    const int64_t lo = it->halo_lo[l->depth], hi = it->halo_hi[l->depth];
    count = fth__sweep_add_axis(p, l, d->axis[dim], list, count);
    if (lo > 0) count = fth__sweep_add_place(l, d->axis[dim], lo, list, count);
    if (hi > 0) count = fth__sweep_add_place(l, d->axis[dim], d->size[dim] - hi, list, count);
    return count;
}

/* Chunks that stand for all of what the step needs of input k, in storage b. */
static int need_samples(const fth_plan *p, const fth__item *it, const fth__sweep *l, int k,
                        const fth__buf *b, int64_t *list)
{
    const fth_node *n = p->unit[it->unit].node;
    const int dim = it->sdim[l->depth];
    const int64_t lo = it->halo_lo[l->depth], hi = it->halo_hi[l->depth];
    int count = add_region(p, it, l, list, fth__sweep_ends(l, list));
    for (int d = 0; d < b->desc.n_axes; d++)
        count = fth__sweep_add_axis(p, l, b->desc.axis[d], list, count);
    for (int d = 0; d < n->in[k].n_axes; d++) {
        const fth_relation *r = &p->unit[it->unit].rel[k][d];
        count = fth__sweep_add_axis(p, l, n->in[k].axis[d], list, count);
        if (r->along != FTH_HALO || r->out_dim != dim) continue;
        /* places of the output where what is needed reaches an end of the input */
        const fth_axis_id axis = n->out[0].axis[dim];
        const int64_t size = n->in[k].size[d];
        const int64_t ends[4] = {
            r->lo * r->div / r->mul + lo, (size + r->lo) * r->div / r->mul + lo,
            -r->hi * r->div / r->mul - hi, (size - r->hi) * r->div / r->mul - hi};
        for (int e = 0; e < 4; e++) count = fth__sweep_add_place(l, axis, ends[e], list, count);
    }
    return count;
}

static fth_status widen_input(fth_plan *p, const fth__item *it, const fth__sweep *l, int k,
                              fth_err *err)
{
    const int i = l->depth;
    fth__buf *b = &p->buf[fth__buf_storage(p, it->in[k])];
    int64_t sample[FTH__SAMPLES];
    const int count = need_samples(p, it, l, k, b, sample);
    FTH_ASSERT(count >= 1 && count <= FTH__SAMPLES);
    for (int c = 0; c < count; c++) {
        int64_t iteration[FTH__MAX_DEPTH] = {0};
        iteration[i] = sample[c];
        fth__range out[FTH_MAX_AXES], in[FTH_MAX_AXES];
        fth__item_region(p, it, iteration, out);
        fth__item_need(p, it, iteration, out, k, in);
        (void)behind_views(p, &p->buf[it->in[k]], in);
        for (int d = 0; d < b->desc.n_axes; d++)
            if (l->map[b->desc.axis[d]].in) FTH_TRY(widen(p, b, l, iteration[i], d, in[d], err));
    }
    return FTH_OK;
}

static fth_status widen_inputs(fth_plan *p, int item, fth_err *err)
{
    const fth__item *it = &p->item[item];
    const fth_node *n = p->unit[it->unit].node;
    int path[FTH__MAX_DEPTH];
    const int depth = fth__sweep_path(p, it->loop, path);
    for (int i = 0; i < depth; i++) {
        const fth__sweep *l = &p->loop[path[i]];
        if (stays_in_part(p, it, l, i)) continue;
        for (int k = 0; k < n->n_in; k++) FTH_TRY(widen_input(p, it, l, k, err));
    }
    return FTH_OK;
}

static void size_buf(fth_plan *p, fth__buf *b)
{
    b->bytes = 0;
    for (int d = 0; d < b->desc.n_axes; d++) b->extent[d] = b->desc.size[d];
    if (b->kind != FTH__BUF_ARENA) return;
    for (int s = 0; s < b->n_span; s++) {
        const fth__sweep *l = &p->loop[b->span[s].loop];
        const int dim = b->span[s].dim;
        const fth_axis_id axis = b->desc.axis[dim];
        int64_t sample[FTH__SAMPLES], most = 0;
        int count = fth__sweep_add_axis(p, l, axis, sample, fth__sweep_ends(l, sample));
        count = fth__sweep_add_place(l, axis, b->span[s].lo, sample, count);
        count = fth__sweep_add_place(l, axis, b->desc.size[dim] - b->span[s].hi, sample, count);
        for (int c = 0; c < count; c++) {
            int64_t iteration[FTH__MAX_DEPTH] = {0};
            fth__range r[FTH_MAX_AXES];
            iteration[l->depth] = sample[c];
            fth__buf_region(p, b, iteration, r);
            most = fth__max_i64(most, r[dim].hi - r[dim].lo);
        }
        FTH_ASSERT(most <= b->desc.size[dim]);
        b->extent[dim] = most;
    }
    uint64_t bytes = (uint64_t)b->element;
    for (int d = 0; d < b->desc.n_axes; d++) bytes *= (uint64_t)b->extent[d];
    b->bytes = (bytes + FTH__ALIGN - 1) / FTH__ALIGN * FTH__ALIGN;
}

void fth__item_shape(const fth_plan *p, const fth__item *it, const int64_t *iteration,
                     fth_call *call)
{
    const fth_node *n = p->unit[it->unit].node;
    fth__range out[FTH_MAX_AXES], in[FTH_MAX_AXES];
    memset(call, 0, sizeof *call);
    call->node = n;
    call->threads = 1;
    call->first = call->last = true;
    fth__item_region(p, it, iteration, out);
    for (int o = 0; o < n->n_out; o++)
        for (int d = 0; d < n->out[o].n_axes; d++) {
            const int same = fth_desc_find(&n->out[0], n->out[o].axis[d]);
            const fth__range r = same >= 0 ? out[same] : (fth__range){0, n->out[o].size[d]};
            call->out[o].origin[d] = r.lo;
            call->out[o].extent[d] = r.hi - r.lo;
            call->state[o].extent[d] =
                same >= 0 && same == it->acc_dim ? 1 : call->out[o].extent[d];
        }
    for (int k = 0; k < n->n_in; k++) {
        fth__item_need(p, it, iteration, out, k, in);
        for (int d = 0; d < n->in[k].n_axes; d++) {
            call->in[k].origin[d] = in[d].lo;
            call->in[k].extent[d] = in[d].hi - in[d].lo;
        }
    }
}

static uint64_t count_moved(const fth_node *n)
{
    uint64_t bytes = 0;
    for (int k = 0; k < n->n_in; k++)
        bytes += (uint64_t)fth_desc_count(&n->in[k]) * (uint64_t)fth_dtype_size(n->in[k].dtype);
    for (int o = 0; o < n->n_out; o++)
        bytes += (uint64_t)fth_desc_count(&n->out[o]) * (uint64_t)fth_dtype_size(n->out[o].dtype);
    return bytes;
}

static uint64_t scratch_at(fth_plan *p, fth__item *it, const int64_t *iteration)
{
    fth_call call;
    fth__item_shape(p, it, iteration, &call);
    return fth__item_split(p, it, &call);
}

/* Chunks whose calls differ in shape: the first, the middle and the last, and more when an axis is
 * shifted against the loop or the step has a halo. */
static int shape_samples(const fth_plan *p, const fth__item *it, const fth__sweep *l, int64_t *list)
{
    const bool halo = it->halo_lo[l->depth] > 0 || it->halo_hi[l->depth] > 0;
    if (l->n_chunks <= 8 || halo || !fth__sweep_is_even(p, l))
        return add_region(p, it, l, list, fth__sweep_samples(p, l, list));
    list[0] = 0;
    list[1] = l->n_chunks / 2;
    list[2] = l->n_chunks - 1;
    return 3;
}

/* Whether a tile of the step has entries of rows that one of the loops cuts. */
static bool has_entries(const fth_plan *p, const fth__item *it)
{
    const fth_node *n = p->unit[it->unit].node;
    bool any = false;
    for (int l = it->loop; l >= 0; l = p->loop[l].parent)
        for (int k = 0; p->loop[l].ragged && k < n->n_in + n->n_out; k++) {
            const fth_desc *d = k < n->n_in ? &n->in[k] : &n->out[k - n->n_in];
            for (int i = 0; i < d->n_axes; i++) any |= p->loop[l].map[d->axis[i]].row_ptr != NULL;
        }
    return any;
}

static void widen_tile(fth_tile *t, const fth_tile *other)
{
    for (int d = 0; d < FTH_MAX_AXES; d++)
        if (other->extent[d] > t->extent[d]) t->extent[d] = other->extent[d];
}

/* Iterations differ in size, so how to cut the step is decided once, for a call that is at least as
 * large as each of them; workspace of smaller pieces is no larger. */
static void cover_call(fth_call *most, const fth_call *call)
{
    for (int k = 0; k < call->node->n_in; k++) widen_tile(&most->in[k], &call->in[k]);
    for (int o = 0; o < call->node->n_out; o++) {
        widen_tile(&most->out[o], &call->out[o]);
        widen_tile(&most->state[o], &call->state[o]);
    }
}

enum { SHAPES = 4, SHAPE = (FTH_MAX_IN + 1) * FTH_MAX_AXES };
typedef struct shapes {
    int n;
    int64_t extent[SHAPES][SHAPE]; /* of output 0 and of the inputs */
} shapes;

/* Workspace follows from extents: iterations of a shape that was asked before need not be asked. */
static bool asked_before(const fth_plan *p, const fth__item *it, const int64_t *iteration,
                         shapes *s)
{
    const fth_node *n = p->unit[it->unit].node;
    fth__range out[FTH_MAX_AXES], in[FTH_MAX_AXES];
    int64_t *to = s->extent[s->n];
    int len = 0;
    fth__item_region(p, it, iteration, out);
    for (int d = 0; d < n->out[0].n_axes; d++) to[len++] = out[d].hi - out[d].lo;
    for (int k = 0; k < n->n_in; k++) {
        fth__item_need(p, it, iteration, out, k, in);
        for (int d = 0; d < n->in[k].n_axes; d++) to[len++] = in[d].hi - in[d].lo;
    }
    FTH_ASSERT(len <= SHAPE && s->n < SHAPES);
    for (int i = 0; i < s->n; i++)
        if (memcmp(s->extent[i], to, sizeof *to * (size_t)len) == 0) return true;
    s->n += s->n < SHAPES - 1;
    return false;
}

typedef struct samples {
    int count[FTH__MAX_DEPTH];
    int64_t iteration[FTH__MAX_DEPTH][FTH__SAMPLES];
} samples;

/* Rows at the ends of a chunk that have no entries are not asked for, so the iterations that were
 * sampled may all have fewer rows than another one. */
static void cover_rows(const fth_plan *p, const fth__item *it, fth_call *most)
{
    const fth_node *n = p->unit[it->unit].node;
    for (int l = it->loop; l >= 0; l = p->loop[l].parent)
        for (int k = 0; p->loop[l].ragged && k < n->n_in; k++)
            for (int d = 0; d < n->in[k].n_axes; d++) {
                if (n->in[k].axis[d] != p->loop[l].axis) continue;
                const int64_t rows = fth__min_i64(p->loop[l].chunk, n->in[k].size[d]);
                most->in[k].extent[d] = fth__max_i64(most->in[k].extent[d], rows);
            }
}

/* Workspace for a call that covers every iteration. */
static uint64_t cover_scratch(fth_plan *p, fth__item *it, const samples *s)
{
    fth_call cover = {0}, call;
    for (int a = 0; a < s->count[0]; a++)
        for (int b = 0; b < s->count[1]; b++) {
            const int64_t iteration[FTH__MAX_DEPTH] = {s->iteration[0][a], s->iteration[1][b]};
            fth__item_shape(p, it, iteration, &call);
            if (a + b == 0) cover = call;
            cover_call(&cover, &call);
        }
    cover_rows(p, it, &cover);
    return fth__item_split(p, it, &cover);
}

/* The most workspace that any kind of iteration needs. */
static uint64_t step_scratch(fth_plan *p, fth__item *it)
{
    int path[FTH__MAX_DEPTH];
    const int depth = fth__sweep_path(p, it->loop, path);
    samples s;
    uint64_t most = 0;
    it->split_fixed = has_entries(p, it);
    for (int i = 0; i < FTH__MAX_DEPTH; i++) {
        s.count[i] = 1;
        s.iteration[i][0] = 0;
        if (i >= depth) continue;
        const fth__sweep *l = &p->loop[path[i]];
        s.count[i] = it->split_fixed ? fth__sweep_samples(p, l, s.iteration[i])
                                     : shape_samples(p, it, l, s.iteration[i]);
    }
    if (it->split_fixed) return cover_scratch(p, it, &s);
    shapes seen;
    seen.n = 0;
    for (int a = 0; a < s.count[0]; a++)
        for (int b = 0; b < s.count[1]; b++) {
            const int64_t iteration[FTH__MAX_DEPTH] = {s.iteration[0][a], s.iteration[1][b]};
            if (asked_before(p, it, iteration, &seen)) continue;
            const uint64_t bytes = scratch_at(p, it, iteration);
            if (bytes > most) most = bytes;
        }
    return most;
}

static void size_step(fth_plan *p, fth__item *it)
{
    const fth_node *n = p->unit[it->unit].node;
    const uint64_t scratch = step_scratch(p, it);
    if (it->scratch >= 0)
        p->buf[it->scratch].bytes = (scratch + FTH__ALIGN - 1) / FTH__ALIGN * FTH__ALIGN;
    if (it->moved > 0) return; /* work does not depend on the chunks */
    fth_call whole = {.node = n, .threads = 1};
    for (int o = 0; o < n->n_out; o++)
        for (int d = 0; d < n->out[o].n_axes; d++) whole.out[o].extent[d] = n->out[o].size[d];
    for (int k = 0; k < n->n_in; k++)
        for (int d = 0; d < n->in[k].n_axes; d++) whole.in[k].extent[d] = n->in[k].size[d];
    it->flops = fth__unit_flops(&p->unit[it->unit], &whole);
    it->moved = count_moved(n);
}

/* Who fills and who reads each buffer. */
static void find_makers(fth_plan *p)
{
    for (int64_t i = 0; i < p->n_bufs; i++) {
        p->buf[i].maker = -1;
        p->buf[i].read = p->buf[i].output >= 0;
    }
    for (int64_t t = 0; t < p->n_items; t++) {
        const fth__item *it = &p->item[t];
        for (int o = 0; it->kind == FTH__STEP && o < FTH_MAX_OUT && it->out[o] >= 0; o++) {
            FTH_ASSERT(it->out[o] < p->n_bufs && p->buf[it->out[o]].kind != FTH__BUF_VIEW);
            p->buf[it->out[o]].maker = (int)t;
        }
        for (int k = 0; k < FTH_MAX_IN && it->in[k] >= 0; k++) {
            int b = it->in[k];
            for (; p->buf[b].kind == FTH__BUF_VIEW; b = p->buf[b].base) p->buf[b].read = true;
            p->buf[b].read = true;
        }
    }
}

fth_status fth__plan_retime(fth_plan *p, fth_err *err)
{
    FTH_TRY(fth__grow(p->mem, &p->live, &p->cap_live, p->n_items + 2, err));
    find_makers(p);
    fth__plan_lifetimes(p);
    return FTH_OK;
}

fth_status fth__plan_size(fth_plan *p, fth_err *err)
{
    FTH_TRY(fth__grow(p->mem, &p->live, &p->cap_live, p->n_items + 2, err));
    find_makers(p);
    for (int64_t i = 0; i < p->n_items; i++)
        for (int d = 0; d < FTH__MAX_DEPTH; d++) p->item[i].halo_lo[d] = p->item[i].halo_hi[d] = 0;
    for (int64_t i = 0; i < p->n_bufs; i++)
        for (int s = 0; s < p->buf[i].n_span; s++) p->buf[i].span[s].lo = p->buf[i].span[s].hi = 0;
    if (p->n_loops > 0)
        for (int64_t i = p->n_items - 1; i >= 0; i--)
            if (p->item[i].kind == FTH__STEP) FTH_TRY(widen_inputs(p, (int)i, err));
    for (int64_t i = 0; i < p->n_bufs; i++) size_buf(p, &p->buf[i]);
    for (int64_t i = 0; i < p->n_items; i++)
        if (p->item[i].kind == FTH__STEP) size_step(p, &p->item[i]);
    fth__plan_size_shares(p);
    fth__plan_lifetimes(p);
    return FTH_OK;
}
