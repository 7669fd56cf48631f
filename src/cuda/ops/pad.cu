/* pad.cu - a longer axis: the value in the middle, one number around it. */
#include "cuda/copy/move.cuh"

extern "C" {
#include "base/checked.h"
#include "ops/ops.h"
#include "ops/scalar.h"
}

/* The number in the dtype of the value. */
static fth__wide number(fth_dtype t, double value)
{
    fth__wide w = {};
    switch (fth__kind_of(t)) {
    case FTH__KIND_REAL: w.f = value; break;
    case FTH__KIND_COMPLEX: w.c = fth_c128{value, 0.0}; break;
    case FTH__KIND_INT: w.i = (int64_t)value; break;
    }
    return w;
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
    fth__store(t, p.element, number(t, attr->value));
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
