/* look.c - several views of a value as one step of index arithmetic per axis.
 *
 * Walking back from what a program reads, every view is put before those behind it: an index of its
 * result is already some function of the program's space, and its operand's index one of that.
 * Functions are affine until a border or a division, behind which only views of other axes go. Rows
 * that an index chooses begin a function anew, of an element of that index.
 */
#include "plan/look.h"

#include "base/assert.h"
#include "base/checked.h"
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
    *out = (fth__look_path){.space = space, .value = v};
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

/* An index modulo n stays one where a step turns it around, or moves it modulo n again. */
static bool stays_around(const fth__view_step *s, bool same_size, const fth__view_axis *out)
{
    return out->border == FTH__BORDER_WRAP && out->div == 1 && same_size && s->tap < 0 &&
           s->div == 1 && (s->border == FTH__BORDER_NONE || s->border == FTH__BORDER_WRAP);
}

/* Where nothing beyond the ends of an axis of n elements is read after all, no border is needed; of
 * what goes around, as much as can be is read without a division. */
static void settle_border(const fth_desc *space, int64_t n, fth__view_axis *a)
{
    int64_t least = a->add, most = a->add;
    const struct {
        int64_t mul, size;
    } of[3] = {{a->mul, a->along < 0 ? 1 : space->size[a->along]},
               {a->tap_mul, a->tap < 0 ? 1 : space->size[a->tap]},
               {a->mul, a->rows < 0 ? 1 : a->limit}};
    if (a->border == FTH__BORDER_NONE || a->div != 1) return;
    for (int i = 0; i < 3; i++) {
        if (of[i].size < 1) return;
        least += fth__min_i64(of[i].mul * (of[i].size - 1), 0);
        most += fth__max_i64(of[i].mul * (of[i].size - 1), 0);
    }
    if (a->border == FTH__BORDER_WRAP) {
        const int64_t middle = least + (most - least) / 2,
                      turns = middle / n - (middle % n < 0 ? 1 : 0);
        a->add -= turns * n;
        least -= turns * n;
        most -= turns * n;
    }
    if (least < 0 || most >= n) return;
    a->border = FTH__BORDER_NONE;
    a->fill = 0.0;
}

/* One axis of the operand; `of` are the axes of the result. A border is one of this axis, so behind
 * it the axis may not become longer or shorter. */
static bool compose(const fth__view_step *s, bool same_size, const fth__view_axis *of, int dim,
                    fth__view_axis *out)
{
    *out = of[s->along];
    out->dim = (int16_t)dim;
    if (is_plain(s) && (same_size || is_affine(out))) return true;
    if (stays_around(s, same_size, out)) {
        out->mul *= s->mul;
        out->tap_mul *= s->mul;
        out->add = out->add * s->mul + s->add;
        return true;
    }
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
        const int64_t size = node->in[0].size[k];
        FTH_ASSERT(s.along >= 0 && s.along < node->out[0].n_axes && s.tap < node->out[0].n_axes);
        if (!compose(&s, size == node->out[0].size[s.along], path->axis, k, &axis[k])) return false;
        settle_border(path->space, size, &axis[k]);
    }
    if (!same_fill(axis, node->in[0].n_axes)) return false;
    memcpy(path->axis, axis, sizeof axis);
    return true;
}

/* Part i of a concatenation as elements of the value `of`, the first of them returned; -1: it has
 * others. */
static int64_t part_from(const fth_plan *p, const fth_node *concat, int i, uint32_t of)
{
    const fth_axis_id axis = ((const fth__concat_attr *)concat->attr)->axis[i];
    const uint32_t part = concat->in_val[i].id;
    if (part == of) return 0;
    const fth_node *n = p->node[p->graph->value[part].node];
    const fth__slice_attr *slice = n->attr;
    const bool same = n->op == &fth__op_slice && n->in_val[0].id == of && slice->into == axis &&
                      slice->step == 1 &&
                      fth_desc_find(&n->in[0], slice->axis) == fth_desc_find(&n->out[0], axis);
    return same ? slice->from : -1;
}

static bool goes_around(const fth_plan *p, const fth_node *concat, uint32_t of,
                        fth__look_cycle *out)
{
    const fth__concat_attr *attr = concat->attr;
    const int dim = fth_desc_find(&concat->in[0], attr->axis[0]);
    const fth_desc *d = fth__val_desc(fth__val_at(p->graph, of));
    int64_t next = -1;
    *out = (fth__look_cycle){.value = of, .dim = dim};
    if (d->n_axes != concat->out[0].n_axes || d->size[dim] < 1) return false;
    for (int i = 0; i < concat->n_in; i++) {
        const int64_t from = part_from(p, concat, i, of), size = concat->in[i].size[dim];
        if (from < 0) return false;
        if (size == 0) continue;
        if (next < 0) out->first = from;
        if (next >= 0 && from != next) return false;
        next = (from + size) % d->size[dim];
    }
    return next >= 0;
}

bool fth__look_around(const fth_plan *p, const fth_node *node, fth__look_cycle *out)
{
    if (node->op != &fth__op_concat) return false;
    const uint32_t part = node->in_val[0].id;
    const fth_node *slice = p->node[p->graph->value[part].node];
    return goes_around(p, node, part, out) ||
           (slice->op == &fth__op_slice && goes_around(p, node, slice->in_val[0].id, out));
}

static bool through_around(const fth_node *concat, const fth__look_cycle *c, int64_t size,
                           fth__look_path *path)
{
    const fth__view_step s = {.along = c->dim,
                              .tap = -1,
                              .mul = 1,
                              .div = 1,
                              .add = c->first,
                              .border = FTH__BORDER_WRAP};
    fth__view_axis axis;
    if (!compose(&s, size == concat->out[0].size[c->dim], path->axis, c->dim, &axis)) return false;
    settle_border(path->space, size, &axis);
    path->axis[c->dim] = axis;
    return true;
}

bool fth__look_through(const fth_plan *p, fth__look_path *path)
{
    const uint32_t made_by = p->graph->value[path->value].node;
    const fth_node *node = p->node[made_by];
    uint32_t of = node->n_in > 0 ? node->in_val[0].id : 0;
    fth__look_cycle cycle;
    if (path->n == FTH__LOOK_DEPTH) return false;
    if (fth__look_around(p, node, &cycle)) {
        of = cycle.value;
        const int64_t size = fth__val_desc(fth__val_at(p->graph, of))->size[cycle.dim];
        if (!through_around(node, &cycle, size, path)) return false;
    } else if (node->op == &fth__op_gather) {
        const fth_node *index = p->node[p->graph->value[node->in_val[1].id].node];
        const bool constant = index->op == &fth__op_const;
        if (constant &&
            !through_column(node, ((const fth__const_attr *)index->attr)->integer, path))
            return false;
        if (!constant && !through_rows(node, made_by, path)) return false;
    } else if (!fth__is_view(node) || !through_view(node, path)) {
        return false;
    }
    path->n++;
    path->value = of;
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
