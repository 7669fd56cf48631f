/* masks.c - comparisons that are made early, so that what they compare need not wait for them.
 *
 * The slope of relu, clip, min and max asks where a value lies, long after everything else has read
 * it: the answers take a byte each, the value four. A program that makes the value can give them
 * beside it. That pays only where nothing else keeps the value, and where memory is scarcest
 * between the last reader and the slope. Like all of fusion, it follows from the graph alone.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "mem/heap.h"
#include "ops/view.h"
#include "plan/distinct.h"
#include "plan/fuse.h"

enum { DEPTH = 6 }; /* nodes one behind the other that store nothing and are looked through */

/* One value and the comparisons of it. */
typedef struct waiting {
    uint32_t value;
    int64_t made, used;   /* nodes: that makes it; its last reader beside comparisons */
    int64_t first, last;  /* readers of comparisons */
    int64_t bytes, masks; /* of the value; of its comparisons */
} waiting;

/* The value that node k compares with constants, element by element; 0: it does something else. */
static uint32_t compared(const fth__fuser *f, int64_t k)
{
    const fth_node *n = f->g->node[k];
    uint32_t v = 0;
    if (n->op != &fth__op_map || n->out[0].dtype != FTH_BOOL || n->out[0].n_axes == 0 ||
        f->is_out[n->out_val[0].id])
        return 0;
    for (int i = 0; i < n->n_in; i++) {
        if (fth__fuse_const(f, n->in_val[i].id)) continue;
        if (v != 0 || n->in[i].dtype == FTH_BOOL) return 0;
        v = n->in_val[i].id;
    }
    const fth_node *from = v ? fth__fuse_node(f, v) : NULL;
    return from && fth__node_may_vanish(from) && !f->is_out[v] ? v : 0;
}

static int64_t bytes_of(const fth_node *n)
{
    return fth_desc_count(&n->out[0]) * fth_dtype_size(n->out[0].dtype);
}

/* Readers of one comparison. */
static void add_mask(const fth__fuser *f, int64_t k, waiting *w)
{
    const uint32_t v = f->g->node[k]->out_val[0].id;
    w->masks += bytes_of(f->g->node[k]);
    for (int64_t r = f->first[v]; r < f->first[v + 1]; r++) {
        w->first = fth__min_i64(w->first, f->reader[r]);
        w->last = fth__max_i64(w->last, f->reader[r]);
    }
}

/* Node k stores nothing of its own: who reads its result reads its operand. */
static bool passes_on(const fth__fuser *f, const fth__spans *s, int k)
{
    const fth_node *n = f->g->node[k];
    return (n->op->flags & FTH_OP_ALIAS) || fth__is_view(n) || n->op == &fth__op_gather ||
           (fth__node_may_vanish(n) && !s->stored[n->out_val[0].id]);
}

/* The last node that reads what node k makes; the end where it goes out. */
static int64_t last_use(const fth__fuser *f, const fth__spans *s, int k, int depth)
{
    if (!passes_on(f, s, k)) return k;
    const uint32_t v = f->g->node[k]->out_val[0].id;
    int64_t last = f->is_out[v] || depth == 0 ? f->g->n_nodes : k;
    for (int64_t r = f->first[v]; r < f->first[v + 1] && last < f->g->n_nodes; r++)
        last = fth__max_i64(last, last_use(f, s, f->reader[r], depth - 1));
    return last;
}

/* Does anything read it beside comparisons, and all of that before what reads those? */
static bool waits(const fth__fuser *f, const fth__spans *s, uint32_t v, waiting *w)
{
    int n = 0;
    *w = (waiting){.value = v, .made = f->g->value[v].node, .used = -1, .first = f->g->n_nodes};
    w->bytes = bytes_of(f->g->node[w->made]);
    for (int64_t r = f->first[v]; r < f->first[v + 1]; r++) {
        const int k = f->reader[r];
        if (f->g->node[k]->op == &fth__op_assign) return false;
        if (compared(f, k) == v)
            add_mask(f, k, w), n++;
        else
            w->used = fth__max_i64(w->used, last_use(f, s, k, DEPTH));
    }
    return n > 0 && n <= FTH__MASKS && w->used >= 0 && w->used < w->first && w->first < w->last + 1;
}

/* Where memory is scarcest between, it is at least as scarce as masks make it elsewhere. Only nodes
 * that no program takes in count between: their results never take the place of their operands. */
static bool pays(const fth__fuser *f, const fth__spans *s, const waiting *w)
{
    const int64_t more = s->stored[w->value] ? 0 : w->bytes; /* it is stored for its comparisons */
    int64_t between = 0, beside = 0;
    for (int64_t k = w->used + 1; k < w->first; k++)
        if (f->needed[k] && !fth__node_may_vanish(f->g->node[k]))
            between = fth__max_i64(between, s->live[k] + more);
    for (int64_t k = w->made; k <= w->used; k++)
        beside = fth__max_i64(beside, s->live[k] + more + w->masks);
    for (int64_t k = w->first; k <= w->last; k++)
        beside = fth__max_i64(beside, s->live[k] + w->masks);
    return w->masks < w->bytes && beside <= between;
}

static void make_early(fth__fuser *f, fth__spans *s, const waiting *w)
{
    for (int64_t r = f->first[w->value]; r < f->first[w->value + 1]; r++)
        if (compared(f, f->reader[r]) == w->value) f->early[f->reader[r]] = true;
    for (int64_t k = w->made; k <= w->last; k++) s->live[k] += w->masks;
    for (int64_t k = w->used + 1; k < w->first && s->stored[w->value]; k++) s->live[k] -= w->bytes;
}

fth_status fth__fuse_find_masks(fth__fuser *f, fth_err *err)
{
    fth__spans s;
    fth_status st = fth__spans_make(&s, f->p, f->needed, err);
    waiting w;
    for (int64_t k = 0; st == FTH_OK && k < f->g->n_nodes; k++) {
        const uint32_t v = f->needed[k] ? compared(f, k) : 0;
        if (v && !f->early[k] && waits(f, &s, v, &w) && pays(f, &s, &w)) make_early(f, &s, &w);
    }
    fth__spans_clear(&s);
    return st;
}
