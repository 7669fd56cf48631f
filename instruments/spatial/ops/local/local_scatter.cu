/* local_scatter.cu - local_scatter.c on a device: a warp for each training cell and factor.
 *
 * It processes the items of the cell in order, as the CPU does: 32 are looked up together, one per
 * lane, and their rows are loaded by all lanes one after the other, several in flight at a time.
 */
#include <fathom/cuda.h>
#include <fathom/fathom.h>

namespace
{
#include "local.cuh"
#include "local_scatter.h"

constexpr int THREADS = 256;
constexpr int WIDE = 2;    /* columns of a lane, 32 apart: 64 at a time */
constexpr int AT_ONCE = 4; /* items whose rows are in flight */

template <typename T> struct work {
    sp_view<const int32_t> ptr, items;
    sp_view<const T> eq, ep, h, d, a, gf, gs, lam;
    sp_view<T> slope, mu;
    int64_t first_factor, first_cell, n_cells, count, places;
    int k, r;
    double weight;
};

/* An item as the lane that looks it up has it. */
struct item {
    int64_t b;   /* place in the batch */
    double h, a; /* of the slot; -1 for the cell itself */
    double d, gf, gs;
    bool own;
};

template <typename T> __device__ item look_up(const work<T> &w, int64_t l, int64_t at, bool there)
{
    item x = {};
    if (!there) return x;
    const int32_t found = *w.items.at(at);
    if (found < 0 || found >= w.places) return x; /* the check failed; this may run nevertheless */
    const int slot = found % (w.k + 1);
    x.b = found / (w.k + 1);
    x.own = slot == w.k;
    x.h = x.own ? -1 : (double)*w.h.at(l, x.b, slot);
    x.a = x.own ? -1 : (double)*w.a.at(l, x.b, slot);
    x.d = (double)*w.d.at(l, x.b);
    if (!x.own) return x;
    x.gf = (double)*w.gf.at(l, x.b);
    x.gs = (double)*w.gs.at(l, x.b);
    return x;
}

/* Items [from, from + n) of at most 32, one in each lane, to the sums of columns c0 + lane + 32 v.
 */
template <typename T>
__device__ inline void add_rows(const work<T> &w, int64_t l, const item &mine, int n, int c0,
                                double (&sum)[WIDE])
{
    const int lane = (int)threadIdx.x % 32;
    for (int from = 0; from < n; from += AT_ONCE) {
        T eq[AT_ONCE][WIDE], ep[AT_ONCE][WIDE];
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++) {
            const int64_t b = __shfl_sync(~0u, mine.b, (from + j) % 32);
#pragma unroll
            for (int v = 0; v < WIDE; v++) {
                const int c = c0 + lane + 32 * v;
                const bool there = from + j < n && c < w.r;
                eq[j][v] = there ? *w.eq.at(l, b, c) : (T)0;
                ep[j][v] = there ? *w.ep.at(l, b, c) : (T)0;
            }
        }
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++) {
            const double h = __shfl_sync(~0u, mine.h, (from + j) % 32),
                         a = __shfl_sync(~0u, mine.a, (from + j) % 32);
            if (from + j >= n) continue;
#pragma unroll
            for (int v = 0; v < WIDE; v++) {
                sum[v] = fma(h, (double)eq[j][v], sum[v]);
                sum[v] = fma(-a, (double)ep[j][v], sum[v]);
            }
        }
    }
}

/* The gradient of mu and the weight of the row itself, summed in order; in all lanes. */
struct totals {
    double mu, gf, gs;
};

__device__ inline void add_numbers(const item &mine, int n, totals *t)
{
    const double mu = mine.own ? mine.d : -(mine.a * mine.d);
    for (int j = 0; j < n; j++) {
        t->mu += __shfl_sync(~0u, mu, j);
        t->gf += __shfl_sync(~0u, mine.gf, j);
        t->gs += __shfl_sync(~0u, mine.gs, j);
    }
}

template <typename T> __device__ double norm2(const work<T> &w, int64_t l, int64_t i)
{
    double sum = 0;
    for (int c = (int)threadIdx.x % 32; c < w.r; c += 32) {
        const double x = (double)*w.lam.at(l, i, c);
        sum = fma(x, x, sum);
    }
    return sp_warp_sum(sum);
}

