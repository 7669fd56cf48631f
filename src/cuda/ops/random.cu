/* random.cu - uniform and normal numbers and raw bits: the very numbers of the CPU, because both
 * sides compile the same philox.h and vecmath.h. */
#include "cuda/walk/space.cuh"

extern "C" {
#include "ops/random.h"
}

/* The second array is the counter. */
template <class T, int KIND>
static __global__ void draw(fth__places<2> w, T *out, uint64_t first, const int64_t *seed,
                            const int64_t *iteration, int64_t stream)
{
    const fth__random_key key = fth__random_key_make(*seed, *iteration, stream);
    for (FTH__EACH_PLACE(w, i)) {
        int64_t at[2];
        fth__place_at(w, i, at);
        const fth__philox p = fth__random_bits(&key, first + (uint64_t)at[1]);
        T v;
        if constexpr (KIND == FTH_RANDOM_BITS)
            v = (T)((uint64_t)p.v[1] << 32 | p.v[0]);
        else if constexpr (KIND == FTH_RANDOM_UNIFORM && sizeof(T) == 4)
            v = fth__uniform_f32(p.v[0]);
        else if constexpr (KIND == FTH_RANDOM_UNIFORM)
            v = fth__uniform_f64(p.v[0], p.v[1]);
        else if constexpr (sizeof(T) == 4)
            v = fth__normal_f32(&p);
        else
            v = fth__normal_f64(&p);
        out[at[0]] = v;
    }
}

template <class T, int KIND> static void queue(const fth_call *call)
{
    const fth__random_attr *attr = (const fth__random_attr *)call->node->attr;
    const fth_desc *d = &call->node->out[0];
    const fth_tile *t = &call->out[0];
    uint64_t step[FTH_MAX_AXES];
    fth__random_steps(d, step);
    const uint64_t first = fth__random_first(d, t, step);
    fth__space<2> s;
    for (int k = 0; k < d->n_axes; k++) s.add(t->extent[k], t->stride[k], step[k]);
    fth__space_each(s, [&](const fth__places<2> &w, const int64_t *base) {
        FTH_LAUNCH((draw<T, KIND>), fth__place_blocks(w.count, 4), FTH__SPACE_THREADS,
                   fth_cuda_stream(call), w, (T *)t->data + base[0], first + (uint64_t)base[1],
                   (const int64_t *)call->in[0].data, (const int64_t *)call->in[1].data,
                   attr->stream);
    });
}

static fth_status run(const fth_call *call)
{
    const fth__random_attr *attr = (const fth__random_attr *)call->node->attr;
    const bool single = attr->dtype == FTH_F32;
    if (attr->kind == FTH_RANDOM_BITS)
        queue<int64_t, FTH_RANDOM_BITS>(call);
    else if (attr->kind == FTH_RANDOM_UNIFORM)
        single ? queue<float, FTH_RANDOM_UNIFORM>(call) : queue<double, FTH_RANDOM_UNIFORM>(call);
    else
        single ? queue<float, FTH_RANDOM_NORMAL>(call) : queue<double, FTH_RANDOM_NORMAL>(call);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

FTH_CUDA_KERNEL(random) = {.op = "random", .run = run};
