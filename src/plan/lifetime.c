/* lifetime.c - from when to when each buffer needs its bytes, and who takes over whose.
 *
 * Time is the position in the list of items. A use inside a loop that does not remake the buffer
 * lasts as long as that loop. A buffer that is read ahead or written behind lasts as long as its
 * own loop, in two copies. An output may take over the bytes of an operand that dies in the same
 * step.
 */
#include "base/assert.h"
#include "ops/view.h"
#include "plan/plan.h"

#include <string.h>

static fth__buf *storage(fth_plan *p, int buf)
{
    return &p->buf[fth__buf_storage(p, buf)];
}

/* A use at item t inside `loop`. */
static void touch(fth_plan *p, int buf, int loop, int64_t t)
{
    if (buf < 0) return;
    fth__buf *b = storage(p, buf);
    int64_t from = t, to = t;
    FTH_ASSERT(!b->double_buffered ||
               b->owner_loop >= 0); /* only a loop reads ahead or writes behind */
    const int owner_depth = b->owner_loop < 0 ? -1 : p->loop[b->owner_loop].depth;
    for (int l = loop; l >= 0 && p->loop[l].depth > owner_depth; l = p->loop[l].parent) {
        from = p->loop[l].begin;
        to = p->loop[l].end;
    }
    if (b->double_buffered) {
        from = p->loop[b->owner_loop].begin;
        to = p->loop[b->owner_loop].end;
    }
    FTH_ASSERT(from <= to && to < p->n_items);
    if (from < b->t0) b->t0 = from;
    if (to > b->t1) b->t1 = to;
}

static void touch_step(fth_plan *p, const fth__item *it, int64_t t, bool reads)
{
    for (int k = 0; reads && k < FTH_MAX_IN && it->in[k] >= 0; k++)
        touch(p, it->in[k], it->loop, t);
    for (int o = 0; o < FTH_MAX_OUT && it->out[o] >= 0; o++) {
        touch(p, it->out[o], it->loop, t);
        touch(p, it->state[o], it->loop, t);
    }
    touch(p, it->scratch, it->loop, t);
    touch(p, it->partial, it->loop, t);
}

/* Outputs of a step that nobody reads and no sink takes get no bytes. */
static void drop_unread(fth_plan *p)
{
    for (int64_t i = 0; i < p->n_items; i++) {
        const fth__item *it = &p->item[i];
        if (it->kind != FTH__STEP || p->unit[it->unit].node->n_out < 2) continue;
        for (int o = 0; o < p->unit[it->unit].node->n_out; o++)
            if (!p->buf[it->out[o]].read) p->buf[it->out[o]].bytes = 0;
    }
}

/* Inside a fused program an operand may be overwritten once its last reader has run. */
bool fth__program_allows(const fth__program *pr, int in, int out)
{
    if (pr->tail_dim >= 0 || fth__is_viewed(pr, in)) return false; /* neighbours are still read */
    for (int i = 0; i < pr->n_views; i++)
        if (pr->view[i].rows == in) return false;
    int written = -1;
    for (int i = 0; i < pr->n_instr; i++)
        if (pr->instr[i].dst == pr->out_reg[out]) written = i;
    for (int i = 0; i < pr->n_instr; i++)
        for (int s = 0; s < 3; s++)
            if (pr->instr[i].src[s] == in && i > written) return false;
    for (int o = 0; o < pr->n_out; o++)
        if (pr->out_reg[o] == in) return false; /* a copy of the operand goes out as well */
    return true;
}

static bool operation_allows(const fth__unit *u, int in, int out)
{
    const fth_node *n = u->node;
    if (n->op == &fth__op_fused) return fth__program_allows(n->attr, in, out);
    if (n->op->update_of && n->op->update_of(n, out) == in) return true;
    return out == 0 && in < FTH__IN_PLACE_FLAGS &&
           (n->op->flags & ((uint32_t)FTH_OP_IN_PLACE_0 << in)) != 0;
}