/* One row of the gradient, and its element of mu's, from items [from, to). */
template <typename T>
__device__ void gather(const work<T> &w, int64_t l, int64_t i, int64_t from, int64_t to)
{
    const int lane = (int)threadIdx.x % 32;
    totals all = {};
    double own = 0;
    for (int c0 = 0; c0 == 0 || c0 < w.r; c0 += 32 * WIDE) {
        double sum[WIDE] = {};
        for (int64_t at = from; at < to; at += 32) {
            const int n = (int)(to - at < 32 ? to - at : 32);
            const item mine = look_up(w, l, at + lane, lane < n);
            if (c0 == 0) add_numbers(mine, n, &all);
            if (w.slope.data) add_rows(w, l, mine, n, c0, sum);
        }
        if (c0 == 0) {
            const double s2 = all.gs != 0 ? norm2(w, l, i) : 0;
            own = s2 >= 1e-3 && s2 <= 100 ? all.gs / sqrt(s2) : 0;
            if (lane == 0 && w.mu.data) *w.mu.at(l, i) = (T)(all.gf + w.weight * all.mu);
        }
#pragma unroll
        for (int v = 0; v < WIDE; v++) {
            const int c = c0 + lane + 32 * v;
            if (!w.slope.data || c >= w.r) continue;
            const double x = own == 0 ? 0 : (double)*w.lam.at(l, i, c);
            *w.slope.at(l, i, c) = (T)fma(x, own, sum[v] * w.weight);
        }
        if (!w.slope.data) break;
    }
}

/* As the check has it. */
__device__ inline bool is_list(int32_t from, int32_t to, int64_t places)
{
    return from >= 0 && to >= from && to <= places;
}

template <typename T> __global__ void __launch_bounds__(THREADS) scatter(const work<T> w)
{
    const int64_t step = (int64_t)gridDim.x * (THREADS / 32);
    for (int64_t n = ((int64_t)blockIdx.x * THREADS + threadIdx.x) / 32; n < w.count; n += step) {
        const int64_t l = w.first_factor + n / w.n_cells, i = w.first_cell + n % w.n_cells;
        const int32_t from = *w.ptr.at(i), to = *w.ptr.at(i + 1);
        if (is_list(from, to, w.places)) gather(w, l, i, from, to);
    }
}

template <typename T> fth_status run_as(const fth_call *call)
{
    const fth_node *node = call->node;
    const fth_tile *out = &call->out[0];
    work<T> w = {};
    w.ptr = sp_view_in<int32_t>(call, PTR);
    w.items = sp_view_in<int32_t>(call, ITEMS);
    w.eq = sp_view_in<T>(call, EQ);
    w.ep = sp_view_in<T>(call, EP);
    w.h = sp_view_in<T>(call, H);
    w.d = sp_view_in<T>(call, D);
    w.a = sp_view_shared(sp_view_in<T>(call, A), 0, node->in[A].n_axes == 2);
    w.gf = sp_view_in<T>(call, GF);
    w.gs = sp_view_in<T>(call, GS);
    w.lam = sp_view_in<T>(call, LAM);
    w.slope = sp_view_out<T>(call, 0);
    w.mu = sp_view_out<T>(call, 1);
    w.first_factor = out->origin[0];
    w.first_cell = out->origin[1];
    w.n_cells = out->extent[1];
    w.count = out->extent[0] * out->extent[1];
    w.k = (int)node->in[H].size[2];
    w.r = (int)node->in[LAM].size[2];
    w.places = node->in[EQ].size[1] * (w.k + 1);
    w.weight = ((const attr *)node->attr)->weight;
    if (w.count == 0) return FTH_OK;
    FTH_LAUNCH((scatter<T>), fth_cuda_blocks(w.count * 32, THREADS), THREADS, fth_cuda_stream(call),
               w);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

fth_status run(const fth_call *call)
{
    return call->node->in[LAM].dtype == FTH_F32 ? run_as<float>(call) : run_as<double>(call);
}
} // namespace

FTH_CUDA_KERNEL(spatial_local_scatter) = {.op = "spatial_local_scatter", .run = run};
