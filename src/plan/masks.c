/* masks.c - comparisons and positions that are made early, so that what they are of need not wait.
 *
 * The slope of relu, clip, min, max and abs asks where a value lies, long after everything else has
 * read it: the answers take a byte each, the value four. The program that makes the value can give
 * them beside it, or the one that reads it for the minimum. Positions are alike: a whole array
 * waits for that of its largest elements, and those of a sort are narrower as i32. It pays only
 * where nothing else keeps the value, and where memory is scarcest between the last reader and the
 * slope. Like all of fusion, it follows from the graph alone.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "mem/heap.h"
#include "ops/build.h"
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

/* Node k is a comparison, element by element and perhaps with constants, of value v. */
static bool compares(const fth__fuser *f, int64_t k, uint32_t v)
{
    const fth_node *n = f->g->node[k];
    bool reads = false;
    if (n->op != &fth__op_map || n->out[0].dtype != FTH_BOOL || n->out[0].n_axes == 0 ||
        f->is_out[n->out_val[0].id])
        return false;
    for (int i = 0; i < n->n_in; i++) {
        if (n->in[i].dtype == FTH_BOOL) return false;
        reads |= n->in_val[i].id == v;
    }
    return reads;
}

static bool reads_all_of(const fth__fuser *f, const fth_node *h, const fth_node *n)
{
    for (int i = 0; i < n->n_in; i++) {
        bool found = fth__fuse_const(f, n->in_val[i].id);
        for (int k = 0; k < h->n_in; k++) found |= h->in_val[k].id == n->in_val[i].id;
        if (!found) return false;
    }
    return true;
}

/* The node beside which comparison k can be made early: the one that makes the only value it reads,
 * or one that reads the same, as the minimum does whose slope is asked for; -1: none. */
static int host_of(const fth__fuser *f, int64_t k)
{
    const fth_node *n = f->g->node[k];
    uint32_t v = 0;
    bool one = true;
    for (int i = 0; i < n->n_in; i++) {
        if (fth__fuse_const(f, n->in_val[i].id)) continue;
        one &= v == 0;
        v = n->in_val[i].id;
    }
    if (v == 0) return -1;
    const int made = (int)f->g->value[v].node;
    if (one && fth__node_may_vanish(f->g->node[made])) return made;
    for (int64_t r = f->first[v]; r < f->first[v + 1] && f->reader[r] < k; r++) {
        const fth_node *h = f->g->node[f->reader[r]];
        if (h->op == &fth__op_map && h->out[0].dtype != FTH_BOOL && reads_all_of(f, h, n))
            return f->reader[r];
    }
    return -1;
}

/* A value that a plan would keep: no input, which lies elsewhere, and no result. */
static bool is_made(const fth__fuser *f, uint32_t v)
{
    const fth_op *op = fth__fuse_node(f, v)->op;
    return op != &fth__op_input && op != &fth__op_const && !f->is_out[v];
}

/* Node k is a comparison of v that can be made early. */
static bool may_be_early(const fth__fuser *f, int64_t k, uint32_t v)
{
    return compares(f, k, v) && host_of(f, k) >= 0;
}

static int64_t bytes_of(const fth_node *n)
{
    return fth_desc_count(&n->out[0]) * fth_dtype_size(n->out[0].dtype);
}

