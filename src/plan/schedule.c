/* schedule.c - from units to a program: steps inside loops, and the buffers they use.
 *
 * Streaming axes are applied outermost first. Each cuts its list of units into passes; the units
 * of a pass go into a loop and, when a second axis is given, are cut again inside it. A value is
 * bound to one buffer at a time; buffers made inside a loop are unbound when it ends.
 */
#include "base/assert.h"
#include "mem/heap.h"
#include "plan/plan.h"

#include <stdlib.h>
#include <string.h>

typedef struct maker {
    fth_plan *p;
    fth_axis_id axis[FTH__MAX_DEPTH];
    fth__segment seg[FTH__MAX_DEPTH]; /* of the loops around the place being written */
    int *bound;                       /* per value: buffer; -1 */
    int *out_of;                      /* per value: output number; -1 */
    bool *written;                    /* per output */
    int *made;                        /* per unit: how many times */
    int *above;                       /* per value, while views are bound: the view of it */
    bool *assigned;                   /* per input: it gets a new value */
    bool any_loop;
} maker;

static int path_depth(const fth_plan *p, int loop)
{
    return loop < 0 ? 0 : p->loop[loop].depth + 1;
}

static const fth__unit *maker_of(const maker *m, uint32_t value)
{
    const int u = m->p->unit_of[value];
    return u < 0 ? NULL : &m->p->unit[u];
}

static bool is_alias(const fth__unit *u)
{
    return u && (u->node->op->flags & FTH_OP_ALIAS);
}

static const fth_desc *value_desc(const fth_plan *p, uint32_t value)
{
    return fth__val_desc(fth__val_at(p->graph, value));
}

static const fth__input *graph_input(const fth_plan *p, uint32_t value)
{
    const fth_node *n = fth__val_node(fth__val_at(p->graph, value));
    if (n->op != &fth__op_input) return NULL;
    return &p->graph->input[((const fth__input_attr *)n->attr)->index];
}

/* ---- buffers and items ---- */

fth_status fth__plan_add_buf(fth_plan *p, fth__buf_kind kind, uint32_t value, int owner, int *out,
                             fth_err *err)
{
    FTH_ASSERT(value > 0 && value < p->graph->n_values && owner < p->n_loops);
    FTH_TRY(fth__grow(p->mem, &p->buf, &p->cap_bufs, p->n_bufs + 1, err));
    fth__buf *b = &p->buf[p->n_bufs];
    *b = (fth__buf){.kind = kind,
                    .value = value,
                    .owner_loop = owner,
                    .in_place = -1,
                    .input = -1,
                    .output = -1,
                    .base = -1,
                    .unit = -1};
    b->desc = *value_desc(p, value);
    b->element = fth_dtype_size(b->desc.dtype);
    *out = (int)p->n_bufs++;
    return FTH_OK;
}

static fth_status add_item(fth_plan *p, fth__item_kind kind, int loop, fth__item **out,
                           fth_err *err)
{
    FTH_TRY(fth__grow(p->mem, &p->item, &p->cap_items, p->n_items + 1, err));
    fth__item *it = &p->item[p->n_items++];
    *it = (fth__item){.kind = kind,
                      .loop = loop,
                      .unit = -1,
                      .scratch = -1,
                      .acc = -1,
                      .acc_dim = -1,
                      .partial = -1,
                      .split_dim = -1};
    for (int i = 0; i < FTH_MAX_IN; i++) it->in[i] = -1;
    for (int i = 0; i < FTH_MAX_OUT; i++) it->out[i] = it->state[i] = -1;
    for (int i = 0; i < FTH__MAX_DEPTH; i++) it->sdim[i] = -1;
    *out = it;
    return FTH_OK;
}

/* Put the last item before the outermost loop around `loop`: it does not depend on any iteration.
 */
static void hoist_last(fth_plan *p, int loop)
{
    while (p->loop[loop].parent >= 0) loop = p->loop[loop].parent;
    const int at = p->loop[loop].begin, last = (int)p->n_items - 1;
    FTH_ASSERT(at >= 0 && at < last && p->item[at].kind == FTH__BEGIN);
    const fth__item moved = p->item[last];
    memmove(&p->item[at + 1], &p->item[at], sizeof moved * (size_t)(last - at));
    p->item[at] = moved;
    p->item[at].loop = -1;
    for (int64_t i = 0; i < p->n_loops; i++) {
        p->loop[i].begin += p->loop[i].begin >= at;
        p->loop[i].end += p->loop[i].end >= at;
    }
}

