/* lines.c - rows along one axis. */
#include "ops/lines.h"

#include "base/assert.h"
#include "ops/build.h"

void fth__lines_init(fth__lines *l, const fth_call *call, int dim, bool keeps)
{
    const fth_node *node = call->node;
    const fth_desc *d = &node->in[0];
    const fth_tile *in = &call->in[0], *out = &call->out[0], *state = &call->state[0];
    const int64_t in_size = fth_dtype_size(d->dtype), out_size = fth_dtype_size(node->out[0].dtype);
    const int64_t state_size = node->op->state ? (int64_t)node->op->state(node, 0) : 0;
    int lane = dim == d->n_axes - 1 ? dim - 1 : d->n_axes - 1; /* -1: the axis is the only one */
    for (int i = lane; i >= 0 && in->extent[lane] == 1; i--) /* one lane: rather an axis of many */
        if (i != dim) lane = i;
    FTH_ASSERT(dim >= 0 && dim < d->n_axes);
    FTH_ASSERT(node->out[0].n_axes >= d->n_axes - (keeps ? 0 : 1));
    *l = (fth__lines){.n_axis = in->extent[dim],
                      .axis_step = in->stride[dim],
                      .axis_lo = in->origin[dim],
                      .n_lane = 1,
                      .in = in->data,
                      .out = out->data,
                      .state = state_size ? state->data : out->data}; /* no state: never read */
    if (keeps) {
        FTH_ASSERT(fth__tile_covers(in, dim, out, dim, 0));
        l->out_axis_step = out->stride[dim] * out_size;
        l->in += (out->origin[dim] - in->origin[dim]) * in->stride[dim] * in_size;
        l->n_axis = out->extent[dim];
        l->axis_lo = out->origin[dim];
    }
    for (int i = 0; i < d->n_axes; i++) {
        if (i == dim) continue;
        const int o = keeps || i < dim ? i : i - 1;
        const int64_t state_step = state_size ? state->stride[o] * state_size : 0;
        FTH_ASSERT(fth__tile_covers(in, i, out, o, 0));
        l->in += (out->origin[o] - in->origin[i]) * in->stride[i] * in_size;
        if (i != lane) {
            fth__loop_add(&l->loop, out->extent[o], in->stride[i] * in_size,
                          out->stride[o] * out_size, state_step, 0);
            continue;
        }
        l->n_lane = out->extent[o];
        l->lane_step = in->stride[i];
        l->out_lane_step = out->stride[o] * out_size;
        l->state_lane_step = state_step;
    }
}
