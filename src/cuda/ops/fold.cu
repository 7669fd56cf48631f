/* fold.cu - sums along the diagonals of (axis, tap): the transpose of window. One thread adds up
 * one element, over t and then x, as the CPU does. */
#include "cuda/walk/space.cuh"
#include "cuda/walk/wide.cuh"

extern "C" {
#include "ops/border.h"
#include "ops/window.h"
}

typedef struct diagonals {
    int64_t lo, taps, n; /* n: of the axis */
    int64_t x_step, t_step;
    int border;
} diagonals;

/* Places in the result, in the operand at x = t = 0, and along the axis. */
template <int DTYPE>
static __global__ void add(const fth__places<3> __grid_constant__ w,
                           typename fth__elem<DTYPE>::type *out,
                           const typename fth__elem<DTYPE>::type *g, int64_t first, diagonals d)
{
    typedef fth__elem<DTYPE> elem;
    for (FTH__EACH_PLACE(w, i)) {
        int64_t at[3];
        fth__place_at(w, i, at);
        const int64_t y = first + at[2];
        typename elem::wide sum = {};
        for (int64_t t = 0; t < d.taps; t++) {
            const int64_t shift = t - d.lo, end = d.n + shift;
            int64_t k = shift;
            for (; (k = fth__border_read_at(d.border, d.n, y, k, end)) < end; k++)
                fth__wide_add(&sum, elem::get(g[at[1] + (k - shift) * d.x_step + t * d.t_step]));
        }
        out[at[0]] = elem::put(sum);
    }
}

template <int DTYPE> static void queue(const fth_call *call)
{
    typedef typename fth__elem<DTYPE>::type type;
    const fth_node *node = call->node;
    const fth__window_attr *attr = (const fth__window_attr *)node->attr;
    const fth_desc *d = &node->in[0];
    const fth_tile *in = &call->in[0], *out = &call->out[0];
    const int dim = fth_desc_find(d, attr->axis), tap = fth_desc_find(d, attr->tap);
    const diagonals all = {attr->lo,        d->size[tap],    d->size[dim],
                           in->stride[dim], in->stride[tap], attr->border};
    fth__space<3> s;
    s.base[1] = -in->origin[dim] * in->stride[dim];
    for (int i = 0; i < node->out[0].n_axes; i++) {
        const int k = fth_desc_find(d, node->out[0].axis[i]);
        const bool along = k == dim;
        s.add(out->extent[i], out->stride[i], along ? 0 : in->stride[k], along ? 1 : 0);
        if (along)
            s.base[2] = out->origin[i];
        else
            s.base[1] += (out->origin[i] - in->origin[k]) * in->stride[k];
    }
    fth__space_each(s, [&](const fth__places<3> &w, const int64_t *base) {
        FTH_LAUNCH((add<DTYPE>), fth__place_blocks(w.count, 1), FTH__SPACE_THREADS,
                   fth_cuda_stream(call), w, (type *)out->data + base[0],
                   (const type *)in->data + base[1], base[2], all);
    });
}

static fth_status run(const fth_call *call)
{
    switch (call->node->in[0].dtype) {
        FTH__CASE_REAL(queue, call)
        FTH__CASE_COMPLEX(queue, call)
    default: break;
    }
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

FTH_CUDA_KERNEL(fold) = {.op = "fold", .run = run};
