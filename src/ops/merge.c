/* merge.c - several axes as one, and back.
 *
 * merge("group chan" -> "patch") and split are no work at all: the parts lie next to each other in
 * memory, outermost first, and the graph remembers them, so that split needs no sizes and cannot
 * scramble. When they do not lie so, the builder inserts a written (and billed) layout first.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "ops/build.h"
#include "ops/move.h"

/* For both operations: one axis, the parts it stands for, outermost first. */
typedef struct merge_attr {
    int32_t n;
    fth_axis_id axis;
    fth_axis_id part[FTH_MAX_AXES];
} merge_attr;

static int64_t inner_size(const fth_node *node, const merge_attr *attr)
{
    int64_t n = 1;
    for (int i = 1; i < attr->n; i++) n *= fth__size_of(node->graph, attr->part[i]);
    return n;
}

static fth_status check_product(const fth_node *node, const merge_attr *attr, fth_err *err)
{
    char a[FTH__SHAPE_TEXT], parts[FTH__AXES_TEXT];
    int64_t product = 1;
    bool fits = true;
    for (int i = 0; i < attr->n; i++)
        fits = fits && fth__mul_i64(product, fth__size_of(node->graph, attr->part[i]), &product);
    const int64_t size = fth__size_of(node->graph, attr->axis);
    if (fits && product == size) return FTH_OK;
    const fth_status s = FTH_FAIL(
        err, FTH_E_AXIS_SIZE, "%s: '%s' has %lld elements, but \"%s\" together %lld, in %s",
        node->op->name, fth__name_of(node, attr->axis), (long long)size,
        fth__axes_text(node->graph, attr->n, attr->part, parts, sizeof parts), (long long)product,
        fth_in_format(node, 0, a, sizeof a));
    fth_err_hint(err, "a merged axis has as many elements as its parts multiplied");
    return s;
}

static fth_status twice(const fth_node *node, const fth_desc *d, fth_err *err)
{
    char a[FTH__SHAPE_TEXT];
    for (int i = 0; i < d->n_axes; i++)
        for (int k = 0; k < i; k++)
            if (d->axis[i] == d->axis[k])
                return FTH_FAIL(err, FTH_E_AXIS_MISMATCH, "%s: %s would have axis '%s' twice",
                                node->op->name, fth_in_format(node, 0, a, sizeof a),
                                fth__name_of(node, d->axis[i]));
    return FTH_OK;
}

/* ---- merge ---------------------------------------------------------------------------------- */

static fth_status merge_infer(fth_node *node, fth_err *err)
{
    const merge_attr *attr = node->attr;
    fth_desc d = node->in[0];
    int first, dim;
    FTH_TRY(check_product(node, attr, err));
    FTH_TRY(fth__need_axis(node, 0, attr->part[0], &first, err));
    for (int i = 1; i < attr->n; i++) {
        FTH_TRY(fth__need_axis(node, 0, attr->part[i], &dim, err));
        if (dim != first + i)
            return FTH_FAIL(err, FTH_E_INTERNAL, "merge: the parts do not lie in order");
        fth_desc_drop(&d, first + 1);
    }
    if (d.triangle != FTH_FULL && (d.row == first || d.col == first)) fth__unmark(&d);
    d.axis[first] = attr->axis;
    d.size[first] = fth__size_of(node->graph, attr->axis);
    node->n_out = 1;
    node->out[0] = d;
    return twice(node, &d, err);
}

static void merge_relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    const merge_attr *attr = node->attr;
    const int first = fth_desc_find(&node->in[in], attr->part[0]);
    if (dim == first)
        fth__rel_halo(out, first, 1, fth__max_i64(inner_size(node, attr), 1), 0, 0);
    else if (dim > first && dim < first + attr->n)
        fth__rel_whole(out);
    else
        fth__rel_same(out, dim < first ? dim : dim - attr->n + 1);
}

static fth_status merge_run(const fth_call *call)
{
    const fth_node *node = call->node;
    const merge_attr *attr = node->attr;
    const int first = fth_desc_find(&node->in[0], attr->part[0]), inner = first + attr->n - 1;
    const fth_tile *in = &call->in[0], *out = &call->out[0];
    fth__move m;
    fth__move_init(&m, call, 0, 0);
    for (int i = 0; i < node->out[0].n_axes; i++)
        if (i != first) fth__move_follow(&m, call, 0, i < first ? i : i + attr->n - 1, 0, i, 0);
    /* The inner parts are whole, so the merged axis is evenly spaced in the input as well. */
    for (int i = 1; i < attr->n; i++)
        FTH_ASSERT(in->extent[first + i] == node->in[0].size[first + i]);
    m.src_step[first] = in->stride[inner] * m.size;
    m.src += (out->origin[first] - in->origin[first] * inner_size(node, attr)) * m.src_step[first];
    fth__move_run(&m);
    return FTH_OK;
}

