/* poisson.cu - one Poisson draw per rate: the very draws of the CPU, from the same poisson.h. */
#include "cuda/walk/space.cuh"

extern "C" {
#include "ops/misfit.h"
#include "ops/poisson.h"
}

/* Places in the rates, in the result, of the counter, and in the whole value. */
template <class T>
static __global__ void draw(const fth__places<4> __grid_constant__ w, int64_t *out, const T *in,
                            uint64_t first, uint64_t place, const int64_t *seed,
                            const int64_t *iteration, int64_t stream, fth_fault *fault)
{
    const fth__random_key key = fth__random_key_make(*seed, *iteration, stream);
    for (FTH__EACH_PLACE(w, i)) {
        int64_t at[4];
        fth__place_at(w, i, at);
        const double rate = (double)in[at[0]];
        int64_t drawn = 0;
        if (fth__poisson_is_rate(rate))
            drawn = fth__poisson_draw(rate, &key, first + (uint64_t)at[2]);
        else
            fth_cuda_complain(fault, place + (uint64_t)at[3], (int64_t)fth__bits_f64(rate), 0);
        out[at[1]] = drawn;
    }
}

template <class T> static void queue(const fth_call *call)
{
    const fth__poisson_attr *attr = (const fth__poisson_attr *)call->node->attr;
    const fth_desc *d = &call->node->in[0];
    const fth_tile *in = &call->in[0], *out = &call->out[0];
    uint64_t step[FTH_MAX_AXES];
    int64_t place[FTH_MAX_AXES];
    fth__random_steps(d, step);
    fth__misfit_steps(d, place);
    fth__space<4> s;
    for (int k = 0; k < d->n_axes; k++) {
        s.add(out->extent[k], in->stride[k], out->stride[k], step[k], place[k]);
        s.base[3] += in->origin[k] * place[k];
    }
    s.base[2] = (int64_t)fth__random_first(d, out, step);
    fth__space_each(s, [&](const fth__places<4> &w, const int64_t *base) {
        FTH_LAUNCH((draw<T>), fth__place_blocks(w.count, 2), FTH__SPACE_THREADS,
                   fth_cuda_stream(call), w, (int64_t *)out->data + base[1],
                   (const T *)in->data + base[0], (uint64_t)base[2], (uint64_t)base[3],
                   (const int64_t *)call->in[1].data, (const int64_t *)call->in[2].data,
                   attr->stream, call->fault);
    });
}

static fth_status run(const fth_call *call)
{
    call->node->in[0].dtype == FTH_F32 ? queue<float>(call) : queue<double>(call);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

static fth_status explain(const fth_node *node, const fth_fault *fault, fth_err *err)
{
    return fth__misfit_rate(node, fault->where, fth__from_bits_f64((uint64_t)fault->value), err);
}

FTH_CUDA_KERNEL(poisson) = {.op = "poisson", .run = run, .explain = explain};
