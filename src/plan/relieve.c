/* relieve.c - making room at the busiest moment without changing what is computed.
 *
 * A whole block that is alive at that moment but not used around it can be given up in between:
 * an input is read again, a cheap result is made again, anything else goes to the scratch file and
 * comes back. Each such gap turns one buffer into two; the second starts just before its next use.
 */
#include "base/assert.h"
#include "mem/heap.h"
#include "plan/plan.h"

#include <string.h>

typedef enum way { READ_AGAIN, MAKE_AGAIN, SPILL, NO_WAY } way;

typedef struct gap {
    int buf;
    int64_t last, next; /* items at level 0: last use before the moment, first use after it */
    way how;
} gap;

static uint64_t bytes_of(const fth__buf *b)
{
    return b->double_buffered ? 2 * b->bytes : b->bytes;
}

static bool uses(const fth_plan *p, const fth__item *it, int buf)
{
    for (int k = 0; k < FTH_MAX_IN && it->in[k] >= 0; k++)
        if (fth__buf_storage(p, it->in[k]) == buf) return true;
    for (int o = 0; o < FTH_MAX_OUT && it->out[o] >= 0; o++)
        if (fth__buf_storage(p, it->out[o]) == buf || it->state[o] == buf) return true;
    return false;
}

/* The step carries this buffer along; any, with buf -1. */
static bool carries(const fth__item *it, int buf)
{
    for (int o = 0; o < FTH_MAX_OUT && it->out[o] >= 0; o++)
        if (it->state[o] >= 0 && (buf < 0 || it->state[o] == buf)) return true;
    return false;
}

/* First and last item of the outermost loop around item t, or t itself. The end is one moment:
 * nothing there may fail, and every assigned value is there when the first parameter changes. */
static void level_zero(const fth_plan *p, int64_t t, int64_t *from, int64_t *to)
{
    int l = p->item[t].loop;
    *from = *to = t;
    if (t >= p->late) {
        *from = p->late;
        *to = p->n_items - 1;
        return;
    }
    while (l >= 0) {
        *from = p->loop[l].begin;
        *to = p->loop[l].end;
        l = p->loop[l].parent;
    }
}

/* The item that fills a whole buffer; -1 when several iterations of a loop do. */
static int64_t filler(const fth_plan *p, int buf)
{
    for (int64_t t = 0; t < p->n_items; t++)
        for (int o = 0; o < FTH_MAX_OUT; o++)
            if (p->item[t].out[o] == buf) return p->item[t].loop < 0 ? t : -1;
    return -1;
}

/* Making it again must not keep more alive than it frees; what it keeps is less than a quarter of
 * that, so that a gap is a clear gain. */
static bool cheap_again(const fth_plan *p, int64_t made, int64_t at, int64_t next,
                        const fth__buf *b)
{
    if (made < 0 || p->item[made].kind != FTH__STEP || carries(&p->item[made], -1)) return false;
    const fth_node *n = p->unit[p->item[made].unit].node;
    if (n->n_out != 1 || !((n->op->flags & FTH_OP_CHEAP) || n->op == &fth__op_fused)) return false;
    uint64_t kept = 0;
    for (int k = 0; k < n->n_in; k++) {
        const fth__buf *in = &p->buf[fth__buf_storage(p, p->item[made].in[k])];
        if (in->kind == FTH__BUF_ARENA && (in->t1 < next || in->t1 < at)) kept += bytes_of(in);
        if (in->kind == FTH__BUF_ARENA && in->double_buffered) return false;
    }
    return kept < bytes_of(b) / 4;
}

/* Something is computed in between. Two blocks that only wait for each other to come back would
 * otherwise give up in turn, for ever. */
static bool works_between(const fth_plan *p, int64_t from, int64_t to)
{
    for (int64_t t = from; t < to; t++) {
        const fth__item *it = &p->item[t];
        if ((it->kind == FTH__STEP && !it->refill) || it->kind == FTH__BEGIN) return true;
    }
    return false;
}

static gap find_gap(const fth_plan *p, int buf, int64_t at)
{
    gap g = {.buf = buf, .last = -1, .next = -1, .how = NO_WAY};
    const fth__buf *b = &p->buf[buf];
    if (b->kind != FTH__BUF_ARENA || b->owner_loop >= 0 || b->in_place >= 0 || b->element == 0 ||
        b->bytes == 0)
        return g;
    if (b->t0 > at || at > b->t1) return g;
    for (int64_t i = 0; i < p->n_bufs; i++)
        if (p->buf[i].in_place == buf) return g; /* shares its bytes with another value */
    int64_t from, to, a, z;
    level_zero(p, at, &from, &to);
    for (int64_t t = 0; t < p->n_items; t++) {
        if (!uses(p, &p->item[t], buf)) continue;
        if (carries(&p->item[t], buf)) return g;
        level_zero(p, t, &a, &z);
        if (a <= to && z >= from) return g; /* needed at that very moment */
        if (z < from) g.last = z;
        if (a > to && g.next < 0) g.next = a;
    }
    if (g.last < 0 || g.next < 0 || !works_between(p, g.last + 1, g.next)) return g;
    const int64_t made = filler(p, buf);
    if (made >= 0 && p->item[made].kind == FTH__READ)
        g.how = READ_AGAIN;
    else if (cheap_again(p, made, at, g.next, b) && !p->limits.no_recompute)
        g.how = MAKE_AGAIN;
    else if (p->ctx->scratch_dir[0] && !p->limits.no_spill)
        g.how = SPILL;
    return g;
}

