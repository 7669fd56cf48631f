/* ranks.c - see ranks.h.
 *
 * After a pass sums go from rank to rank in the order of the axis: each adds its partial results,
 * one superblock after the other, as one rank alone would have, and the last one hands the result
 * to all. Of what is made piece by piece, every rank hands its part to all. Tiles of outputs go to
 * rank 0, or to all ranks where each has a sink of its own, while the pass is going on: those of a
 * step during the next one, so that a rank whose chunk was cheap does not wait for the others.
 */
#include "run/ranks.h"

#include "array/rect.h"
#include "base/assert.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/hash.h"

#include <string.h>

/* ---- meeting ---- */

fth_status fth__ranks_settle(fth__runner *r, fth_status s)
{
    if (!r->comm || r->settled) return s;
    const fth_status all = fth__comm_settle(r->comm, s, r->err);
    r->settled = all != FTH_OK;
    return all;
}

/* What ranks must agree on to exchange anything: loops, chunks and the arena. */
static uint64_t identity(const fth_plan *p)
{
    fth__hash h;
    fth__hash_init(&h, 0);
    const int64_t head[4] = {p->n_loops, p->n_items, p->n_bufs, (int64_t)p->peak};
    fth__hash_add(&h, head, sizeof head);
    for (int64_t i = 0; i < p->n_loops; i++) {
        const fth__sweep *l = &p->loop[i];
        const int64_t one[6] = {l->axis, l->size, l->chunk, l->shared, l->share, l->begin};
        fth__hash_add(&h, one, sizeof one);
    }
    return fth__hash_get(&h) >> 2; /* of either sign in 63 bits */
}

fth_status fth__ranks_begin(fth__runner *r)
{
    const fth_plan *p = r->p;
    const int size = fth_ranks_count(p->ctx->ranks);
    if (p->ranks != 1 && p->ranks != size)
        return FTH_FAIL(r->err, FTH_E_RANKS, "the plan at %s:%d is for %d ranks, and there %s %d",
                        p->site.file, p->site.line, p->ranks, size == 1 ? "is" : "are", size);
    if (size < 2) return FTH_OK;
    r->comm = fth__comm_of(p->ctx->ranks);
    if (p->runs > 0 || p->ranks < 2) return FTH_OK;
    const int64_t mine = (int64_t)identity(p);
    int64_t most = mine, least = -mine;
    FTH_TRY(fth__comm_agree(r->comm, &most, r->err));
    FTH_TRY(fth__comm_agree(r->comm, &least, r->err));
    if (most == -least) return FTH_OK;
    return FTH_FAIL(r->err, FTH_E_RANKS,
                    "the plan at %s:%d is not the same on all ranks: give all of them the same "
                    "program, inputs, memory and threads",
                    p->site.file, p->site.line);
}

bool fth__ranks_skips(const fth__runner *r, const fth_sink *sink)
{
    return r->comm && r->comm->rank > 0 && sink->commit;
}

/* ---- parts of sums ---- */

static fth__range share_of(const fth__runner *r, int rank)
{
    return fth__sweep_of_rank(&r->p->loop[r->pass], rank, r->comm->size);
}

bool fth__ranks_first(const fth__runner *r, const fth__item *it)
{
    const int64_t k = r->iteration[0], lo = share_of(r, r->comm->rank).lo;
    if (r->comm->rank == 0 || it->grain == 0) return k == lo;
    return k * r->p->loop[r->pass].chunk % it->grain == 0;
}

static void *whole_of(const fth__runner *r, const fth__buf *b)
{
    if (b->kind == FTH__BUF_ARENA && b->bytes == 0) return NULL; /* nobody wants it */
    fth__range all[FTH_MAX_AXES];
    for (int d = 0; d < b->desc.n_axes; d++) all[d] = (fth__range){0, b->desc.size[d]};
    fth_tile t;
    fth__tile_of(r, b, all, 0, &t);
    return t.data;
}

