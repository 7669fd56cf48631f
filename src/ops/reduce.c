/* reduce.c - one axis of a value summed, multiplied or compared away.
 *
 * One axis per node: the builder takes several and makes one node each, innermost first, so every
 * order of additions is that of single axes. Bool and integers sum to i64, f16, bf16 and f32
 * accumulate in f64. The loops are in reduce_plain.c and logsumexp.c.
 */
#include "ops/reduce.h"

#include "base/assert.h"
#include "ops/build.h"

static const char *const names[FTH_RED_COUNT_] = {"sum", "prod", "min",      "max",
                                                  "any", "all",  "logsumexp"};

const char *fth__reduce_name(fth_red red)
{
    FTH_ASSERT((unsigned)red < FTH_RED_COUNT_);
    return names[red];
}

fth_dtype fth__reduce_dtype(fth_red red, fth_dtype t)
{
    const bool whole = fth_dtype_is_int(t), real = fth_dtype_is_real(t),
               complex = fth_dtype_is_complex(t);
    switch (red) {
    case FTH_RED_SUM:
    case FTH_RED_PROD: return real || complex ? t : FTH_I64;
    case FTH_RED_MIN:
    case FTH_RED_MAX: return whole || real ? t : FTH_DTYPE_COUNT;
    case FTH_RED_ANY:
    case FTH_RED_ALL: return t == FTH_BOOL ? t : FTH_DTYPE_COUNT;
    case FTH_RED_LOGSUMEXP: return real ? t : FTH_DTYPE_COUNT;
    case FTH_RED_COUNT_: break;
    }
    return FTH_DTYPE_COUNT;
}

static const char *const takes[FTH_RED_COUNT_] = {
    "every dtype", "every dtype", "integers and reals", "integers and reals", "bool",
    "bool",        "reals"};

static fth_status infer(fth_node *node, fth_err *err)
{
    const fth__reduce_attr *attr = node->attr;
    const fth_red red = (fth_red)attr->red;
    char a[FTH__SHAPE_TEXT];
    int dim;
    if ((int)red < 0 || red >= FTH_RED_COUNT_)
        return FTH_FAIL(err, FTH_E_GRAPH_ATTR, "reduce: %d is not one of fth_red", (int)red);
    FTH_TRY(fth__need_axis(node, 0, attr->axis, &dim, err));
    fth_desc d = node->in[0];
    d.dtype = fth__reduce_dtype(red, d.dtype);
    if (d.dtype == FTH_DTYPE_COUNT) {
        const fth_status s =
            FTH_FAIL(err, FTH_E_DTYPE_OP, "%s over '%s' is not defined for %s", names[red],
                     fth__name_of(node, attr->axis), fth_in_format(node, 0, a, sizeof a));
        fth_err_hint(err, "%s takes %s; write the cast or comparison where it is meant", names[red],
                     takes[red]);
        return s;
    }
    if ((red == FTH_RED_MIN || red == FTH_RED_MAX) && d.size[dim] == 0) {
        const fth_status s = FTH_FAIL(
            err, FTH_E_AXIS_SIZE, "%s over '%s' of %s: an empty axis has no %s", names[red],
            fth__name_of(node, attr->axis), fth_in_format(node, 0, a, sizeof a), names[red]);
        fth_err_hint(err, "check the size before building this value");
        return s;
    }
    fth_desc_drop(&d, dim);
    node->n_out = 1;
    node->out[0] = d;
    return FTH_OK;
}

void fth__reduce_relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    (void)in;
    const int reduced = fth__reduce_dim(node);
    if (dim == reduced)
        fth__rel_accumulate(out);
    else
        fth__rel_same(out, dim < reduced ? dim : dim - 1);
}

static int64_t grid(const fth_node *node, int in, int dim)
{
    const fth__reduce_attr *attr = node->attr;
    if (in < 0) return 1;
    const bool exact = fth__reduce_exact((fth_red)attr->red, node->in[0].dtype);
    return exact && attr->red != FTH_RED_LOGSUMEXP ? 1 : fth__reduce_block(node->in[0].size[dim]);
}

static uint64_t state(const fth_node *node, int out)
{
    (void)out;
    const fth__reduce_attr *attr = node->attr;
    return attr->red == FTH_RED_LOGSUMEXP ? fth__reduce_pair_state(node)
                                          : fth__reduce_plain_state(node);
}

static fth_status run(const fth_call *call)
{
    const fth__reduce_attr *attr = call->node->attr;
    return attr->red == FTH_RED_LOGSUMEXP ? fth__reduce_logsumexp(call) : fth__reduce_plain(call);
}

static bool is_logsumexp(const fth_node *node)
{
    return ((const fth__reduce_attr *)node->attr)->red == FTH_RED_LOGSUMEXP;
}

static int64_t grain(const fth_node *node, int in, int dim)
{
    return is_logsumexp(node) ? fth__logsumexp_join.grain(node, in, dim)
                              : fth__reduce_plain_grain(node);
}

