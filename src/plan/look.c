/* look.c - several views of a value as one step of index arithmetic per axis.
 *
 * Walking back from what a program reads, every view is put before those behind it: an index of its
 * result is already some function of the program's space, and its operand's index one of that.
 * Functions are affine until a border or a division, behind which only views of other axes go. Rows
 * that an index chooses begin a function anew, of an element of that index.
 */
#include "plan/look.h"

#include "base/assert.h"
#include "ops/gather.h"
#include "ops/random.h"
#include "ops/view.h"

#include <string.h>

static bool is_affine(const fth__view_axis *a)
{
    return a->border == FTH__BORDER_NONE && a->div == 1;
}

/* Of axes of the space alone. */
static bool is_placed(const fth__view_axis *a)
{
    return is_affine(a) && a->rows < 0;
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
                                        .rows = -1,
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
    if (out->rows >= 0 && (s->tap >= 0 || s->div != 1)) return false;
    out->mul *= s->mul;
    out->tap_mul *= s->mul;
    out->add = out->add * s->mul + s->add;
    out->div = s->div;
    out->border = (int16_t)s->border;
    out->fill = s->fill;
    if (s->tap < 0) return true;
    const fth__view_axis *tap = &of[s->tap];
    if (out->tap >= 0 || tap->tap >= 0 || !is_placed(tap)) return false;
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
        if (first && memcmp(&first->fill, &axis[k].fill, sizeof first->fill) != 0) return false;
        if (!first) first = &axis[k];
        if (axis[k].fill != axis[k].fill) return false; /* NaN, whose bits are not compared here */
    }
    return true;
}

/* One row, whose number is a constant: a place of its own on the axis. */
static bool through_column(const fth_node *node, int64_t at, fth__look_path *path)
{
    fth__gather s;
    fth__view_axis axis[FTH_MAX_AXES] = {{0}};
    fth__gather_get(node, &s);
    if (at < 0 || at >= node->in[0].size[s.dim]) return false; /* the gather says so */
    for (int k = 0; k < node->in[0].n_axes; k++) {
        if (k != s.dim) axis[k] = path->axis[fth__gather_to(&s, k)];
        axis[k].dim = (int16_t)k;
    }
    axis[s.dim] = (fth__view_axis){.add = at,
                                   .div = 1,
                                   .dim = (int16_t)s.dim,
                                   .along = -1,
                                   .tap = -1,
                                   .border = FTH__BORDER_NONE,
                                   .rows = -1};
    memcpy(path->axis, axis, sizeof axis);
    return true;
}

/* Rows that an index chooses: it is read where its axes are, and so must be where those of the
 * result are read. */
static bool through_rows(const fth_node *node, int64_t number, fth__look_path *path)
{
    fth__gather s;
    fth__view_axis axis[FTH_MAX_AXES] = {{0}};
    fth__gather_get(node, &s);
    if (path->n_rows == FTH__LOOK_ROWS) return false;
    fth__look_rows *rows = &path->rows[path->n_rows];
    for (int k = 0; k < node->in[1].n_axes; k++) {
        rows->axis[k] = path->axis[s.index_to[k]];
        rows->axis[k].dim = (int16_t)k;
        if (!is_placed(&rows->axis[k])) return false;
    }
    for (int k = 0; k < node->in[0].n_axes; k++) {
        if (k != s.dim) axis[k] = path->axis[fth__gather_to(&s, k)];
        axis[k].dim = (int16_t)k;
    }
    axis[s.dim] = (fth__view_axis){.mul = 1,
                                   .div = 1,
                                   .limit = node->in[0].size[s.dim],
                                   .gather = number,
                                   .gather_dim = (int16_t)s.dim,
                                   .dim = (int16_t)s.dim,
                                   .along = -1,
                                   .tap = -1,
                                   .border = FTH__BORDER_NONE,
                                   .rows = (int16_t)path->n_rows};
    if (!same_fill(axis, node->in[0].n_axes)) return false;
    memcpy(path->axis, axis, sizeof axis);
    rows->value = node->in_val[1].id;
    path->n_rows++;
    return true;
}

static bool through_view(const fth_node *node, fth__look_path *path)
{
    fth__view_axis axis[FTH_MAX_AXES] = {{0}};
    for (int k = 0; k < node->in[0].n_axes; k++) {
        const fth__view_step s = fth__view_of(node, k);
        FTH_ASSERT(s.along >= 0 && s.along < node->out[0].n_axes && s.tap < node->out[0].n_axes);
        const bool same_size = node->in[0].size[k] == node->out[0].size[s.along];
        if (!compose(&s, same_size, path->axis, k, &axis[k])) return false;
    }
    if (!same_fill(axis, node->in[0].n_axes)) return false;
    memcpy(path->axis, axis, sizeof axis);
    return true;
}

bool fth__look_through(const fth_plan *p, fth__look_path *path)
{
    const uint32_t made_by = p->graph->value[path->value].node;
    const fth_node *node = p->node[made_by];
    if (path->n == FTH_PROGRAM_VIEWS) return false;
    if (node->op == &fth__op_gather) {
        const fth_node *index = p->node[p->graph->value[node->in_val[1].id].node];
        const bool constant = index->op == &fth__op_const;
        if (constant &&
            !through_column(node, ((const fth__const_attr *)index->attr)->integer, path))
            return false;
        if (!constant && !through_rows(node, made_by, path)) return false;
    } else if (!fth__is_view(node) || !through_view(node, path)) {
        return false;
    }
    path->node[path->n++] = (int)made_by;
    path->value = node->in_val[0].id;
    return true;
}

int fth__look_axes(const fth_plan *p, const fth_desc *space, uint32_t value,
                   const fth__view_axis of[FTH_MAX_AXES], fth__view_axis axis[FTH_MAX_AXES])
{
    const fth_desc *d = fth__val_desc(fth__val_at(p->graph, value));
    int n = 0;
    for (int k = 0; k < d->n_axes; k++) {
        const fth__view_axis *a = &of[k];
        const bool plain =
            is_placed(a) && a->along >= 0 && a->mul == 1 && a->tap < 0 && a->add == 0;
        if (!plain || space->axis[a->along] != d->axis[k]) axis[n++] = *a;
    }
    return n;
}

bool fth__look_makes(const fth_plan *p, const fth__look_path *path, fth__made *made)
{
    const fth_node *node = p->node[p->graph->value[path->value].node];
    const fth_desc *d = &node->out[0];
    uint64_t step[FTH_MAX_AXES] = {1};
    *made = (fth__made){.kind = FTH__MADE_INDEX};
    if (node->op == &fth__op_random) {
        const fth__random_attr *attr = node->attr;
        made->kind = attr->kind;
        made->stream = attr->stream;
        fth__random_steps(d, step);
    } else if (node->op != &fth__op_index) {
        return false;
    }
    for (int k = 0; k < d->n_axes; k++) {
        const fth__view_axis *a = &path->axis[k];
        const int64_t by = (int64_t)step[k];
        if (!is_placed(a)) return false;
        made->add += a->add * by;
        if (a->along >= 0) made->step[a->along] += a->mul * by;
        if (a->tap >= 0) made->step[a->tap] += a->tap_mul * by;
    }
    return true;
}