static void add_span(fth__buf *b, int loop, int dim)
{
    FTH_ASSERT(b->n_span < FTH__MAX_DEPTH && dim >= 0 && dim < b->desc.n_axes);
    b->span[b->n_span++] = (fth__span){.loop = loop, .dim = dim};
}

/* Dimension of a value that follows the loop; -1. */
static int follows(const fth__sweep *l, const fth_desc *d)
{
    for (int i = 0; i < d->n_axes; i++)
        if (d->axis[i] == l->axis) return i;
    for (int i = 0; i < d->n_axes; i++)
        if (l->map[d->axis[i]].in) return i;
    return -1;
}

/* Read an input: tiles follow the loops around `loop` that its axes follow. */
static fth_status bind_input(maker *m, uint32_t value, int loop, fth_err *err)
{
    fth_plan *p = m->p;
    const fth__input *in = graph_input(p, value);
    int path[FTH__MAX_DEPTH], buf;
    const int depth = fth__sweep_path(p, loop, path);
    if (fth__plan_in_place(p, in)) {
        FTH_TRY(fth__plan_add_buf(p, FTH__BUF_FOREIGN, value, -1, &buf, err));
        p->buf[buf].input = (int)(in - p->graph->input);
        m->bound[value] = buf;
        return FTH_OK;
    }
    int owner = -1;
    for (int i = 0; i < depth; i++)
        if (follows(&p->loop[path[i]], value_desc(p, value)) >= 0) owner = path[i];
    FTH_TRY(fth__plan_add_buf(p, FTH__BUF_ARENA, value, owner, &buf, err));
    fth__buf *b = &p->buf[buf];
    b->input = (int)(in - p->graph->input);
    b->double_buffered = owner >= 0;
    for (int i = 0; i < depth; i++) {
        const int dim = follows(&p->loop[path[i]], &b->desc);
        if (dim >= 0) add_span(b, path[i], dim);
    }
    m->bound[value] = buf;
    if (owner >= 0) return FTH_OK; /* the loop reads it at the start of each iteration */
    fth__item *it;
    FTH_TRY(add_item(p, FTH__READ, loop, &it, err));
    it->out[0] = buf;
    if (loop >= 0) hoist_last(p, loop);
    return FTH_OK;
}

static fth_status bind_value(maker *m, uint32_t value, int loop, fth_err *err)
{
    fth_plan *p = m->p;
    if (m->bound[value] >= 0) return FTH_OK;
    if (!maker_of(m, value) && graph_input(p, value)) return bind_input(m, value, loop, err);
    char text[384];
    return FTH_FAIL(err, FTH_E_INTERNAL, "planner: %s is used before it is made",
                    fth_val_format(fth__val_at(p->graph, value), text, sizeof text));
}

/* The buffer that holds a value here; binds inputs and views on demand. Views of views may be many:
 * down to what is bound or no view, then up again. */
static fth_status find_buf(maker *m, uint32_t value, int loop, int *out, fth_err *err)
{
    fth_plan *p = m->p;
    uint32_t v = value;
    for (const fth__unit *u; m->bound[v] < 0 && is_alias(u = maker_of(m, v));) {
        const uint32_t base = u->node->in_val[0].id;
        m->above[base] = (int)v;
        v = base;
    }
    FTH_TRY(bind_value(m, v, loop, err));
    for (uint32_t base = v; v != value; base = v) {
        int buf;
        v = (uint32_t)m->above[base];
        FTH_ASSERT(m->bound[base] >= 0 && m->bound[v] < 0);
        FTH_TRY(
            fth__plan_add_buf(p, FTH__BUF_VIEW, v, p->buf[m->bound[base]].owner_loop, &buf, err));
        p->buf[buf].base = m->bound[base];
        p->buf[buf].unit = p->unit_of[v];
        m->bound[v] = buf;
    }
    *out = m->bound[value];
    return FTH_OK;
}

