/* grad.c - reverse mode, graph to graph.
 *
 * Walks the nodes from the loss back to what was asked for and lets each operation's vjp append
 * nodes. The result is an ordinary part of the graph: it is planned, fused and chunked like the
 * rest, and gradients of streamed losses accumulate because their relations say so.
 */
#include "base/assert.h"
#include "base/str.h"
#include "graph/graph.h"
#include "mem/heap.h"

#include <fathom/ops.h>
#include <string.h>

typedef struct sweep {
    fth_graph *g;
    fth_site site;
    int64_t n;    /* values that existed when the sweep began */
    bool *needs;  /* per value: depends on something asked for */
    fth_val *bar; /* per value: cotangent so far; id 0: none yet */
} sweep;

static bool differentiable(fth_dtype t)
{
    return fth_dtype_is_real(t) || fth_dtype_is_complex(t);
}

static void mark_needs(sweep *s, int n, const fth_val *wrt, int64_t last_node)
{
    const fth_graph *g = s->g;
    for (int i = 0; i < n; i++) {
        FTH_ASSERT(wrt[i].id < s->n);
        s->needs[wrt[i].id] = true;
    }
    for (int64_t k = 0; k <= last_node; k++) {
        const fth_node *node = g->node[k];
        bool any = false;
        for (int i = 0; i < node->n_in; i++) any |= s->needs[node->in_val[i].id];
        for (int i = 0; any && i < node->n_out; i++)
            if (differentiable(node->out[i].dtype)) s->needs[node->out_val[i].id] = true;
    }
}

/* The cotangent of a value has the value's dtype and axes; only the layout may need mending. */
static fth_status like(const sweep *s, fth_val v, fth_val *bar, const fth_node *node, fth_err *err)
{
    const fth_desc *want = fth__val_desc(v), *got = fth__val_desc(*bar);
    char a[384], b[384];
    bool same = want->dtype == got->dtype && want->n_axes == got->n_axes, order = true;
    for (int i = 0; same && i < want->n_axes; i++) {
        same = fth_desc_find(got, want->axis[i]) >= 0;
        order &= got->axis[i] == want->axis[i];
    }
    if (!same)
        return FTH_FAIL(err, FTH_E_INTERNAL, "vjp of %s gave %s as the cotangent of %s",
                        node->op->name, fth_val_format(*bar, a, sizeof a),
                        fth_val_format(v, b, sizeof b));
    if (!order) *bar = fth_layout_(s->site, *bar, fth__desc_axes(s->g, want, a, sizeof a));
    return FTH_OK;
}

static fth_status add_bar(sweep *s, fth_val v, fth_val bar, const fth_node *node, fth_err *err)
{
    if (!fth_val_ok(bar)) return fth_graph_check(s->g, err);
    FTH_TRY(like(s, v, &bar, node, err));
    FTH_ASSERT(v.id < s->n);
    fth_val *sum = &s->bar[v.id];
    *sum = fth_val_ok(*sum) ? fth_map_(s->site, FTH_EW_ADD, *sum, bar, (fth_val){0}) : bar;
    return FTH_OK;
}

static fth_status back_node(sweep *s, const fth_node *node, fth_err *err)
{
    fth_val out_bar[FTH_MAX_OUT], in_bar[FTH_MAX_IN] = {0};
    bool any = false, wanted = false;
    for (int i = 0; i < node->n_out; i++) {
        out_bar[i] = s->bar[node->out_val[i].id];
        any |= fth_val_ok(out_bar[i]);
    }
    for (int i = 0; i < node->n_in; i++) wanted |= s->needs[node->in_val[i].id];
    if (!any || !wanted) return FTH_OK;
    if (!node->op->vjp) {
        const fth_status st = FTH_FAIL(err, FTH_E_GRAPH_GRADIENT,
                                       "%s at %s:%d has no gradient, and the loss depends on it",
                                       node->op->name, node->site.file, node->site.line);
        return st;
    }
    FTH_TRY(node->op->vjp(node, out_bar, in_bar, err));
    for (int i = 0; i < node->n_in; i++)
        if (s->needs[node->in_val[i].id] && in_bar[i].graph)
            FTH_TRY(add_bar(s, node->in_val[i], in_bar[i], node, err));
    return FTH_OK;
}

