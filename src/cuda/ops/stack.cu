/* stack.cu - values of the same axes along a new one, the outermost. */
#include "cuda/copy/move.cuh"

extern "C" {
#include "base/checked.h"
#include "ops/ops.h"
}

static fth_status run(const fth_call *call)
{
    const fth_node *node = call->node;
    const fth_tile *out = &call->out[0];
    const int64_t size = fth_dtype_size(node->out[0].dtype);
    fth__cuda_parts p = {};
    p.n = node->n_in;
    for (int i = 0; i < p.n; i++) {
        const fth_tile *in = &call->in[i];
        const char *src = (const char *)in->data;
        for (int k = 1; k < node->out[0].n_axes; k++) {
            p.step[i][k] = in->stride[k - 1] * size;
            src += (out->origin[k] - in->origin[k - 1]) * p.step[i][k];
        }
        p.src[i] = src;
        p.end[i] = fth__max_i64(0, fth__min_i64(i + 1 - out->origin[0], out->extent[0]));
    }
    fth__cuda_put_together(call, &p);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

FTH_CUDA_KERNEL(stack) = {.op = "stack", .run = run};