static fth_status write_output(maker *m, int buf, int output, fth_err *err)
{
    fth_plan *p = m->p;
    FTH_ASSERT(!m->written[output]);
    m->written[output] = true;
    if (p->buf[buf].kind == FTH__BUF_DIRECT) return FTH_OK;
    fth__item *it;
    FTH_TRY(add_item(p, FTH__WRITE, -1, &it, err));
    it->in[0] = buf;
    it->unit = output;
    return FTH_OK;
}

/* ---- steps
 * -----------------------------------------------------------------------------------------------
 */

/* Where an output lives: outside the outermost loop that sums it up or needs it whole. */
static int output_owner(const maker *m, int unit, uint32_t value, int loop)
{
    int path[FTH__MAX_DEPTH];
    const int depth = fth__sweep_path(m->p, loop, path);
    for (int i = 0; i < depth; i++)
        if (m->seg[i].role[unit] == FTH__ROLE_ACC || m->seg[i].whole[value])
            return m->p->loop[path[i]].parent;
    return loop;
}

static fth_status bind_output(maker *m, int unit, int o, int loop, int *out, fth_err *err)
{
    fth_plan *p = m->p;
    const fth_node *n = p->unit[unit].node;
    const uint32_t value = n->out_val[o].id;
    int path[FTH__MAX_DEPTH];
    const int depth = fth__sweep_path(p, loop, path);
    const int output = m->out_of[value];
    if (output >= 0 && p->out_direct[output]) {
        if (m->bound[value] < 0) {
            FTH_TRY(fth__plan_add_buf(p, FTH__BUF_DIRECT, value, -1, out, err));
            p->buf[*out].output = output;
            m->written[output] = true;
        } else {
            *out = m->bound[value];
        }
        m->bound[value] = *out;
        return FTH_OK;
    }
    const int owner = output_owner(m, unit, value, loop);
    FTH_TRY(fth__plan_add_buf(p, FTH__BUF_ARENA, value, owner, out, err));
    fth__buf *b = &p->buf[*out];
    for (int i = 0; i < depth && owner >= 0 && i <= p->loop[owner].depth; i++) {
        const int dim = fth__out_dim(n, o, m->seg[i].sdim[unit]);
        if (dim >= 0) add_span(b, path[i], dim);
    }
    m->bound[value] = *out;
    if (output >= 0 && !m->written[output] && owner >= 0) {
        b->output = output;
        b->double_buffered = true;
        m->written[output] = true;
    }
    return FTH_OK;
}

static fth_status add_scratch(fth_plan *p, int item, const fth_node *n, fth_err *err)
{
    int buf;
    FTH_TRY(fth__plan_add_buf(p, FTH__BUF_ARENA, n->out_val[0].id, p->item[item].loop, &buf, err));
    p->buf[buf].desc = (fth_desc){0};
    p->buf[buf].element = 0; /* bytes are set when the step's calls are known */
    p->buf[buf].role = "(workspace)";
    p->item[item].scratch = buf;
    return FTH_OK;
}

/* Dimension of out[0] that a step carries along; -1. */
static int carried_dim(const fth__unit *u)
{
    int dim = -1;
    for (int k = 0; k < u->node->n_in; k++)
        for (int d = 0; d < u->node->in[k].n_axes; d++)
            if (u->rel[k][d].along == FTH_CARRY) dim = u->rel[k][d].out_dim;
    return dim;
}

static fth_status add_state(fth_plan *p, int item, const fth_node *n, int o, fth_err *err)
{
    fth__item *it = &p->item[item];
    const uint64_t element = fth__node_state(n, o);
    if (element == 0) return FTH_OK;
    int buf, path[FTH__MAX_DEPTH];
    const int depth = fth__sweep_path(p, it->loop, path);
    FTH_ASSERT(it->acc < depth);
    const int owner = it->acc >= 0 ? p->loop[path[it->acc]].parent : it->loop;
    FTH_TRY(fth__plan_add_buf(p, FTH__BUF_ARENA, n->out_val[o].id, owner, &buf, err));
    it = &p->item[item];
    fth__buf *b = &p->buf[buf];
    b->element = (int64_t)element;
    b->role = "(state)";
    /* the state has the shape of what the step makes where the state lives, even when that goes
     * into a block that holds the whole value */
    for (int i = 0; owner >= 0 && i <= p->loop[owner].depth; i++) {
        const int dim = fth__out_dim(n, o, it->sdim[i]);
        if (dim >= 0) add_span(b, path[i], dim);
    }
    it->acc_dim = carried_dim(&p->unit[it->unit]);
    const int once = fth__out_dim(n, o, it->acc_dim); /* an axis carried along counts once */
    if (once >= 0) b->desc.size[once] = 1;
    it->state[o] = buf;
    return FTH_OK;
}