/* Element by element the operand and the output must be the same place: equal sizes, and an axis
 * both have at the same position. A renamed axis (of a solve) takes the place of the old one. */
static bool same_place(const fth_plan *p, const fth__item *it, int in, int out)
{
    const fth_node *n = p->unit[it->unit].node;
    const fth_desc *a = &n->in[in], *b = &n->out[out];
    if (a->n_axes != b->n_axes || fth_dtype_size(a->dtype) != fth_dtype_size(b->dtype))
        return false;
    for (int d = 0; d < a->n_axes; d++) {
        const int at = fth_desc_find(b, a->axis[d]);
        if (a->size[d] != b->size[d] || (at >= 0 && at != d)) return false;
        if (n->op == &fth__op_fused && at != d) return false;
    }
    return true;
}

static bool same_block(const fth__buf *a, const fth__buf *b)
{
    if (a->desc.n_axes != b->desc.n_axes || a->n_span != b->n_span || a->element != b->element)
        return false;
    for (int d = 0; d < a->desc.n_axes; d++)
        if (a->extent[d] != b->extent[d]) return false;
    for (int s = 0; s < a->n_span; s++)
        if (memcmp(&a->span[s], &b->span[s], sizeof a->span[s]) != 0) return false;
    return true;
}

static bool can_take(fth_plan *p, const fth__item *it, int64_t t, int in, int out)
{
    const fth__unit *u = &p->unit[it->unit];
    if (it->acc >= 0 || !operation_allows(u, in, out) || !same_place(p, it, in, out)) return false;
    const fth__buf *a = storage(p, it->in[in]), *b = &p->buf[it->out[out]];
    if (a->kind != FTH__BUF_ARENA || b->kind != FTH__BUF_ARENA || a->double_buffered ||
        b->double_buffered || b->bytes == 0)
        return false;
    if (a->owner_loop != b->owner_loop || b->in_place >= 0 || !same_block(a, b)) return false;
    const fth__buf *root = &p->buf[a->root];
    if (a->t1 != t || b->t0 != t || root->t1 != t) return false;
    for (int k = 0; k < u->node->n_in; k++)
        if (k != in && storage(p, it->in[k]) == a) return false;
    return true;
}

static void reuse_operands(fth_plan *p)
{
    for (int64_t t = 0; t < p->n_items; t++) {
        const fth__item *it = &p->item[t];
        if (it->kind != FTH__STEP) continue;
        const fth_node *n = p->unit[it->unit].node;
        for (int o = 0; o < n->n_out; o++)
            for (int k = 0; k < n->n_in; k++) {
                if (!can_take(p, it, t, k, o)) continue;
                fth__buf *b = &p->buf[it->out[o]];
                b->in_place = (int)(storage(p, it->in[k]) - p->buf);
                b->root = p->buf[b->in_place].root;
                fth__buf *root = &p->buf[b->root];
                FTH_ASSERT(root->in_place < 0 && root->bytes == b->bytes && root->t0 <= b->t0);
                if (b->t1 > root->t1) root->t1 = b->t1;
                break;
            }
    }
}

void fth__plan_lifetimes(fth_plan *p)
{
    for (int64_t i = 0; i < p->n_bufs; i++) {
        p->buf[i].t0 = INT64_MAX;
        p->buf[i].t1 = -1;
        p->buf[i].in_place = -1;
        p->buf[i].root = (int)i;
    }
    for (int64_t t = 0; t < p->n_items; t++)
        if (p->item[t].kind == FTH__END) /* what ranks exchange */
            touch(p, p->item[t].scratch, p->item[t].loop, t);
        else if (p->item[t].kind != FTH__BEGIN)
            touch_step(p, &p->item[t], t, true);
    drop_unread(p);
    reuse_operands(p);
    for (int64_t i = 0; i < p->n_bufs; i++)
        FTH_ASSERT(p->buf[i].t1 < 0 || (p->buf[i].t0 >= 0 && p->buf[i].t0 <= p->buf[i].t1));
}