static fth_status insert_item(fth_plan *p, int64_t at, const fth__item *it, fth_err *err)
{
    FTH_ASSERT(it->loop < 0 && at >= 0 && at <= p->n_items);
    for (int64_t i = 0; i < p->n_loops; i++)
        FTH_ASSERT(at <= p->loop[i].begin || at > p->loop[i].end);
    FTH_TRY(fth__grow(p->mem, &p->item, &p->cap_items, p->n_items + 1, err));
    memmove(&p->item[at + 1], &p->item[at], sizeof *it * (size_t)(p->n_items - at));
    p->item[at] = *it;
    p->n_items++;
    p->late += at <= p->late;
    for (int64_t i = 0; i < p->n_loops; i++) {
        p->loop[i].begin += p->loop[i].begin >= at;
        p->loop[i].end += p->loop[i].end >= at;
    }
    return FTH_OK;
}

static fth__item plain_item(fth__item_kind kind)
{
    fth__item it = {.kind = kind,
                    .loop = -1,
                    .unit = -1,
                    .scratch = -1,
                    .partial = -1,
                    .acc = -1,
                    .acc_dim = -1,
                    .split_dim = -1};
    for (int i = 0; i < FTH_MAX_IN; i++) it.in[i] = -1;
    for (int i = 0; i < FTH_MAX_OUT; i++) it.out[i] = it.state[i] = -1;
    for (int i = 0; i < FTH__MAX_DEPTH; i++) it.sdim[i] = -1;
    return it;
}

static fth_status copy_buf(fth_plan *p, int buf, int *out, fth_err *err)
{
    FTH_TRY(fth__grow(p->mem, &p->buf, &p->cap_bufs, p->n_bufs + 1, err));
    p->buf[p->n_bufs] = p->buf[buf];
    *out = (int)p->n_bufs++;
    return FTH_OK;
}

/* From item `from` on, everything that meant `old` means `new`; views of it, and of those, are
 * made anew. */
static fth_status redirect(fth_plan *p, int64_t from, int old, int new, fth_err *err)
{
    const int64_t n_bufs = p->n_bufs;
    for (int64_t t = from; t < p->n_items; t++)
        for (int k = 0; k < FTH_MAX_IN; k++)
            if (p->item[t].in[k] == old) p->item[t].in[k] = new;
    for (int64_t v = 0; v < n_bufs; v++) {
        if (p->buf[v].kind != FTH__BUF_VIEW || p->buf[v].base != old) continue;
        int view;
        FTH_TRY(copy_buf(p, (int)v, &view, err));
        p->buf[view].base = new;
        FTH_TRY(redirect(p, from, (int)v, view, err));
    }
    return FTH_OK;
}

static fth_status open_gap(fth_plan *p, const gap *g, fth_err *err)
{
    int again;
    FTH_ASSERT(g->last >= 0 && g->last < g->next && !p->buf[g->buf].double_buffered);
    FTH_TRY(copy_buf(p, g->buf, &again, err));
    FTH_TRY(redirect(p, g->next, g->buf, again, err));
    fth__item it;
    if (g->how == MAKE_AGAIN) {
        it = p->item[filler(p, g->buf)];
        int scratch;
        FTH_TRY(copy_buf(p, it.scratch, &scratch, err));
        it.scratch = scratch;
    } else {
        it = plain_item(g->how == READ_AGAIN ? FTH__READ : FTH__RELOAD);
        it.unit = (int)p->spilled;
    }
    it.out[0] = again;
    it.refill = true;
    FTH_TRY(insert_item(p, g->next, &it, err));
    if (g->how != SPILL) {
        p->recomputed += g->how == MAKE_AGAIN;
        return FTH_OK;
    }
    it = plain_item(FTH__SPILL);
    it.in[0] = g->buf;
    it.unit = (int)p->spilled++;
    return insert_item(p, g->last + 1, &it, err);
}

/* The largest block alive at item `at` that comes after `last` when they are sorted by size, equal
 * ones by number; -1: none. */
static int64_t next_largest(const fth_plan *p, int64_t at, int64_t last)
{
    const uint64_t limit = last < 0 ? UINT64_MAX : bytes_of(&p->buf[last]);
    int64_t pick = -1;
    uint64_t most = 0;
    for (int64_t i = 0; i < p->n_bufs; i++) {
        const fth__buf *b = &p->buf[i];
        if (b->t0 > at || at > b->t1) continue;
        const uint64_t bytes = bytes_of(b);
        if (bytes > most && (bytes < limit || (bytes == limit && i > last))) pick = i, most = bytes;
    }
    return pick;
}

fth_status fth__plan_relieve(fth_plan *p, bool *did, fth_err *err)
{
    int64_t at;
    fth__plan_lower_bound(p, &at);
    *did = false;
    for (int64_t i = next_largest(p, at, -1); i >= 0; i = next_largest(p, at, i)) {
        const gap g = find_gap(p, (int)i, at);
        if (g.how == NO_WAY) continue;
        *did = true;
        return open_gap(p, &g, err);
    }
    return FTH_OK;
}

uint64_t fth__plan_scratch_bytes(const fth_plan *p)
{
    uint64_t bytes = 0;
    for (int64_t i = 0; i < p->n_items; i++)
        if (p->item[i].kind == FTH__SPILL)
            bytes += (p->buf[p->item[i].in[0]].bytes + 4095u) & ~(uint64_t)4095u;
    return bytes;
}