static uint64_t out_bytes(const fth_node *n, int o)
{
    return (uint64_t)fth_desc_count(&n->out[o]) * (uint64_t)fth_dtype_size(n->out[o].dtype);
}

/* Where the running values of a step are. */
static fth_partial running(const fth__runner *r, const fth__item *it)
{
    const fth_plan *p = r->p;
    fth_partial a = {.node = p->unit[it->unit].node};
    for (int o = 0; o < a.node->n_out; o++) {
        a.out[o] = whole_of(r, &p->buf[it->out[o]]);
        if (it->state[o] >= 0) a.state[o] = r->arena + p->buf[it->state[o]].offset;
    }
    return a;
}

/* Output o of a partial, or with n_out + o its state. */
static void **part_at(fth_partial *a, int o)
{
    return o < a->node->n_out ? &a->out[o] : &a->state[o - a->node->n_out];
}
static void *part_of(const fth_partial *a, int o)
{
    return o < a->node->n_out ? a->out[o] : a->state[o - a->node->n_out];
}

/* Where its partial number i is kept. */
static fth_partial kept(const fth__runner *r, const fth__item *it, int64_t i)
{
    const fth_plan *p = r->p;
    const fth_partial now = running(r, it);
    const uint64_t one = fth__item_partial_bytes(p, it);
    FTH_ASSERT((uint64_t)(i + 1) * one <= p->buf[it->partial].bytes);
    fth_partial a = {.node = now.node};
    char *at = r->arena + p->buf[it->partial].offset + (uint64_t)i * one;
    for (int o = 0; o < 2 * a.node->n_out; o++) {
        const uint64_t bytes = fth__node_partial(a.node, o);
        if (bytes > 0 && part_of(&now, o)) *part_at(&a, o) = at;
        at += (bytes + FTH__ALIGN - 1) / FTH__ALIGN * FTH__ALIGN;
    }
    return a;
}

static void keep(const fth__runner *r, const fth__item *it, int64_t i)
{
    const fth_partial from = running(r, it), to = kept(r, it, i);
    for (int o = 0; o < 2 * to.node->n_out; o++)
        if (part_of(&to, o))
            memcpy(part_of(&to, o), part_of(&from, o), (size_t)fth__node_partial(to.node, o));
}

void fth__ranks_before(fth__runner *r, int64_t k)
{
    const fth_plan *p = r->p;
    const fth__sweep *l = &p->loop[r->pass];
    for (int t = l->begin + 1; k > 0 && t < l->end; t++) {
        const fth__item *it = &p->item[t];
        if (!it->joined || !fth__ranks_first(r, it)) continue;
        const fth_partial a = running(r, it);
        if (a.node->op->join->start) a.node->op->join->start(&a);
    }
}

void fth__ranks_after(fth__runner *r, int64_t k)
{
    const fth_plan *p = r->p;
    const fth__sweep *l = &p->loop[r->pass];
    const fth__range mine = share_of(r, r->comm->rank);
    for (int t = l->begin + 1; r->comm->rank > 0 && t < l->end; t++) {
        const fth__item *it = &p->item[t];
        if (!it->joined || it->grain == 0) continue;
        if ((k + 1) * l->chunk % it->grain == 0 || k + 1 == mine.hi)
            keep(r, it, (k - mine.lo) * l->chunk / it->grain);
    }
}

/* What there is of a partial, by one of two calls of the table. */
static fth_status each_part(fth__runner *r, const fth_partial *a, bool receive, int other)
{
    for (int o = 0; o < 2 * a->node->n_out; o++) {
        void *data = part_of(a, o);
        const uint64_t bytes = data ? fth__node_partial(a->node, o) : 0;
        FTH_TRY(receive ? fth__comm_receive(r->comm, other, data, bytes, r->err)
                        : fth__comm_send(r->comm, other, data, bytes, r->err));
    }
    return FTH_OK;
}

