/* layout.cu - the same axes in another order in memory. */
#include "cuda/copy/move.cuh"

static fth_status run(const fth_call *call)
{
    const fth_node *node = call->node;
    fth__move m;
    fth__move_init(&m, call, 0, 0);
    for (int i = 0; i < node->in[0].n_axes; i++)
        fth__move_follow(&m, call, 0, i, 0, fth_desc_find(&node->out[0], node->in[0].axis[i]), 0);
    fth__cuda_move(call, &m);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

FTH_CUDA_KERNEL(layout) = {.op = "layout", .run = run};
