/* concat.cu - values one after the other along an axis. */
#include "cuda/copy/move.cuh"

extern "C" {
#include "base/checked.h"
#include "ops/ops.h"
}

static_assert((int)FTH__CUDA_PARTS >= (int)FTH__CONCAT_MOST, "a part for each value");

static fth_status run(const fth_call *call)
{
    const fth_node *node = call->node;
    const fth__concat_attr *attr = (const fth__concat_attr *)node->attr;
    const fth_tile *out = &call->out[0];
    const int64_t size = fth_dtype_size(node->out[0].dtype);
    fth__cuda_parts p = {};
    p.dim = fth_desc_find(&node->in[0], attr->axis[0]);
    p.n = node->n_in;
    int64_t offset = -out->origin[p.dim]; /* where the operand begins in the tile */
    for (int i = 0; i < p.n; i++) {
        const fth_tile *in = &call->in[i];
        const int64_t begin = fth__max_i64(offset, 0);
        const char *src = (const char *)in->data;
        for (int k = 0; k < node->out[0].n_axes; k++) {
            p.step[i][k] = in->stride[k] * size;
            const int64_t from = k == p.dim ? begin - offset : out->origin[k];
            src += (from - in->origin[k]) * p.step[i][k];
        }
        p.src[i] = src;
        offset += node->in[i].size[p.dim];
        p.end[i] = fth__max_i64(0, fth__min_i64(offset, out->extent[p.dim]));
    }
    fth__cuda_put_together(call, &p);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

FTH_CUDA_KERNEL(concat) = {.op = "concat", .run = run};