/* Ranks that have something of the pass: those with a low number. */
static int busy_ranks(const fth__runner *r)
{
    int n = 1;
    for (fth__range c; n < r->comm->size; n++) {
        c = share_of(r, n);
        if (c.lo >= c.hi) break;
    }
    return n;
}

static fth_status join_sum(fth__runner *r, const fth__item *it)
{
    const fth__sweep *l = &r->p->loop[r->pass];
    const fth_partial all = running(r, it);
    const fth_join *join = all.node->op->join;
    const int me = r->comm->rank, busy = busy_ranks(r);
    const fth__range mine = share_of(r, me);
    if (me > 0 && me < busy) {
        const int64_t parts =
            it->grain > 0 ? fth__ceil_div_i64((mine.hi - mine.lo) * l->chunk, it->grain) : 1;
        if (it->grain == 0) keep(r, it, 0);
        FTH_TRY(each_part(r, &all, true, me - 1));
        for (int64_t i = 0; i < parts; i++) {
            const fth_partial part = kept(r, it, i);
            join->add(&all, &part);
        }
    }
    if (me + 1 < busy) FTH_TRY(each_part(r, &all, false, me + 1));
    if (me + 1 == busy && join->finish) join->finish(&all);
    for (int o = 0; o < all.node->n_out; o++)
        if (all.out[o])
            FTH_TRY(
                fth__comm_broadcast(r->comm, busy - 1, all.out[o], out_bytes(all.node, o), r->err));
    return FTH_OK;
}

/* ---- values made piece by piece ---- */

/* Part [lo, hi) of the middle axis of a box of three, from one rank to all. */
static fth_status hand_out(fth__runner *r, int from, char *box, const int64_t size[3],
                           int64_t element, fth__range part, char *room, uint64_t room_bytes)
{
    const int64_t row = (part.hi - part.lo) * size[2] * element; /* bytes side by side */
    if (row == 0) return FTH_OK;
    const int64_t some = (int64_t)room_bytes / row;
    if (size[0] == 1 || some < 2) {
        for (int64_t o = 0; o < size[0]; o++)
            FTH_TRY(fth__comm_broadcast(r->comm, from,
                                        box + (o * size[1] + part.lo) * size[2] * element,
                                        (uint64_t)row, r->err));
        return FTH_OK;
    }
    for (int64_t o = 0; o < size[0]; o += some) {
        const int64_t lo[3] = {o, part.lo, 0};
        const int64_t n[3] = {fth__min_i64(some, size[0] - o), part.hi - part.lo, size[2]};
        if (from == r->comm->rank) fth__rect_get(room, box, element, 3, size, lo, n);
        FTH_TRY(fth__comm_broadcast(r->comm, from, room, (uint64_t)(n[0] * row), r->err));
        if (from != r->comm->rank) fth__rect_put(box, room, element, 3, size, lo, n);
    }
    return FTH_OK;
}

static fth_status collect(fth__runner *r, const fth__item *it, int o)
{
    const fth_plan *p = r->p;
    const fth__sweep *l = &p->loop[r->pass];
    const fth__buf *b = &p->buf[it->out[o]], *room = &p->buf[p->item[l->end].scratch];
    char *box = whole_of(r, b);
    if (!box) return FTH_OK;
    const int dim = fth__item_shared_dim(p, it, o);
    int64_t size[3] = {1, b->desc.size[dim], 1};
    for (int d = 0; d < b->desc.n_axes; d++)
        if (d != dim) size[d < dim ? 0 : 2] *= b->desc.size[d];
    for (int q = 0; q < r->comm->size; q++) {
        const fth__range c = share_of(r, q);
        if (c.lo >= c.hi) continue;
        const fth_axis_id axis = b->desc.axis[dim];
        const fth__range part = {fth__sweep_part(l, axis, size[1], c.lo).lo,
                                 fth__sweep_part(l, axis, size[1], c.hi - 1).hi};
        FTH_TRY(hand_out(r, q, box, size, b->element, part, r->arena + room->offset, room->bytes));
    }
    return FTH_OK;
}