static int64_t bytes_of_value(const fth__fuser *f, uint32_t v)
{
    const fth_desc *d = fth__val_desc(fth__val_at(f->p->graph, v));
    return fth_desc_count(d) * fth_dtype_size(d->dtype);
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
    w->bytes = bytes_of_value(f, v);
    for (int64_t r = f->first[v]; r < f->first[v + 1]; r++) {
        const int k = f->reader[r];
        if (f->g->node[k]->op == &fth__op_assign) return false;
        if (may_be_early(f, k, v)) {
            if (++n > FTH__MASKS) return false;
            add_mask(f, k, w);
        } else
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
    for (int64_t r = f->first[w->value]; r < f->first[w->value + 1]; r++) {
        const int k = f->reader[r];
        if (f->early[k] >= 0 || !may_be_early(f, k, w->value)) continue;
        f->early[k] = host_of(f, k);
        f->hosts[f->early[k]] = true;
    }
    for (int64_t k = w->made; k <= w->last; k++) s->live[k] += w->masks;
    for (int64_t k = w->used + 1; k < w->first && s->stored[w->value]; k++) s->live[k] -= w->bytes;
}

/* ---- positions ---- */

/* Positions that only what narrows them reads: that reader; -1: others do too. */
static int narrowed_by(const fth__fuser *f, const fth_node *n)
{
    const uint32_t v = n->out_val[0].id;
    const int k = f->first[v + 1] == f->first[v] + 1 ? f->reader[f->first[v]] : -1;
    return k >= 0 && f->g->node[k]->op == &fth__op_checked_cast && !f->is_out[v] ? k : -1;
}

/* A node whose result waits for a gradient in place of its larger operand: it finds positions, or
 * makes them narrower. */
static bool finds_positions(const fth__fuser *f, int64_t k)
{
    const fth_node *n = f->g->node[k];
    if (n->op == &fth__op_argreduce) return true;
    return n->op == &fth__op_checked_cast && ((const fth__cast_attr *)n->attr)->fits;
}

/* All other readers of its operand come long before it. */
static bool waits_for(const fth__fuser *f, const fth__spans *s, int64_t k, waiting *w)
{
    const fth_node *n = f->g->node[k];
    const int narrow = n->op == &fth__op_argreduce ? narrowed_by(f, n) : -1;
    const fth_node *last = narrow >= 0 ? f->g->node[narrow] : n;
    const uint32_t v = n->in_val[0].id, result = last->out_val[0].id;
    *w = (waiting){.value = v, .made = f->g->value[v].node, .first = k, .last = k};
    w->used = w->made;
    w->bytes = bytes_of_value(f, v);
    w->masks = bytes_of(last);
    for (int64_t r = f->first[v]; r < f->first[v + 1]; r++) {
        const int reader = f->reader[r];
        if (reader == k || f->early[reader] >= 0) continue;
        if (f->moved[reader] || f->g->node[reader]->op == &fth__op_assign) return false;
        w->used = fth__max_i64(w->used, last_use(f, s, reader, DEPTH));
    }
    for (int64_t r = f->first[result]; r < f->first[result + 1]; r++)
        w->last = fth__max_i64(w->last, last_use(f, s, f->reader[r], DEPTH));
    w->last = fth__min_i64(w->last, f->g->n_nodes - 1);
    return !f->is_out[result] && w->used < w->first;
}

/* Right after what makes their operand, and narrower right after that. */
static void move(fth__fuser *f, fth__spans *s, int64_t k, const waiting *w)
{
    const fth_node *n = f->g->node[k];
    const int narrow = n->op == &fth__op_argreduce ? narrowed_by(f, n) : -1;
    f->moved[k] = true;
    if (narrow >= 0) f->moved[narrow] = true;
    for (int64_t i = w->made; i <= w->last; i++) s->live[i] += w->masks;
    for (int64_t i = w->used + 1; i < w->first; i++) s->live[i] -= w->bytes;
}

fth_status fth__fuse_find_masks(fth__fuser *f, fth_err *err)
{
    fth__spans s;
    fth_status st = fth__spans_make(&s, f->p, f->needed, err);
    waiting w;
    for (int64_t k = 0; st == FTH_OK && k < f->g->n_nodes; k++) {
        const fth_node *n = f->g->node[k];
        for (int i = 0; f->needed[k] && i < n->n_in && f->early[k] < 0; i++) {
            const uint32_t v = n->in_val[i].id;
            if (is_made(f, v) && may_be_early(f, k, v) && waits(f, &s, v, &w) && pays(f, &s, &w))
                make_early(f, &s, &w);
        }
    }
    for (int64_t k = 0; st == FTH_OK && k < f->g->n_nodes; k++)
        if (f->needed[k] && !f->moved[k] && finds_positions(f, k) &&
            is_made(f, f->g->node[k]->in_val[0].id) && waits_for(f, &s, k, &w) && pays(f, &s, &w))
            move(f, &s, k, &w);
    fth__spans_clear(&s);
    return st;
}
