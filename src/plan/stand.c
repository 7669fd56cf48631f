/* stand.c - where an earlier value may stand for a later one that is equal to it.
 *
 * It is alive for longer then, so that making it once could cost bytes. The rules follow from the
 * graph alone, never from the budget: what is fused may not depend on that. Lifetimes are those of
 * a plan of everything at once, in the order of the graph; streamed values are made again in later
 * passes whether they are one value or two.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "mem/heap.h"
#include "ops/ops.h"
#include "plan/distinct.h"

enum {
    LIGHT = 32, /* operands weigh so many times as much: it may wait for any later use */
    NEAR = 256  /* nodes looked at between the last use and the next */
};

static int64_t bytes_of(const fth_desc *d)
{
    return fth_desc_count(d) * fth_dtype_size(d->dtype);
}

/* A program may make its result without storing it; so may the reduction of a large product. */
static bool may_vanish(const fth_node *n)
{
    if (n->op == &fth__op_dot)
        return fth_desc_count(&n->out[0]) > fth_desc_count(&n->in[0]) + fth_desc_count(&n->in[1]);
    return fth__node_may_vanish(n);
}

static bool is_light(const fth_node *n)
{
    int64_t in = 0, out = 0;
    for (int k = 0; k < n->n_in; k++) in += bytes_of(&n->in[k]);
    for (int o = 0; o < n->n_out; o++) out += bytes_of(&n->out[o]);
    return out <= in / LIGHT;
}

/* ---- lifetimes of the graph as it is written ---- */

/* Bytes of value o of node k while it is alive, as far as a plan takes them from its arena. */
static int64_t weight(const fth__spans *s, const fth_node *n, int o)
{
    const uint32_t v = n->out_val[o].id;
    if (n->op == &fth__op_input && ((const fth__input_attr *)n->attr)->in_place) return 0;
    if ((n->op->flags & FTH_OP_ALIAS) || n->op == &fth__op_assign || s->direct[v]) return 0;
    return may_vanish(n) && !s->stored[v] ? 0 : bytes_of(&n->out[o]);
}

static void find_readers(fth__spans *s)
{
    const fth_plan *p = s->p;
    const int64_t n_nodes = p->graph_nodes;
    for (int64_t k = 0; k < n_nodes; k++) {
        const fth_node *n = p->node[k];
        for (int o = 0; s->needed[k] && o < n->n_out; o++) s->last[n->out_val[o].id] = k;
        for (int i = 0; s->needed[k] && i < n->n_in; i++) {
            const uint32_t v = n->in_val[i].id;
            s->last[v] = n->op == &fth__op_assign ? n_nodes - 1 : fth__max_i64(s->last[v], k);
            if (!fth__node_may_take_in(n, i)) s->stored[v] = true;
        }
    }
    for (int o = 0; o < p->n_outs; o++) {
        s->stored[p->out_value[o]] = true;
        s->direct[p->out_value[o]] |= p->out_direct[o] != 0;
        s->goes_out[p->out_value[o]] = true;
    }
}

fth_status fth__spans_make(fth__spans *s, fth_plan *p, const bool *needed, fth_err *err)
{
    const int64_t n_nodes = p->graph_nodes, n_values = p->graph->n_values;
    *s = (fth__spans){.p = p, .needed = needed};
    FTH_TRY(fth__heap_take(p->mem, n_values, sizeof *s->last, (void **)&s->last, err));
    FTH_TRY(fth__heap_take(p->mem, n_values, sizeof *s->stored, (void **)&s->stored, err));
    FTH_TRY(fth__heap_take(p->mem, n_values, sizeof *s->direct, (void **)&s->direct, err));
    FTH_TRY(fth__heap_take(p->mem, n_values, sizeof *s->goes_out, (void **)&s->goes_out, err));
    FTH_TRY(fth__heap_take(p->mem, n_nodes + 1, sizeof *s->live, (void **)&s->live, err));
    find_readers(s);
    for (int64_t k = 0; k < n_nodes; k++) {
        const fth_node *n = p->node[k];
        for (int o = 0; needed[k] && o < n->n_out; o++) {
            const int64_t bytes = weight(s, n, o);
            s->live[k] += bytes;
            s->live[s->last[n->out_val[o].id] + 1] -= bytes;
        }
    }
    for (int64_t k = 0; k < n_nodes; k++) {
        if (k > 0) s->live[k] += s->live[k - 1];
        s->most = fth__max_i64(s->most, s->live[k]);
    }
    return FTH_OK;
}

void fth__spans_clear(fth__spans *s)
{
    fth__heap_free(s->p->mem, s->last);
    fth__heap_free(s->p->mem, s->stored);
    fth__heap_free(s->p->mem, s->direct);
    fth__heap_free(s->p->mem, s->goes_out);
    fth__heap_free(s->p->mem, s->live);
}

/* ---- the rules ---- */

/* Nodes between the last use of what i makes and the next, node j, have room for it. What costs
 * less to make than to store waits for nobody. */
static bool has_room(const fth__spans *s, const fth_node *i, int64_t j)
{
    const bool cheap = (i->op->flags & FTH_OP_CHEAP) != 0;
    for (int o = 0; o < i->n_out; o++) {
        const int64_t last = s->last[i->out_val[o].id], bytes = bytes_of(&i->out[o]);
        if (j - last > (cheap ? 0 : NEAR)) return false;
        for (int64_t k = last + 1; k < j; k++)
            if (s->live[k] + bytes > s->most) return false;
    }
    return true;
}

static bool same_operands(const fth_node *a, const fth_node *b)
{
    for (int k = 0; k < a->n_in; k++)
        if (a->in_val[k].id != b->in_val[k].id) return false;
    return true;
}

/* Numbers weigh next to nothing, and a value under another name nothing at all. What a program
 * makes on the way is not stored for the sake of being made once. */
bool fth__spans_may_stand(const fth__spans *s, int64_t i, int64_t j)
{
    const fth_node *a = s->p->node[i], *b = s->p->node[j];
    bool numbers = true, stored = true;
    FTH_ASSERT(i < j && a->n_out == b->n_out);
    for (int o = 0; o < a->n_out; o++) {
        const uint32_t x = a->out_val[o].id, y = b->out_val[o].id;
        if (s->direct[x] && s->direct[y]) return false; /* neither is in the arena */
        numbers = numbers && a->out[o].n_axes == 0;
        stored = stored && s->stored[x] && s->stored[y];
    }
    if (numbers || ((a->op->flags & FTH_OP_ALIAS) && same_operands(a, b))) return true;
    if (may_vanish(a) && !stored) return false;
    return has_room(s, a, j) || is_light(a);
}

void fth__spans_lengthen(fth__spans *s, uint32_t v, uint32_t until)
{
    s->last[v] = fth__max_i64(s->last[v], s->last[until]);
    s->stored[v] |= s->stored[until];
    s->direct[v] |= s->direct[until];
    s->goes_out[v] |= s->goes_out[until];
}

void fth__spans_stand(fth__spans *s, int64_t i, int64_t j)
{
    const fth_node *a = s->p->node[i], *b = s->p->node[j];
    for (int o = 0; o < a->n_out; o++) {
        const uint32_t v = a->out_val[o].id;
        const int64_t bytes = weight(s, a, o), last = s->last[v];
        for (int64_t k = last + 1; k < j && k - last <= NEAR; k++) s->live[k] += bytes;
        fth__spans_lengthen(s, v, b->out_val[o].id);
    }
}