static fth_status exchange(fth__runner *r)
{
    const fth_plan *p = r->p;
    const fth__sweep *l = &p->loop[r->pass];
    for (int t = l->begin + 1; t < l->end; t++) {
        const fth__item *it = &p->item[t];
        if (it->kind != FTH__STEP) continue;
        if (it->joined) FTH_TRY(join_sum(r, it));
        for (int o = 0; !it->joined && o < p->unit[it->unit].node->n_out; o++)
            if (fth__item_outlives(p, it, o)) FTH_TRY(collect(r, it, o));
    }
    return FTH_OK;
}

/* ---- tiles of outputs ---- */

static bool is_written(const fth__buf *b, int loop)
{
    return b->kind == FTH__BUF_ARENA && b->owner_loop == loop && b->output >= 0;
}

static bool has_writes(const fth_plan *p, int loop)
{
    for (int64_t i = 0; i < p->n_bufs; i++)
        if (is_written(&p->buf[i], loop)) return true;
    return false;
}

/* Some sink of the output is written on every rank. */
static bool goes_to_all(const fth__runner *r, int output)
{
    for (int o = output; o >= 0; o = r->p->out_next[o])
        if (!r->sinks[o].commit) return true;
    return false;
}

/* One of the two blocks that tiles pass through; it is free when its last write is done. */
static fth_status next_room(fth__runner *r, char **room)
{
    const fth_plan *p = r->p;
    const fth__buf *b = &p->buf[p->item[p->loop[r->pass].end].scratch];
    r->turn ^= 1;
    *room = r->arena + b->offset + (r->turn ? b->bytes / 2 : 0);
    FTH_TRY(fth__comm_send_end(r->comm, &r->sending[r->turn], r->err));
    return r->io ? fth__io_wait(r->io, r->passing[r->turn], r->err) : FTH_OK;
}

/* Queue a tile that came from another rank for the sinks that are written here. */
static void write_tile(fth__runner *r, const fth__buf *b, const fth__range *region, char *data)
{
    for (int o = b->output; o >= 0; o = r->p->out_next[o]) {
        if (fth__ranks_skips(r, &r->sinks[o])) continue;
        fth__io_job job = {.sink = &r->sinks[o], .data = data};
        uint64_t bytes = (uint64_t)b->element;
        fth__job_name(r, b, &job);
        for (int d = 0; d < b->desc.n_axes; d++) {
            job.lo[d] = region[d].lo;
            job.n[d] = region[d].hi - region[d].lo;
            bytes *= (uint64_t)job.n[d];
        }
        r->written_bytes += bytes;
        r->passing[r->turn] = fth__run_post(r, &job);
    }
}

/* Copy the part of a buffer that this iteration owns to dense memory. */
static void pack(const fth__runner *r, const fth__buf *b, int parity, const fth__range *region,
                 char *room)
{
    fth__range box[FTH_MAX_AXES], first[FTH_MAX_AXES];
    int64_t size[FTH_MAX_AXES], lo[FTH_MAX_AXES], n[FTH_MAX_AXES];
    fth__buf_region(r->p, b, r->iteration, box);
    for (int d = 0; d < b->desc.n_axes; d++) {
        size[d] = box[d].hi - box[d].lo;
        lo[d] = region[d].lo - box[d].lo;
        n[d] = region[d].hi - region[d].lo;
        first[d] = box[d];
    }
    fth_tile t;
    fth__tile_of(r, b, first, parity, &t);
    fth__rect_get(room, t.data, b->element, b->desc.n_axes, size, lo, n);
}

/* The tile of rank q, which is in the iteration that it made it in. Whatever fails here, messages
 * go on: *s is the first mistake, for the next meeting. */