static void join_add(const fth_partial *into, const fth_partial *from)
{
    if (is_logsumexp(into->node)) {
        fth__logsumexp_join.add(into, from);
        return;
    }
    const fth__join_total t = fth__reduce_plain_total(into->node);
    fth__join_totals(&t, into, from);
}

static void join_finish(const fth_partial *p)
{
    if (is_logsumexp(p->node)) {
        fth__logsumexp_join.finish(p);
        return;
    }
    const fth__join_total t = fth__reduce_plain_total(p->node);
    fth__join_totals_finish(&t, p);
}

static bool in_state(const fth_node *node, int out)
{
    (void)out;
    return is_logsumexp(node) || !fth__reduce_plain_total(node).in_out;
}

static const fth_join join = {
    .grain = grain, .in_state = in_state, .add = join_add, .finish = join_finish};

/* The product of all others, without dividing: what comes before times what comes after. */
static fth_val prod_bar(const fth_node *node, fth_val g)
{
    const fth__reduce_attr *attr = node->attr;
    const fth_site site = node->site;
    const char *axis = fth_axis_name(node->graph, attr->axis);
    const fth_val x = node->in_val[0];
    const fth_val before = fth_scan_(site, FTH_RED_PROD, x, axis, true, false);
    const fth_val after = fth_scan_(site, FTH_RED_PROD, x, axis, true, true);
    fth_val others = fth__map2(site, FTH_EW_MUL, before, after);
    if (fth_dtype_is_complex(node->in[0].dtype)) others = fth__map1(site, FTH_EW_CONJ, others);
    return fth__map2(site, FTH_EW_MUL, others, g);
}

static fth_val logsumexp_bar(const fth_node *node, fth_val g)
{
    const fth_site site = node->site;
    /* Where everything is -inf, so is the result; their difference would be NaN. */
    const fth_val lse = node->out_val[0],
                  zero = fth_const_(node->graph, site, node->out[0].dtype, 0.0, 0.0);
    const fth_val shift =
        fth_map_(site, FTH_EW_SELECT, fth__map1(site, FTH_EW_ISFINITE, lse), lse, zero);
    const fth_val weight =
        fth__map1(site, FTH_EW_EXP, fth__map2(site, FTH_EW_SUB, node->in_val[0], shift));
    return fth__map2(site, FTH_EW_MUL, weight, g);
}

static fth_status vjp(const fth_node *node, const fth_val *out_bar, fth_val *in_bar, fth_err *err)
{
    const fth__reduce_attr *attr = node->attr;
    const fth_val g = out_bar[0];
    (void)err;
    if (attr->red == FTH_RED_SUM) in_bar[0] = fth__grow_like(node->site, g, &node->in[0]);
    if (attr->red == FTH_RED_PROD) in_bar[0] = prod_bar(node, g);
    if (attr->red == FTH_RED_LOGSUMEXP) in_bar[0] = logsumexp_bar(node, g);
    if (attr->red == FTH_RED_MIN || attr->red == FTH_RED_MAX) {
        const fth_val position = fth_arg_(node->site, attr->red == FTH_RED_MAX, node->in_val[0],
                                          fth_axis_name(node->graph, attr->axis));
        const fth_val place = fth__narrow_positions(node->site, position,
                                                    fth__size_of(node->graph, attr->axis), true);
        const fth_val mask = fth__at_position(node->site, place, attr->axis, &node->in[0]);
        in_bar[0] = fth__keep_where(node->site, mask, g, &node->in[0]);
    }
    FTH_ASSERT(fth__is_cotangent(in_bar[0], &node->in[0]));
    return FTH_OK;
}

const fth_op fth__op_reduce = {.name = "reduce",
                               .brief = "sum, prod, min, max, any, all or logsumexp over one axis",
                               .infer = infer,
                               .relation = fth__reduce_relation,
                               .grid = grid,
                               .state = state,
                               .flops = fth__flops_in0,
                               .vjp = vjp,
                               .join = &join,
                               .run = run};

/* ---- builders ---------------------------------------------------------------------------------
 */

/* The named axes in the order of the layout, innermost first. */
static bool axes_of(fth_val v, fth_site site, const char *axes, int *n, fth_axis_id *id)
{
    fth_axis_id named[FTH_MAX_AXES];
    if (!fth__build_axes(v, site, axes, n, named)) return false;
    const fth_desc *d = fth__val_desc(v);
    int at = 0;
    for (int i = d->n_axes - 1; i >= 0; i--)
        for (int k = 0; k < *n; k++)
            if (named[k] == d->axis[i]) id[at++] = named[k];
    for (int k = 0; k < *n; k++) /* those it lacks come last, for infer to refuse */
        if (fth_desc_find(d, named[k]) < 0) id[at++] = named[k];
    FTH_ASSERT(at == *n);
    return true;
}

