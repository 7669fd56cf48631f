/* pool.cu - an axis in blocks of `factor` elements: their sum, mean, smallest or largest. One
 * thread takes one block, element after element. */
#include "cuda/walk/space.cuh"
#include "cuda/walk/wide.cuh"

extern "C" {
#include "ops/ops.h"
}

static __device__ void divide(double *s, double by)
{
    *s /= by;
}
static __device__ void divide(fth_c128 *s, double by)
{
    s->re /= by;
    s->im /= by;
}
static __device__ void divide(int64_t *, double)
{
}

/* Places in out[0], the operand and out[1]. */
template <int DTYPE>
static __global__ void
add(const fth__places<3> __grid_constant__ w, typename fth__elem<fth__sum_of<DTYPE>()>::type *out,
    const typename fth__elem<DTYPE>::type *in, int64_t step, int64_t factor, bool mean)
{
    for (FTH__EACH_PLACE(w, i)) {
        int64_t at[3];
        fth__place_at(w, i, at);
        typename fth__elem<DTYPE>::wide sum = {};
        for (int64_t k = 0; k < factor; k++)
            fth__wide_add(&sum, fth__elem<DTYPE>::get(in[at[1] + k * step]));
        if (mean) divide(&sum, (double)factor);
        out[at[0]] = fth__elem<fth__sum_of<DTYPE>()>::put(sum);
    }
}

/* Of what was chosen within the blocks: bytes, or wider where blocks are longer. */
typedef struct places {
    void *data; /* NULL: not wanted */
    fth_dtype dtype;
} places;

static __device__ void put_place(const places &to, int64_t at, int64_t k)
{
    if (to.dtype == FTH_U8)
        ((uint8_t *)to.data)[at] = (uint8_t)k;
    else if (to.dtype == FTH_I32)
        ((int32_t *)to.data)[at] = (int32_t)k;
    else
        ((int64_t *)to.data)[at] = k;
}

/* The first of equals; NaN wins. */
template <int DTYPE>
static __global__ void choose(const fth__places<3> __grid_constant__ w,
                              typename fth__elem<DTYPE>::type *out, places where,
                              const typename fth__elem<DTYPE>::type *in, int64_t step,
                              int64_t factor, int64_t base, bool largest)
{
    typedef typename fth__elem<DTYPE>::wide wide;
    for (FTH__EACH_PLACE(w, i)) {
        int64_t at[3], best_k = 0;
        fth__place_at(w, i, at);
        auto chosen = in[at[1]];
        wide best = fth__elem<DTYPE>::get(chosen);
        for (int64_t k = 1; k < factor; k++) {
            const auto next = in[at[1] + k * step];
            const wide x = fth__elem<DTYPE>::get(next);
            if (!((largest ? x > best : x < best) || (x != x && best == best))) continue;
            chosen = next;
            best = x;
            best_k = k;
        }
        if (out) out[at[0]] = chosen;
        if (where.data) put_place(where, base + at[2], best_k);
    }
}

static fth__space<3> space_of(const fth_call *call, int dim, int64_t factor)
{
    const fth_tile *in = &call->in[0], *out = &call->out[0], *at = &call->out[1];
    const bool two = call->node->n_out == 2;
    fth__space<3> s;
    for (int i = 0; i < call->node->in[0].n_axes; i++) {
        const int64_t per = i == dim ? factor : 1;
        s.add(out->extent[i], out->stride[i], in->stride[i] * per, two ? at->stride[i] : 0);
        s.base[1] += (out->origin[i] * per - in->origin[i]) * in->stride[i];
    }
    return s;
}

template <int DTYPE> static void queue_add(const fth_call *call)
{
    typedef typename fth__elem<DTYPE>::type type;
    typedef typename fth__elem<fth__sum_of<DTYPE>()>::type sum;
    const fth__pool_attr *attr = (const fth__pool_attr *)call->node->attr;
    const int dim = fth_desc_find(&call->node->in[0], attr->axis);
    fth__space_each(space_of(call, dim, attr->factor),
                    [&](const fth__places<3> &w, const int64_t *base) {
                        FTH_LAUNCH((add<DTYPE>), fth__place_blocks(w.count, 2), FTH__SPACE_THREADS,
                                   fth_cuda_stream(call), w, (sum *)call->out[0].data + base[0],
                                   (const type *)call->in[0].data + base[1],
                                   call->in[0].stride[dim], attr->factor, attr->mean != 0);
                    });
}

template <int DTYPE> static void queue_choose(const fth_call *call)
{
    typedef typename fth__elem<DTYPE>::type type;
    const fth__pool_attr *attr = (const fth__pool_attr *)call->node->attr;
    const int dim = fth_desc_find(&call->node->in[0], attr->axis);
    type *out = (type *)call->out[0].data;
    const places where = {call->out[1].data, call->node->out[1].dtype};
    fth__space_each(
        space_of(call, dim, attr->factor), [&](const fth__places<3> &w, const int64_t *base) {
            FTH_LAUNCH((choose<DTYPE>), fth__place_blocks(w.count, 2), FTH__SPACE_THREADS,
                       fth_cuda_stream(call), w, out ? out + base[0] : NULL, where,
                       (const type *)call->in[0].data + base[1], call->in[0].stride[dim],
                       attr->factor, base[2], attr->red == FTH_RED_MAX);
        });
}

static fth_status run(const fth_call *call)
{
    const fth__pool_attr *attr = (const fth__pool_attr *)call->node->attr;
    if (attr->red == FTH_RED_SUM) switch (call->node->in[0].dtype) {
            FTH__CASE_INT(queue_add, call)
            FTH__CASE_REAL(queue_add, call)
            FTH__CASE_COMPLEX(queue_add, call)
        case FTH_DTYPE_COUNT: break;
        }
    else
        switch (call->node->in[0].dtype) {
            FTH__CASE_INT(queue_choose, call)
            FTH__CASE_REAL(queue_choose, call)
        default: break;
        }
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

FTH_CUDA_KERNEL(pool) = {.op = "pool", .run = run};
