/* commit.c - parameters updated in place, at the end, when nothing can fail any more.
 *
 * An elementwise step whose results only go into parameters is moved behind everything else and
 * writes straight into the parameters' storage. Results that something reads afterwards, or whose
 * old values are still wanted, stay in the arena and are copied by their COMMIT.
 */
#include "mem/heap.h"
#include "plan/plan.h"

#include <string.h>

static uint64_t desc_bytes(const fth_desc *d)
{
    return (uint64_t)fth_desc_count(d) * (uint64_t)fth_dtype_size(d->dtype);
}

/* An elementwise unit all of whose results are assigned, and whose computed operands (gradients)
 * take no more bytes than its results would: cut into pieces, its results would have to wait whole
 * in the arena until nothing can fail; left to the end, it works in place and only the operands
 * wait. */
static bool is_update(const fth_plan *p, const fth__unit *u, const int *assigns, const int *readers)
{
    const fth_node *n = u->node;
    if (n->op != &fth__op_fused || ((const fth__program *)n->attr)->tail_dim >= 0) return false;
    uint64_t makes = 0, waits = 0;
    for (int o = 0; o < n->n_out; o++) {
        const uint32_t v = n->out_val[o].id;
        if (assigns[v] == 0 || readers[v] != assigns[v]) return false;
        makes += desc_bytes(&n->out[o]);
    }
    for (int k = 0; k < n->n_in; k++)
        if (p->unit_of[n->in_val[k].id] >= 0) waits += desc_bytes(&n->in[k]);
    return waits <= makes;
}

fth_status fth__plan_mark_updates(fth_plan *p, fth_err *err)
{
    const int64_t values = p->graph->n_values;
    int *assigns = NULL;
    FTH_TRY(fth__heap_take(p->mem, 2 * values, sizeof *assigns, (void **)&assigns, err));
    int *readers = assigns + values; /* how many assigns, and how many at all, read each value */
    for (int i = 0; i < p->n_outs; i++) readers[p->out_value[i]]++;
    for (int64_t i = 0; i < p->n_units; i++) {
        const fth_node *n = p->unit[i].node;
        for (int k = 0; k < n->n_in; k++) readers[n->in_val[k].id]++;
        if (n->op == &fth__op_assign) assigns[n->in_val[1].id]++;
    }
    for (int64_t i = 0; i < p->n_units; i++)
        p->unit[i].update = is_update(p, &p->unit[i], assigns, readers);
    fth__heap_free(p->mem, assigns);
    return FTH_OK;
}

static bool reads(const fth_plan *p, const fth__item *it, int buf)
{
    for (int k = 0; k < FTH_MAX_IN; k++)
        if (fth__buf_storage(p, it->in[k]) == buf) return true;
    return false;
}

static int64_t maker(const fth_plan *p, int buf)
{
    for (int64_t t = 0; t < p->n_items; t++)
        for (int o = 0; o < FTH_MAX_OUT; o++)
            if (p->item[t].kind == FTH__STEP && p->item[t].out[o] == buf) return t;
    return -1;
}

/* A step outside loops, elementwise, that cannot fail and feeds nothing but COMMITs. */
static bool may_wait(const fth_plan *p, int64_t t)
{
    const fth__item *it = &p->item[t];
    const fth_node *n = p->unit[it->unit].node;
    if (it->loop >= 0 || n->op != &fth__op_fused || ((const fth__program *)n->attr)->tail_dim >= 0)
        return false;
    for (int o = 0; o < n->n_out; o++)
        for (int64_t j = 0; j < p->n_items; j++)
            if (p->item[j].kind != FTH__COMMIT && reads(p, &p->item[j], it->out[o])) return false;
    return true;
}

static int64_t first_commit(const fth_plan *p)
{
    int64_t t = p->n_items;
    while (t > 0 && p->item[t - 1].kind == FTH__COMMIT) t--;
    return t;
}

/* Move item t to just before the COMMITs. Loops behind it move up by one place. */
static void postpone(fth_plan *p, int64_t t)
{
    const int64_t to = first_commit(p) - 1;
    const fth__item moved = p->item[t];
    memmove(&p->item[t], &p->item[t + 1], sizeof moved * (size_t)(to - t));
    p->item[to] = moved;
    for (int64_t i = 0; i < p->n_loops; i++) {
        p->loop[i].begin -= p->loop[i].begin > t;
        p->loop[i].end -= p->loop[i].end > t;
    }
}

/* Does anything at or after item t, other than the writer itself, still want the old contents? */
static bool wanted_later(const fth_plan *p, int64_t t, int input)
{
    for (int64_t j = t + 1; j < p->n_items; j++)
        for (int k = 0; k < FTH_MAX_IN; k++) {
            const int b = fth__buf_storage(p, p->item[j].in[k]);
            if (b >= 0 && p->buf[b].kind == FTH__BUF_FOREIGN && p->buf[b].input == input)
                return true;
        }
    return false;
}

/* The writer reads the parameter too: every element must be read before it is overwritten. */
static bool safe_with_itself(const fth_plan *p, const fth__item *it, int out, int input)
{
    const fth_node *n = p->unit[it->unit].node;
    for (int k = 0; k < n->n_in; k++) {
        const fth__buf *b = &p->buf[fth__buf_storage(p, it->in[k])];
        if (b->kind != FTH__BUF_FOREIGN || b->input != input) continue;
        if (n->in[k].n_axes != n->out[out].n_axes) return false;
        for (int d = 0; d < n->in[k].n_axes; d++)
            if (n->in[k].axis[d] != n->out[out].axis[d]) return false;
        if (!fth__program_allows(n->attr, k, out)) return false;
    }
    return true;
}

static bool write_straight(fth_plan *p, int64_t commit)
{
    const fth__item *c = &p->item[commit];
    const int buf = c->in[0];
    if (p->buf[buf].kind != FTH__BUF_ARENA) return false;
    const int64_t t = maker(p, buf);
    if (t < p->late) return false;
    const fth_node *assign = p->unit[c->unit].node;
    const int input = ((const fth__input_attr *)fth__val_node(assign->in_val[0])->attr)->index;
    int out = -1, readers = 0;
    for (int o = 0; o < FTH_MAX_OUT; o++)
        if (p->item[t].out[o] == buf) out = o;
    for (int64_t j = 0; j < p->n_items; j++) readers += reads(p, &p->item[j], buf);
    if (readers != 1 || wanted_later(p, t, input) || !safe_with_itself(p, &p->item[t], out, input))
        return false;
    p->buf[buf].kind = FTH__BUF_FOREIGN;
    p->buf[buf].input = input;
    return true;
}

void fth__plan_commit_in_place(fth_plan *p)
{
    p->late = first_commit(p);
    for (int64_t t = p->late - 1; t >= 0; t--) {
        const fth__item *it = &p->item[t];
        bool feeds = false;
        for (int64_t j = first_commit(p); it->kind == FTH__STEP && j < p->n_items; j++)
            for (int o = 0; o < FTH_MAX_OUT; o++)
                feeds |= it->out[o] >= 0 && reads(p, &p->item[j], it->out[o]);
        if (!feeds || !may_wait(p, t)) continue;
        postpone(p, t);
        p->late--;
    }
    for (int64_t j = first_commit(p); j < p->n_items; j++) {
        if (!write_straight(p, j)) continue;
        memmove(&p->item[j], &p->item[j + 1], sizeof p->item[j] * (size_t)(p->n_items - j - 1));
        p->n_items--;
        j--;
    }
}
