/* local_lists.cu - local_lists.c on a device: a thread for each place of both lists. */
#include <fathom/cuda.h>
#include <fathom/fathom.h>

namespace
{
#include "local.cuh"
#include "local_lists.h"

constexpr int THREADS = 256;
/* errors of items come after those of lists */
constexpr uint64_t ITEM = (uint64_t)1 << 48;

struct work {
    sp_view<const int32_t> ptr, items;
    bool *out;
    int64_t rows, places; /* places of ptr; of the batch */
    fth_fault *fault;
};

__device__ inline void check_row(const work &w, int64_t i)
{
    const int32_t found = *w.ptr.at(i), before = i > 0 ? *w.ptr.at(i - 1) : 0;
    if (found < 0 || found > w.places || found < before)
        fth_cuda_complain(w.fault, (uint64_t)i, found, 0);
}

/* Items that belong to no row are ignored. */
__device__ inline void check_item(const work &w, int64_t i, int64_t from, int64_t to)
{
    if (i < from || i >= to) return;
    const int32_t found = *w.items.at(i);
    if (found < 0 || found >= w.places) fth_cuda_complain(w.fault, ITEM + (uint64_t)i, found, 0);
}

__global__ void __launch_bounds__(THREADS) check(const work w)
{
    const int64_t step = (int64_t)gridDim.x * THREADS, from = *w.ptr.at(0),
                  to = *w.ptr.at(w.rows - 1);
    for (int64_t n = (int64_t)blockIdx.x * THREADS + threadIdx.x; n < w.rows + w.places; n += step)
        if (n < w.rows)
            check_row(w, n);
        else
            check_item(w, n - w.rows, from, to);
    if (blockIdx.x == 0 && threadIdx.x == 0) *w.out = true;
}

fth_status run(const fth_call *call)
{
    work w = {};
    w.ptr = sp_view_in<int32_t>(call, PTR);
    w.items = sp_view_in<int32_t>(call, ITEMS);
    w.out = (bool *)call->out[0].data;
    w.rows = call->node->in[PTR].size[0];
    w.places = ((const attr *)call->node->attr)->places;
    w.fault = call->fault;
    FTH_LAUNCH(check, fth_cuda_blocks(w.rows + w.places, THREADS), THREADS, fth_cuda_stream(call),
               w);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

fth_status explain(const fth_node *node, const fth_fault *fault, fth_err *err)
{
    const bool list = fault->where < ITEM;
    return sp_local_outside(node, list ? SP_THE_LIST : SP_AN_ITEM,
                            (int64_t)(list ? fault->where : fault->where - ITEM), fault->value,
                            ((const attr *)node->attr)->places, err);
}
} // namespace

FTH_CUDA_KERNEL(spatial_local_lists) = {
    .op = "spatial_local_lists", .run = run, .explain = explain};
