/* build.c - names to ids, errors that many operations share, and shapes of gradients. */
#include "ops/build.h"

#include "base/assert.h"
#include "base/str.h"
#include "ops/scalar.h"

#include <math.h>
#include <string.h>

bool fth__build_axes(fth_val v, fth_site site, const char *axes, int *n, fth_axis_id *id)
{
    *n = 0;
    if (!fth_val_ok(v)) return false;
    fth_err err = {0};
    if (fth_axes_parse(v.graph, axes, n, id, &err) == FTH_OK) return true;
    fth__graph_fail(v.graph, site, &err);
    return false;
}

bool fth__build_axis(fth_val v, fth_site site, const char *what, const char *name, fth_axis_id *id)
{
    int n;
    fth_axis_id list[FTH_MAX_AXES];
    if (!fth__build_axes(v, site, name, &n, list)) return false;
    *id = list[0];
    if (n == 1) return true;
    fth_poison_(v.graph, site, FTH_E_AXIS_NAME, "%s takes one axis here, but \"%s\" names %d", what,
                name, n);
    return false;
}

const char *fth__axes_text(const fth_graph *g, int n, const fth_axis_id *id, char *text,
                           size_t bytes)
{
    fth__text t;
    fth__text_init(&t, text, bytes);
    for (int i = 0; i < n; i++) fth__text_add(&t, "%s%s", i ? " " : "", fth_axis_name(g, id[i]));
    return text;
}

int64_t fth__size_of(const fth_graph *g, fth_axis_id axis)
{
    FTH_ASSERT(axis >= 0 && axis < g->n_axes);
    return g->axis[axis]->size;
}

const char *fth__name_of(const fth_node *node, fth_axis_id axis)
{
    return fth_axis_name(node->graph, axis);
}

fth_status fth__need_axis(const fth_node *node, int in, fth_axis_id axis, int *dim, fth_err *err)
{
    FTH_ASSERT(in >= 0 && in < node->n_in);
    *dim = fth_desc_find(&node->in[in], axis);
    if (*dim >= 0) return FTH_OK;
    char a[FTH__SHAPE_TEXT], axes[FTH__AXES_TEXT];
    const fth_status s =
        FTH_FAIL(err, FTH_E_AXIS_MISSING, "%s: %s has no axis '%s'", node->op->name,
                 fth_in_format(node, in, a, sizeof a), fth__name_of(node, axis));
    if (node->in[in].n_axes > 0)
        fth_err_hint(err, "its axes are: %s",
                     fth__desc_axes(node->graph, &node->in[in], axes, sizeof axes));
    return s;
}

static bool holds(fth_dtype t, double value)
{
    unsigned char element[16];
    if (fth__kind_of(t) == FTH__KIND_INT && !(value >= -0x1p63 && value < 0x1p63)) return false;
    fth__store(t, element, fth__wide_of(t, value));
    const fth__wide got = fth__load(t, element);
    if (fth__kind_of(t) == FTH__KIND_INT) return (double)got.i == value;
    return !isfinite(value) || isfinite(fth__kind_of(t) == FTH__KIND_REAL ? got.f : got.c.re);
}

fth_status fth__need_number(const fth_node *node, double value, fth_err *err)
{
    char a[FTH__SHAPE_TEXT];
    if (holds(node->in[0].dtype, value)) return FTH_OK;
    return FTH_FAIL(err, FTH_E_GRAPH_ATTR, "%s: %.17g is not a number of %s", node->op->name, value,
                    fth_in_format(node, 0, a, sizeof a));
}

void fth__unmark(fth_desc *d)
{
    d->triangle = FTH_FULL;
    d->row = d->col = 0;
}

