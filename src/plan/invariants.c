/* invariants.c - what must hold of a whole plan; not part of a release.
 *
 * Assertions beside the code see one step at a time; these see what all steps together have made.
 * They take no memory, so that a run with assertions makes the same requests as one without.
 */
#include "base/assert.h"
#include "plan/block.h"

#ifndef NDEBUG

enum { MOST_PAIRED = 2048 }; /* blocks compared in pairs: about 2 million pairs, some 10 ms */

static void assert_loop(const fth_plan *p, int i)
{
    const fth__sweep *l = &p->loop[i];
    FTH_ASSERT(l->begin >= 0 && l->begin < l->end && l->end < p->n_items);
    FTH_ASSERT(p->item[l->begin].kind == FTH__BEGIN && p->item[l->begin].loop == i);
    FTH_ASSERT(p->item[l->end].kind == FTH__END && p->item[l->end].loop == i);
    FTH_ASSERT(l->parent < i && l->depth < FTH__MAX_DEPTH);
    if (l->parent < 0) {
        FTH_ASSERT(l->depth == 0);
        return;
    }
    const fth__sweep *around = &p->loop[l->parent];
    FTH_ASSERT(l->depth == around->depth + 1);
    FTH_ASSERT(around->begin < l->begin && l->end < around->end);
}

static void assert_step(const fth_plan *p, const fth__item *it)
{
    const fth_node *n = p->unit[it->unit].node;
    for (int k = 0; k < n->n_in; k++) FTH_ASSERT(it->in[k] >= 0 && it->in[k] < p->n_bufs);
    for (int o = 0; o < n->n_out; o++)
        FTH_ASSERT(it->out[o] >= 0 && it->out[o] < p->n_bufs && it->state[o] < p->n_bufs);
    FTH_ASSERT(it->scratch >= 0 && it->scratch < p->n_bufs);
}

/* An item of a loop lies between its ends, and in no other loop of that depth. */
static void assert_item(const fth_plan *p, int64_t t)
{
    const fth__item *it = &p->item[t];
    FTH_ASSERT(it->loop < p->n_loops);
    if (it->loop >= 0) FTH_ASSERT(p->loop[it->loop].begin <= t && t <= p->loop[it->loop].end);
    if (it->kind == FTH__STEP) assert_step(p, it);
    if (it->kind == FTH__READ) FTH_ASSERT(p->buf[it->out[0]].input >= 0);
    if (it->kind == FTH__WRITE) FTH_ASSERT(it->unit >= 0 && it->unit < p->n_outs);
    if (it->kind == FTH__COMMIT) FTH_ASSERT(it->loop < 0 && t >= p->late);
}

void fth__plan_assert_schedule(const fth_plan *p)
{
    FTH_ASSERT(p->late >= 0 && p->late <= p->n_items);
    for (int64_t i = 0; i < p->n_loops; i++) assert_loop(p, (int)i);
    for (int64_t t = 0; t < p->n_items; t++) assert_item(p, t);
    for (int64_t i = 0; i < p->n_bufs; i++) {
        const fth__buf *b = &p->buf[i];
        FTH_ASSERT(b->owner_loop < p->n_loops && (!b->double_buffered || b->owner_loop >= 0));
        FTH_ASSERT(b->kind != FTH__BUF_VIEW || (b->base >= 0 && b->base < i));
        for (int s = 0; s < b->n_span; s++)
            FTH_ASSERT(b->owner_loop >= 0 && b->span[s].loop <= b->owner_loop);
    }
}

static uint64_t bytes_of(const fth__buf *b)
{
    return b->double_buffered ? 2 * b->bytes : b->bytes;
}

/* Values in the arena are made, or read from their input, before a step reads them. */
static void assert_order(const fth_plan *p)
{
    for (int64_t t = 0; t < p->n_items; t++)
        for (int k = 0; k < FTH_MAX_IN && p->item[t].in[k] >= 0; k++) {
            const fth__buf *b = &p->buf[fth__buf_storage(p, p->item[t].in[k])];
            FTH_ASSERT(b->kind != FTH__BUF_ARENA || (b->maker < t && b->t0 <= t && t <= b->t1));
        }
}

static void assert_apart(const fth_plan *p, int64_t i)
{
    const fth__buf *a = &p->buf[i];
    for (int64_t j = 0; j < i; j++) {
        const fth__buf *b = &p->buf[j];
        if (!fth__buf_is_placed(b) || a->t1 < b->t0 || b->t1 < a->t0) continue;
        FTH_ASSERT(a->offset + bytes_of(a) <= b->offset || b->offset + bytes_of(b) <= a->offset);
    }
}

void fth__plan_assert_layout(const fth_plan *p)
{
    fth__plan_assert_schedule(p);
    assert_order(p);
    FTH_ASSERT(p->lower <= p->peak && p->faults <= p->peak);
    for (int64_t i = 0; i < p->n_bufs; i++) {
        const fth__buf *b = &p->buf[i];
        if (b->kind != FTH__BUF_ARENA || b->t1 < 0 || b->bytes == 0) continue;
        const fth__buf *root = &p->buf[b->root];
        FTH_ASSERT(b->offset == root->offset && b->offset % FTH__ALIGN == 0);
        FTH_ASSERT(b->offset + bytes_of(b) <= p->faults); /* faults of kernels lie behind */
        FTH_ASSERT(root->in_place < 0 && root->t0 <= b->t0 && b->t1 <= root->t1);
        if (p->n_bufs <= MOST_PAIRED && fth__buf_is_placed(b)) assert_apart(p, i);
    }
}

#else
typedef int fth__plan_no_invariants; /* a file of C has at least one declaration */
#endif
