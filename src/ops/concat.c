/* concat.c - values one after the other along an axis.
 *
 * Each operand has its own name for its part, because a part has its own size. Along the joined
 * axis every operand is a halo with an offset, so a concatenation streams.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "ops/build.h"
#include "ops/move.h"

static int dim_of(const fth_node *node, int in)
{
    const fth__concat_attr *attr = node->attr;
    return fth_desc_find(&node->in[in], attr->axis[in]);
}

static int64_t offset_of(const fth_node *node, int in)
{
    int64_t offset = 0;
    for (int i = 0; i < in; i++) offset += node->in[i].size[dim_of(node, i)];
    return offset;
}

/* Operand i must be operand 0 but for the joined axis. */
static fth_status check_operand(const fth_node *node, int i, const fth_desc *d, fth_err *err)
{
    char a[FTH__SHAPE_TEXT], b[FTH__SHAPE_TEXT];
    const fth_desc *in = &node->in[i];
    if (in->dtype != d->dtype)
        return FTH_FAIL(err, FTH_E_DTYPE, "concat: %s and %s have different dtypes",
                        fth_in_format(node, 0, a, sizeof a), fth_in_format(node, i, b, sizeof b));
    fth_desc mine = *in;
    FTH_TRY(fth__replace_axis(node, i, &mine, dim_of(node, i), d->axis[dim_of(node, 0)], err));
    bool same = mine.n_axes == d->n_axes;
    for (int k = 0; same && k < d->n_axes; k++) same = mine.axis[k] == d->axis[k];
    if (same) return FTH_OK;
    const fth_status s = FTH_FAIL(
        err, FTH_E_AXIS_MISMATCH, "concat: %s and %s differ in more than the axes that are joined",
        fth_in_format(node, 0, a, sizeof a), fth_in_format(node, i, b, sizeof b));
    fth_err_hint(err, "expand or rename so that both have the same other axes");
    return s;
}

static fth_status infer(fth_node *node, fth_err *err)
{
    const fth__concat_attr *attr = node->attr;
    fth_desc d = node->in[0];
    char a[FTH__SHAPE_TEXT];
    int64_t total = 0;
    int dim = 0;
    for (int i = node->n_in - 1; i >= 0; i--) {
        FTH_TRY(fth__need_axis(node, i, attr->axis[i], &dim, err));
        if (!fth__add_i64(total, node->in[i].size[dim], &total))
            return FTH_FAIL(err, FTH_E_SIZE_OVERFLOW,
                            "concat: the parts together have too many elements");
    }
    FTH_TRY(fth__replace_axis(node, 0, &d, dim, attr->into, err));
    fth__unmark(&d);
    for (int i = 1; i < node->n_in; i++) FTH_TRY(check_operand(node, i, &d, err));
    if (total != d.size[dim]) {
        const fth_status s = FTH_FAIL(
            err, FTH_E_AXIS_SIZE,
            "concat: the parts have %lld elements together, '%s' has %lld; the first part is "
            "%s",
            (long long)total, fth__name_of(node, attr->into), (long long)d.size[dim],
            fth_in_format(node, 0, a, sizeof a));
        fth_err_hint(err, "declare '%s' with the sum of the sizes", fth__name_of(node, attr->into));
        return s;
    }
    node->n_out = 1;
    node->out[0] = d;
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    const int64_t offset = offset_of(node, in);
    if (dim == dim_of(node, in))
        fth__rel_halo(out, dim, 1, 1, offset, -offset);
    else
        fth__rel_same(out, dim);
}

static fth_status run(const fth_call *call)
{
    const fth_node *node = call->node;
    const int dim = dim_of(node, 0);
    int64_t offset = 0;
    for (int i = 0; i < node->n_in; i++) {
        const fth_tile *in = &call->in[i];
        fth__move m;
        fth__move_init(&m, call, i, 0);
        for (int k = 0; k < m.n; k++)
            fth__move_follow(&m, call, i, k, 0, k, k == dim ? -offset : 0);
        int64_t origin = call->out[0].origin[dim];
        const int64_t lo = in->origin[dim] + offset;
        fth__move_clip(&m, dim, &origin, lo, lo + in->extent[dim]);
        fth__move_run(&m);
        offset += node->in[i].size[dim];
    }
    FTH_ASSERT(offset == node->out[0].size[dim]); /* the parts are the whole axis */
    return FTH_OK;
}

static fth_status vjp(const fth_node *node, const fth_val *out_bar, fth_val *in_bar, fth_err *err)
{
    const fth__concat_attr *attr = node->attr;
    (void)err;
    for (int i = 0; i < node->n_in; i++)
        in_bar[i] = fth_slice_(node->site, out_bar[0], fth_axis_name(node->graph, attr->into),
                               offset_of(node, i), fth_axis_name(node->graph, attr->axis[i]));
    return FTH_OK;
}

const fth_op fth__op_concat = {.name = "concat",
                               .brief = "values one after the other along an axis",
                               .flags = FTH_OP_CHEAP,
                               .infer = infer,
                               .relation = relation,
                               .vjp = vjp,
                               .run = run};

/* v in the order of the first operand, its own part in the place of the first one's. */
static fth_val arrange(fth_site site, fth_val v, fth_axis_id own, fth_val first, fth_axis_id its)
{
    const fth_desc *d = fth__val_desc(v), *f = fth__val_desc(first);
    fth_axis_id order[FTH_MAX_AXES];
    char text[FTH__AXES_TEXT];
    if (d->n_axes != f->n_axes) return v; /* infer refuses it with both shapes */
    for (int i = 0; i < f->n_axes; i++) {
        order[i] = f->axis[i] == its ? own : f->axis[i];
        if (fth_desc_find(d, order[i]) < 0) return v;
    }
    return fth_layout_(site, v, fth__axes_text(v.graph, f->n_axes, order, text, sizeof text));
}

fth_val fth_concat_(fth_site site, int n, const fth_val *v, const char *const *axis,
                    const char *into)
{
    fth__concat_attr attr = {0};
    fth_val in[FTH__CONCAT_MOST];
    if (n < 1 || !v || !axis) return (fth_val){0};
    if (!fth_val_ok(v[0])) return fth__poison(v[0]);
    if (n > FTH__CONCAT_MOST)
        return fth_poison_(v[0].graph, site, FTH_E_GRAPH_ATTR,
                           "concat: %d values, at most %d at a time; join them in groups", n,
                           FTH__CONCAT_MOST);
    if (!fth__build_axis(v[0], site, "concat", into, &attr.into)) return fth__poison(v[0]);
    for (int i = 0; i < n; i++) {
        if (!fth__build_axis(v[i], site, "concat", axis[i], &attr.axis[i]))
            return fth__poison(v[0]);
        in[i] =
            v[i].graph == v[0].graph ? arrange(site, v[i], attr.axis[i], v[0], attr.axis[0]) : v[i];
    }
    return fth_node_add_(v[0].graph, site, &fth__op_concat, n, in, &attr, sizeof attr);
}
