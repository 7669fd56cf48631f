/* upsample.cu - every element of an axis repeated. */
#include "cuda/copy/move.cuh"

extern "C" {
#include "base/checked.h"
#include "ops/ops.h"
}

/* [lo, lo + groups * each) of the result, which is `groups` elements repeated `each` times. */
static void part(const fth_call *call, const fth__move *all, int dim, int64_t lo, int64_t groups,
                 int64_t each)
{
    const fth__upsample_attr *attr = (const fth__upsample_attr *)call->node->attr;
    fth__move m = *all;
    if (groups <= 0 || each <= 0) return;
    for (int i = m.n; i > dim + 1; i--) {
        m.extent[i] = m.extent[i - 1];
        m.dst_step[i] = m.dst_step[i - 1];
        m.src_step[i] = m.src_step[i - 1];
    }
    m.n++;
    m.dst += (lo - call->out[0].origin[dim]) * m.dst_step[dim];
    m.src += (lo / attr->factor - call->in[0].origin[dim]) * m.src_step[dim];
    m.extent[dim] = groups;
    m.extent[dim + 1] = each;
    m.dst_step[dim + 1] = m.dst_step[dim];
    m.dst_step[dim] *= each;
    m.src_step[dim + 1] = 0;
    fth__cuda_move(call, &m);
}

static fth_status run(const fth_call *call)
{
    const fth__upsample_attr *attr = (const fth__upsample_attr *)call->node->attr;
    const int dim = fth_desc_find(&call->node->in[0], attr->axis);
    const int64_t f = attr->factor, begin = call->out[0].origin[dim],
                  end = begin + call->out[0].extent[dim];
    fth__move m;
    fth__move_init(&m, call, 0, 0);
    for (int i = 0; i < m.n; i++)
        if (i != dim) fth__move_follow(&m, call, 0, i, 0, i, 0);
    m.src_step[dim] = call->in[0].stride[dim] * m.size;
    /* a group that was cut in front, whole groups, a group that is cut behind */
    const int64_t lo = fth__min_i64(end, (begin + f - 1) / f * f),
                  hi = fth__max_i64(lo, end / f * f);
    part(call, &m, dim, begin, 1, lo - begin);
    part(call, &m, dim, lo, (hi - lo) / f, f);
    part(call, &m, dim, hi, 1, end - hi);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

FTH_CUDA_KERNEL(upsample) = {.op = "upsample", .run = run};
