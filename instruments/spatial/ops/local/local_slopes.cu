/* local_slopes.cu - local_slopes.c on a device: a warp for each cell and factor. */
#include <fathom/cuda.h>
#include <fathom/fathom.h>

namespace
{
#include "local.cuh"
#include "local_slopes.h"

constexpr int THREADS = 256;

template <typename T> struct work {
    sp_view<const int32_t> nbr;
    sp_view<const T> mu, lam, a, cp, da, ep, d;
    sp_view<double> slope;
    int64_t first_factor, first_cell, n_cells, count, all;
    int k, r;
    double jitter;
    fth_fault *fault;
};

/* Each lane checks some of the neighbours. */
template <typename T> __device__ bool are_there(const work<T> &w, int64_t t)
{
    bool ok = true;
    for (int i = (int)threadIdx.x % 32; i < w.k; i += 32) {
        const int32_t at = *w.nbr.at(t, i);
        if (at >= 0 && at < w.all) continue;
        fth_cuda_complain(w.fault, (uint64_t)t * (uint64_t)w.k + (uint64_t)i, at, 0);
        ok = false;
    }
    return __all_sync(~0u, ok);
}

/* ep . (Lam[n]^T da), each lane with some of the columns. */
template <typename T> __device__ double of_rows(const work<T> &w, int64_t l, int64_t t)
{
    double sum = 0;
    for (int c = (int)threadIdx.x % 32; c < w.r; c += 32) {
        double u = 0;
#pragma unroll 4
        for (int i = 0; i < w.k; i++)
            u = fma((double)*w.lam.at(l, *w.nbr.at(t, i), c), (double)*w.da.at(l, t, i), u);
        sum = fma(u, (double)*w.ep.at(l, t, c), sum);
    }
    return sp_warp_sum(sum);
}

template <typename T> __global__ void __launch_bounds__(THREADS) slopes(const work<T> w)
{
    const int lane = (int)threadIdx.x % 32;
    const int64_t step = (int64_t)gridDim.x * (THREADS / 32);
    for (int64_t n = ((int64_t)blockIdx.x * THREADS + threadIdx.x) / 32; n < w.count; n += step) {
        const int64_t l = w.first_factor + n / w.n_cells, t = w.first_cell + n % w.n_cells;
        if (!are_there(w, t)) continue;
        double mean = 0, both = 0;
        for (int i = lane; i < w.k; i += 32) {
            const double a = (double)*w.a.at(l, t, i), da = (double)*w.da.at(l, t, i);
            mean = fma(da, (double)*w.mu.at(l, *w.nbr.at(t, i)), mean);
            both = fma(a, da, both);
        }
        mean = sp_warp_sum(mean);
        both = sp_warp_sum(both);
        const double rows = of_rows(w, l, t);
        if (lane > 0) continue;
        *w.slope.at(l, t) =
            w.jitter * both / (double)*w.cp.at(l, t) - (double)*w.d.at(l, t) * mean - rows;
    }
}

template <typename T> fth_status run_as(const fth_call *call)
{
    const fth_node *node = call->node;
    const fth_tile *out = &call->out[0];
    work<T> w = {};
    w.nbr = sp_view_in<int32_t>(call, NBR);
    w.mu = sp_view_in<T>(call, MU);
    w.lam = sp_view_in<T>(call, LAM);
    w.a = sp_view_in<T>(call, A);
    w.cp = sp_view_in<T>(call, CP);
    w.da = sp_view_in<T>(call, DA);
    w.ep = sp_view_in<T>(call, EP);
    w.d = sp_view_in<T>(call, D);
    w.slope = sp_view_out<double>(call, 0);
    w.first_factor = out->origin[0];
    w.first_cell = out->origin[1];
    w.n_cells = out->extent[1];
    w.count = out->extent[0] * out->extent[1];
    w.all = node->in[LAM].size[1];
    w.k = (int)node->in[NBR].size[1];
    w.r = (int)node->in[LAM].size[2];
    w.jitter = ((const attr *)node->attr)->jitter;
    w.fault = call->fault;
    if (w.count == 0) return FTH_OK;
    FTH_LAUNCH((slopes<T>), fth_cuda_blocks(w.count * 32, THREADS), THREADS, fth_cuda_stream(call),
               w);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

fth_status run(const fth_call *call)
{
    return call->node->in[LAM].dtype == FTH_F32 ? run_as<float>(call) : run_as<double>(call);
}

fth_status explain(const fth_node *node, const fth_fault *fault, fth_err *err)
{
    return sp_local_outside(node, "a neighbour",
                            (int64_t)(fault->where / (uint64_t)node->in[NBR].size[1]), fault->value,
                            node->in[LAM].size[1], err);
}
} // namespace

FTH_CUDA_KERNEL(spatial_local_slopes) = {
    .op = "spatial_local_slopes", .run = run, .explain = explain};
