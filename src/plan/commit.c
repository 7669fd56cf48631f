/* commit.c - parameters updated in place, at the end, when nothing can fail any more.
 *
 * An elementwise step whose results only go into parameters, or an operation that says which inputs
 * it renews, is moved behind everything else and writes straight into the parameters' storage. So
 * is any step of a device that reads parameters alone and cannot fail: a transform of an array that
 * lies there is not copied; and so is a loop of such steps with what makes their gradients, piece
 * by piece. Results that something reads afterwards, or whose old values are still wanted, stay in
 * the arena and are copied by their COMMIT.
 */
#include "base/assert.h"
#include "mem/heap.h"
#include "plan/plan.h"

#include <string.h>

static uint64_t desc_bytes(const fth_desc *d)
{
    return (uint64_t)fth_desc_count(d) * (uint64_t)fth_dtype_size(d->dtype);
}

static bool is_elementwise(const fth_node *n)
{
    return n->op == &fth__op_fused && ((const fth__program *)n->attr)->tail_dim < 0 &&
           !fth__node_may_fail(n);
}

static void make_whole(const fth_desc *d, fth_tile *t)
{
    int64_t stride = 1;
    for (int i = d->n_axes - 1; i >= 0; i--) {
        t->extent[i] = d->size[i];
        t->stride[i] = stride;
        stride *= d->size[i];
    }
}

/* The CPU's kernels that use libraries may fail: those allocate. */
static bool cannot_fail(const fth_plan *p, const fth__unit *u)
{
    uint64_t more = 0;
    if (fth__node_may_fail(u->node)) return false;
    return p->device_memory || !u->kernel || !u->kernel->libraries ||
           u->kernel->libraries(u->node, &more) == 0;
}

/* Each element it reads of a parameter it reads before it is written: the step may work in place.
 */
static bool may_renew(const fth_plan *p, const fth__unit *u)
{
    return is_elementwise(u->node) || (u->node->op->update_of && cannot_fail(p, u));
}

/* Workspace of the unit in one call. */
static uint64_t whole_scratch(const fth__unit *u)
{
    const fth_node *n = u->node;
    fth_call call = {.node = n, .first = true, .last = true, .threads = 1};
    for (int k = 0; k < n->n_in; k++) make_whole(&n->in[k], &call.in[k]);
    for (int o = 0; o < n->n_out; o++) make_whole(&n->out[o], &call.out[o]);
    return fth__unit_scratch(u, &call);
}

/* An operation on a device that reads parameters alone and cannot fail. Uncut it takes no more
 * workspace than its results would in the arena. The CPU's may fail: libraries allocate. */
static bool is_direct(const fth_plan *p, const fth__unit *u)
{
    const fth_node *n = u->node;
    if (!p->device_memory || !u->kernel || n->n_in == 0 || fth__node_may_fail(n)) return false;
    for (int k = 0; k < n->n_in; k++) {
        const fth_node *from = fth__val_node(n->in_val[k]);
        if (p->unit_of[n->in_val[k].id] >= 0 || from->op != &fth__op_input) return false;
        if (!p->graph->input[((const fth__input_attr *)from->attr)->index].param) return false;
    }
    uint64_t makes = 0;
    for (int o = 0; o < n->n_out; o++) makes += desc_bytes(&n->out[o]);
    return whole_scratch(u) <= makes;
}

/* A unit that may work in place, all of whose results are assigned or wanted by nobody, and whose
 * computed operands (gradients) take no more bytes than its results would: cut into pieces, its
 * results would have to wait whole in the arena until nothing can fail; left to the end, it works
 * in place and only the operands wait. */
static bool is_update(const fth_plan *p, const fth__unit *u, const int *assigns, const int *readers)
{
    const fth_node *n = u->node;
    if (!may_renew(p, u) && !is_direct(p, u)) return false;
    uint64_t makes = 0, waits = 0;
    bool any = false;
    for (int o = 0; o < n->n_out; o++) {
        const uint32_t v = n->out_val[o].id;
        if (readers[v] != assigns[v]) return false;
        if (assigns[v] == 0) continue;
        makes += desc_bytes(&n->out[o]);
        any = true;
    }
    if (!any) return false;
    for (int k = 0; k < n->n_in; k++)
        if (p->unit_of[n->in_val[k].id] >= 0) waits += desc_bytes(&n->in[k]);
    return waits <= makes;
}

