/* cover.cu - cover.c on a device: a tile of the canvas adds the patterns that touch it, in order.
 */
#include "tiles.cuh"

namespace
{
#include "sweep.h"

template <typename T>
__global__ void cover(const T *probe, const double *visits, int64_t count, int64_t n, int64_t rows,
                      int64_t cols, T *out)
{
    __shared__ touching list;
    const tile_pixel pixel(rows, cols);
    T sum = 0;
    for (int64_t first = 0; first < count; first += THREADS) {
        find_touching(&list, visits, PT_VISITS, PT_VISIT_ROW, first, count, n);
#pragma unroll 4
        for (int k = 0; k < list.count; k++) {
            const int64_t p = pixel.in(list, k, n);
            const T light = power(get(probe, n * n, p < 0 ? 0 : p));
            if (p >= 0) sum += light;
        }
    }
    if (pixel.inside) out[(int64_t)pixel.row * cols + pixel.col] = sum;
}

template <typename T> fth_status run_as(const fth_call *call)
{
    const fth_node *node = call->node;
    const int64_t rows = node->out[0].size[0], cols = node->out[0].size[1];
    FTH_LAUNCH(cover<T>, tiles_of(rows, cols), THREADS, fth_cuda_stream(call),
               (const T *)call->in[0].data, (const double *)call->in[1].data, node->in[1].size[0],
               node->in[0].size[2], rows, cols, (T *)call->out[0].data);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

fth_status run(const fth_call *call)
{
    return call->node->in[0].dtype == FTH_F32 ? run_as<float>(call) : run_as<double>(call);
}
} // namespace

FTH_CUDA_KERNEL(ptycho_cover) = {.op = "ptycho_cover", .run = run};
