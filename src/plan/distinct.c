/* distinct.c - the nodes that a plan makes: of equal ones the first, and constants as constants.
 *
 * Nodes are equal when operation, attribute, shapes and operands are, and operands are when what
 * makes them is. The graph stays as it is: p->node has a copy of each node that reads another value
 * than the graph says, and p->stands the values that stand for others.
 */
#include "plan/distinct.h"

#include "base/assert.h"
#include "base/hash.h"
#include "mem/heap.h"
#include "ops/elementwise.h"
#include "ops/ops.h"

#include <string.h>

typedef struct finder {
    fth_plan *p;
    fth__spans spans;
    uint32_t *equal; /* per value: the first that is equal to it */
    int64_t *slot;   /* a hash table of nodes, the first of those that are equal; -1: free */
    int64_t n_slots; /* a power of two */
    int64_t *latest; /* per node of the table: the last equal one that is made */
} finder;

/* ---- equal nodes ---- */

/* The operands, in one order where the order does not matter. */
static void name_operands(const finder *f, const fth_node *n, uint32_t *in)
{
    for (int k = 0; k < n->n_in; k++) in[k] = f->equal[n->in_val[k].id];
    const bool pair = n->op == &fth__op_map && n->n_in == 2;
    if (!pair || in[0] <= in[1] || !fth__ew_commutes(*(const fth_ew *)n->attr, n->in[0].dtype))
        return;
    const uint32_t second = in[0];
    in[0] = in[1];
    in[1] = second;
}

static bool same_node(const finder *f, const fth_node *a, const fth_node *b)
{
    uint32_t in_a[FTH_MAX_IN], in_b[FTH_MAX_IN];
    if (a->op != b->op || a->n_in != b->n_in || a->n_out != b->n_out ||
        a->attr_bytes != b->attr_bytes)
        return false;
    if (a->attr_bytes > 0 && memcmp(a->attr, b->attr, a->attr_bytes) != 0) return false;
    name_operands(f, a, in_a);
    name_operands(f, b, in_b);
    for (int k = 0; k < a->n_in; k++)
        if (in_a[k] != in_b[k]) return false;
    for (int o = 0; o < a->n_out; o++)
        if (!fth__desc_same(&a->out[o], &b->out[o])) return false;
    return true;
}

static uint64_t hash_node(const finder *f, const fth_node *n)
{
    uint32_t in[FTH_MAX_IN];
    name_operands(f, n, in);
    const uint64_t name = fth__hash_str(n->op->name, (uint64_t)n->n_in);
    const uint64_t attr = fth__hash_bytes(n->attr, (size_t)n->attr_bytes, name);
    return fth__hash_bytes(in, sizeof *in * (size_t)n->n_in, attr);
}

/* The place of the first node that is equal to n, or a free one. */
static int64_t *find_slot(const finder *f, const fth_node *n)
{
    const uint64_t mask = (uint64_t)f->n_slots - 1;
    uint64_t at = hash_node(f, n) & mask;
    while (f->slot[at] >= 0 && !same_node(f, f->p->node[f->slot[at]], n)) at = (at + 1) & mask;
    return &f->slot[at];
}

/* ---- copies of nodes ---- */

static const uint64_t line = 16; /* alignment of the parts of a copy */

static uint64_t aligned(uint64_t bytes)
{
    return (bytes + line - 1) / line * line;
}

/* A copy with room for operands and an attribute of its own. */
static fth_node *copy_node(const fth_plan *p, const fth_node *n, int n_in, const void *attr,
                           uint64_t attr_bytes)
{
    const uint64_t vals = aligned(sizeof *n),
                   own = vals + aligned(sizeof(fth_val) * (uint64_t)n_in);
    char *at = fth__heap_alloc(p->mem, own + attr_bytes);
    if (!at) return NULL;
    fth_node *copy = (void *)at;
    *copy = *n;
    copy->n_in = n_in;
    copy->in_val = (void *)(at + vals);
    if (attr_bytes == 0) return copy;
    copy->attr = memcpy(at + own, attr, attr_bytes);
    copy->attr_bytes = attr_bytes;
    return copy;
}

static void drop_copy(const fth_plan *p, int64_t k)
{
    union {
        const fth_node *in;
        fth_node *out;
    } cast = {p->node[k]};
    if (cast.in != p->graph->node[k]) fth__heap_free(p->mem, cast.out);
    p->node[k] = p->graph->node[k];
}

void fth__plan_drop_nodes(fth_plan *p)
{
    for (int64_t k = 0; p->node && k < p->graph_nodes; k++) drop_copy(p, k);
    fth__heap_free(p->mem, p->node);
    fth__heap_free(p->mem, p->stands);
    fth__heap_free(p->mem, p->shown);
}

/* The node reads what stands for its operands. */
static fth_status rename_operands(fth_plan *p, int64_t k, fth_err *err)
{
    const fth_node *n = p->graph->node[k];
    bool other = false;
    for (int i = 0; i < n->n_in; i++) other |= p->stands[n->in_val[i].id] != n->in_val[i].id;
    if (!other) return FTH_OK;
    fth_node *copy = copy_node(p, n, n->n_in, NULL, 0);
    if (!copy) return FTH_FAIL(err, FTH_E_NOMEM, "no memory for the nodes of a plan");
    for (int i = 0; i < n->n_in; i++)
        copy->in_val[i] = fth__val_at(p->graph, p->stands[n->in_val[i].id]);
    p->node[k] = copy;
    return FTH_OK;
}

