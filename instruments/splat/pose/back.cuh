/* back.cuh - gs_view_back on a device: a thread has a row, a block of threads a block of rows. Once
 * for pinholes (back.cu) and again for lenses that bend straight lines (ray_back.cu).
 *
 * Sums are those of a block's threads in a fixed tree, in double; one block then adds the blocks,
 * each thread some in their order, in the same tree.
 */
#include <fathom/cuda.h>
#include <fathom/fathom.h>

#define FTH_ISA_LEVEL 0 /* a vector is one number */
#define FTH_VECTOR_REAL 32
#include <fathom/vector.h>

#include "../raster/scalars.h"

#include "../raster/gaussian_lanes.h"

extern "C" {
#include "back.h"
}
#include "back_lanes.h"

namespace
{

struct cameras {
    gs_raster rule;
    gs_pose_work w;
};

/* Sums over the threads of a block, in a fixed tree, to thread 0. */
__device__ inline void add_threads(double x[GS_POSE_SUMS], double (*warps)[GS_POSE_SUMS])
{
    const int lane = (int)threadIdx.x & 31, warp = (int)threadIdx.x / 32;
    for (int k = 0; k < GS_POSE_SUMS; k++)
        for (int d = 16; d > 0; d /= 2) x[k] += __shfl_xor_sync(~0u, x[k], d);
    if (lane == 0)
        for (int k = 0; k < GS_POSE_SUMS; k++) warps[warp][k] = x[k];
    __syncthreads();
    if (threadIdx.x != 0) return;
    for (int k = 0; k < GS_POSE_SUMS; k++) {
        x[k] = 0;
        for (int v = 0; v < GS_POSE_BLOCK / 32; v++) x[k] += warps[v][k];
    }
}

template <int DEGREE>
__device__ inline void to_view(const gs_pose_work &w, int64_t i, const float *mean,
                               const float *bar, const pose_seen *at, float *to)
{
    const float *rest = w.rest ? (const float *)w.rest + i * w.rest_step : mean;
    row_to_view(DEGREE, (const float *)w.view, mean, rest, w.rest_k, bar, at, to);
}

__device__ inline void read_row(const gs_pose_work &w, int part, int64_t i, int n, float *to)
{
    for (int k = 0; k < n; k++) to[k] = ((const float *)w.in[part])[i * w.step[part] + k];
}

/* false: the row is not seen. */
__device__ inline bool row_back(const cameras &c, int64_t i, float to[GS_POSE_SUMS])
{
    const gs_pose_work &w = c.w;
    const float *view = (const float *)w.view;
    enum { BARS = GS_RAYS ? (int)NUMBERS : GS_RED + 3 };
    float mean[3], scaling[3], q[4], opacity, bar[BARS];
    pose_seen at;
    if (!(((const float *)w.splats)[i * w.splats_step + GS_TILES] > 0)) return false;
    read_row(w, GS_IN_MEANS, i, 3, mean);
    read_row(w, GS_IN_SCALING, i, 3, scaling);
    read_row(w, GS_IN_ROTATION, i, 4, q);
    read_row(w, GS_IN_OPACITY, i, 1, &opacity);
    if (!pose_look(&c.rule, view, mean, scaling, q, opacity, &at)) return false;
    for (int k = 0; k < BARS; k++) bar[k] = ((const float *)w.bar)[i * w.bar_step + k];
    const int wanted = (int)view[GS_VIEW_DEGREE], degree = wanted < w.degree ? wanted : w.degree;
    switch (degree) {
    case 0: to_view<0>(w, i, mean, bar, &at, to); break;
    case 1: to_view<1>(w, i, mean, bar, &at, to); break;
    case 2: to_view<2>(w, i, mean, bar, &at, to); break;
    default: to_view<3>(w, i, mean, bar, &at, to); break;
    }
    return true;
}

__global__ void __launch_bounds__(GS_POSE_BLOCK)
    add_rows(const cameras __grid_constant__ c, double (*sums)[GS_POSE_SUMS])
{
    __shared__ double warps[GS_POSE_BLOCK / 32][GS_POSE_SUMS];
    const int64_t i = (int64_t)blockIdx.x * GS_POSE_BLOCK + threadIdx.x;
    float row[GS_POSE_SUMS];
    double x[GS_POSE_SUMS];
    const bool is_seen = i < c.w.n && row_back(c, i, row);
    for (int k = 0; k < GS_POSE_SUMS; k++) x[k] = is_seen ? (double)row[k] : 0.0;
    add_threads(x, warps);
    if (threadIdx.x != 0) return;
    for (int k = 0; k < GS_POSE_SUMS; k++) sums[blockIdx.x][k] = x[k];
}

__global__ void __launch_bounds__(GS_POSE_BLOCK)
    add_blocks(const double (*sums)[GS_POSE_SUMS], int64_t n, float *out, int64_t step)
{
    __shared__ double warps[GS_POSE_BLOCK / 32][GS_POSE_SUMS];
    double x[GS_POSE_SUMS] = {};
    for (int64_t b = threadIdx.x; b < n; b += GS_POSE_BLOCK)
        for (int k = 0; k < GS_POSE_SUMS; k++) x[k] += sums[b][k];
    add_threads(x, warps);
    if (threadIdx.x != 0) return;
    for (int i = 0; i < GS_VIEW; i++) out[i * step] = 0.0f;
    for (int k = 0; k < GS_POSE_SUMS; k++)
        out[(k < 12 ? GS_VIEW_POSE + k : GS_VIEW_CENTRE + k - 12) * step] = (float)x[k];
}

fth_status view_back(const fth_call *call)
{
    cameras c = {};
    gs_pose_work_of(call, &c.w);
    c.rule = *c.w.rule;
    const int64_t n = gs_pose_blocks(c.w.n);
    double(*sums)[GS_POSE_SUMS] = (double(*)[GS_POSE_SUMS])call->scratch;
    const cudaStream_t stream = fth_cuda_stream(call);
    if (n) FTH_LAUNCH(add_rows, (unsigned)n, GS_POSE_BLOCK, stream, c, sums);
    FTH_LAUNCH(add_blocks, 1, GS_POSE_BLOCK, stream, (const double(*)[GS_POSE_SUMS])sums, n,
               (float *)call->out[0].data, call->out[0].stride[0]);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

} // namespace
