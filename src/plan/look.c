/* look.c - several views of a value as one step of index arithmetic per axis.
 *
 * Walking back from what a program reads, every view is put before those behind it: an index of its
 * result is already some function of the program's space, and its operand's index one of that.
 * Functions are affine until a border or a division, behind which only views of other axes go.
 */
#include "plan/look.h"

#include "base/assert.h"
#include "ops/view.h"

static bool is_affine(const fth__view_axis *a)
{
    return a->border == FTH__BORDER_NONE && a->div == 1;
}

static bool is_plain(const fth__view_step *s)
{
    return s->mul == 1 && s->tap < 0 && s->add == 0 && s->div == 1 && s->border == FTH__BORDER_NONE;
}

bool fth__look_at(const fth_plan *p, const fth_desc *space, uint32_t v, fth__look_path *out)
{
    const fth_desc *d = fth__val_desc(fth__val_at(p->graph, v));
    *out = (fth__look_path){.value = v};
    for (int k = 0; k < d->n_axes; k++) {
        const int along = fth_desc_find(space, d->axis[k]);
        if (along < 0) return false;
        out->axis[k] = (fth__view_axis){.mul = 1,
                                        .div = 1,
                                        .dim = (int16_t)k,
                                        .along = (int16_t)along,
                                        .tap = -1,
                                        .border = FTH__BORDER_NONE};
    }
    return true;
}

/* One axis of the operand; `of` are the axes of the result. A border is one of this axis, so behind
 * it the axis may not become longer or shorter. */
static bool compose(const fth__view_step *s, bool same_size, const fth__view_axis *of, int dim,
                    fth__view_axis *out)
{
    *out = of[s->along];
    out->dim = (int16_t)dim;
    if (is_plain(s) && (same_size || is_affine(out))) return true;
    if (!is_affine(out)) return false;
    out->mul *= s->mul;
    out->tap_mul *= s->mul;
    out->add = out->add * s->mul + s->add;
    out->div = s->div;
    out->border = (int16_t)s->border;
    out->fill = s->fill;
    if (s->tap < 0) return true;
    const fth__view_axis *tap = &of[s->tap];
    if (out->tap >= 0 || tap->tap >= 0 || !is_affine(tap)) return false;
    out->tap = tap->along;
    out->tap_mul = s->tap_mul * tap->mul;
    out->add += s->tap_mul * tap->add;
    return true;
}

/* One number is read beyond the ends of all axes: which end counts first does not matter. */
static bool same_fill(const fth__view_axis *axis, int n)
{
    const fth__view_axis *first = NULL;
    for (int k = 0; k < n; k++) {
        if (axis[k].border != FTH__BORDER_ZERO) continue;
        if (first && (first->fill < axis[k].fill || first->fill > axis[k].fill)) return false;
        if (!first) first = &axis[k];
        if (axis[k].fill != axis[k].fill) return false; /* NaN, whose bits are not compared here */
    }
    return true;
}

bool fth__look_through(const fth_plan *p, fth__look_path *path)
{
    const uint32_t made_by = p->graph->value[path->value].node;
    const fth_node *node = p->node[made_by];
    if (!fth__is_view(node) || path->n == FTH_PROGRAM_VIEWS) return false;
    fth__view_axis axis[FTH_MAX_AXES] = {{0}};
    for (int k = 0; k < node->in[0].n_axes; k++) {
        const fth__view_step s = fth__view_of(node, k);
        FTH_ASSERT(s.along >= 0 && s.along < node->out[0].n_axes && s.tap < node->out[0].n_axes);
        const bool same_size = node->in[0].size[k] == node->out[0].size[s.along];
        if (!compose(&s, same_size, path->axis, k, &axis[k])) return false;
    }
    if (!same_fill(axis, node->in[0].n_axes)) return false;
    for (int k = 0; k < node->in[0].n_axes; k++) path->axis[k] = axis[k];
    path->node[path->n++] = (int)made_by;
    path->value = node->in_val[0].id;
    return true;
}

int fth__look_axes(const fth_plan *p, const fth_desc *space, const fth__look_path *path,
                   fth__view_axis axis[FTH_MAX_AXES])
{
    const fth_desc *d = fth__val_desc(fth__val_at(p->graph, path->value));
    int n = 0;
    for (int k = 0; k < d->n_axes; k++) {
        const fth__view_axis *a = &path->axis[k];
        const bool plain = is_affine(a) && a->mul == 1 && a->tap < 0 && a->add == 0;
        if (!plain || space->axis[a->along] != d->axis[k]) axis[n++] = *a;
    }
    return n;
}