/* A parameter that goes into another one, and itself gets a new value, is copied before any assign:
 * no order of them is right for two that change places. */
static fth_status copy_param(maker *m, int unit, fth_err *err)
{
    fth_plan *p = m->p;
    const uint32_t value = p->unit[unit].node->in_val[1].id;
    int buf;
    FTH_TRY(find_buf(m, value, -1, &buf, err));
    const int from = fth__buf_storage(p, buf), input = p->buf[from].input;
    if (p->buf[from].kind != FTH__BUF_FOREIGN || !m->assigned[input]) return FTH_OK;
    FTH_TRY(fth__plan_add_buf(p, FTH__BUF_ARENA, p->buf[from].value, -1, &buf, err));
    p->buf[buf].input = input;
    m->bound[value] = buf;
    fth__item *it;
    FTH_TRY(add_item(p, FTH__READ, -1, &it, err));
    it->out[0] = buf;
    return FTH_OK;
}

static fth_status emit_commit(maker *m, int unit, fth_err *err)
{
    fth_plan *p = m->p;
    const fth_node *n = p->unit[unit].node;
    int in;
    FTH_TRY(find_buf(m, n->in_val[1].id, -1, &in, err));
    fth__item *it;
    FTH_TRY(add_item(p, FTH__COMMIT, -1, &it, err));
    it->in[0] = in;
    it->unit = unit;
    return FTH_OK;
}

static fth_status emit_step(maker *m, int unit, int loop, fth_err *err)
{
    fth_plan *p = m->p;
    const fth_node *n = p->unit[unit].node;
    if (is_alias(&p->unit[unit]) || n->op == &fth__op_assign) return FTH_OK;
    FTH_ASSERT(n->n_in <= FTH_MAX_IN && n->n_out >= 1 && n->n_out <= FTH_MAX_OUT);
    int in[FTH_MAX_IN], path[FTH__MAX_DEPTH];
    const int depth = fth__sweep_path(p, loop, path);
    for (int k = 0; k < n->n_in; k++) FTH_TRY(find_buf(m, n->in_val[k].id, loop, &in[k], err));
    fth__item *it;
    FTH_TRY(add_item(p, FTH__STEP, loop, &it, err));
    const int item = (int)p->n_items - 1;
    it->unit = unit;
    for (int k = 0; k < n->n_in; k++) it->in[k] = in[k];
    for (int i = 0; i < depth; i++) {
        it->sdim[i] = m->seg[i].sdim[unit];
        if (m->seg[i].role[unit] == FTH__ROLE_ACC || m->seg[i].carry[unit]) it->acc = i;
    }
    for (int o = 0; o < n->n_out; o++) {
        int buf;
        FTH_TRY(bind_output(m, unit, o, loop, &buf, err));
        p->item[item].out[o] = buf;
    }
    for (int o = 0; o < n->n_out; o++) FTH_TRY(add_state(p, item, n, o, err));
    FTH_TRY(add_scratch(p, item, n, err));
    m->made[unit]++;
    for (int o = 0; o < n->n_out && loop < 0; o++) {
        const int output = m->out_of[n->out_val[o].id];
        if (output >= 0 && !m->written[output])
            FTH_TRY(write_output(m, p->item[item].out[o], output, err));
    }
    return FTH_OK;
}

/* ---- passes
 * ------------------------------------------------------------------------------------------------
 */

/* The units of a list by pass, and what choosing those of one pass needs. */
typedef struct passes {
    int *first; /* per pass: its units are unit[first[pass] .. first[pass+1]) */
    int *unit;
    int *stamp; /* per unit of the plan: the last pass that has it, and one */
    int *list;  /* units of the pass at hand */
    int *spare; /* as long as both of these */
} passes;