fth_status fth__replace_axis(const fth_node *node, int in, fth_desc *d, int dim, fth_axis_id axis,
                             fth_err *err)
{
    FTH_ASSERT(dim >= 0 && dim < d->n_axes);
    const int known = fth_desc_find(d, axis);
    if (known >= 0 && known != dim) {
        char a[FTH__SHAPE_TEXT];
        const fth_status s =
            FTH_FAIL(err, FTH_E_AXIS_MISMATCH,
                     "%s: %s already has axis '%s', which cannot take the place of '%s'",
                     node->op->name, fth_in_format(node, in, a, sizeof a), fth__name_of(node, axis),
                     fth__name_of(node, d->axis[dim]));
        fth_err_hint(err, "declare another name for the result with fth_axis");
        return s;
    }
    if (d->triangle != FTH_FULL && (d->row == dim || d->col == dim)) fth__unmark(d);
    d->axis[dim] = axis;
    d->size[dim] = fth__size_of(node->graph, axis);
    return FTH_OK;
}

fth_status fth__fail_dtype(const fth_node *node, int in, const char *allowed, fth_err *err)
{
    char a[FTH__SHAPE_TEXT];
    const fth_status s = FTH_FAIL(err, FTH_E_DTYPE_OP, "%s is not defined for %s", node->op->name,
                                  fth_in_format(node, in, a, sizeof a));
    fth_err_hint(err, "it takes %s; write the cast where the change is meant", allowed);
    return s;
}

double fth__flops_in0(const fth_call *call)
{
    double n = 1.0;
    for (int i = 0; i < call->node->in[0].n_axes; i++) n *= (double)call->in[0].extent[i];
    return n;
}

bool fth__is_cotangent(fth_val bar, const fth_desc *operand)
{
    if (!fth_val_ok(bar)) return true;
    const fth_desc *d = fth__val_desc(bar);
    bool same = d->dtype == operand->dtype && d->n_axes == operand->n_axes;
    for (int i = 0; same && i < d->n_axes; i++) same = fth_desc_find(operand, d->axis[i]) >= 0;
    return same;
}

fth_val fth__grow_like(fth_site site, fth_val v, const fth_desc *like)
{
    if (!fth_val_ok(v)) return v;
    char text[FTH__AXES_TEXT];
    const fth_desc *d = fth__val_desc(v);
    fth_axis_id add[FTH_MAX_AXES];
    int n = 0;
    for (int i = 0; i < like->n_axes; i++)
        if (fth_desc_find(d, like->axis[i]) < 0) add[n++] = like->axis[i];
    FTH_ASSERT(d->n_axes + n == like->n_axes); /* v has no axis that `like` lacks */
    if (n > 0) v = fth_expand_(site, v, fth__axes_text(v.graph, n, add, text, sizeof text));
    return fth_layout_(site, v, fth__desc_axes(v.graph, like, text, sizeof text));
}

fth_val fth__zeros_like(fth_graph *g, fth_site site, const fth_desc *like)
{
    return fth__grow_like(site, fth_const_(g, site, like->dtype, 0.0, 0.0), like);
}

fth_val fth__keep_where(fth_site site, fth_val mask, fth_val g, const fth_desc *like)
{
    if (!fth_val_ok(mask) || !fth_val_ok(g)) return fth__poison(g);
    const fth_val zero = fth_const_(g.graph, site, fth_val_dtype(g), 0.0, 0.0);
    return fth_map_(site, FTH_EW_SELECT, mask, fth__grow_like(site, g, like), zero);
}

fth_val fth__at_position(fth_site site, fth_val position, fth_axis_id axis, const fth_desc *like)
{
    if (!fth_val_ok(position)) return position;
    const fth_val index = fth_index_(position.graph, site, fth_axis_name(position.graph, axis));
    /* wider in the program that compares: as such they are never stored */
    const fth_val wide = fth_cast_(site, fth__grow_like(site, position, like), FTH_I64);
    return fth__map2(site, FTH_EW_EQ, wide, index);
}

fth_val fth__narrow_positions(fth_site site, fth_val position, int64_t n, bool byte)
{
    fth__cast_attr attr = {.to = FTH_I32, .fits = 1};
    if (!fth_val_ok(position) || n > INT32_MAX) return position;
    if (byte && n <= UINT8_MAX + 1) attr.to = FTH_U8;
    return fth_node_add_(position.graph, site, &fth__op_checked_cast, 1, &position, &attr,
                         sizeof attr);
}