static fth_status merge_vjp(const fth_node *node, const fth_val *out_bar, fth_val *in_bar,
                            fth_err *err)
{
    const merge_attr *attr = node->attr;
    char parts[FTH__AXES_TEXT];
    (void)err;
    fth__axes_text(node->graph, attr->n, attr->part, parts, sizeof parts);
    in_bar[0] = fth_split_(node->site, out_bar[0], fth_axis_name(node->graph, attr->axis), parts);
    return FTH_OK;
}

const fth_op fth__op_merge = {.name = "merge",
                              .brief = "several axes as one",
                              .flags = FTH_OP_ALIAS | FTH_OP_CHEAP,
                              .infer = merge_infer,
                              .relation = merge_relation,
                              .vjp = merge_vjp,
                              .run = merge_run};

/* v with the parts next to each other, in order, where the first of them stands. */
static fth_val bring_together(fth_site site, fth_val v, const merge_attr *attr)
{
    const fth_desc *d = fth__val_desc(v);
    fth_axis_id order[FTH_MAX_AXES];
    char text[FTH__AXES_TEXT];
    int n = 0;
    for (int i = 0; i < d->n_axes; i++) {
        int part = 0;
        while (part < attr->n && attr->part[part] != d->axis[i]) part++;
        if (part == attr->n) order[n++] = d->axis[i];
        if (part == 0)
            for (int k = 0; k < attr->n; k++) order[n++] = attr->part[k];
    }
    FTH_ASSERT(n == d->n_axes);
    return fth_layout_(site, v, fth__axes_text(v.graph, n, order, text, sizeof text));
}

/* Fails unless v has every part: bring_together would otherwise count wrong. */
static bool has_parts(fth_site site, fth_val v, const merge_attr *attr)
{
    char text[FTH__SHAPE_TEXT];
    for (int i = 0; i < attr->n; i++) {
        if (fth_desc_find(fth__val_desc(v), attr->part[i]) >= 0) continue;
        fth_poison_(v.graph, site, FTH_E_AXIS_MISSING, "merge: %s has no axis '%s'",
                    fth_val_format(v, text, sizeof text), fth_axis_name(v.graph, attr->part[i]));
        return false;
    }
    return true;
}

fth_val fth_merge_(fth_site site, fth_val v, const char *axes, const char *into)
{
    merge_attr attr = {0};
    if (!fth__build_axes(v, site, axes, &attr.n, attr.part)) return fth__poison(v);
    if (attr.n == 0) return fth_poison_(v.graph, site, FTH_E_AXIS_NAME, "merge: no axes are named");
    if (!has_parts(site, v, &attr)) return fth__poison(v);
    if (fth_axis_find(v.graph, into) < 0) {
        int64_t size = 1;
        for (int i = 0; i < attr.n; i++)
            if (!fth__mul_i64(size, fth__size_of(v.graph, attr.part[i]), &size))
                return fth_poison_(v.graph, site, FTH_E_SIZE_OVERFLOW,
                                   "merge: \"%s\" has too many elements", axes);
        if (!fth_axis_(v.graph, site, into, size)) return fth__poison(v);
    }
    if (!fth__build_axis(v, site, "merge", into, &attr.axis)) return fth__poison(v);
    const fth_val u = bring_together(site, v, &attr);
    const fth_val out = fth_node_add_(v.graph, site, &fth__op_merge, 1, &u, &attr, sizeof attr);
    if (!fth_val_ok(out)) return out;
    if (!fth__axis_set_parts(v.graph, attr.axis, attr.n, attr.part, site)) return fth__poison(v);
    return out;
}

/* ---- split ---------------------------------------------------------------------------------- */

static fth_status split_infer(fth_node *node, fth_err *err)
{
    const merge_attr *attr = node->attr;
    const fth_desc *in = &node->in[0];
    char a[FTH__SHAPE_TEXT];
    int dim;
    FTH_TRY(fth__need_axis(node, 0, attr->axis, &dim, err));
    FTH_TRY(check_product(node, attr, err));
    if (in->n_axes + attr->n - 1 > FTH_MAX_AXES)
        return FTH_FAIL(
            err, FTH_E_AXIS_LIMIT, "split: %s would have %d axes, at most %d are possible",
            fth_in_format(node, 0, a, sizeof a), in->n_axes + attr->n - 1, FTH_MAX_AXES);
    fth_desc d = {.dtype = in->dtype};
    for (int i = 0; i < in->n_axes; i++)
        for (int k = 0; k < (i == dim ? attr->n : 1); k++) {
            d.axis[d.n_axes] = i == dim ? attr->part[k] : in->axis[i];
            d.size[d.n_axes] = fth__size_of(node->graph, d.axis[d.n_axes]);
            d.n_axes++;
        }
    if (in->triangle != FTH_FULL && in->row != dim && in->col != dim) {
        d.triangle = in->triangle;
        d.row = in->row + (in->row > dim ? attr->n - 1 : 0);
        d.col = in->col + (in->col > dim ? attr->n - 1 : 0);
    }
    node->n_out = 1;
    node->out[0] = d;
    return twice(node, &d, err);
}