static fth_status pass_tile(fth__runner *r, const fth__buf *b, int q, int parity, fth_status *s)
{
    const bool mine = q == r->comm->rank, all = goes_to_all(r, b->output);
    fth__range region[FTH_MAX_AXES];
    fth__run_write_region(r, b, region);
    uint64_t bytes = (uint64_t)b->element;
    for (int d = 0; d < b->desc.n_axes; d++)
        bytes *= (uint64_t)fth__max_i64(region[d].hi - region[d].lo, 0);
    const bool sends = mine && (all ? r->comm->size > 1 : q > 0);
    const bool receives = !mine && (all || r->comm->rank == 0);
    if (bytes == 0 || (!sends && !receives)) return FTH_OK;
    char *room;
    const fth_status free = next_room(r, &room);
    if (free == FTH_E_MESSAGE) return free;
    if (*s == FTH_OK) *s = free;
    if (sends) pack(r, b, parity, region, room);
    if (all)
        FTH_TRY(fth__comm_broadcast(r->comm, q, room, bytes, r->err));
    else
        FTH_TRY(sends ? fth__comm_send_begin(r->comm, 0, room, bytes, &r->sending[r->turn], r->err)
                      : fth__comm_receive(r->comm, q, room, bytes, r->err));
    if (receives) write_tile(r, b, region, room);
    return FTH_OK;
}

/* A buffer's tiles of one step of the pass, of all ranks that have one. */
static fth_status pass_tiles(fth__runner *r, const fth__buf *b, int64_t step, int parity,
                             fth_status *s)
{
    const int64_t now = r->iteration[0];
    fth_status sent = FTH_OK;
    for (int q = 0; q < r->comm->size && sent == FTH_OK; q++) {
        const fth__range c = share_of(r, q);
        if (c.lo + step >= c.hi) continue;
        r->iteration[0] = c.lo + step;
        sent = pass_tile(r, b, q, parity, s);
    }
    r->iteration[0] = now;
    return sent;
}

/* ---- tiles of the step before ---- */

/* Tiles that stay where they are during the next iteration can be passed in it. Those of loops
 * inside the pass cannot, and then none is late: messages come in one order. */
static bool may_be_late(const fth__runner *r)
{
    const fth_plan *p = r->p;
    for (int64_t i = 0; i < p->n_bufs; i++) {
        const fth__buf *b = &p->buf[i];
        int outer = b->kind == FTH__BUF_ARENA && b->output >= 0 ? b->owner_loop : -1;
        if (outer < 0) continue;
        while (p->loop[outer].parent >= 0) outer = p->loop[outer].parent;
        if (outer == r->pass && (b->owner_loop != r->pass || !b->double_buffered)) return false;
    }
    return true;
}

static fth_status pass_late(fth__runner *r)
{
    if (!r->late) return FTH_OK;
    r->late = false;
    const fth_status all = fth__comm_settle_end(r->comm, FTH_OK, r->err);
    r->settled = all != FTH_OK;
    fth_status s = all;
    for (int64_t i = 0; i < r->p->n_bufs && all == FTH_OK; i++)
        if (is_written(&r->p->buf[i], r->pass))
            FTH_TRY(pass_tiles(r, &r->p->buf[i], r->late_step, r->late_parity, &s));
    return s;
}

static fth_status write_late(fth__runner *r, bool busy, int64_t *ticket)
{
    const fth_plan *p = r->p;
    const int parity = (int)(r->begun[r->pass] & 1);
    FTH_TRY(pass_late(r));
    for (int64_t i = 0; busy && i < p->n_bufs; i++) {
        const fth__buf *b = &p->buf[i];
        if (!is_written(b, r->pass)) continue;
        *ticket = fth__max_i64(*ticket, fth__run_post_write(r, b, b->output, parity));
    }
    r->late = true;
    r->late_step = r->step;
    r->late_parity = parity;
    return fth__comm_settle_begin(r->comm, FTH_OK, r->err);
}

void fth__ranks_push(fth__runner *r)
{
    const double often_s = 1e-3, now = fth__clock_seconds();
    if (now - r->pushed < often_s) return;
    r->pushed = now;
    fth__comm_push(r->comm);
}

