/* gradient.c - the nodes that vjp appends, computed by plain loops, against central differences.
 *
 * The loss is the sum of all real outputs, each element times a random weight: the weights are what
 * vjp gets as cotangents. Elements of inputs are changed one by one, at most MOST of each input.
 * With step h the fourth-order formula leaves h^4 of the fifth derivative and rounding / h.
 */
#include "trial/check.h"

#include "mem/heap.h"

#include <fathom/ops.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST = 24 };

typedef struct world {
    fth_graph *g;
    fth_mem *mem;
    char **data; /* per value; NULL: not there yet */
    int64_t n;   /* values that data has room for */
    const fth_node *node;
    fth_val bar[FTH_MAX_OUT]; /* cotangents; poison where an output is not real */
    char *given[FTH_MAX_IN], *made[FTH_MAX_OUT];
    uint64_t seed;
} world;

static bool is_real(const fth_desc *d)
{
    return d->dtype == FTH_F32 || d->dtype == FTH_F64;
}

static fth_status compute(world *w, uint32_t id, fth_err *err);

static fth_status compute_node(world *w, const fth_node *node, char **out, fth_err *err)
{
    char *in[FTH_MAX_IN];
    for (int i = 0; i < node->n_in; i++) {
        FTH_TRY(compute(w, node->in_val[i].id, err));
        in[i] = w->data[node->in_val[i].id];
    }
    fth__trial t = {.node = node,
                    .mem = w->mem,
                    .run = node->op->run,
                    .scratch = node->op->scratch,
                    .in = in,
                    .out = out,
                    .views = true,
                    .garbage = 0xFF,
                    .seed = w->seed};
    for (int k = 0; k < node->n_out; k++) t.want[k] = true;
    fth__trial_whole(&t);
    return fth__trial_run(&t, err);
}

static fth_status compute(world *w, uint32_t id, fth_err *err)
{
    if (w->data[id]) return FTH_OK;
    const fth_node *node = fth__val_node(fth__val_at(w->g, id));
    if (node->op == &fth__op_input)
        return FTH_FAIL(err, FTH_E_GRAPH_PROMISE,
                        "operation '%.40s': its vjp reads the input '%.60s', which is no operand",
                        w->node->op->name,
                        w->g->input[((const fth__input_attr *)node->attr)->index].name);
    for (int k = 0; k < node->n_out; k++) {
        char **at = &w->data[node->out_val[k].id];
        *at = fth__heap_alloc(w->mem, fth__check_bytes(&node->out[k]) + 1);
        if (!*at) return FTH_FAIL(err, FTH_E_NOMEM, "values of a gradient");
    }
    char *out[FTH_MAX_OUT];
    for (int k = 0; k < node->n_out; k++) out[k] = w->data[node->out_val[k].id];
    return compute_node(w, node, out, err);
}

/* A number in [-1, 1] that has few digits, so that products with it round little. */
static double weight(world *w)
{
    return (double)fth__check_draw(&w->seed, -64, 64) / 64.0;
}

/* Values that stand for cotangents: zeros of the shape of the outputs, whose numbers are set. */
static fth_status make_bars(world *w, fth_err *err)
{
    for (int k = 0; k < w->node->n_out; k++) {
        const fth_desc *d = &w->node->out[k];
        char axes[FTH_MAX_AXES * 40];
        if (!is_real(d)) continue;
        w->bar[k] = fth_const(w->g, d->dtype, 0.0);
        if (d->n_axes > 0)
            w->bar[k] = fth_expand(w->bar[k], fth__desc_axes(w->g, d, axes, sizeof axes));
        if (!fth_val_ok(w->bar[k]))
            return FTH_FAIL(err, FTH_E_INTERNAL, "a cotangent of output %d cannot be made", k);
    }
    return FTH_OK;
}

static fth_status fill_bars(world *w, fth_err *err)
{
    for (int k = 0; k < w->node->n_out; k++) {
        const fth_desc *d = &w->node->out[k];
        if (!fth_val_ok(w->bar[k])) continue;
        char *p = fth__heap_alloc(w->mem, fth__check_bytes(d) + 1);
        if (!p) return FTH_FAIL(err, FTH_E_NOMEM, "cotangents of a gradient");
        w->data[w->bar[k].id] = p;
        for (int64_t i = 0; i < fth_desc_count(d); i++) fth__check_put(d->dtype, p, i, weight(w));
    }
    return FTH_OK;
}