static fth_status sort_passes(const maker *m, const fth__segment *s, const int *units, int n,
                              passes *ps, fth_err *err)
{
    const fth_plan *p = m->p;
    FTH_TRY(fth__heap_take(p->mem, s->n_pass + 3, sizeof *ps->first, (void **)&ps->first, err));
    FTH_TRY(fth__heap_take(p->mem, n + 1, sizeof *ps->unit, (void **)&ps->unit, err));
    FTH_TRY(fth__heap_take(p->mem, p->n_units + 1, sizeof *ps->stamp, (void **)&ps->stamp, err));
    FTH_TRY(fth__heap_take(p->mem, n + 1, sizeof *ps->list, (void **)&ps->list, err));
    FTH_TRY(fth__heap_take(p->mem, 2 * n + 2, sizeof *ps->spare, (void **)&ps->spare, err));
    for (int i = 0; i < n; i++) ps->first[s->pass[units[i]] + 2]++;
    for (int pass = 2; pass < s->n_pass + 3; pass++) ps->first[pass] += ps->first[pass - 1];
    for (int i = 0; i < n; i++) ps->unit[ps->first[s->pass[units[i]] + 1]++] = units[i];
    FTH_ASSERT(ps->first[0] == 0 && ps->first[s->n_pass + 1] == n); /* each is in one pass */
    return FTH_OK;
}

static void clear_passes(const maker *m, passes *ps)
{
    fth__heap_free(m->p->mem, ps->first);
    fth__heap_free(m->p->mem, ps->unit);
    fth__heap_free(m->p->mem, ps->stamp);
    fth__heap_free(m->p->mem, ps->list);
    fth__heap_free(m->p->mem, ps->spare);
}

/* The pass must deliver what this unit makes: a sum, an output, a value kept whole. */
static bool delivers(const maker *m, const fth__segment *s, int u, int depth)
{
    const fth_node *n = m->p->unit[u].node;
    bool any = false;
    for (int o = 0; o < n->n_out; o++) {
        const uint32_t v = n->out_val[o].id;
        any |= s->role[u] == FTH__ROLE_ACC || s->whole[v] || m->out_of[v] >= 0;
        for (int d = 0; d < depth; d++) /* or a loop further out wants it */
            any |= m->seg[d].role[u] == FTH__ROLE_ACC || m->seg[d].whole[v];
    }
    return any;
}