/* Whatever became of the pass, the arena may be given away after this. */
static fth_status end_sends(fth__runner *r, fth_status s)
{
    for (int i = 0; i < 2; i++) {
        fth_err lost = {0};
        if (s == FTH_E_MESSAGE) r->sending[i] = NULL; /* it may never arrive */
        const fth_status sent = fth__comm_send_end(r->comm, &r->sending[i], &lost);
        if (s == FTH_OK && sent != FTH_OK) {
            *r->err = lost;
            s = sent;
        }
    }
    return s;
}

fth_status fth__ranks_write(fth__runner *r, int loop, int64_t *ticket)
{
    const fth_plan *p = r->p;
    const fth__range mine = share_of(r, r->comm->rank);
    const bool busy = mine.lo + r->step < mine.hi;
    *ticket = 0;
    if (!has_writes(p, loop)) return FTH_OK;
    if (may_be_late(r)) return write_late(r, busy, ticket);
    FTH_TRY(fth__ranks_settle(r, FTH_OK));
    fth_status s = FTH_OK;
    for (int64_t i = 0; i < p->n_bufs; i++) {
        const fth__buf *b = &p->buf[i];
        if (!is_written(b, loop)) continue;
        if (busy) {
            const int64_t t = fth__run_post_write(r, b, b->output, fth__buf_parity(r, b));
            if (t > *ticket) *ticket = t;
        }
        FTH_TRY(pass_tiles(r, b, r->step, fth__buf_parity(r, b), &s));
    }
    return s;
}

/* This rank has done its chunks, and another one has more: take part in its writes. */
static fth_status stand_by(fth__runner *r)
{
    const fth_plan *p = r->p;
    const fth__sweep *l = &p->loop[r->pass];
    int64_t ticket;
    for (int t = l->begin + 1; t < l->end; t++) {
        const fth__item *it = &p->item[t];
        if (it->kind != FTH__BEGIN) continue;
        const fth__sweep *inner = &p->loop[it->loop];
        for (int64_t j = 0; j < inner->n_chunks; j++) {
            r->iteration[inner->depth] = j;
            FTH_TRY(fth__ranks_write(r, it->loop, &ticket));
        }
        r->iteration[inner->depth] = 0;
    }
    return fth__ranks_write(r, r->pass, &ticket);
}

static fth_status do_steps(fth__runner *r, fth__ranks_run *run)
{
    const fth__range mine = share_of(r, r->comm->rank), most = share_of(r, 0);
    r->step = 0;
    FTH_TRY(run(r, r->pass, mine));
    for (r->step = mine.hi - mine.lo; r->step < most.hi - most.lo; r->step++) FTH_TRY(stand_by(r));
    return FTH_OK;
}

/* A rank that fails still passes the tiles of the step before: the others wait for them. */
static fth_status do_share(fth__runner *r, fth__ranks_run *run)
{
    fth_status s = do_steps(r, run);
    if (s != FTH_E_MESSAGE && !r->settled) {
        fth_err here = {0};
        if (s != FTH_OK && r->err) here = *r->err;
        const fth_status late = pass_late(r);
        if (s == FTH_OK || r->settled || late == FTH_E_MESSAGE)
            s = late;
        else if (r->err)
            *r->err = here;
    }
    FTH_TRY(end_sends(r, s));
    for (int i = 0; r->io && i < 2; i++) FTH_TRY(fth__io_wait(r->io, r->passing[i], r->err));
    return FTH_OK;
}

fth_status fth__ranks_pass(fth__runner *r, int loop, fth__ranks_run *run)
{
    FTH_ASSERT(r->comm && r->pass < 0 && r->p->loop[loop].depth == 0);
    r->pass = loop;
    fth_status s = fth__ranks_settle(r, do_share(r, run));
    if (s == FTH_OK) s = exchange(r);
    r->pass = -1;
    return s;
}
