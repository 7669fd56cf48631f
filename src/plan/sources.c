/* sources.c - what a fused program reads instead of its operands.
 *
 * An operand that is a view is read where it lies, rows of one by their index, and indices and
 * random numbers are made in the program, as far as it has room.
 */
#include "plan/fuse.h"

#include "base/assert.h"
#include "ops/view.h"

#include <string.h>

static int64_t elements(const fth_desc *d)
{
    return fth_desc_count(d);
}

/* Nobody needs the view itself, if programs look through it. */
static bool may_look(const fth__fuser *f, uint32_t v)
{
    return f->is_view[f->g->value[v].node];
}

/* Random numbers take as long to make as to read and write a few times: not several times each. */
static bool is_worth_making(const fth__fuser *f, const fth__group *gr, const fth__looked *l)
{
    const uint32_t v = l->path.value;
    if (l->made.kind == FTH__MADE_INDEX) return true;
    return f->first[v + 1] - f->first[v] <= 2 &&
           elements(&gr->space) <= elements(&fth__fuse_node(f, v)->out[0]);
}

static int tail_of(const fth__fuser *f, const fth__group *gr)
{
    const fth_node *root = f->g->node[gr->root];
    return fth__fuse_tail(root)
               ? fth_desc_find(&gr->space, ((const fth__reduce_attr *)root->attr)->axis)
               : -1;
}

/* Axes of a value, of which none may go along the tail: parts of a sum would overlap. */
static bool find_axes(const fth__fuser *f, const fth__group *gr, uint32_t v,
                      const fth__view_axis *of, int *n_axes, fth__view_axis *axis)
{
    const int tail = tail_of(f, gr);
    *n_axes = fth__look_axes(f->p, &gr->space, v, of, axis);
    for (int i = 0; i < *n_axes; i++)
        if (tail >= 0 && axis[i].along == tail) return false;
    return true;
}

static bool makes(const fth__fuser *f, const fth__group *gr, const fth__fuse_room *left,
                  fth__looked *l)
{
    const fth_node *n = fth__fuse_node(f, l->path.value);
    int inputs = 0, consts = 0;
    if (l->path.n_rows > 0 || !may_look(f, l->path.value)) return false;
    if (!fth__look_makes(f->p, &l->path, &l->made) || !is_worth_making(f, gr, l)) return false;
    for (int k = 0; k < n->n_in; k++) {
        consts += fth__fuse_const(f, n->in_val[k].id);
        inputs += !fth__fuse_const(f, n->in_val[k].id);
    }
    l->makes = left->made > 0 && left->views > 0 && left->instrs > 0 && left->inputs >= inputs &&
               left->consts >= consts;
    return l->makes;
}

static bool reads(const fth__fuser *f, const fth__group *gr, const fth__fuse_room *left,
                  int64_t most, fth__looked *l)
{
    bool good = find_axes(f, gr, l->path.value, l->path.axis, &l->n_axes, l->axis);
    int n = l->n_axes;
    for (int r = 0; good && r < l->path.n_rows; r++) {
        const fth__look_rows *rows = &l->path.rows[r];
        good = !fth__fuse_const(f, rows->value) &&
               find_axes(f, gr, rows->value, rows->axis, &l->n_rows_axes[r], l->rows_axis[r]);
        n += l->n_rows_axes[r];
    }
    return good && n <= left->views && l->path.n_rows <= left->inputs &&
           (elements(fth__val_desc(fth__val_at(f->p->graph, l->path.value))) <= most ||
            fth__plan_resident(f->p, l->path.value));
}

void fth__fuse_look(const fth__fuser *f, const fth__group *gr, uint32_t v,
                    const fth__fuse_room *left, fth__looked *out)
{
    fth__look_path at;
    memset(out, 0, sizeof *out);
    out->path.value = v;
    if (gr->plain || !may_look(f, v) || !fth__look_at(f->p, &gr->space, v, &at)) return;
    const int64_t most = 2 * elements(fth__val_desc(fth__val_at(f->p->graph, v)));
    fth__looked l = {.path = at};
    if (makes(f, gr, left, &l)) *out = l;
    while (may_look(f, at.value) && fth__look_through(f->p, &at)) {
        memset(&l, 0, sizeof l);
        l.path = at;
        if (makes(f, gr, left, &l) || reads(f, gr, left, most, &l)) *out = l;
    }
}

fth__fuse_room fth__fuse_room_of(const fth__fuser *f, const fth__group *gr, uint32_t leading)
{
    uint32_t in[FTH_PROGRAM_INPUTS];
    fth__fuse_room left = {.views = FTH_PROGRAM_VIEWS,
                           .inputs = FTH_PROGRAM_INPUTS - (leading != 0),
                           .consts = FTH_PROGRAM_CONSTS,
                           .instrs = FTH_PROGRAM_INSTRS,
                           .made = FTH_PROGRAM_MADE};
    int n_in = 0;
    for (int i = 0; i < gr->n; i++) {
        const fth_node *n = f->g->node[gr->member[i]];
        left.instrs -= n->op == &fth__op_map || n->op == &fth__op_cast;
        for (int k = 0; k < n->n_in; k++) {
            const uint32_t v = n->in_val[k].id;
            bool known = fth__in_group(gr, (int)f->g->value[v].node);
            for (int j = 0; j < n_in; j++) known |= in[j] == v;
            if (fth__fuse_const(f, v)) left.consts--;
            if (known || fth__fuse_const(f, v) || v == leading || n_in == FTH_PROGRAM_INPUTS)
                continue;
            in[n_in++] = v;
            left.inputs--;
        }
    }
    return left;
}
