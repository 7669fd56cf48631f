/* cover.cu - cover.c on a device: a thread for each pixel of the canvas, patterns in their order.
 */
#include "fields.cuh"

namespace
{
#include "sweep.h"

template <typename T>
__global__ void cover(const T *probe, const double *visits, int64_t count, int64_t n, int64_t rows,
                      int64_t cols, T *out)
{
    const int64_t cells = rows * cols, step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t k = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; k < cells; k += step) {
        const int64_t r = k / cols, c = k % cols;
        T sum = 0;
        for (int64_t j = 0; j < count; j++) {
            const int64_t y = r - (int64_t)visits[j * PT_VISITS + PT_VISIT_ROW],
                          x = c - (int64_t)visits[j * PT_VISITS + PT_VISIT_COL];
            if (y < 0 || x < 0 || y >= n || x >= n) continue;
            sum += power(get(probe, n * n, y * n + x));
        }
        out[k] = sum;
    }
}

template <typename T> fth_status run_as(const fth_call *call)
{
    const fth_node *node = call->node;
    const int64_t rows = node->out[0].size[0], cols = node->out[0].size[1];
    FTH_LAUNCH(cover<T>, fth_cuda_blocks(rows * cols, THREADS), THREADS, fth_cuda_stream(call),
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
