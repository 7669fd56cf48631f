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

#include <string.h>

namespace
{

struct walk {
    int n_axes, n_ops;
    int64_t extent[FTH_MAX_AXES];
    int64_t stride[FTH__EW_OPERANDS][FTH_MAX_AXES]; /* elements */
    int64_t along[FTH__EW_OPERANDS];
    int64_t bytes[FTH__EW_OPERANDS]; /* of an element */
    char *data[FTH__EW_OPERANDS];
    int64_t n, lo; /* the tail's piece */
    fth__ew_look look[FTH__EW_LOOKS];
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

void set_operand(walk *w, int j, const fth__program *p, const fth_desc *d, const fth_tile *t,
                 int64_t bytes, int64_t (*stride)[FTH_MAX_AXES])
{
    fth__fused_strides(p, d, t, stride[j]);
    w->data[j] = (char *)t->data;
    w->bytes[j] = bytes;
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
        fth__store(dtype, &look->fill, fth__wide_of(dtype, view->fill));
        if (view->along >= 0) stride[j][view->along] += view->mul;
        if (view->tap >= 0) stride[j][view->tap] += view->tap_mul;
        w->data[j] = (char *)(intptr_t)(FTH__EW_RAW + fth__view_raw(view, origin));
        w->bytes[j++] = 1;
    }
    for (int i = 0; i < j; i++) w->along[i] = p->tail_dim >= 0 ? stride[i][p->tail_dim] : 0;
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
