/* nearest.cu - nearest.c on a device: a warp for each query.
 *
 * The places found so far are sorted, `slots` of them in every lane: number 32 s + lane in slot s.
 * The lanes test 32 places at a time; one that is nearer than the worst is inserted at its rank,
 * found by a ballot, and later ones shift by one. Squares are visited row by row, first as many as
 * should hold enough places, then in rings until nothing nearer can lie outside; the result does
 * not depend on that order.
 */
#include <fathom/cuda.h>
#include <fathom/fathom.h>

namespace
{
#include "nearest_node.h"

constexpr int THREADS = 256;

struct work {
    sp_squares squares;
    const int32_t *start, *id;
    const float *places, *at;
    int32_t *out;
    int64_t at_step, at_dim, out_step, out_nbr, first, count;
    int k; /* to be found */
    bool own, self;
};

struct near {
    double d2;
    int32_t id;
};

__device__ inline bool is_before(double d2, int32_t id, const near &b)
{
    return d2 < b.d2 || (d2 == b.d2 && id < b.id);
}

__device__ inline near from_lane(const near &x, int lane)
{
    near r;
    r.d2 = __shfl_sync(~0u, x.d2, lane);
    r.id = __shfl_sync(~0u, x.id, lane);
    return r;
}

/* Two arrays and selects: structs behind conditions would spill from registers. */
template <int SLOTS> struct found {
    double d2[SLOTS];
    int32_t id[SLOTS];
    near worst; /* the k-th; in all lanes */
};

template <int SLOTS> __device__ inline void start_over(found<SLOTS> *f)
{
#pragma unroll
    for (int s = 0; s < SLOTS; s++) {
        f->d2[s] = HUGE_VAL;
        f->id[s] = INT32_MAX;
    }
    f->worst.d2 = HUGE_VAL;
    f->worst.id = INT32_MAX;
}

/* x, the same in all lanes, to its rank. */
template <int SLOTS> __device__ inline void insert(found<SLOTS> *f, const near &x, int k)
{
    const int lane = (int)threadIdx.x % 32;
    int rank = 0;
#pragma unroll
    for (int s = 0; s < SLOTS; s++)
        rank += __popc(__ballot_sync(~0u, is_before(f->d2[s], f->id[s], x)));
    double worst_d2 = 0;
    int32_t worst_id = 0;
#pragma unroll
    for (int s = SLOTS - 1; s >= 0; s--) {
        const double up_d2 = __shfl_up_sync(~0u, f->d2[s], 1),
                     last_d2 = s > 0 ? __shfl_sync(~0u, f->d2[s > 0 ? s - 1 : 0], 31) : 0;
        const int32_t up_id = __shfl_up_sync(~0u, f->id[s], 1),
                      last_id = s > 0 ? __shfl_sync(~0u, f->id[s > 0 ? s - 1 : 0], 31) : 0;
        const int at = 32 * s + lane;
        const double moved_d2 = lane == 0 ? last_d2 : up_d2;
        const int32_t moved_id = lane == 0 ? last_id : up_id;
        const double old_d2 = f->d2[s], now_d2 = at > rank ? moved_d2 : at == rank ? x.d2 : old_d2;
        const int32_t old_id = f->id[s], now_id = at > rank ? moved_id : at == rank ? x.id : old_id;
        f->d2[s] = now_d2;
        f->id[s] = now_id;
        worst_d2 = s == (k - 1) / 32 ? now_d2 : worst_d2;
        worst_id = s == (k - 1) / 32 ? now_id : worst_id;
    }
    f->worst.d2 = __shfl_sync(~0u, worst_d2, (k - 1) % 32);
    f->worst.id = __shfl_sync(~0u, worst_id, (k - 1) % 32);
}

/* Squares [from, to] of a row; their places lie one after the other. */
template <int SLOTS>
__device__ __forceinline__ void look(const work &w, int64_t row, int64_t from, int64_t to,
                                     const double q[2], int32_t except, found<SLOTS> *f)
{
    const sp_squares &g = w.squares;
    const int lane = (int)threadIdx.x % 32;
    if (from < 0) from = 0;
    if (to >= g.nx) to = g.nx - 1;
    if (row < 0 || row >= g.ny || from > to) return;
    const int32_t end = w.start[row * g.nx + to + 1];
    for (int32_t i = w.start[row * g.nx + from]; i < end; i += 32) {
        near x = {HUGE_VAL, INT32_MAX};
        if (i + lane < end) {
            const double dx = (double)w.places[2 * (int64_t)(i + lane)] - q[0],
                         dy = (double)w.places[2 * (int64_t)(i + lane) + 1] - q[1];
            x.d2 = dx * dx + dy * dy;
            x.id = w.id[i + lane];
        }
        const bool may = i + lane < end && x.id != except;
        unsigned left = __ballot_sync(~0u, may && is_before(x.d2, x.id, f->worst));
        for (; left; left &= left - 1) {
            const near one = from_lane(x, __ffs((int)left) - 1);
            if (is_before(one.d2, one.id, f->worst)) insert(f, one, w.k);
        }
    }
}

/* All squares up to r away, then those r + 1, r + 2... away while they may hold a nearer place. */
template <int SLOTS>
__device__ __forceinline__ void search(const work &w, const double q[2], int32_t except,
                                       found<SLOTS> *f)
{
    const sp_squares &g = w.squares;
    const int64_t cx = sp_grid_index(q[0], g.x0, g.inv, g.nx),
                  cy = sp_grid_index(q[1], g.y0, g.inv, g.ny);
    int64_t r = 1;
    while ((2 * r + 1) * (2 * r + 1) < w.k) r++; /* two places in a square: twice as many */
    for (bool first = true;; first = false, r++) {
        const int64_t top = cy - r > 0 ? cy - r : 0, end = cy + r < g.ny ? cy + r : g.ny - 1;
        for (int64_t row = top; row <= end; row++) {
            const bool all = first || row == cy - r || row == cy + r; /* or its two ends */
            for (int side = 0; side < (all ? 1 : 2); side++)
                look(w, row, side == 0 ? cx - r : cx + r, all || side == 1 ? cx + r : cx - r, q,
                     except, f);
        }
        const double x = sp_grid_beyond(q[0], g.x0, g.edge, cx, r, g.nx),
                     y = sp_grid_beyond(q[1], g.y0, g.edge, cy, r, g.ny), least = x < y ? x : y;
        if (isinf(least) || (f->worst.id != INT32_MAX && least * least > f->worst.d2)) break;
    }
}

template <int SLOTS> __global__ void __launch_bounds__(THREADS) nearest(const work w)
{
    const int lane = (int)threadIdx.x % 32;
    const int64_t step = (int64_t)gridDim.x * (THREADS / 32);
    for (int64_t n = ((int64_t)blockIdx.x * THREADS + threadIdx.x) / 32; n < w.count; n += step) {
        const float *at = w.at + n * w.at_step;
        const double q[2] = {(double)at[0], (double)at[w.at_dim]};
        int32_t *list = w.out + n * w.out_step;
        found<SLOTS> f;
        start_over(&f);
        if (w.k > 0) search(w, q, w.own ? (int32_t)(w.first + n) : -1, &f);
        if (w.self && lane == 0) list[0] = (int32_t)(w.first + n);
#pragma unroll
        for (int s = 0; s < SLOTS; s++) {
            const int i = 32 * s + lane;
            if (i < w.k)
                list[(i + (w.self ? 1 : 0)) * w.out_nbr] = f.id[s] == INT32_MAX ? -1 : f.id[s];
        }
    }
}

fth_status run(const fth_call *call)
{
    const sp_nearest_attr *a = (const sp_nearest_attr *)call->node->attr;
    const fth_tile *in = call->in, *at = &in[SP_NEAREST_AT], *out = &call->out[0];
    work w = {};
    w.squares = a->squares;
    w.start = (const int32_t *)in[SP_NEAREST_START].data;
    w.id = (const int32_t *)in[SP_NEAREST_ID].data;
    w.places = (const float *)in[SP_NEAREST_PLACES].data;
    w.at = (const float *)at->data;
    w.at_step = at->stride[0];
    w.at_dim = at->stride[1];
    w.out = (int32_t *)out->data;
    w.out_step = out->stride[0];
    w.out_nbr = out->stride[1];
    w.first = out->origin[0];
    w.count = out->extent[0];
    w.own = a->own != 0;
    w.self = a->self != 0;
    w.k = (int)out->extent[1] - a->self;
    if (w.count == 0 || out->extent[1] == 0) return FTH_OK;
    const unsigned blocks = fth_cuda_blocks(w.count * 32, THREADS);
    const cudaStream_t stream = fth_cuda_stream(call);
    if (w.k <= 32)
        FTH_LAUNCH(nearest<1>, blocks, THREADS, stream, w);
    else if (w.k <= 64)
        FTH_LAUNCH(nearest<2>, blocks, THREADS, stream, w);
    else
        FTH_LAUNCH((nearest<SP_NEAREST_MOST / 32>), blocks, THREADS, stream, w);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

bool supports(const fth_node *node)
{
    return node->out[0].size[1] <= SP_NEAREST_MOST;
}
} // namespace

FTH_CUDA_KERNEL(spatial_nearest) = {.op = "spatial_nearest", .supports = supports, .run = run};