/* What it waits for, its gradient, could as well be made when it has its turn. */
static bool may_join(const fth_plan *p, const fth__unit *u)
{
    const fth_node *n = u->node;
    if (!u->update || !may_renew(p, u)) return false;
    for (int k = 0; k < n->n_in; k++) {
        const int from = p->unit_of[n->in_val[k].id];
        if (from >= 0 && n->in[k].n_axes > 0 && cannot_fail(p, &p->unit[from])) return true;
    }
    return false;
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
    for (int64_t i = 0; i < p->n_units; i++) p->unit[i].joins = may_join(p, &p->unit[i]);
    fth__heap_free(p->mem, assigns);
    return FTH_OK;
}

/* Who uses what, asked once: programs with very many parameters are ordinary. */
typedef struct uses {
    int *by_commit, *by_others; /* per buffer: items that read it */
    int64_t *maker;             /* per buffer: the step that fills it; -1 */
    int64_t *last;              /* per input: the last item that reads its memory; -1 */
} uses;

static void count_reads(const fth_plan *p, uses *u)
{
    for (int64_t t = 0; t < p->n_items; t++) {
        const fth__item *it = &p->item[t];
        int *by = it->kind == FTH__COMMIT ? u->by_commit : u->by_others;
        for (int k = 0; k < FTH_MAX_IN && it->in[k] >= 0; k++) {
            const int b = fth__buf_storage(p, it->in[k]);
            bool before = false;
            for (int j = 0; j < k; j++) before |= fth__buf_storage(p, it->in[j]) == b;
            if (!before) by[b]++;
        }
    }
}

/* By number of item: asked again once they are in their final order. */
static void find_items(const fth_plan *p, uses *u)
{
    for (int64_t b = 0; b < p->n_bufs; b++) u->maker[b] = -1;
    for (int64_t i = 0; i < p->graph->n_inputs; i++) u->last[i] = -1;
    for (int64_t t = 0; t < p->n_items; t++) {
        const fth__item *it = &p->item[t];
        for (int o = 0; it->kind == FTH__STEP && o < FTH_MAX_OUT; o++)
            if (it->out[o] >= 0 && u->maker[it->out[o]] < 0) u->maker[it->out[o]] = t;
        for (int k = 0; k < FTH_MAX_IN && it->in[k] >= 0; k++) {
            const int b = fth__buf_storage(p, it->in[k]);
            if (p->buf[b].kind == FTH__BUF_FOREIGN) u->last[p->buf[b].input] = t;
        }
    }
}

/* A step outside loops that cannot fail and feeds COMMITs and nothing else. */
static bool may_wait(const fth_plan *p, const uses *u, const fth__item *it)
{
    if (it->kind != FTH__STEP || it->loop >= 0) return false;
    const fth_node *n = p->unit[it->unit].node;
    if (!may_renew(p, &p->unit[it->unit]) && !is_direct(p, &p->unit[it->unit])) return false;
    bool feeds = false;
    for (int o = 0; o < n->n_out; o++) {
        if (u->by_others[it->out[o]] > 0) return false;
        feeds |= u->by_commit[it->out[o]] > 0;
    }
    return feeds;
}

/* The step in a loop makes its part of what it makes from the same part of what follows the loop.
 */
static bool is_plain(const fth_plan *p, const fth__item *it, const fth__sweep *l)
{
    const fth__unit *u = &p->unit[it->unit];
    for (int k = 0; k < u->node->n_in; k++)
        for (int d = 0; d < u->node->in[k].n_axes; d++) {
            const fth_relation *r = &u->rel[k][d];
            if (!l->map[u->node->in[k].axis[d]].in) continue;
            if (r->along != FTH_SAME || r->out_dim != it->sdim[0]) return false;
        }
    return true;
}

/* A step of a loop that may wait: it cannot fail, and what it makes is used up in the iteration or
 * goes into parameters. */