static int by_number(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* A unit of the pass at hand that an earlier one has made already, and that is not in the new order
 * yet, which u reads; -1. */
static int needs_again(const maker *m, const fth__segment *s, const passes *ps, int pass, int u)
{
    const fth_plan *p = m->p;
    const fth_node *n = p->unit[u].node;
    for (int k = 0; k < n->n_in; k++) {
        const int from = p->unit_of[n->in_val[k].id];
        if (from >= 0 && ps->stamp[from] == pass + 1 && s->pass[from] < pass) return from;
    }
    return -1;
}

/* What is made again is made just before it is read: its block is not held while others of the pass
 * need theirs. The rest stays in the order of the program. */
static void delay_remade(const maker *m, const fth__segment *s, passes *ps, int pass, int count)
{
    int *order = ps->spare, *stack = ps->spare + count, done = 0;
    for (int i = 0; i < count; i++) {
        int depth = 0;
        if (s->pass[ps->list[i]] >= pass) stack[depth++] = ps->list[i];
        while (depth > 0) {
            const int u = stack[depth - 1], first = needs_again(m, s, ps, pass, u);
            if (first >= 0) {
                FTH_ASSERT(depth < count);
                stack[depth++] = first;
                continue;
            }
            ps->stamp[u] = -1;
            order[done++] = u;
            depth--;
        }
    }
    FTH_ASSERT(done == count); /* what is made again is read by something of the pass */
    memcpy(ps->list, order, sizeof *order * (size_t)count);
}

/* Units of a pass: what it must deliver, and what that needs. */
static int pass_units(const maker *m, const fth__segment *s, passes *ps, int pass, int depth)
{
    const fth_plan *p = m->p;
    int count = 0;
    for (int i = ps->first[pass]; i < ps->first[pass + 1]; i++) {
        const int u = ps->unit[i];
        if (s->role[u] == FTH__ROLE_WHOLE || !delivers(m, s, u, depth)) continue;
        ps->stamp[u] = pass + 1;
        ps->list[count++] = u;
    }
    for (int i = 0; i < count; i++) {
        const fth_node *n = p->unit[ps->list[i]].node;
        for (int k = 0; k < n->n_in; k++) {
            const uint32_t v = n->in_val[k].id;
            const int from = p->unit_of[v];
            const bool streamed = from >= 0 && s->role[from] == FTH__ROLE_STREAM;
            if (!streamed || (s->whole[v] && s->pass[from] < pass) || ps->stamp[from] == pass + 1)
                continue;
            ps->stamp[from] = pass + 1;
            ps->list[count++] = from;
        }
    }
    qsort(ps->list, (size_t)count, sizeof *ps->list, by_number);
    delay_remade(m, s, ps, pass, count);
    return count;
}

/* Before a loop begins: bind what it uses whole. What follows the loop piece by piece stays unbound
 * and is read inside. */
static fth_status bind_outside(maker *m, const fth__segment *s, const int *list, int n, int loop,
                               fth_err *err)
{
    fth_plan *p = m->p;
    const int depth = path_depth(p, loop);
    const bool deeper = depth + 1 < FTH__MAX_DEPTH && m->axis[depth + 1] >= 0;
    for (int i = 0; i < n; i++) {
        const fth__unit *u = &p->unit[list[i]];
        if (u->node->op == &fth__op_assign) continue;
        for (int k = 0; k < u->node->n_in; k++) {
            uint32_t v = u->node->in_val[k].id;
            bool piecewise = false, whole = false;
            for (int d = 0; d < u->node->in[k].n_axes; d++)
                if (s->map[u->node->in[k].axis[d]].in) {
                    piecewise |= u->rel[k][d].along != FTH_WHOLE;
                    whole |= u->rel[k][d].along == FTH_WHOLE;
                }
            const int from = p->unit_of[v];
            if (from >= 0 && s->role[from] != FTH__ROLE_WHOLE && !whole)
                continue; /* made in the loop */
            if (m->bound[v] >= 0 || (from < 0 && piecewise && !whole)) continue;
            if (from < 0 && deeper && !whole) continue; /* the inner axis may cut it */
            int buf;
            FTH_TRY(find_buf(m, v, loop, &buf, err));
        }
    }
    return FTH_OK;
}

static fth_status begin_loop(maker *m, const fth__segment *s, int depth, int parent, int *out,
                             fth_err *err)
{
    fth_plan *p = m->p;
    int pass = 0;
    FTH_ASSERT(depth < FTH__MAX_DEPTH && depth == path_depth(p, parent) && s->grid >= 1);
    /* one more than the latest beside it, behind which are only loops inside that one */
    for (int64_t i = p->n_loops - 1; i > parent; i--) {
        if (p->loop[i].parent != parent) continue;
        pass = p->loop[i].pass + 1;
        break;
    }
    FTH_TRY(fth__grow(p->mem, &p->loop, &p->cap_loops, p->n_loops + 1, err));
    fth__sweep *l = &p->loop[p->n_loops];
    *l = (fth__sweep){
        .axis = m->axis[depth], .grid = s->grid, .parent = parent, .depth = depth, .pass = pass};
    FTH_TRY(fth__heap_take(p->mem, p->graph->n_axes, sizeof *l->map, (void **)&l->map, err));
    l->n_map = p->graph->n_axes;
    memcpy(l->map, s->map, sizeof *l->map * (size_t)l->n_map);
    for (int64_t a = 0; a < l->n_map; a++) l->ragged |= l->map[a].row_ptr != NULL;
    l->size = p->graph->axis[l->axis]->size;
    fth__sweep_set_chunk(l, l->size);
    *out = (int)p->n_loops++;
    fth__item *it;
    FTH_TRY(add_item(p, FTH__BEGIN, *out, &it, err));
    p->loop[*out].begin = (int)p->n_items - 1;
    m->any_loop = true;
    return FTH_OK;
}

/* Buffers from number `first` on were made in the loop; those that each iteration makes anew go. */
static fth_status end_loop(maker *m, int loop, int64_t first, fth_err *err)
{
    fth_plan *p = m->p;
    fth__item *it;
    FTH_TRY(add_item(p, FTH__END, loop, &it, err));
    p->loop[loop].end = (int)p->n_items - 1;
    FTH_ASSERT(p->loop[loop].begin < p->loop[loop].end);
    for (int64_t b = first; b < p->n_bufs; b++)
        if (p->buf[b].owner_loop == loop && m->bound[p->buf[b].value] == b)
            m->bound[p->buf[b].value] = -1;
    if (p->loop[loop].parent >= 0) return FTH_OK;
    for (int o = 0; o < p->n_outs; o++) {
        const int buf = m->bound[p->out_value[o]];
        const bool ready = buf >= 0 && p->buf[buf].owner_loop < 0;
        if (ready && !m->written[o] && p->unit_of[p->out_value[o]] >= 0)
            FTH_TRY(write_output(m, buf, o, err));
    }
    return FTH_OK;
}

static fth_status emit_units(maker *m, const int *units, int n, int loop, fth_err *err);

static fth_status emit_pass(maker *m, fth__segment *s, passes *ps, int pass, int loop, fth_err *err)
{
    fth_plan *p = m->p;
    int inner;
    const int depth = path_depth(p, loop);
    const int count = pass_units(m, s, ps, pass, depth);
    if (count == 0) return FTH_OK;
    FTH_TRY(bind_outside(m, s, ps->list, count, loop, err));
    FTH_TRY(begin_loop(m, s, depth, loop, &inner, err));
    const int64_t first = p->n_bufs;
    m->seg[depth] = *s;
    fth_status st = emit_units(m, ps->list, count, inner, err);
    if (st == FTH_OK) st = end_loop(m, inner, first, err);
    memset(&m->seg[depth], 0, sizeof m->seg[depth]);
    return st;
}

static fth_status emit_plain(maker *m, const int *units, int n, int loop, fth_err *err)
{
    for (int i = 0; i < n; i++) FTH_TRY(emit_step(m, units[i], loop, err));
    return FTH_OK;
}

/* A unit behind an alias keeps its own block whole when the alias is needed whole; and a value
 * that goes straight into a sink's memory is whole there anyway. */
static void settle_whole(const maker *m, fth__segment *s, const int *units, int n)
{
    const fth_plan *p = m->p;
    for (int o = 0; o < p->n_outs; o++)
        if (p->out_direct[o]) s->whole[p->out_value[o]] = true;
    for (int i = 0; i < n; i++) {
        const fth_node *node = p->unit[units[i]].node;
        for (int o = 0; s->role[units[i]] == FTH__ROLE_STREAM && o < node->n_out; o++)
            if (p->keep[node->out_val[o].id]) s->whole[node->out_val[o].id] = true;
    }
    for (int i = n - 1; i >= 0; i--) {
        const fth__unit *u = &p->unit[units[i]];
        const uint32_t out = u->node->out_val[0].id;
        if (is_alias(u) && (s->whole[out] || m->out_of[out] >= 0))
            s->whole[u->node->in_val[0].id] = true;
    }
}

static fth_status emit_passes(maker *m, fth__segment *s, passes *ps, int loop, fth_err *err)
{
    for (int pass = 0; pass <= s->n_pass; pass++) {
        for (int i = ps->first[pass]; i < ps->first[pass + 1]; i++)
            if (s->role[ps->unit[i]] == FTH__ROLE_WHOLE)
                FTH_TRY(emit_step(m, ps->unit[i], loop, err));
        if (pass < s->n_pass) FTH_TRY(emit_pass(m, s, ps, pass, loop, err));
    }
    return FTH_OK;
}

static fth_status emit_cut(maker *m, fth__segment *s, const int *units, int n, int loop,
                           fth_err *err)
{
    passes ps = {0};
    settle_whole(m, s, units, n);
    fth_status st = sort_passes(m, s, units, n, &ps, err);
    if (st == FTH_OK) st = emit_passes(m, s, &ps, loop, err);
    clear_passes(m, &ps);
    return st;
}

static fth_status emit_units(maker *m, const int *units, int n, int loop, fth_err *err)
{
    const int depth = path_depth(m->p, loop);
    if (depth >= FTH__MAX_DEPTH || m->axis[depth] < 0) return emit_plain(m, units, n, loop, err);
    fth__segment s;
    bool useful;
    fth_status st =
        fth__segment_make(m->p, units, n, m->axis[depth], m->seg, depth, &s, &useful, err);
    if (st == FTH_OK)
        st = useful ? emit_cut(m, &s, units, n, loop, err) : emit_plain(m, units, n, loop, err);
    fth__segment_clear(m->p, &s);
    return st;
}

/* Assigns last: a run that fails before them has changed nothing. Then outputs nothing computes. */
static fth_status emit_rest(maker *m, fth_err *err)
{
    fth_plan *p = m->p;
    for (int o = 0; o < p->n_outs; o++) {
        const int u = p->unit_of[p->out_value[o]];
        if (m->written[o] || (u >= 0 && p->unit[u].node->op == &fth__op_assign)) continue;
        int buf;
        FTH_TRY(find_buf(m, p->out_value[o], -1, &buf, err));
        FTH_TRY(write_output(m, buf, o, err));
    }
    for (int i = 0; i < p->n_units; i++)
        if (p->unit[i].node->op == &fth__op_assign) FTH_TRY(copy_param(m, i, err));
    for (int i = 0; i < p->n_units; i++)
        if (p->unit[i].node->op == &fth__op_assign) FTH_TRY(emit_commit(m, i, err));
    return FTH_OK;
}

static fth_status prepare(maker *m, fth_err *err)
{
    fth_plan *p = m->p;
    const int64_t n = p->graph->n_values;
    FTH_TRY(fth__heap_take(p->mem, n, sizeof *m->bound, (void **)&m->bound, err));
    FTH_TRY(fth__heap_take(p->mem, n, sizeof *m->out_of, (void **)&m->out_of, err));
    FTH_TRY(fth__heap_take(p->mem, p->n_outs + 1, sizeof *m->written, (void **)&m->written, err));
    FTH_TRY(fth__heap_take(p->mem, p->n_units + 1, sizeof *m->made, (void **)&m->made, err));
    FTH_TRY(fth__heap_take(p->mem, n, sizeof *m->above, (void **)&m->above, err));
    FTH_TRY(fth__heap_take(p->mem, p->graph->n_inputs + 1, sizeof *m->assigned,
                           (void **)&m->assigned, err));
    for (int64_t i = 0; i < n; i++) m->bound[i] = m->out_of[i] = -1;
    for (int o = p->n_outs - 1; o >= 0; o--) { /* the first of one value; it writes the others */
        if (p->out_next[o] >= 0) m->written[p->out_next[o]] = true;
        m->out_of[p->out_value[o]] = o;
    }
    for (int64_t i = 0; i < p->n_units; i++) {
        const fth_node *node = p->unit[i].node;
        if (node->op != &fth__op_assign) continue;
        m->assigned[((const fth__input_attr *)fth__val_node(node->in_val[0])->attr)->index] = true;
    }
    return FTH_OK;
}

void fth__plan_unschedule(fth_plan *p)
{
    for (int64_t i = 0; i < p->n_loops; i++) fth__heap_free(p->mem, p->loop[i].map);
    p->n_loops = p->n_bufs = p->n_items = 0;
    p->recomputed = p->spilled = 0;
}

fth_status fth__plan_schedule(fth_plan *p, const fth_axis_id axis[FTH__MAX_DEPTH], fth_err *err)
{
    fth__plan_unschedule(p);
    maker m = {.p = p};
    memcpy(m.axis, axis, sizeof m.axis);
    memcpy(p->axis, axis, sizeof p->axis);
    int *units = NULL;
    fth_status s = prepare(&m, err);
    if (s == FTH_OK)
        s = fth__heap_take(p->mem, p->n_units + 1, sizeof *units, (void **)&units, err);
    for (int i = 0; s == FTH_OK && i < p->n_units; i++) units[i] = i;
    if (s == FTH_OK) s = emit_units(&m, units, (int)p->n_units, -1, err);
    if (s == FTH_OK) s = emit_rest(&m, err);
    if (s == FTH_OK) s = fth__plan_commit_in_place(p, err);
    if (s == FTH_OK) s = fth__plan_share(p, err);
    for (int64_t i = 0; s == FTH_OK && i < p->n_units; i++) p->recomputed += m.made[i] > 1;
    fth__heap_free(p->mem, units);
    fth__heap_free(p->mem, m.bound);
    fth__heap_free(p->mem, m.out_of);
    fth__heap_free(p->mem, m.written);
    fth__heap_free(p->mem, m.made);
    fth__heap_free(p->mem, m.above);
    fth__heap_free(p->mem, m.assigned);
    if (s == FTH_OK) fth__plan_assert_schedule(p);
    return s;
}
