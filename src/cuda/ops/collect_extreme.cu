/* collect_extreme.cu - rows get the largest or smallest of the entries they own, and where it is.
 * One thread looks at one row in the order of its entries. */
#include "cuda/walk/rows.cuh"
#include "cuda/walk/space.cuh"
#include "cuda/walk/wide.cuh"

extern "C" {
#include "ops/identity.h"
}

static __device__ inline bool better(double x, double m, bool largest)
{
    return (largest ? x > m : x < m) || (x != x && m == m);
}
static __device__ inline bool better(int64_t x, int64_t m, bool largest)
{
    return largest ? x > m : x < m;
}
static __device__ inline void start(double *x, int red, int)
{
    *x = fth__identity_real(red);
}
static __device__ inline void start(int64_t *x, int red, int dtype)
{
    *x = fth__identity_int(red, dtype);
}

/* Places in both results, in the operand at its first entry, and along the rows. */
template <int DTYPE>
static __global__ void look(const fth__places<4> __grid_constant__ w,
                            typename fth__elem<DTYPE>::type *out, int64_t *order,
                            const typename fth__elem<DTYPE>::type *in, int64_t first, int64_t step,
                            int64_t origin, const int64_t *row_ptr, bool largest)
{
    for (FTH__EACH_PLACE(w, i)) {
        int64_t at[4];
        fth__place_at(w, i, at);
        const int64_t *row = row_ptr + first + at[3];
        const typename fth__elem<DTYPE>::type *v = in + at[2] + (row[0] - origin) * step;
        const int64_t n = row[1] - row[0];
        typename fth__elem<DTYPE>::wide m;
        int64_t best = -1;
        start(&m, largest ? FTH__JOIN_MAX : FTH__JOIN_MIN, DTYPE);
        for (int64_t e = 0; e < n; e++) {
            const typename fth__elem<DTYPE>::wide x = fth__elem<DTYPE>::get(v[e * step]);
            if (best >= 0 && !better(x, m, largest)) continue;
            m = x;
            best = e;
        }
        if (out) out[at[0]] = fth__elem<DTYPE>::put(m);
        if (order) order[at[1]] = best < 0 ? -1 : row[0] + best;
    }
}

template <int DTYPE> static void queue(const fth_call *call, int dim)
{
    typedef typename fth__elem<DTYPE>::type type;
    const fth_tile *in = &call->in[0], *out = &call->out[0], *order = &call->out[1];
    const bool largest = ((const fth__axis_attr *)call->node->attr)->flag != 0;
    fth__space<4> s;
    for (int i = 0; i < call->node->out[0].n_axes; i++) {
        const bool along = i == dim;
        s.add(out->extent[i], out->stride[i], order->stride[i], along ? 0 : in->stride[i],
              along ? 1 : 0);
        s.base[2] += along ? 0 : (out->origin[i] - in->origin[i]) * in->stride[i];
    }
    fth__space_each(s, [&](const fth__places<4> &w, const int64_t *base) {
        FTH_LAUNCH((look<DTYPE>), fth__place_blocks(w.count, 1), FTH__SPACE_THREADS,
                   fth_cuda_stream(call), w, out->data ? (type *)out->data + base[0] : NULL,
                   order->data ? (int64_t *)order->data + base[1] : NULL,
                   (const type *)in->data + base[2], base[3], in->stride[dim], in->origin[dim],
                   (const int64_t *)call->scratch, largest);
    });
}

static fth_status run(const fth_call *call)
{
    const int dim = fth__cuda_rows_dim(call->node);
    if (fth_cuda_count(&call->node->out[0], &call->out[0]) == 0) return FTH_OK;
    FTH_TRY(fth__cuda_rows_bring(call, call->out[0].origin[dim], call->out[0].extent[dim]));
    switch (call->node->in[0].dtype) {
        FTH__CASE_INT(queue, call, dim)
        FTH__CASE_REAL(queue, call, dim)
    default: break;
    }
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

FTH_CUDA_KERNEL(collect_extreme) = {.op = "collect_extreme", .scratch = fth__cuda_rows_scratch, .run = run};