static bool may_wait_in_loop(const fth_plan *p, const uses *u, const fth__item *it, int loop,
                             bool *feeds)
{
    if (it->kind != FTH__STEP || it->loop != loop || it->acc >= 0 || it->sdim[0] < 0) return false;
    const fth_node *n = p->unit[it->unit].node;
    if (!cannot_fail(p, &p->unit[it->unit]) || !is_plain(p, it, &p->loop[loop])) return false;
    for (int o = 0; o < n->n_out; o++) {
        const fth__buf *b = &p->buf[it->out[o]];
        if (b->kind != FTH__BUF_ARENA || b->output >= 0) return false;
        if (b->owner_loop == loop) continue;
        if (b->owner_loop >= 0 || u->by_others[it->out[o]] > 0) return false;
        *feeds |= u->by_commit[it->out[o]] > 0;
    }
    return true;
}

/* A loop that reads and writes no files and does nothing but update parameters. */
static bool may_loop_wait(const fth_plan *p, const uses *u, int loop)
{
    bool feeds = false;
    for (int64_t b = 0; b < p->n_bufs; b++)
        if (p->buf[b].kind == FTH__BUF_ARENA && p->buf[b].owner_loop == loop &&
            p->buf[b].input >= 0)
            return false;
    for (int t = p->loop[loop].begin + 1; t < p->loop[loop].end; t++)
        if (!may_wait_in_loop(p, u, &p->item[t], loop, &feeds)) return false;
    return feeds;
}

/* How many items from t on wait together: a step, a loop, or none. */
static int64_t waiting(const fth_plan *p, const uses *u, int64_t t)
{
    const fth__item *it = &p->item[t];
    if (it->kind == FTH__BEGIN && p->loop[it->loop].depth == 0 && may_loop_wait(p, u, it->loop))
        return p->loop[it->loop].end - t + 1;
    return may_wait(p, u, it) ? 1 : 0;
}

static int64_t first_commit(const fth_plan *p)
{
    int64_t t = p->n_items;
    while (t > 0 && p->item[t - 1].kind == FTH__COMMIT) t--;
    return t;
}

/* Move what may wait to just before the COMMITs, the last of it first. */
static fth_status postpone(fth_plan *p, const uses *u, fth_err *err)
{
    const int64_t n = first_commit(p);
    fth__item *old = NULL;
    int64_t *to = NULL; /* per item: its new place */
    p->late = n;
    for (int64_t t = 0; t < n; t++) {
        const int64_t some = waiting(p, u, t);
        p->late -= some;
        t += some > 0 ? some - 1 : 0;
    }
    if (p->late == n) return FTH_OK;
    fth_status s = fth__heap_take(p->mem, n, sizeof *old, (void **)&old, err);
    if (s == FTH_OK) s = fth__heap_take(p->mem, n + 1, sizeof *to, (void **)&to, err);
    int64_t kept = 0, at = n;
    for (int64_t t = 0; s == FTH_OK && t < n;) {
        const int64_t some = waiting(p, u, t);
        at -= some;
        for (int64_t i = 0; i < some; i++) to[t++] = at + i;
        if (some == 0) to[t++] = kept++;
    }
    FTH_ASSERT(s != FTH_OK || (kept == p->late && at == p->late)); /* a permutation */
    if (s == FTH_OK) memcpy(old, p->item, sizeof *old * (size_t)n);
    for (int64_t t = 0; s == FTH_OK && t < n; t++) p->item[to[t]] = old[t];
    for (int64_t i = 0; s == FTH_OK && i < p->n_loops; i++) {
        p->loop[i].begin = (int)to[p->loop[i].begin];
        p->loop[i].end = (int)to[p->loop[i].end];
    }
    fth__heap_free(p->mem, old);
    fth__heap_free(p->mem, to);
    return s;
}

/* The writer reads the parameter too: every element must be read before it is overwritten. */
static bool safe_with_itself(const fth_plan *p, const fth__item *it, int out, int input)
{
    const fth_node *n = p->unit[it->unit].node;
    for (int k = 0; k < n->n_in; k++) {
        const fth__buf *b = &p->buf[fth__buf_storage(p, it->in[k])];
        if (b->kind != FTH__BUF_FOREIGN || b->input != input) continue;
        if (n->op->update_of && n->op->update_of(n, out) == k) continue;
        if (!is_elementwise(n)) return false;
        if (n->in[k].n_axes != n->out[out].n_axes) return false;
        for (int d = 0; d < n->in[k].n_axes; d++)
            if (n->in[k].axis[d] != n->out[out].axis[d]) return false;
        if (!fth__program_allows(n->attr, k, out)) return false;
    }
    return true;
}

