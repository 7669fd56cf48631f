/* local_predict.cu - local_predict.c on a device: a warp for each place and factor, a few columns
 * per lane; a mean alone takes one thread.
 */
#include <fathom/cuda.h>
#include <fathom/fathom.h>

namespace
{
#include "local.cuh"
#include "local_predict.h"

constexpr int THREADS = 256;
constexpr int WIDE = 2; /* columns of a lane, 32 apart */

template <typename T> struct work {
    sp_view<const int32_t> nbr;
    sp_view<const T> a, c, mu, lam;
    sp_view<T> f, s;
    int64_t first_factor, first_cell, n_cells, count, all;
    int k, r;
    double jitter;
    fth_fault *fault;
};

__device__ inline void complain(fth_fault *fault, int64_t cell, int k, int i, int64_t found)
{
    fth_cuda_complain(fault, (uint64_t)cell * (uint64_t)k + (uint64_t)i, found, 0);
}

/* Each lane checks some of the neighbours. */
template <typename T> __device__ bool are_there(const work<T> &w, int64_t i)
{
    bool ok = true;
    for (int j = (int)threadIdx.x % 32; j < w.k; j += 32) {
        const int32_t at = *w.nbr.at(i, j);
        if (at >= 0 && at < w.all) continue;
        complain(w.fault, i, w.k, j, at);
        ok = false;
    }
    return __all_sync(~0u, ok);
}

/* Sum over columns of (sum over neighbours of their rows by their weights) squared. */
template <typename T> __device__ double spread(const work<T> &w, int64_t l, int64_t i)
{
    const int lane = (int)threadIdx.x % 32;
    double sum = 0;
    for (int c0 = 0; c0 < w.r; c0 += 32 * WIDE) {
        double u[WIDE] = {};
#pragma unroll 4
        for (int j = 0; j < w.k; j++) {
            const double a = (double)*w.a.at(l, i, j);
            const T *row = w.lam.at(l, *w.nbr.at(i, j));
#pragma unroll
            for (int v = 0; v < WIDE; v++) {
                const int c = c0 + lane + 32 * v;
                if (c < w.r) u[v] = fma((double)row[c], a, u[v]);
            }
        }
#pragma unroll
        for (int v = 0; v < WIDE; v++) sum = fma(u[v], u[v], sum);
    }
    return sp_warp_sum(sum);
}

template <typename T> __global__ void __launch_bounds__(THREADS) predict(const work<T> w)
{
    const int lane = (int)threadIdx.x % 32;
    const int64_t step = (int64_t)gridDim.x * (THREADS / 32);
    for (int64_t n = ((int64_t)blockIdx.x * THREADS + threadIdx.x) / 32; n < w.count; n += step) {
        const int64_t l = w.first_factor + n / w.n_cells, i = w.first_cell + n % w.n_cells;
        if (!are_there(w, i)) continue;
        double f = 0, aa = 0;
        for (int j = lane; j < w.k; j += 32) {
            const double a = (double)*w.a.at(l, i, j);
            f += a * (double)*w.mu.at(l, *w.nbr.at(i, j));
            aa += a * a;
        }
        f = sp_warp_sum(f);
        aa = sp_warp_sum(aa);
        const double s2 = w.s.data ? (double)*w.c.at(l, i) + spread(w, l, i) + w.jitter * aa : 0;
        if (lane > 0) continue;
        if (w.f.data) *w.f.at(l, i) = (T)f;
        if (w.s.data) *w.s.at(l, i) = (T)sqrt(s2 < 0 ? 0 : s2 > 100 ? 100 : s2);
    }
}

template <typename T> fth_status predict_as(const fth_call *call)
{
    const fth_node *node = call->node;
    const fth_tile *out = &call->out[0];
    work<T> w = {};
    w.nbr = sp_view_in<int32_t>(call, NBR);
    const bool shared = node->in[A].n_axes == 2;
    w.a = sp_view_shared(sp_view_in<T>(call, A), 0, shared);
    w.c = sp_view_shared(sp_view_in<T>(call, C), 0, shared);
    w.mu = sp_view_in<T>(call, MU);
    w.lam = sp_view_in<T>(call, LAM);
    w.f = sp_view_out<T>(call, 0);
    w.s = sp_view_out<T>(call, 1);
    w.first_factor = out->origin[0];
    w.first_cell = out->origin[1];
    w.n_cells = out->extent[1];
    w.count = out->extent[0] * out->extent[1];
    w.all = node->in[MU].size[1];
    w.k = (int)node->in[NBR].size[1];
    w.r = (int)node->in[LAM].size[2];
    w.jitter = ((const attr *)node->attr)->jitter;
    w.fault = call->fault;
    if (w.count == 0) return FTH_OK;
    FTH_LAUNCH((predict<T>), fth_cuda_blocks(w.count * 32, THREADS), THREADS, fth_cuda_stream(call),
               w);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

fth_status run(const fth_call *call)
{
    return call->node->in[MU].dtype == FTH_F32 ? predict_as<float>(call) : predict_as<double>(call);
}

fth_status explain(const fth_node *node, const fth_fault *fault, fth_err *err)
{
    return sp_local_outside(node, "a neighbour",
                            (int64_t)(fault->where / (uint64_t)node->in[NBR].size[1]), fault->value,
                            node->in[MU].size[1], err);
}

/* ---- means ---- */

template <typename T> struct means_work {
    sp_view<const int32_t> nbr;
    sp_view<const T> a, mu; /* a [group factor cell nbr] */
    sp_view<T> f;           /* [group factor cell] */
    int64_t first[3], n[3], count, all;
    int k;
    fth_fault *fault;
};

/* In the order of the CPU, rounded as there. */
template <typename T> __global__ void means(const means_work<T> w)
{
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t n = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; n < w.count; n += step) {
        const int64_t i = w.first[2] + n % w.n[2], l = w.first[1] + n / w.n[2] % w.n[1],
                      g = w.first[0] + n / w.n[2] / w.n[1];
        double sum = 0;
        for (int j = 0; j < w.k; j++) {
            const int32_t at = *w.nbr.at(i, j);
            if (at < 0 || at >= w.all) {
                complain(w.fault, i, w.k, j, at);
                break;
            }
            sum += (double)*w.mu.at(l, at) * (double)*w.a.at(g, l, i, j);
        }
        *w.f.at(g, l, i) = (T)sum;
    }
}

template <typename T> fth_status means_as(const fth_call *call)
{
    const fth_node *node = call->node;
    const fth_tile *out = &call->out[0];
    const bool groups = sp_means_has_groups(node);
    means_work<T> w = {};
    w.nbr = sp_view_in<int32_t>(call, NBR);
    w.a = sp_view_shared(sp_view_in<T>(call, A), 0, !groups);
    w.a = sp_view_shared(w.a, 1, !sp_means_has_factors(node));
    w.mu = sp_view_in<T>(call, MU);
    w.f = sp_view_shared(sp_view_out<T>(call, 0), 0, !groups);
    w.count = w.n[0] = 1;
    for (int d = groups ? 0 : 1; d < 3; d++) {
        w.first[d] = out->origin[groups ? d : d - 1];
        w.n[d] = out->extent[groups ? d : d - 1];
        w.count *= w.n[d];
    }
    w.all = node->in[MU].size[1];
    w.k = (int)node->in[NBR].size[1];
    w.fault = call->fault;
    if (w.count == 0) return FTH_OK;
    FTH_LAUNCH((means<T>), fth_cuda_blocks(w.count, THREADS), THREADS, fth_cuda_stream(call), w);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

fth_status run_means(const fth_call *call)
{
    return call->node->in[MU].dtype == FTH_F32 ? means_as<float>(call) : means_as<double>(call);
}
} // namespace

FTH_CUDA_KERNEL(spatial_local_predict) = {
    .op = "spatial_local_predict", .run = run, .explain = explain};
FTH_CUDA_KERNEL(spatial_local_means) = {
    .op = "spatial_local_means", .run = run_means, .explain = explain};