/* The loss for what `given` holds. */
static fth_status loss_of(world *w, double *loss, fth_err *err)
{
    fth__trial t = {.node = w->node,
                    .mem = w->mem,
                    .run = w->node->op->run,
                    .scratch = w->node->op->scratch,
                    .in = w->given,
                    .out = w->made,
                    .views = true,
                    .garbage = 0xFF,
                    .seed = w->seed};
    for (int k = 0; k < w->node->n_out; k++) t.want[k] = true;
    fth__trial_whole(&t);
    FTH_TRY(fth__trial_run(&t, err));
    *loss = 0.0;
    for (int k = 0; k < w->node->n_out; k++) {
        const fth_desc *d = &w->node->out[k];
        if (!fth_val_ok(w->bar[k])) continue;
        for (int64_t i = 0; i < fth_desc_count(d); i++) {
            const double v = fth__check_get(d->dtype, w->made[k], i);
            *loss += v * fth__check_get(d->dtype, w->data[w->bar[k].id], i);
        }
    }
    return FTH_OK;
}

static fth_status moved(world *w, fth_dtype t, char *data, int64_t i, double x, double *loss,
                        fth_err *err)
{
    const double before = fth__check_get(t, data, i);
    fth__check_put(t, data, i, x);
    const fth_status s = loss_of(w, loss, err);
    fth__check_put(t, data, i, before);
    return s;
}

static fth_status difference(world *w, const fth_desc *d, char *data, int64_t i, double *slope,
                             fth_err *err)
{
    const double x = fth__check_get(d->dtype, data, i),
                 h = d->dtype == FTH_F64 ? 0x1p-12 : 0x1p-6; /* exact steps where x is near 1 */
    double a, b, c, e;
    FTH_TRY(moved(w, d->dtype, data, i, x + h, &a, err));
    FTH_TRY(moved(w, d->dtype, data, i, x - h, &b, err));
    FTH_TRY(moved(w, d->dtype, data, i, x + 2 * h, &c, err));
    FTH_TRY(moved(w, d->dtype, data, i, x - 2 * h, &e, err));
    *slope = (4 * (a - b) / (2 * h) - (c - e) / (4 * h)) / 3;
    return FTH_OK;
}

static fth_status compare(world *w, int in, const char *bar, double tolerance, double *worst,
                          fth_err *err)
{
    const fth_desc *d = &w->node->in[in];
    const int64_t n = fth_desc_count(d);
    if (tolerance <= 0.0) tolerance = d->dtype == FTH_F64 ? 1e-6 : 1e-2;
    for (int64_t k = 0; k < n && k < MOST; k++) {
        const int64_t i = n <= MOST ? k : fth__check_draw(&w->seed, 0, n - 1);
        double want;
        FTH_TRY(difference(w, d, w->given[in], i, &want, err));
        const double got = fth__check_get(d->dtype, bar, i),
                     off = fabs(got - want) / (1.0 + fabs(want));
        if (!isfinite(want) || !isfinite(got)) continue;
        if (off > *worst) *worst = off;
        if (off <= tolerance) continue;
        return FTH_FAIL(err, FTH_E_GRAPH_PROMISE,
                        "operation '%.40s': its vjp gives element %lld of input %d the slope %.9g, "
                        "differences give %.9g (tolerance %g)",
                        w->node->op->name, (long long)i, in, got, want, tolerance);
    }
    return FTH_OK;
}

static fth_status check_bars(const world *w, const fth_val *in_bar, fth_err *err)
{
    for (int i = 0; i < w->node->n_in; i++) {
        if (!fth_val_ok(in_bar[i]) || fth__val_desc(in_bar[i])->dtype == w->node->in[i].dtype) {
            bool same = true;
            const fth_desc *d = fth_val_ok(in_bar[i]) ? fth__val_desc(in_bar[i]) : &w->node->in[i];
            same = d->n_axes == w->node->in[i].n_axes;
            for (int k = 0; same && k < d->n_axes; k++) same = d->axis[k] == w->node->in[i].axis[k];
            if (same) continue;
        }
        char want[256], got[256];
        return FTH_FAIL(err, FTH_E_GRAPH_PROMISE,
                        "operation '%.40s': its vjp gives input %d, %s %s, a cotangent %s %s",
                        w->node->op->name, i, fth_dtype_name(w->node->in[i].dtype),
                        fth__desc_format(w->g, &w->node->in[i], want, sizeof want),
                        fth_dtype_name(fth__val_desc(in_bar[i])->dtype),
                        fth__desc_format(w->g, fth__val_desc(in_bar[i]), got, sizeof got));
    }
    return FTH_OK;
}

