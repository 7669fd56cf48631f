/* index.cu - the global index along an axis, as numbers. */
#include "cuda/walk/space.cuh"

static __global__ void count_up(fth__places<2> w, int64_t *out, int64_t first)
{
    for (FTH__EACH_PLACE(w, i)) {
        int64_t at[2];
        fth__place_at(w, i, at);
        out[at[0]] = first + at[1];
    }
}

static fth_status run(const fth_call *call)
{
    const fth_tile *t = &call->out[0];
    fth__space<2> s;
    s.add(t->extent[0], t->stride[0], 1);
    fth__space_each(s, [&](const fth__places<2> &w, const int64_t *base) {
        FTH_LAUNCH(count_up, fth__place_blocks(w.count, 4), FTH__SPACE_THREADS,
                   fth_cuda_stream(call), w, (int64_t *)t->data + base[0], t->origin[0] + base[1]);
    });
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

FTH_CUDA_KERNEL(index) = {.op = "index", .run = run};
