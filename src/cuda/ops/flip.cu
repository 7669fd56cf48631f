/* flip.cu - an axis backwards. */
#include "cuda/copy/move.cuh"

extern "C" {
#include "ops/ops.h"
}

static fth_status run(const fth_call *call)
{
    const fth__axis_attr *attr = (const fth__axis_attr *)call->node->attr;
    const fth_tile *in = &call->in[0];
    const int dim = fth_desc_find(&call->node->in[0], attr->axis);
    fth__move m;
    fth__move_init(&m, call, 0, 0);
    for (int i = 0; i < m.n; i++)
        if (i != dim) fth__move_follow(&m, call, 0, i, 0, i, 0);
    m.src_step[dim] = -in->stride[dim] * m.size;
    m.src += (in->extent[dim] - 1 - call->out[0].origin[dim]) * in->stride[dim] * m.size;
    fth__cuda_move(call, &m);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

FTH_CUDA_KERNEL(flip) = {.op = "flip", .run = run};