/* In a loop: what earlier iterations have overwritten, later iterations do not read. */
static bool reads_own_part(const fth_plan *p, int64_t t, int out, int input)
{
    const fth__item *it = &p->item[t];
    if (it->loop < 0) return true;
    const fth_node *n = p->unit[it->unit].node;
    const fth_axis_id axis = n->out[0].axis[it->sdim[0]];
    if (fth_desc_find(&n->out[out], axis) < 0) return false;
    for (int64_t i = p->loop[it->loop].begin + 1; i < t; i++) {
        const fth__item *before = &p->item[i];
        if (before->kind != FTH__STEP) return false;
        const fth_node *m = p->unit[before->unit].node;
        for (int k = 0; k < m->n_in; k++) {
            const fth__buf *b = &p->buf[fth__buf_storage(p, before->in[k])];
            if (b->kind != FTH__BUF_FOREIGN || b->input != input) continue;
            if (p->buf[before->in[k]].kind == FTH__BUF_VIEW) return false;
            if (fth_desc_find(&m->in[k], axis) < 0) return false;
            if (m->out[0].axis[before->sdim[0]] != axis) return false;
        }
    }
    return true;
}

/* Nothing but its COMMIT reads what the step makes, and nothing after the step, or beside the same
 * element in it, wants the parameter's old contents. */
static bool write_straight(fth_plan *p, const uses *u, const fth__item *c)
{
    const int buf = c->in[0];
    if (p->buf[buf].kind != FTH__BUF_ARENA) return false;
    const int64_t t = u->maker[buf];
    if (t < p->late) return false;
    const fth_node *assign = p->unit[c->unit].node;
    const int input = ((const fth__input_attr *)fth__val_node(assign->in_val[0])->attr)->index;
    int out = -1;
    for (int o = 0; o < FTH_MAX_OUT; o++)
        if (p->item[t].out[o] == buf) out = o;
    FTH_ASSERT(out >= 0 && p->item[t].kind == FTH__STEP);
    if (u->by_commit[buf] + u->by_others[buf] != 1 || u->last[input] > t ||
        !safe_with_itself(p, &p->item[t], out, input) || !reads_own_part(p, t, out, input))
        return false;
    p->buf[buf].kind = FTH__BUF_FOREIGN;
    p->buf[buf].input = input;
    return true;
}

fth_status fth__plan_commit_in_place(fth_plan *p, fth_err *err)
{
    uses u = {0};
    const int64_t n_bufs = p->n_bufs + 1, n_inputs = p->graph->n_inputs + 1;
    p->late = first_commit(p);
    if (p->late == p->n_items) return FTH_OK;
    fth_status s = fth__heap_take(p->mem, n_bufs, sizeof *u.by_commit, (void **)&u.by_commit, err);
    if (s == FTH_OK)
        s = fth__heap_take(p->mem, n_bufs, sizeof *u.by_others, (void **)&u.by_others, err);
    if (s == FTH_OK) s = fth__heap_take(p->mem, n_bufs, sizeof *u.maker, (void **)&u.maker, err);
    if (s == FTH_OK) s = fth__heap_take(p->mem, n_inputs, sizeof *u.last, (void **)&u.last, err);
    if (s == FTH_OK) {
        count_reads(p, &u);
        s = postpone(p, &u, err);
    }
    if (s == FTH_OK) {
        find_items(p, &u);
        int64_t kept = first_commit(p);
        for (int64_t j = kept; j < p->n_items; j++)
            if (!write_straight(p, &u, &p->item[j])) p->item[kept++] = p->item[j];
        FTH_ASSERT(p->late <= kept && kept <= p->n_items);
        p->n_items = kept;
    }
    fth__heap_free(p->mem, u.by_commit);
    fth__heap_free(p->mem, u.by_others);
    fth__heap_free(p->mem, u.maker);
    fth__heap_free(p->mem, u.last);
    return s;
}