/* Entries of rows are summed row by row, then over the rows: that order can follow chunks of rows,
 * which blocks of entries cannot. */
static bool by_rows(fth_val v, fth_axis_id axis)
{
    const fth__axis *a = v.graph->axis[axis];
    return fth_val_ok(v) && a->row_ptr && fth_desc_find(fth__val_desc(v), axis) >= 0 &&
           fth_desc_find(fth__val_desc(v), a->rows) < 0;
}

fth_val fth_reduce_(fth_site site, fth_red red, fth_val v, const char *axes)
{
    int n;
    fth_axis_id axis[FTH_MAX_AXES];
    if (!axes_of(v, site, axes, &n, axis)) return fth__poison(v);
    for (int i = 0; i < n; i++) {
        if (red == FTH_RED_SUM && by_rows(v, axis[i])) {
            const fth__axis *entries = v.graph->axis[axis[i]];
            axis[i] = entries->rows;
            v = fth_collect_(site, v, entries->name);
        }
        const fth__reduce_attr attr = {.red = (int32_t)red, .axis = axis[i]};
        v = fth_node_add_(v.graph, site, &fth__op_reduce, 1, &v, &attr, sizeof attr);
    }
    return v;
}

fth_val fth_count_(fth_site site, fth_val v, const char *axes)
{
    if (!fth_val_ok(v)) return v;
    const fth_dtype t = fth_val_dtype(v);
    if (t != FTH_BOOL) v = fth__map2(site, FTH_EW_NE, v, fth_const_(v.graph, site, t, 0.0, 0.0));
    if (fth_val_ok(v) && fth_val_axes(v) == 0) return fth_cast_(site, v, FTH_I64);
    return fth_reduce_(site, FTH_RED_SUM, v, axes);
}

static fth_val not_a_number(fth_site site, fth_val v, const char *what, const char *allowed)
{
    char text[FTH__SHAPE_TEXT];
    fth_err err = {0};
    (void)FTH_FAIL(&err, FTH_E_DTYPE_OP, "%s is not defined for %s", what,
                   fth_val_format(v, text, sizeof text));
    fth_err_hint(&err, "it takes %s; write the cast where it is meant", allowed);
    return fth__graph_fail(v.graph, site, &err);
}

/* f16 and bf16 are summed in f32: a sum may pass their range where the mean does not. */
static fth_val widen(fth_site site, fth_val v)
{
    const fth_dtype t = fth_val_dtype(v);
    return t == FTH_F16 || t == FTH_BF16 ? fth_cast_(site, v, FTH_F32) : v;
}

static fth_val narrow(fth_site site, fth_val v, fth_dtype t)
{
    return fth_val_ok(v) && fth_val_dtype(v) != t ? fth_cast_(site, v, t) : v;
}

fth_val fth_mean_(fth_site site, fth_val v, const char *axes)
{
    int n;
    fth_axis_id axis[FTH_MAX_AXES];
    if (!axes_of(v, site, axes, &n, axis)) return fth__poison(v);
    const fth_dtype t = fth_val_dtype(v);
    if (!fth_dtype_is_real(t) && !fth_dtype_is_complex(t))
        return not_a_number(site, v, "mean", "reals and complex");
    double count = 1.0;
    for (int i = 0; i < n; i++) count *= (double)fth__size_of(v.graph, axis[i]);
    const fth_val sum = fth_reduce_(site, FTH_RED_SUM, widen(site, v), axes);
    if (!fth_val_ok(sum)) return sum;
    const fth_val by = fth_const_(v.graph, site, fth_val_dtype(sum), count, 0.0);
    return narrow(site, fth__map2(site, FTH_EW_DIV, sum, by), t);
}

/* Over several axes by the law of total variance: the mean of the inner variances plus the
 * variance of the inner means. */
fth_val fth_variance_(fth_site site, fth_val v, const char *axes)
{
    int n;
    fth_axis_id axis[FTH_MAX_AXES];
    if (!axes_of(v, site, axes, &n, axis)) return fth__poison(v);
    const fth_dtype t = fth_val_dtype(v);
    if (!fth_dtype_is_real(t)) return not_a_number(site, v, "variance", "reals");
    if (n == 0) return fth__zeros_like(v.graph, site, fth__val_desc(v));
    fth_val mean = n > 1 ? widen(site, v) : v, variance = {v.graph, 0};
    for (int i = 0; i < n && fth_val_ok(mean); i++) {
        const char *name = fth_axis_name(v.graph, axis[i]);
        const fth__reduce_attr attr = {.red = 0, .axis = axis[i]};
        const fth_val own =
            fth_node_add_(v.graph, site, &fth__op_variance, 1, &mean, &attr, sizeof attr);
        variance = i == 0 ? own : fth__map2(site, FTH_EW_ADD, fth_mean_(site, variance, name), own);
        if (i + 1 < n) mean = fth_mean_(site, mean, name);
    }
    return narrow(site, variance, t);
}