static fth_status make_constant(fth_plan *p, int64_t k, const fth__const_attr *value, fth_err *err)
{
    fth_node *copy = copy_node(p, p->graph->node[k], 0, value, sizeof *value);
    if (!copy) return FTH_FAIL(err, FTH_E_NOMEM, "no memory for the nodes of a plan");
    copy->op = &fth__op_const;
    drop_copy(p, k);
    p->node[k] = copy;
    p->folded++;
    return FTH_OK;
}

/* ---- the pass ---- */

/* Value v stands for value w, and takes its label if it has none of its own. */
static void let_stand(fth_plan *p, uint32_t v, uint32_t w)
{
    const fth__value *value = p->graph->value;
    FTH_ASSERT(p->stands[v] == v);
    p->stands[w] = v;
    if (!value[p->shown[v]].label[0] && value[p->shown[w]].label[0]) p->shown[v] = p->shown[w];
}

/* Node k is equal to node i; it is left out if that one may stand for it. */
static void merge(finder *f, int64_t first, int64_t k)
{
    fth_plan *p = f->p;
    const int64_t i = f->latest[first];
    const fth_node *n = p->node[k];
    for (int o = 0; o < n->n_out; o++) f->equal[n->out_val[o].id] = p->node[first]->out_val[o].id;
    if (!fth__spans_may_stand(&f->spans, i, k)) {
        f->latest[first] = k;
        return;
    }
    fth__spans_stand(&f->spans, i, k);
    for (int o = 0; o < n->n_out; o++) let_stand(p, p->node[i]->out_val[o].id, n->out_val[o].id);
    p->merged++;
}

static fth_status visit(finder *f, int64_t k, fth_err *err)
{
    fth_plan *p = f->p;
    fth__const_attr value;
    FTH_TRY(rename_operands(p, k, err));
    if (p->node[k]->op == &fth__op_input || p->node[k]->op == &fth__op_assign) return FTH_OK;
    if (fth__node_constant(p, k, &value)) FTH_TRY(make_constant(p, k, &value, err));
    const uint32_t out = p->node[k]->out_val[0].id, same = fth__node_passes_on(p, k);
    if (same > 0 && !f->spans.goes_out[out]) { /* an output would be made, and written, earlier */
        fth__spans_lengthen(&f->spans, same, out);
        let_stand(p, same, out);
        f->equal[out] = f->equal[same];
        p->merged++;
        return FTH_OK;
    }
    int64_t *slot = find_slot(f, p->node[k]);
    if (*slot >= 0)
        merge(f, *slot, k);
    else
        *slot = f->latest[k] = k;
    return FTH_OK;
}

static fth_status begin(finder *f, const bool *needed, fth_err *err)
{
    fth_plan *p = f->p;
    const int64_t n_values = p->graph->n_values;
    f->n_slots = 16;
    while (f->n_slots < 2 * p->graph_nodes) f->n_slots *= 2;
    FTH_TRY(fth__spans_make(&f->spans, p, needed, err));
    FTH_TRY(fth__heap_take(p->mem, n_values, sizeof *f->equal, (void **)&f->equal, err));
    FTH_TRY(fth__heap_take(p->mem, f->n_slots, sizeof *f->slot, (void **)&f->slot, err));
    FTH_TRY(
        fth__heap_take(p->mem, p->graph_nodes + 1, sizeof *f->latest, (void **)&f->latest, err));
    for (int64_t v = 0; v < n_values; v++) f->equal[v] = (uint32_t)v;
    for (int64_t i = 0; i < f->n_slots; i++) f->slot[i] = -1;
    return FTH_OK;
}

fth_status fth__plan_take_nodes(fth_plan *p, fth_err *err)
{
    const fth_graph *g = p->graph;
    FTH_TRY(fth__heap_take(p->mem, g->n_nodes + 1, sizeof *p->node, (void **)&p->node, err));
    FTH_TRY(fth__heap_take(p->mem, g->n_values, sizeof *p->stands, (void **)&p->stands, err));
    FTH_TRY(fth__heap_take(p->mem, g->n_values, sizeof *p->shown, (void **)&p->shown, err));
    for (int64_t k = 0; k < g->n_nodes; k++) p->node[k] = g->node[k];
    for (int64_t v = 0; v < g->n_values; v++) p->stands[v] = p->shown[v] = (uint32_t)v;
    return FTH_OK;
}

fth_status fth__plan_find_equal(fth_plan *p, const bool *needed, fth_err *err)
{
    finder f = {.p = p};
    fth_status s = begin(&f, needed, err);
    for (int64_t k = 0; s == FTH_OK && k < p->graph_nodes; k++)
        if (needed[k]) s = visit(&f, k, err);
    for (int i = 0; s == FTH_OK && i < p->n_outs; i++) p->out_value[i] = p->stands[p->out_value[i]];
    fth__spans_clear(&f.spans);
    fth__heap_free(p->mem, f.equal);
    fth__heap_free(p->mem, f.slot);
    fth__heap_free(p->mem, f.latest);
    return s;
}