static fth_val zeros_like(fth_graph *g, fth_site site, fth_val v)
{
    char axes[FTH_MAX_AXES * FTH__NAME];
    const fth_val zero = fth_const_(g, site, fth_val_dtype(v), 0.0, 0.0);
    if (fth_val_axes(v) == 0) return zero;
    return fth_expand_(site, zero, fth__desc_axes(g, fth__val_desc(v), axes, sizeof axes));
}

static fth_status check_arguments(fth_val loss, int n, const fth_val *wrt, fth_err *err)
{
    char text[384];
    if (fth_val_axes(loss) != 0 || !fth_dtype_is_real(fth_val_dtype(loss))) {
        const fth_status s =
            FTH_FAIL(err, FTH_E_GRAPH_GRADIENT, "grad: the loss must be one real number, not %s",
                     fth_val_format(loss, text, sizeof text));
        fth_err_hint(err, fth_val_axes(loss) != 0 ? "sum it over its axes first"
                                                  : "cast what it is made of to reals first");
        return s;
    }
    for (int i = 0; i < n; i++)
        if (!differentiable(fth_val_dtype(wrt[i])))
            return FTH_FAIL(err, FTH_E_GRAPH_GRADIENT, "grad: %s is not a real or complex value",
                            fth_val_format(wrt[i], text, sizeof text));
    return FTH_OK;
}

static fth_status run_sweep(sweep *s, fth_val loss, int n, const fth_val *wrt, fth_val *grad,
                            fth_err *err)
{
    fth_graph *g = s->g;
    s->n = g->n_values;
    FTH_TRY(fth__heap_take(g->mem, s->n, sizeof *s->needs, (void **)&s->needs, err));
    FTH_TRY(fth__heap_take(g->mem, s->n, sizeof *s->bar, (void **)&s->bar, err));
    const int64_t last = g->value[loss.id].node;
    FTH_ASSERT(last < g->n_nodes && loss.id < s->n);
    mark_needs(s, n, wrt, last);
    s->bar[loss.id] = fth_const_(g, s->site, fth_val_dtype(loss), 1.0, 0.0);
    for (int64_t k = last; k >= 0; k--) FTH_TRY(back_node(s, g->node[k], err));
    for (int i = 0; i < n; i++) {
        const fth_val bar = s->bar[wrt[i].id];
        grad[i] = fth_val_ok(bar) ? bar : zeros_like(g, s->site, wrt[i]);
    }
    return fth_graph_check(g, err);
}

fth_status fth_grad_(fth_site site, fth_val loss, int n, const fth_val *wrt, fth_val *grad)
{
    fth_graph *g = loss.graph;
    for (int i = 0; i < n; i++) grad[i] = (fth_val){g, 0};
    if (!fth_val_ok(loss)) return fth_graph_check(g, NULL);
    for (int i = 0; i < n; i++)
        if (!fth_val_ok(wrt[i]) || wrt[i].graph != g) {
            fth_poison_(g, site, FTH_E_GRAPH_VALUE,
                        "grad: value %d is poisoned or of another graph", i);
            return FTH_E_GRAPH_VALUE;
        }
    fth_err err = {0};
    sweep s = {.g = g, .site = site};
    fth_status st = check_arguments(loss, n, wrt, &err);
    if (st == FTH_OK) st = run_sweep(&s, loss, n, wrt, grad, &err);
    fth__heap_free(g->mem, s.needs);
    fth__heap_free(g->mem, s.bar);
    if (st == FTH_OK) return FTH_OK;
    for (int i = 0; i < n; i++) grad[i] = (fth_val){g, 0};
    if (fth_graph_check(g, NULL) == FTH_OK) fth__graph_fail(g, site, &err);
    return st;
}
