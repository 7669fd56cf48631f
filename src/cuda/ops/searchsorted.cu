/* searchsorted.cu - where each element of a value belongs in an axis that ascends: a thread each.
 */
#include "cuda/walk/space.cuh"
#include "cuda/walk/wide.cuh"

extern "C" {
#include "ops/ops.h"
}

static int dim_of(const fth_node *node)
{
    return fth_desc_find(&node->in[0], ((const fth__axis_attr *)node->attr)->axis);
}

/* NaN comes last. */
static __device__ inline bool less(double a, double b)
{
    return a < b || (b != b && a == a);
}
static __device__ inline bool less(int64_t a, int64_t b)
{
    return a < b;
}

/* Places in the result, in the value and in the sorted lines. */
template <int DTYPE>
static __global__ void search(const fth__places<3> __grid_constant__ w, int64_t *out,
                              const typename fth__elem<DTYPE>::type *v,
                              const typename fth__elem<DTYPE>::type *sorted, int64_t n,
                              int64_t step, bool right)
{
    for (FTH__EACH_PLACE(w, i)) {
        int64_t at[3], lo = 0, left = n;
        fth__place_at(w, i, at);
        const typename fth__elem<DTYPE>::wide x = fth__elem<DTYPE>::get(v[at[1]]);
        while (left > 0) {
            const int64_t half = left / 2;
            const typename fth__elem<DTYPE>::wide y =
                fth__elem<DTYPE>::get(sorted[at[2] + (lo + half) * step]);
            const bool before = right ? !less(x, y) : less(y, x);
            lo = before ? lo + half + 1 : lo;
            left = before ? left - half - 1 : half;
        }
        out[at[0]] = lo;
    }
}

template <int DTYPE> static void queue(const fth_call *call, int dim)
{
    typedef typename fth__elem<DTYPE>::type type;
    const fth_node *node = call->node;
    const fth_tile *sorted = &call->in[0], *v = &call->in[1], *out = &call->out[0];
    const bool right = ((const fth__axis_attr *)node->attr)->flag != 0;
    fth__space<3> s;
    for (int i = 0; i < node->out[0].n_axes; i++) {
        const int k = fth_desc_find(&node->in[0], node->out[0].axis[i]);
        const int64_t step = k < 0 || k == dim ? 0 : sorted->stride[k];
        s.add(out->extent[i], out->stride[i], v->stride[i], step);
        s.base[1] += (out->origin[i] - v->origin[i]) * v->stride[i];
        if (step) s.base[2] += (out->origin[i] - sorted->origin[k]) * step;
    }
    fth__space_each(s, [&](const fth__places<3> &w, const int64_t *base) {
        FTH_LAUNCH((search<DTYPE>), fth__place_blocks(w.count, 1), FTH__SPACE_THREADS,
                   fth_cuda_stream(call), w, (int64_t *)out->data + base[0],
                   (const type *)v->data + base[1], (const type *)sorted->data + base[2],
                   sorted->extent[dim], sorted->stride[dim], right);
    });
}

static fth_status run(const fth_call *call)
{
    const int dim = dim_of(call->node);
    if (fth_cuda_count(&call->node->out[0], &call->out[0]) == 0) return FTH_OK;
    switch (call->node->in[0].dtype) {
        FTH__CASE_INT(queue, call, dim)
        FTH__CASE_REAL(queue, call, dim)
    default: break;
    }
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

FTH_CUDA_KERNEL(searchsorted) = {.op = "searchsorted", .run = run};
