/* mark.c - say that a matrix is triangular, or forget that it is.
 *
 * A promise of the caller: entries on the other side of the diagonal are zero. Products use it to
 * skip zero tiles. The gradient is zero on that side too, because those entries are constants.
 */
#include "ops/build.h"
#include "ops/move.h"

typedef struct mark_attr {
    int32_t triangle;
    fth_axis_id row, col;
} mark_attr;

static fth_status infer(fth_node *node, fth_err *err)
{
    const mark_attr *attr = node->attr;
    fth_desc d = node->in[0];
    FTH_TRY(fth__need_axis(node, 0, attr->row, &d.row, err));
    FTH_TRY(fth__need_axis(node, 0, attr->col, &d.col, err));
    if (attr->triangle < FTH_FULL || attr->triangle > FTH_UPPER)
        return FTH_FAIL(err, FTH_E_GRAPH_ATTR, "mark: %d is not FTH_FULL, FTH_LOWER or FTH_UPPER",
                        attr->triangle);
    if (d.row == d.col || d.size[d.row] != d.size[d.col]) {
        char a[FTH__SHAPE_TEXT];
        return FTH_FAIL(err, FTH_E_AXIS_MISMATCH,
                        "mark: '%s' and '%s' of %s are not two axes of one size",
                        fth__name_of(node, attr->row), fth__name_of(node, attr->col),
                        fth_in_format(node, 0, a, sizeof a));
    }
    d.triangle = (fth_triangle)attr->triangle;
    if (d.triangle == FTH_FULL) fth__unmark(&d);
    node->n_out = 1;
    node->out[0] = d;
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    (void)node, (void)in;
    fth__rel_same(out, dim);
}

static fth_status run(const fth_call *call)
{
    int to[FTH_MAX_AXES];
    for (int i = 0; i < call->node->in[0].n_axes; i++) to[i] = i;
    return fth__move_same(call, to);
}

static bool has_mark(fth_val v, const mark_attr *attr)
{
    if (!fth_val_ok(v)) return false;
    const fth_desc *d = fth__val_desc(v);
    return d->triangle == (fth_triangle)attr->triangle && d->axis[d->row] == attr->row &&
           d->axis[d->col] == attr->col;
}

static fth_status vjp(const fth_node *node, const fth_val *out_bar, fth_val *in_bar, fth_err *err)
{
    const mark_attr *attr = node->attr;
    const fth_site site = node->site;
    fth_graph *g = node->graph;
    const char *row = fth_axis_name(g, attr->row), *col = fth_axis_name(g, attr->col);
    (void)err;
    if (attr->triangle == FTH_FULL || has_mark(out_bar[0], attr)) {
        in_bar[0] = out_bar[0];
        return FTH_OK;
    }
    const fth_val rows = fth_expand_(site, fth_index_(g, site, row), col);
    const fth_ew side = attr->triangle == FTH_LOWER ? FTH_EW_GE : FTH_EW_LE;
    const fth_val mask = fth__map2(site, side, rows, fth_index_(g, site, col));
    const fth_val kept = fth__keep_where(site, mask, out_bar[0], &node->out[0]);
    in_bar[0] = fth_mark_(site, kept, (fth_triangle)attr->triangle, row, col);
    return FTH_OK;
}

const fth_op fth__op_mark = {.name = "mark",
                             .brief = "promise that a matrix is triangular",
                             .flags = FTH_OP_ALIAS | FTH_OP_CHEAP,
                             .infer = infer,
                             .relation = relation,
                             .vjp = vjp,
                             .run = run};

fth_val fth_mark_(fth_site site, fth_val v, fth_triangle t, const char *row, const char *col)
{
    mark_attr attr = {.triangle = (int32_t)t};
    if (!fth__build_axis(v, site, "mark", row, &attr.row)) return fth__poison(v);
    if (!fth__build_axis(v, site, "mark", col, &attr.col)) return fth__poison(v);
    return fth_node_add_(v.graph, site, &fth__op_mark, 1, &v, &attr, sizeof attr);
}
