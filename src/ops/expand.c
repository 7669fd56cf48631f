/* expand.c - grow a value by axes it does not have: every element is repeated.
 *
 * The only way a value grows. New axes stand outermost, in the order given, so the smaller value
 * stays a contiguous block of the larger one.
 */
#include "base/assert.h"
#include "ops/build.h"
#include "ops/move.h"

typedef struct expand_attr {
    int32_t n;
    fth_axis_id axis[FTH_MAX_AXES];
} expand_attr;

static fth_status infer(fth_node *node, fth_err *err)
{
    const expand_attr *attr = node->attr;
    const fth_desc *in = &node->in[0];
    char a[FTH__SHAPE_TEXT];
    fth_desc d = {.dtype = in->dtype, .triangle = in->triangle, .row = in->row, .col = in->col};
    if (attr->n + in->n_axes > FTH_MAX_AXES)
        return FTH_FAIL(err, FTH_E_AXIS_LIMIT,
                        "expand: %s would have %d axes, at most %d are possible",
                        fth_in_format(node, 0, a, sizeof a), attr->n + in->n_axes, FTH_MAX_AXES);
    for (int i = 0; i < attr->n; i++) {
        if (fth_desc_find(in, attr->axis[i]) >= 0) {
            const fth_status s =
                FTH_FAIL(err, FTH_E_AXIS_MISMATCH, "expand: %s already has axis '%s'",
                         fth_in_format(node, 0, a, sizeof a), fth__name_of(node, attr->axis[i]));
            fth_err_hint(
                err,
                "expand names only new axes; for an outer product with itself, rename one operand");
            return s;
        }
        d.axis[d.n_axes] = attr->axis[i];
        d.size[d.n_axes++] = fth__size_of(node->graph, attr->axis[i]);
    }
    for (int i = 0; i < in->n_axes; i++) {
        d.axis[d.n_axes] = in->axis[i];
        d.size[d.n_axes++] = in->size[i];
    }
    if (d.triangle != FTH_FULL) {
        d.row += attr->n;
        d.col += attr->n;
    }
    FTH_ASSERT(d.n_axes == attr->n + in->n_axes);
    node->n_out = 1;
    node->out[0] = d;
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    const expand_attr *attr = node->attr;
    (void)in;
    fth__rel_same(out, attr->n + dim);
}

static fth_status run(const fth_call *call)
{
    const expand_attr *attr = call->node->attr;
    int to[FTH_MAX_AXES];
    for (int i = 0; i < call->node->in[0].n_axes; i++) to[i] = attr->n + i;
    return fth__move_same(call, to);
}

static fth_status vjp(const fth_node *node, const fth_val *out_bar, fth_val *in_bar, fth_err *err)
{
    const expand_attr *attr = node->attr;
    char axes[FTH__AXES_TEXT];
    (void)err;
    fth__axes_text(node->graph, attr->n, attr->axis, axes, sizeof axes);
    in_bar[0] = fth_reduce_(node->site, FTH_RED_SUM, out_bar[0], axes);
    return FTH_OK;
}

const fth_op fth__op_expand = {.name = "expand",
                               .brief = "grow by axes the value does not have",
                               .flags = FTH_OP_FREE_AXES | FTH_OP_CHEAP,
                               .infer = infer,
                               .relation = relation,
                               .vjp = vjp,
                               .run = run};

fth_val fth_expand_(fth_site site, fth_val v, const char *axes)
{
    expand_attr attr = {0};
    if (!fth__build_axes(v, site, axes, &attr.n, attr.axis)) return fth__poison(v);
    if (attr.n == 0) return v;
    return fth_node_add_(v.graph, site, &fth__op_expand, 1, &v, &attr, sizeof attr);
}
