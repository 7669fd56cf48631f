/* collect.cu - rows get the sum of the entries they own. One thread adds up one row in the order of
 * its entries, so a sum is the CPU's whatever the row falls to. */
#include "cuda/walk/rows.cuh"
#include "cuda/walk/space.cuh"
#include "cuda/walk/wide.cuh"

/* Places in the result, in the operand at its first entry, and along the rows. */
template <int DTYPE>
static __global__ void add(const fth__places<3> __grid_constant__ w,
                           typename fth__elem<fth__sum_of<DTYPE>()>::type *out,
                           const typename fth__elem<DTYPE>::type *in, int64_t first, int64_t step,
                           int64_t origin, const int64_t *row_ptr)
{
    for (FTH__EACH_PLACE(w, i)) {
        int64_t at[3];
        fth__place_at(w, i, at);
        const int64_t *row = row_ptr + first + at[2];
        const typename fth__elem<DTYPE>::type *v = in + at[1] + (row[0] - origin) * step;
        const int64_t n = row[1] - row[0];
        typename fth__elem<DTYPE>::wide sum = {};
        for (int64_t e = 0; e < n; e++) fth__wide_add(&sum, fth__elem<DTYPE>::get(v[e * step]));
        out[at[0]] = fth__elem<fth__sum_of<DTYPE>()>::put(sum);
    }
}

template <int DTYPE> static void queue(const fth_call *call, int dim)
{
    typedef typename fth__elem<DTYPE>::type type;
    typedef typename fth__elem<fth__sum_of<DTYPE>()>::type sum;
    const fth_tile *in = &call->in[0], *out = &call->out[0];
    fth__space<3> s;
    for (int i = 0; i < call->node->out[0].n_axes; i++) {
        const bool along = i == dim;
        s.add(out->extent[i], out->stride[i], along ? 0 : in->stride[i], along ? 1 : 0);
        s.base[1] += along ? 0 : (out->origin[i] - in->origin[i]) * in->stride[i];
    }
    fth__space_each(s, [&](const fth__places<3> &w, const int64_t *base) {
        FTH_LAUNCH((add<DTYPE>), fth__place_blocks(w.count, 1), FTH__SPACE_THREADS,
                   fth_cuda_stream(call), w, (sum *)out->data + base[0],
                   (const type *)in->data + base[1], base[2], in->stride[dim], in->origin[dim],
                   (const int64_t *)call->scratch);
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
        FTH__CASE_COMPLEX(queue, call, dim)
    case FTH_DTYPE_COUNT: break;
    }
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

FTH_CUDA_KERNEL(collect) = {.op = "collect", .scratch = fth__cuda_rows_scratch, .run = run};
