/* gradient.c - the nodes that vjp appends, computed by plain loops, against central differences.
 *
 * The loss is the sum of all real outputs, each element times a random weight: the weights are what
 * vjp gets as cotangents. Elements of inputs are changed one by one, at most MOST of each input.
 * With step h the fourth-order formula leaves h^4 of the fifth derivative and rounding / h. Where
 * operands or results have f16 or bf16 both are large, so what may be left is worked out for each
 * element from what was rounded there, and where the differences show a corner, none is compared.
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
    char *base[FTH_MAX_OUT]; /* what is made of the inputs as they are */
    int64_t nodes;           /* of the gradient */
    uint64_t seed;
} world;

static bool is_real(const fth_desc *d)
{
    return fth_dtype_is_real(d->dtype);
}

/* The largest relative error of one rounding. */
static double rounding_of(fth_dtype t)
{
    return t == FTH_F64 ? 0x1p-53 : t == FTH_F32 ? 0x1p-24 : t == FTH_F16 ? 0x1p-11 : 0x1p-8;
}

/* The coarsest rounding between an input and the loss. */
static double coarsest(const world *w, const fth_desc *in)
{
    double u = rounding_of(in->dtype);
    for (int k = 0; k < w->node->n_out; k++)
        if (is_real(&w->node->out[k])) u = fmax(u, rounding_of(w->node->out[k].dtype));
    return u;
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

/* ---- with few digits ---- */

typedef struct slope {
    double value, error; /* by rounding and by the step */
    bool smooth;         /* no corner near */
} slope;

/* Sums of squares of what was rounded away from the outputs that the element changed. */
static double rounded(const world *w)
{
    double sum = 0.0;
    for (int k = 0; k < w->node->n_out; k++) {
        const fth_desc *d = &w->node->out[k];
        if (!fth_val_ok(w->bar[k])) continue;
        for (int64_t i = 0; i < fth_desc_count(d); i++) {
            const double v = fth__check_get(d->dtype, w->made[k], i),
                         g = fth__check_get(d->dtype, w->data[w->bar[k].id], i);
            if (v == fth__check_get(d->dtype, w->base[k], i)) continue;
            sum += pow(g * v * rounding_of(d->dtype), 2.0);
        }
    }
    return sum;
}

/* Positions are others than with the inputs as they are: an order or an extreme has changed on the
 * way, which slopes on both sides of a narrow corner need not show. */
static bool other_positions(const world *w)
{
    for (int k = 0; k < w->node->n_out; k++) {
        const fth_desc *d = &w->node->out[k];
        if (fth_dtype_is_int(d->dtype) && memcmp(w->made[k], w->base[k], fth__check_bytes(d)) != 0)
            return true;
    }
    return false;
}

/* Four points around x and x itself, at the numbers that the dtype has nearest to the steps. With a
 * relative error u of the loss the formula leaves 1.5 u / h and h^4 / 30 of the fifth derivative,
 * which are alike at h^5 = 45 u; half of that, because most functions bend more than their value
 * says. The error is four standard deviations of independent roundings, each evenly spread: 0.95 /
 * sqrt(3) of the square root of the sum, over h; and what slopes of neighbouring intervals show of
 * the third derivative. Half a step to both sides sees poles that whole steps lie beside. */
static fth_status coarse_slope(world *w, const fth_desc *d, char *data, int64_t i, double middle,
                               slope *out, fth_err *err)
{
    const double x = fth__check_get(d->dtype, data, i),
                 h = exp2(floor(log2(45.0 * coarsest(w, d)) / 5.0) - 1.0) *
                     (fabs(x) > 1.0 ? exp2(floor(log2(fabs(x)))) : 1.0);
    static const double steps[] = {-2.0, -1.0, 1.0, 2.0, -0.5, 0.5};
    double at[7] = {0}, f[7], interval[4], most = 0.0, bend = 0.0, lost = 0.0;
    bool corner = false;
    at[2] = x;
    f[2] = middle;
    for (int k = 0; k < 6; k++) {
        const int to = k < 2 ? k : k + 1; /* 2 is x itself */
        fth__check_put(d->dtype, data, i, x + steps[k] * h);
        at[to] = fth__check_get(d->dtype, data, i);
        const fth_status s = loss_of(w, &f[to], err);
        fth__check_put(d->dtype, data, i, x);
        FTH_TRY(s);
        lost = fmax(lost, rounded(w));
        corner |= other_positions(w);
    }
    for (int k = 0; k < 4; k++) {
        interval[k] = (f[k + 1] - f[k]) / (at[k + 1] - at[k]);
        most = fmax(most, fabs(interval[k]));
    }
    for (int k = 1; k < 3; k++)
        bend = fmax(bend, fabs(interval[k - 1] - 2.0 * interval[k] + interval[k + 1]));
    const double near = (f[3] - f[1]) / (at[3] - at[1]), far = (f[4] - f[0]) / (at[4] - at[0]),
                 inner = (f[6] - f[5]) / (at[6] - at[5]);
    const double noise = 4.0 * 0.95 / sqrt(3.0) * sqrt(lost) / h;
    const double most_bent = most / 4.0 + 4.0 * noise;
    *out = (slope){.value = (4.0 * near - far) / 3.0,
                   .error = noise + bend,
                   .smooth = !corner && bend <= most_bent && fabs(inner - near) <= most_bent};
    return FTH_OK;
}

/* Many outputs read each element, as of a bound that all are clipped to: each has a corner at
 * another place, and together they look smooth. */
static bool is_shared(const world *w, const fth_desc *d)
{
    for (int k = 0; k < w->node->n_out; k++)
        if (fth_desc_count(&w->node->out[k]) > fth_desc_count(d)) return true;
    return false;
}

/* The gradient rounds once in each of its nodes. */
static fth_status compare_coarse(world *w, int in, const char *bar, double tolerance, double *worst,
                                 fth_err *err)
{
    const fth_desc *d = &w->node->in[in];
    const int64_t n = fth_desc_count(d);
    double middle;
    FTH_TRY(loss_of(w, &middle, err));
    for (int k = 0; k < w->node->n_out; k++)
        memcpy(w->base[k], w->made[k], fth__check_bytes(&w->node->out[k]));
    for (int64_t k = 0; k < n && k < MOST; k++) {
        const int64_t i = n <= MOST ? k : fth__check_draw(&w->seed, 0, n - 1);
        slope want;
        FTH_TRY(coarse_slope(w, d, w->given[in], i, middle, &want, err));
        const double got = fth__check_get(d->dtype, bar, i), size = 1.0 + fabs(want.value),
                     off = fabs(got - want.value);
        if (!isfinite(want.value) || !isfinite(got) || !want.smooth) continue;
        const double most = tolerance > 0.0 ? tolerance * size
                                            : want.error + (double)w->nodes * coarsest(w, d) * size;
        if (off / size > *worst) *worst = off / size;
        if (off <= most) continue;
        return FTH_FAIL(err, FTH_E_GRAPH_PROMISE,
                        "operation '%.40s': its vjp gives element %lld of input %d the slope %.9g, "
                        "differences give %.9g (tolerance %g)",
                        w->node->op->name, (long long)i, in, got, want.value, most / size);
    }
    return FTH_OK;
}

static fth_status compare(world *w, int in, const char *bar, double tolerance, double *worst,
                          fth_err *err)
{
    const fth_desc *d = &w->node->in[in];
    const int64_t n = fth_desc_count(d);
    if (coarsest(w, d) > 0x1p-24)
        return is_shared(w, d) ? FTH_OK : compare_coarse(w, in, bar, tolerance, worst, err);
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
        w->base[k] = fth__heap_alloc(w->mem, fth__check_bytes(&node->out[k]) + 1);
        if (!w->made[k] || !w->base[k])
            return FTH_FAIL(err, FTH_E_NOMEM, "the check of a gradient");
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
    for (int k = 0; k < w->node->n_out; k++) fth__heap_free(w->mem, w->base[k]);
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
    const int64_t before = w.g->n_nodes;
    FTH_TRY(append(&w, in_bar, err));
    w.nodes = w.g->n_nodes - before;
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
