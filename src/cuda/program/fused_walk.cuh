/* fused_walk.cuh - the work of a call of a fused program: its space, and how operands lie along it.
 *
 * Operands are the inputs, looks (fused_args.h), outputs, and with a tail the state. Axes that
 * follow each other in all of them are one.
 */
#ifndef FTH_CUDA_FUSED_WALK_CUH
#define FTH_CUDA_FUSED_WALK_CUH

#include "base/assert.h"
#include "cuda/program/fused.h"

extern "C" {
#include "ops/fused.h"
#include "ops/view.h"
}

#include <stddef.h>
#include <string.h>

static_assert(sizeof(fth__ew_fault) == sizeof(fth_fault) &&
                  offsetof(fth__ew_fault, value) == offsetof(fth_fault, value) &&
                  offsetof(fth__ew_fault, code) == offsetof(fth_fault, code) &&
                  offsetof(fth__ew_fault, lock) == offsetof(fth_fault, lock),
              "one report under two names");

namespace
{

struct walk {
    int n_axes, n_ops;
    int64_t extent[FTH_MAX_AXES];
    int64_t stride[FTH__EW_OPERANDS][FTH_MAX_AXES]; /* elements */
    int64_t along[FTH__EW_OPERANDS], inner[FTH__EW_OPERANDS];
    int64_t bytes[FTH__EW_OPERANDS]; /* of an element */
    char *data[FTH__EW_OPERANDS];
    int64_t n, lo; /* the tail's piece */
    fth__ew_look look[FTH__EW_LOOKS];
    fth__ew_fault *fault;
};

/* Operands before the outputs. */
int n_before(const fth__ew_program *e)
{
    return e->p.n_in + e->shape.looks;
}

bool has_tail(const fth__ew_program *e)
{
    return e->p.tail_dim >= 0;
}

/* Axes of the space, with the one that is reduced before the tail's. */
int all_axes(const fth__program *p)
{
    return p->n_axes + (p->inner_red > 0);
}

void set_operand(walk *w, int j, const fth__program *p, const fth_desc *d, const fth_tile *t,
                 int64_t bytes, int64_t (*stride)[FTH_MAX_AXES])
{
    fth__fused_strides(p, d, t, stride[j]);
    w->data[j] = (char *)t->data;
    w->bytes[j] = bytes;
}

/* Where the element of an index stands that a place of the space reads, in all of its array. */
void set_place(walk *w, int j, const fth_call *call, const fth__program *p, int rows,
               const int64_t *origin, int64_t (*stride)[FTH_MAX_AXES])
{
    const fth_desc *d = &call->node->in[rows];
    int64_t by = 1, first = 0;
    for (int dim = d->n_axes - 1; dim >= 0; by *= d->size[dim--]) {
        const fth__view_axis *v = fth__view_find(p, rows, dim);
        for (int k = 0; k < all_axes(p); k++) {
            const int64_t step = v ? (v->along == k ? v->mul : 0) + (v->tap == k ? v->tap_mul : 0)
                                   : p->axis[k] == d->axis[dim];
            stride[j][k] += step * by;
            first += step * by * origin[k];
        }
        if (v) first += v->add * by;
    }
    w->data[j] = (char *)(intptr_t)(FTH__EW_RAW + first);
}

/* One number is read beyond the ends of all axes of an input: every look of it has that. */
void share_fill(walk *w, int looks)
{
    for (int l = 0; l < looks; l++)
        for (int k = 0; k < looks; k++)
            if (w->look[k].in == w->look[l].in && w->look[l].border == FTH__BORDER_ZERO)
                w->look[k].fill = w->look[l].fill;
}

/* Counters of what the program makes itself. */
int set_made(walk *w, int j, const fth__program *p, const int64_t *origin,
             int64_t (*stride)[FTH_MAX_AXES])
{
    for (int i = 0; i < p->n_made; i++, j++) {
        const fth__made *made = &p->made[i];
        int64_t first = made->add;
        fth__ew_look *look = &w->look[j - p->n_in];
        look->in = look->rows = -1;
        look->size = made->stream;
        for (int k = 0; k < all_axes(p); k++) {
            stride[j][k] = made->step[k];
            first += made->step[k] * origin[k];
        }
        w->data[j] = (char *)(intptr_t)(FTH__EW_RAW + first);
        w->bytes[j] = 1;
    }
    return j;
}

/* What is read at even distances is strides and a first element; the rest are looks. */
void set_inputs(walk *w, const fth_call *call, const fth__program *p, const int64_t *origin,
                int64_t (*stride)[FTH_MAX_AXES])
{
    const fth_node *node = call->node;
    int j = p->n_in;
    for (int i = 0; i < p->n_in; i++) {
        w->bytes[i] = fth_dtype_size(node->in[i].dtype);
        w->data[i] = (char *)call->in[i].data +
                     fth__fused_in_strides(p, call, i, origin, stride[i]) * w->bytes[i];
    }
    for (int v = 0; v < p->n_views; v++) {
        const fth__view_axis *view = &p->view[v];
        if (!fth__view_looks(view)) continue;
        const fth_dtype dtype = node->in[view->in].dtype;
        const fth_tile *t = &call->in[view->in];
        fth__ew_look *look = &w->look[j - p->n_in];
        look->size = node->in[view->in].size[view->dim];
        look->origin = t->origin[view->dim];
        look->stride = t->stride[view->dim];
        look->div = view->div;
        look->border = view->border;
        look->in = view->in;
        look->rows = view->rows;
        fth__store(dtype, &look->fill, fth__wide_of(dtype, view->fill));
        w->bytes[j] = 1;
        if (view->rows >= 0) {
            look->wide = node->in[view->rows].dtype == FTH_I64;
            look->limit = view->limit;
            look->mul = view->mul;
            look->add = view->add;
            set_place(w, j++, call, p, view->rows, origin, stride);
            continue;
        }
        if (view->along >= 0) stride[j][view->along] += view->mul;
        if (view->tap >= 0) stride[j][view->tap] += view->tap_mul;
        w->data[j++] = (char *)(intptr_t)(FTH__EW_RAW + fth__view_raw(view, origin));
    }
    share_fill(w, j - p->n_in);
    j = set_made(w, j, p, origin, stride);
    for (int i = 0; i < j; i++) {
        w->along[i] = p->tail_dim >= 0 ? stride[i][p->tail_dim] : 0;
        w->inner[i] = p->inner_red > 0 ? stride[i][p->n_axes] : 0;
    }
}

/* Axes of the call, those of one element left out, neighbours that lie as one joined. */
void collapse(walk *w, const fth__program *p, const int64_t *extent,
              const int64_t (*stride)[FTH_MAX_AXES])
{
    for (int k = 0; k < p->n_axes; k++) {
        if (k == p->tail_dim || extent[k] == 1) continue;
        const int last = w->n_axes - 1;
        bool one = last >= 0;
        for (int j = 0; j < w->n_ops && one; j++)
            one = !w->data[j] || w->stride[j][last] == stride[j][k] * extent[k];
        FTH_ASSERT(one || w->n_axes < FTH_MAX_AXES);
        const int to = one ? last : w->n_axes++;
        w->extent[to] = one ? w->extent[to] * extent[k] : extent[k];
        for (int j = 0; j < w->n_ops; j++) w->stride[j][to] = stride[j][k];
    }
    if (w->n_axes > 0) return;
    w->n_axes = 1;
    w->extent[0] = 1;
}

void walk_init(walk *w, const fth_call *call, const fth__ew_program *e)
{
    const fth__program *p = &e->p;
    const fth_node *node = call->node;
    int64_t extent[FTH_MAX_AXES], origin[FTH_MAX_AXES];
    int64_t stride[FTH__EW_OPERANDS][FTH_MAX_AXES] = {};
    const int first_out = n_before(e);
    FTH_ASSERT(first_out + p->n_out + has_tail(e) <= FTH__EW_OPERANDS);
    memset(w, 0, sizeof *w);
    fth__fused_extent(p, call, extent, origin);
    set_inputs(w, call, p, origin, stride);
    for (int i = 0; i < p->n_out; i++)
        set_operand(w, first_out + i, p, &node->out[i], &call->out[i],
                    fth_dtype_size(node->out[i].dtype), stride);
    w->n_ops = first_out + p->n_out;
    if (has_tail(e)) {
        if (e->order.state > 0)
            set_operand(w, w->n_ops, p, &node->out[0], &call->state[0], (int64_t)e->order.state,
                        stride);
        w->n_ops++;
        w->n = extent[p->tail_dim];
        w->lo = origin[p->tail_dim];
    }
    w->fault = (fth__ew_fault *)call->fault;
    collapse(w, p, extent, stride);
}

int64_t items_of(const walk *w)
{
    int64_t n = 1;
    for (int k = 0; k < w->n_axes; k++) n *= w->extent[k];
    return n;
}

/* The part of the walk from `from` on along its outermost axis. */
walk part_of(const walk *w, int64_t from, int64_t n)
{
    walk o = *w;
    FTH_ASSERT(from >= 0 && n > 0 && from + n <= w->extent[0]);
    o.extent[0] = n;
    for (int j = 0; j < w->n_ops; j++)
        if (o.data[j]) o.data[j] += from * w->stride[j][0] * w->bytes[j];
    return o;
}

} // namespace

#endif
