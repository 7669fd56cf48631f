/* counts.cu - counts.c on a device: zeros, then a warp for each cell. */
#include <fathom/cuda.h>
#include <fathom/fathom.h>

namespace
{
#include "counts.h"

constexpr int THREADS = 256, LANES = 32;

template <typename T> struct work {
    const int64_t *row_ptr; /* of the first cell of the tile */
    const int32_t *gene;
    const float *value;
    T *out;
    int64_t first, genes, cells; /* of the tile */
    int64_t by_gene, by_cell;
};

template <typename T> __global__ void __launch_bounds__(THREADS) clear(const work<T> w)
{
    const int64_t step = (int64_t)gridDim.x * THREADS, n = w.genes * w.cells;
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < n; i += step)
        w.out[i / w.cells * w.by_gene + i % w.cells * w.by_cell] = (T)0;
}

template <typename T> __global__ void __launch_bounds__(THREADS) place(const work<T> w)
{
    const int64_t cell = ((int64_t)blockIdx.x * THREADS + threadIdx.x) / LANES;
    if (cell >= w.cells) return;
    for (int64_t i = w.row_ptr[cell] + threadIdx.x % LANES; i < w.row_ptr[cell + 1]; i += LANES) {
        const int64_t g = w.gene[i] - w.first;
        if (g >= 0 && g < w.genes) w.out[g * w.by_gene + cell * w.by_cell] = (T)w.value[i];
    }
}

template <typename T> fth_status run_as(const fth_call *call)
{
    const fth_tile *out = &call->out[0], *rows = &call->in[SP_COUNTS_ROW_PTR],
                   *genes = &call->in[SP_COUNTS_GENE], *values = &call->in[SP_COUNTS_VALUE];
    work<T> w = {};
    w.row_ptr = (const int64_t *)rows->data - rows->origin[0] + out->origin[1];
    w.gene = (const int32_t *)genes->data - genes->origin[0];
    w.value = (const float *)values->data - values->origin[0];
    w.out = (T *)out->data;
    w.first = out->origin[0];
    w.genes = out->extent[0];
    w.cells = out->extent[1];
    w.by_gene = out->stride[0];
    w.by_cell = out->stride[1];
    if (w.genes * w.cells == 0) return FTH_OK;
    FTH_LAUNCH((clear<T>), fth_cuda_blocks(w.genes * w.cells, THREADS), THREADS,
               fth_cuda_stream(call), w);
    FTH_LAUNCH((place<T>), (unsigned)((w.cells * LANES + THREADS - 1) / THREADS), THREADS,
               fth_cuda_stream(call), w);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

fth_status run(const fth_call *call)
{
    return call->node->out[0].dtype == FTH_F32 ? run_as<float>(call) : run_as<double>(call);
}
} // namespace

FTH_CUDA_KERNEL(spatial_counts) = {.op = "spatial_counts", .run = run};