static void split_relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    const merge_attr *attr = node->attr;
    const int at = fth_desc_find(&node->in[in], attr->axis);
    if (dim == at)
        fth__rel_halo(out, at, inner_size(node, attr), 1, 0, 0);
    else
        fth__rel_same(out, dim < at ? dim : dim + attr->n - 1);
}

static fth_status split_run(const fth_call *call)
{
    const fth_node *node = call->node;
    const merge_attr *attr = node->attr;
    const int at = fth_desc_find(&node->in[0], attr->axis);
    const fth_tile *in = &call->in[0], *out = &call->out[0];
    fth__move m;
    fth__move_init(&m, call, 0, 0);
    int64_t step = in->stride[at] * m.size, from = 0, unit = 1;
    for (int k = attr->n - 1; k >= 0; k--) {
        m.src_step[at + k] = step * unit;
        from += out->origin[at + k] * unit;
        unit *= fth__size_of(node->graph, attr->part[k]);
    }
    m.src += (from - in->origin[at]) * step;
    for (int i = 0; i < node->in[0].n_axes; i++)
        if (i != at) fth__move_follow(&m, call, 0, i, 0, i < at ? i : i + attr->n - 1, 0);
    fth__move_run(&m);
    return FTH_OK;
}

static fth_status split_vjp(const fth_node *node, const fth_val *out_bar, fth_val *in_bar,
                            fth_err *err)
{
    const merge_attr *attr = node->attr;
    char parts[FTH__AXES_TEXT];
    (void)err;
    fth__axes_text(node->graph, attr->n, attr->part, parts, sizeof parts);
    in_bar[0] = fth_merge_(node->site, out_bar[0], parts, fth_axis_name(node->graph, attr->axis));
    return FTH_OK;
}

const fth_op fth__op_split = {.name = "split",
                              .brief = "one axis as the several it was merged from",
                              .flags = FTH_OP_ALIAS | FTH_OP_CHEAP,
                              .infer = split_infer,
                              .relation = split_relation,
                              .vjp = split_vjp,
                              .run = split_run};

/* The axis came from a merge: other parts, or the same in another order, would scramble. */
static bool check_memory(fth_site site, fth_val v, const merge_attr *attr, int n,
                         const fth_axis_id *known)
{
    bool same = n == attr->n;
    for (int i = 0; same && i < n; i++) same = known[i] == attr->part[i];
    if (same) return true;
    char a[FTH__SHAPE_TEXT], given[FTH__AXES_TEXT], made[FTH__AXES_TEXT];
    fth_err err = {0};
    (void)FTH_FAIL(&err, FTH_E_AXIS_MISMATCH,
                   "split: '%s' of %s was merged from \"%s\", not from \"%s\"",
                   fth_axis_name(v.graph, attr->axis), fth_val_format(v, a, sizeof a),
                   fth__axes_text(v.graph, n, known, made, sizeof made),
                   fth__axes_text(v.graph, attr->n, attr->part, given, sizeof given));
    fth_err_hint(&err, "split into NULL gives the parts back; rename them afterwards");
    fth__graph_fail(v.graph, site, &err);
    return false;
}

fth_val fth_split_(fth_site site, fth_val v, const char *axis, const char *into)
{
    merge_attr attr = {0};
    fth_axis_id known[FTH_MAX_AXES];
    if (!fth__build_axis(v, site, "split", axis, &attr.axis)) return fth__poison(v);
    const int n = fth__axis_parts(v.graph, attr.axis, known);
    if (!into) {
        if (n == 0)
            return fth_poison_(v.graph, site, FTH_E_AXIS_NAME,
                               "split: '%s' was not made by merge, so its parts must be named",
                               axis);
        attr.n = n;
        for (int i = 0; i < n; i++) attr.part[i] = known[i];
    } else {
        if (!fth__build_axes(v, site, into, &attr.n, attr.part)) return fth__poison(v);
        if (attr.n == 0)
            return fth_poison_(v.graph, site, FTH_E_AXIS_NAME, "split: no parts are named");
        if (n > 0 && !check_memory(site, v, &attr, n, known)) return fth__poison(v);
    }
    const fth_val out = fth_node_add_(v.graph, site, &fth__op_split, 1, &v, &attr, sizeof attr);
    if (!fth_val_ok(out)) return out;
    if (!fth__axis_set_parts(v.graph, attr.axis, attr.n, attr.part, site)) return fth__poison(v);
    return out;
}
