/* pad.cu - a longer axis: the value in the middle, one number around it. */
#include "cuda/copy/move.cuh"

extern "C" {
#include "base/checked.h"
#include "ops/ops.h"
#include "ops/scalar.h"
}

/* The number everywhere, and over it the elements of the value that belong to this tile. */
static void run_spread(const fth_call *call, fth__cuda_parts *p)
{
    const fth__pad_attr *attr = (const fth__pad_attr *)call->node->attr;
    const fth_tile *in = &call->in[0], *out = &call->out[0];
    const int dim = p->dim;
    p->n = 1;
    p->end[0] = out->extent[dim];
    fth__cuda_put_together(call, p);
    const fth__part part =
        fth__pad_part(attr, out->origin[dim], out->extent[dim], call->node->in[0].size[dim]);
    if (part.n == 0) return;
    fth__move m;
    fth__move_init(&m, call, 0, 0);
    for (int i = 0; i < m.n; i++)
        if (i != dim) fth__move_follow(&m, call, 0, i, 0, i, 0);
    m.src_step[dim] = in->stride[dim] * m.size;
    m.src += (part.first - in->origin[dim]) * m.src_step[dim];
    m.dst += (attr->before + part.first * attr->step - out->origin[dim]) * m.dst_step[dim];
    m.dst_step[dim] *= attr->step;
    m.extent[dim] = part.n;
    fth__cuda_move(call, &m);
}

static fth_status run(const fth_call *call)
{
    const fth_node *node = call->node;
    const fth__pad_attr *attr = (const fth__pad_attr *)node->attr;
    const fth_dtype t = node->out[0].dtype;
    const fth_tile *in = &call->in[0], *out = &call->out[0];
    fth__cuda_parts p = {};
    p.dim = fth_desc_find(&node->in[0], attr->axis);
    p.n = 3;
    fth__store(t, p.element, fth__wide_of(t, attr->value));
    if (attr->step > 1) {
        run_spread(call, &p);
        FTH_CUDA_LAUNCHED(call);
        return FTH_OK;
    }
    const int64_t begin = attr->before - out->origin[p.dim], /* of the value, in the tile */
        end = begin + node->in[0].size[p.dim], extent = out->extent[p.dim];
    p.end[0] = fth__max_i64(0, fth__min_i64(begin, extent));
    p.end[1] = fth__max_i64(0, fth__min_i64(end, extent));
    p.end[2] = extent;
    p.src[1] = (const char *)in->data;
    for (int k = 0; k < node->out[0].n_axes; k++) {
        p.step[1][k] = in->stride[k] * fth_dtype_size(t);
        const int64_t from = k == p.dim ? fth__max_i64(0, -begin) : out->origin[k];
        p.src[1] += (from - in->origin[k]) * p.step[1][k];
    }
    fth__cuda_put_together(call, &p);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

FTH_CUDA_KERNEL(pad) = {.op = "pad", .run = run};