static fth_status append(world *w, fth_val *in_bar, fth_err *err)
{
    fth_err own = {0};
    FTH_TRY(make_bars(w, err));
    fth_status s = w->node->op->vjp(w->node, w->bar, in_bar, &own);
    if (s == FTH_OK) s = fth_graph_check(w->g, &own);
    if (s == FTH_OK) return check_bars(w, in_bar, err);
    fth_graph_clear_errors(w->g);
    if (own.status == FTH_E_GRAPH_GRADIENT) { /* it says that there is none */
        for (int i = 0; i < w->node->n_in; i++) in_bar[i] = (fth_val){0};
        return FTH_OK;
    }
    return FTH_FAIL(err, FTH_E_GRAPH_PROMISE, "operation '%.40s': its vjp fails: %.300s",
                    w->node->op->name, own.text);
}

static fth_status prepare(world *w, char **in, fth_err *err)
{
    const fth_node *node = w->node;
    w->n = w->g->n_values;
    w->data = fth__heap_alloc(w->mem, (uint64_t)w->n * sizeof *w->data);
    if (!w->data) return FTH_FAIL(err, FTH_E_NOMEM, "the check of a gradient");
    for (int i = 0; i < node->n_in; i++) {
        const size_t bytes = fth__check_bytes(&node->in[i]);
        w->given[i] = fth__heap_alloc(w->mem, bytes + 1);
        if (!w->given[i]) return FTH_FAIL(err, FTH_E_NOMEM, "the check of a gradient");
        memcpy(w->given[i], in[i], bytes);
        w->data[node->in_val[i].id] = in[i];
    }
    for (int k = 0; k < node->n_out; k++) {
        w->made[k] = fth__heap_alloc(w->mem, fth__check_bytes(&node->out[k]) + 1);
        if (!w->made[k]) return FTH_FAIL(err, FTH_E_NOMEM, "the check of a gradient");
    }
    return fill_bars(w, err);
}

static void clear(world *w)
{
    for (int64_t i = 0; w->data && i < w->n; i++) {
        bool operand = false;
        for (int k = 0; k < w->node->n_in; k++) operand |= w->node->in_val[k].id == (uint32_t)i;
        if (!operand) fth__heap_free(w->mem, w->data[i]);
    }
    fth__heap_free(w->mem, w->data);
    for (int i = 0; i < w->node->n_in; i++) fth__heap_free(w->mem, w->given[i]);
    for (int k = 0; k < w->node->n_out; k++) fth__heap_free(w->mem, w->made[k]);
}

fth_status fth__check_gradient(fth_val v, char **in, fth_mem *mem, double tolerance, uint64_t seed,
                               double *worst, fth_err *err)
{
    const fth_node *node = fth__val_node(v);
    fth_val in_bar[FTH_MAX_IN] = {{0}};
    bool any_in = false, any_out = false;
    *worst = -1.0;
    for (int i = 0; i < node->n_in; i++) {
        any_in |= is_real(&node->in[i]);
        for (int k = 0; k < i; k++) /* one value twice: elements cannot be changed apart */
            if (node->in_val[k].id == node->in_val[i].id) return FTH_OK;
    }
    for (int k = 0; k < node->n_out; k++) any_out |= is_real(&node->out[k]);
    if (!node->op->vjp || !any_in || !any_out) return FTH_OK;
    world w = {.g = v.graph, .mem = mem, .node = node, .seed = seed};
    FTH_TRY(append(&w, in_bar, err));
    bool any = false;
    for (int i = 0; i < node->n_in; i++) any |= fth_val_ok(in_bar[i]);
    if (!any) return FTH_OK;
    *worst = 0.0;
    double loss = 0.0;
    fth_status s = prepare(&w, in, err);
    if (s == FTH_OK) s = loss_of(&w, &loss, err);
    if (s == FTH_OK && !isfinite(loss)) { /* outside of what it is defined for */
        *worst = -1.0;
        clear(&w);
        return FTH_OK;
    }
    for (int i = 0; i < node->n_in && s == FTH_OK; i++) {
        if (!is_real(&node->in[i]) || !fth_val_ok(in_bar[i])) continue;
        s = compute(&w, in_bar[i].id, err);
        if (s == FTH_OK) s = compare(&w, i, w.data[in_bar[i].id], tolerance, worst, err);
    }
    clear(&w);
    return s;
}
