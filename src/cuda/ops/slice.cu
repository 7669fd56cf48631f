/* slice.cu - part of an axis, under a new name. */
#include "cuda/copy/move.cuh"

extern "C" {
#include "ops/ops.h"
}

static fth_status run(const fth_call *call)
{
    const fth__slice_attr *attr = (const fth__slice_attr *)call->node->attr;
    const int dim = fth_desc_find(&call->node->in[0], attr->axis);
    fth__move m;
    fth__move_init(&m, call, 0, 0);
    for (int i = 0; i < m.n; i++) fth__move_follow(&m, call, 0, i, 0, i, i == dim ? attr->from : 0);
    fth__move_stretch(&m, call, dim, attr->step);
    fth__cuda_move(call, &m);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

FTH_CUDA_KERNEL(slice) = {.op = "slice", .run = run};
