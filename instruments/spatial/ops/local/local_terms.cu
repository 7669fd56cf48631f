/* local_terms.cu - local_terms.c on a device: a warp for each cell and factor, or a thread block
 * for many neighbours.
 *
 * Rows of Lam of the neighbours and of the cell come to shared memory, some columns at a time;
 * their products stay in registers, where they are factored (local.cuh). Only results are written
 * to global memory.
 */
#include <fathom/cuda.h>
#include <fathom/fathom.h>

namespace
{
#include "local.cuh"
#include "local_terms.h"

constexpr int MARGINAL_THREADS = 256;

/* Columns of Lam in shared memory at a time, 32 for each of a lane's numbers, and the rows that a
 * warp has in flight. */
template <typename TEAM> struct bringing {
    static constexpr int EACH = 2, ROWS = 4;
};
template <> struct bringing<sp_warp> {
    static constexpr int EACH = 1, ROWS = 13;
};

template <typename T> struct work {
    sp_tiled_matrix m;
    sp_view<const int64_t> idx;
    sp_view<const int32_t> nbr;
    sp_view<const T> mu, lam, a, cp;
    sp_view<T> eq, ep, h, d;
    sp_view<double> kl;
    int64_t first_factor, first_cell, n_cells, count, all;
    int r, wide, step; /* columns of Lam, and at a time; doubles between rows in shared memory */
    int64_t workspace; /* doubles of a team in shared memory */
    double jitter;
    fth_fault *fault;
};

/* Shared memory, in this order. */
struct workspace {
    double *lam; /* [SIDE][tile row][step]: row 4 i + u of the matrix at place (u, i) */
    sp_shared shared;
    double *a, *mu;  /* [k] */
    double *eq, *ep; /* [r] */
    double *by;      /* 1 / cq or 0, 1 / cp */
    int64_t *row;    /* [k + 1]: rows of Lam */
};

/* The fewest passes with an equal number of columns each. */
int wide_of(int64_t r, int most)
{
    const int64_t times = (r + most - 1) / most;
    return (int)((r + times - 1) / times + 1) / 2 * 2;
}

/* An even number of doubles whose half is odd: pairs of adjacent rows then lie in different banks.
 */
int step_of(int wide)
{
    return 2 * ((wide / 2) | 1);
}

/* An even number: every team begins with pairs. */
int64_t workspace_doubles(const sp_tiled_matrix &m, int64_t r, int step)
{
    static_assert(sizeof(int64_t) == sizeof(double), "rows lie among doubles");
    const int64_t doubles =
        (int64_t)SIDE * m.rows * step + sp_shared_doubles(m) + 2 * m.k + 2 * r + 2 + m.k + 1;
    return (doubles + 1) / 2 * 2;
}

template <typename T> __device__ workspace workspace_of(const work<T> &w, double *room)
{
    workspace d;
    d.lam = room;
    room += SIDE * w.m.rows * w.step;
    d.shared = sp_shared_at(w.m, room);
    d.a = room + sp_shared_doubles(w.m);
    d.mu = d.a + w.m.k;
    d.eq = d.mu + w.m.k;
    d.ep = d.eq + w.r;
    d.by = d.ep + w.r;
    d.row = (int64_t *)(d.by + 2);
    return d;
}

__device__ inline void complain(fth_fault *fault, int64_t t, int k, int what, int64_t found)
{
    fth_cuda_complain(fault, (uint64_t)t * (uint64_t)(k + 1) + (uint64_t)what, found, 0);
}

/* Which rows the cell needs; false in some thread: an index is wrong. */
template <typename TEAM, typename T>
__device__ bool bring_rows(const work<T> &w, const workspace &d, int64_t l, int64_t t)
{
    bool ok = true;
    for (int i = TEAM::at(); i <= w.m.k; i += TEAM::size()) {
        const bool own = i == w.m.k;
        const int64_t row = own ? *w.idx.at(t) : *w.nbr.at(t, i);
        d.row[i] = row;
        if (row < 0 || row >= w.all) {
            complain(w.fault, t, w.m.k, own ? 0 : i + 1, row);
            ok = false;
        } else if (!own) {
            d.a[i] = (double)*w.a.at(l, t, i);
            d.mu[i] = (double)*w.mu.at(l, row);
        }
    }
    return ok;
}

/* Columns [c0, c0 + n) of those rows to shared memory, zeros behind them. */
template <typename TEAM, typename T>
__device__ void bring_columns(const work<T> &w, const workspace &d, int64_t l, int c0, int n)
{
    constexpr int EACH = bringing<TEAM>::EACH, ROWS = bringing<TEAM>::ROWS;
    const int lane = TEAM::at() % 32, warps = TEAM::size() / 32, wide = (n + 1) / 2 * 2;
    const int rows = SIDE * w.m.rows;
    for (int from = TEAM::at() / 32; from < rows; from += ROWS * warps) {
        T x[ROWS][EACH];
#pragma unroll
        for (int j = 0; j < ROWS; j++) {
            const int i = from + j * warps;
            const T *row = i <= w.m.k ? w.lam.at(l, d.row[i], c0) : nullptr;
#pragma unroll
            for (int e = 0; e < EACH; e++)
                x[j][e] = row && lane + 32 * e < n ? row[lane + 32 * e] : (T)0;
        }
#pragma unroll
        for (int j = 0; j < ROWS; j++) {
            const int i = from + j * warps;
            double *to = d.lam + (i % SIDE * w.m.rows + i / SIDE) * w.step;
#pragma unroll
            for (int e = 0; e < EACH; e++)
                if (i < rows && lane + 32 * e < wide) to[lane + 32 * e] = (double)x[j][e];
        }
    }
}

/* A tile of the products of those rows. */
__device__ inline void multiply(const double *lam, int rows, int step, int n, int i, int j,
                                double (&v)[SIDE][SIDE])
{
    const double *at_i = lam + i * step, *at_j = lam + j * step;
#pragma unroll 2
    for (int c = 0; c < n; c += 2) {
        double2 x[SIDE], y[SIDE];
#pragma unroll
        for (int u = 0; u < SIDE; u++) {
            x[u] = *(const double2 *)(at_i + u * rows * step + c);
            y[u] = *(const double2 *)(at_j + u * rows * step + c);
        }
#pragma unroll
        for (int u = 0; u < SIDE; u++)
#pragma unroll
            for (int s = 0; s < SIDE; s++)
                v[u][s] = fma(x[u].y, y[s].y, fma(x[u].x, y[s].x, v[u][s]));
    }
}

/* The matrix of the cell: products of rows, and the jitter. */
template <typename TEAM, typename T, int TILES>
__device__ void make_matrix(const work<T> &w, const workspace &d, int64_t l, sp_tiles<TILES> *t)
{
    sp_each_tile<TILES>([&](int n) {
#pragma unroll
        for (int u = 0; u < SIDE; u++)
#pragma unroll
            for (int s = 0; s < SIDE; s++)
                t->v[n][u][s] = u == s && t->i[n] == t->j[n] ? w.jitter : 0.0;
    });
    for (int c0 = 0; c0 < w.r; c0 += w.wide) {
        const int n = w.r - c0 < w.wide ? w.r - c0 : w.wide;
        if (c0 > 0) TEAM::meet(); /* the previous columns were read */
        bring_columns<TEAM>(w, d, l, c0, n);
        TEAM::meet();
        sp_each_tile<TILES>([&](int q) {
            if (t->j[q] >= 0) multiply(d.lam, w.m.rows, w.step, n, t->i[q], t->j[q], t->v[q]);
        });
    }
}

/* Row i of the matrix in column c: in shared memory where all columns are, else as it was. */
template <typename T>
__device__ inline double element(const work<T> &w, const workspace &d, int64_t l, int i, int c)
{
    if (w.r <= w.wide) return d.lam[(i % SIDE * w.m.rows + i / SIDE) * w.step + c];
    return (double)*w.lam.at(l, d.row[i], c);
}

/* eq = l - sum h row, ep = l - sum a row; two columns of a thread at a time. */
template <typename TEAM, typename T>
__device__ void residuals(const work<T> &w, const workspace &d, int64_t l)
{
    for (int c = TEAM::at(); c < w.r; c += 2 * TEAM::size()) {
        const int other = c + TEAM::size() < w.r ? c + TEAM::size() : c;
        double q[2] = {element(w, d, l, w.m.k, c), element(w, d, l, w.m.k, other)},
               p[2] = {q[0], q[1]};
#pragma unroll 8
        for (int i = 0; i < w.m.k; i++) {
            const double x = element(w, d, l, i, c), y = element(w, d, l, i, other),
                         h = d.shared.x[i], a = d.a[i];
            q[0] = fma(-x, h, q[0]);
            p[0] = fma(-x, a, p[0]);
            q[1] = fma(-y, h, q[1]);
            p[1] = fma(-y, a, p[1]);
        }
        d.eq[c] = q[0];
        d.ep[c] = p[0];
        d.eq[other] = q[1]; /* the same again where there is no other */
        d.ep[other] = p[1];
    }
}

/* By the first warp: the divergence, and the factors of the residuals. */
template <typename T>
__device__ void conclude(const work<T> &w, const workspace &d, int64_t l, int64_t t)
{
    const int lane = (int)threadIdx.x % 32;
    double am = 0, hh = 0, aa = 0, qq = 0, pp = 0;
    for (int i = lane; i < w.m.k; i += 32) {
        am = fma(d.a[i], d.mu[i], am);
        hh = fma(d.shared.x[i], d.shared.x[i], hh);
        aa = fma(d.a[i], d.a[i], aa);
    }
    for (int c = lane; c < w.r; c += 32) {
        qq = fma(d.eq[c], d.eq[c], qq);
        pp = fma(d.ep[c], d.ep[c], pp);
    }
    const double mean = (double)*w.mu.at(l, d.row[w.m.k]) - sp_warp_sum(am),
                 cq = sp_warp_sum(qq) + w.jitter * sp_warp_sum(hh),
                 trace = sp_warp_sum(pp) + w.jitter * sp_warp_sum(aa), cp = (double)*w.cp.at(l, t),
                 safe = cq < 1e-6  ? 1e-6
                        : cq > 100 ? 100
                                   : cq;
    if (lane > 0) return;
    d.by[0] = cq < 1e-6 || cq > 100 ? 0 : 1 / cq;
    d.by[1] = 1 / cp;
    if (w.d.data) *w.d.at(l, t) = (T)(mean / cp);
    if (w.kl.data) *w.kl.at(l, t) = 0.5 * (log(cp) - log(safe) - 1 + (mean * mean + trace) / cp);
}

template <typename TEAM, typename T>
__device__ void store(const work<T> &w, const workspace &d, int64_t l, int64_t t)
{
    const int from = TEAM::at(), by = TEAM::size();
    for (int c = from; w.eq.data && c < w.r; c += by) *w.eq.at(l, t, c) = (T)(d.eq[c] * d.by[0]);
    for (int c = from; w.ep.data && c < w.r; c += by) *w.ep.at(l, t, c) = (T)(d.ep[c] * d.by[1]);
    for (int i = from; w.h.data && i < w.m.k; i += by) *w.h.at(l, t, i) = (T)d.shared.x[i];
}

template <typename T, typename SIZE>
__global__ void __launch_bounds__(SIZE::THREADS, SIZE::BLOCKS) terms(const work<T> w)
{
    typedef typename SIZE::team team;
    FTH_SHARED(double, room);
    const workspace d = workspace_of(w, room + team::number() * w.workspace);
    sp_tiles<SIZE::TILES> tiles;
    sp_tiles_place<team>(w.m, &tiles);
    const int64_t step = (int64_t)gridDim.x * team::teams();
    for (int64_t i = (int64_t)blockIdx.x * team::teams() + team::number(); i < w.count; i += step) {
        const int64_t l = w.first_factor + i / w.n_cells, t = w.first_cell + i % w.n_cells;
        if (!team::all(bring_rows<team>(w, d, l, t))) continue;
        team::meet();
        make_matrix<team>(w, d, l, &tiles);
        sp_factor<team>(w.m, d.shared, &tiles); /* NaN where the matrix is not positive definite */
        sp_first_half<team>(w.m, d.shared, tiles, 0);
        sp_second_half<team>(w.m, d.shared, tiles);
        residuals<team>(w, d, l);
        team::meet();
        if (team::at() < 32) conclude(w, d, l, t);
        team::meet();
        store<team>(w, d, l, t);
        team::meet();
    }
}

/* Columns at a time, and doubles of shared memory for a block. */
template <typename SIZE>
int64_t set_workspace(const sp_tiled_matrix &m, int64_t r, int *wide, int *step, int64_t *workspace)
{
    typedef typename SIZE::team team;
    constexpr bool warps = team::WARPS;
    *wide = wide_of(r, 32 * bringing<team>::EACH);
    *step = step_of(*wide);
    *workspace = workspace_doubles(m, r, *step);
    return *workspace * (warps ? SIZE::THREADS / 32 : 1);
}

template <typename SIZE> bool fits(const sp_tiled_matrix &m, int64_t r)
{
    int wide, step;
    int64_t workspace;
    const int64_t doubles = set_workspace<SIZE>(m, r, &wide, &step, &workspace);
    return (int64_t)sizeof(double) * doubles <= fth_cuda_most_shared();
}

template <typename T, typename SIZE> void launch(work<T> &w, cudaStream_t stream)
{
    constexpr bool warps = SIZE::team::WARPS;
    const int64_t doubles = set_workspace<SIZE>(w.m, w.r, &w.wide, &w.step, &w.workspace),
                  most = INT32_MAX;
    const int64_t each = warps ? SIZE::THREADS / 32 : 1, blocks = (w.count + each - 1) / each;
    FTH_LAUNCH_SHARED((terms<T, SIZE>), (unsigned)(blocks < most ? blocks : most),
                      warps ? SIZE::THREADS : sp_matrix_threads(w.m, SIZE::THREADS),
                      (int64_t)sizeof(double) * doubles, stream, w);
}

/* Warps where their tiles stay in registers, blocks where they do not. */
template <typename T> void launch_any(work<T> &w, cudaStream_t stream)
{
    if (w.m.tiles <= 32 * sp_warp_1::TILES && fits<sp_warp_1>(w.m, w.r))
        launch<T, sp_warp_1>(w, stream);
    else if (w.m.tiles <= 32 * sp_warp_3::TILES && fits<sp_warp_3>(w.m, w.r))
        launch<T, sp_warp_3>(w, stream);
    else if (w.m.tiles <= sp_small::THREADS)
        launch<T, sp_small>(w, stream);
    else if (w.m.tiles <= sp_middle::THREADS)
        launch<T, sp_middle>(w, stream);
    else
        launch<T, sp_large>(w, stream);
}

template <typename T> fth_status run_as(const fth_call *call)
{
    const fth_node *node = call->node;
    const fth_tile *out = &call->out[0];
    work<T> w = {};
    w.m = sp_tiled_matrix_of(node->in[NBR].size[1], 1);
    w.idx = sp_view_in<int64_t>(call, IDX);
    w.nbr = sp_view_in<int32_t>(call, NBR);
    w.mu = sp_view_in<T>(call, MU);
    w.lam = sp_view_in<T>(call, LAM);
    w.a = sp_view_shared(sp_view_in<T>(call, A), 0, node->in[A].n_axes == 2);
    w.cp = sp_view_shared(sp_view_in<T>(call, CP), 0, node->in[CP].n_axes == 1);
    w.eq = sp_view_out<T>(call, SP_TERM_EQ);
    w.ep = sp_view_out<T>(call, SP_TERM_EP);
    w.h = sp_view_out<T>(call, SP_TERM_H);
    w.d = sp_view_out<T>(call, SP_TERM_D);
    w.kl = sp_view_out<double>(call, SP_TERM_KL);
    w.first_factor = out->origin[0];
    w.first_cell = out->origin[1];
    w.n_cells = out->extent[1];
    w.count = out->extent[0] * out->extent[1];
    w.all = node->in[LAM].size[1];
    w.r = (int)node->in[LAM].size[2];
    w.jitter = ((const attr *)node->attr)->jitter;
    w.fault = call->fault;
    if (w.count == 0) return FTH_OK;
    launch_any(w, fth_cuda_stream(call));
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

bool supports(const fth_node *node)
{
    const int64_t k = node->in[NBR].size[1], r = node->in[LAM].size[2];
    return sp_matrix_fits(k, 1) && r > 0 && r < INT32_MAX &&
           fits<sp_large>(sp_tiled_matrix_of(k, 1), r);
}

fth_status run(const fth_call *call)
{
    return call->node->in[LAM].dtype == FTH_F32 ? run_as<float>(call) : run_as<double>(call);
}

fth_status explain(const fth_node *node, const fth_fault *fault, fth_err *err)
{
    const int64_t each = node->n_in > NBR ? node->in[NBR].size[1] + 1 : 1,
                  at = (int64_t)fault->where;
    return sp_local_outside(node, at % each == 0 ? "the place" : "a neighbour", at / each,
                            fault->value, node->in[LAM].size[1], err);
}

/* ---- marginals: a warp for each cell and factor ---- */

template <typename T> struct margins {
    sp_view<const int64_t> idx;
    sp_view<const T> mu, lam;
    sp_view<T> f, s;
    int64_t first_factor, first_cell, n_cells, count, all, r;
    fth_fault *fault;
};

template <typename T> __global__ void marginals(const margins<T> w)
{
    const int lane = (int)threadIdx.x % 32;
    const int64_t step = (int64_t)gridDim.x * (MARGINAL_THREADS / 32);
    for (int64_t n = ((int64_t)blockIdx.x * MARGINAL_THREADS + threadIdx.x) / 32; n < w.count;
         n += step) {
        const int64_t l = w.first_factor + n / w.n_cells, t = w.first_cell + n % w.n_cells,
                      i = *w.idx.at(t);
        if (i < 0 || i >= w.all) {
            if (lane == 0) complain(w.fault, t, 0, 0, i);
            continue;
        }
        if (w.f.data && lane == 0) *w.f.at(l, t) = *w.mu.at(l, i);
        if (!w.s.data) continue;
        double sum = 0;
        for (int64_t c = lane; c < w.r; c += 32) {
            const double x = (double)*w.lam.at(l, i, c);
            sum = fma(x, x, sum);
        }
        sum = sp_warp_sum(sum);
        if (lane == 0) *w.s.at(l, t) = (T)sqrt(sum < 1e-3 ? 1e-3 : sum > 100 ? 100 : sum);
    }
}

template <typename T> fth_status marginals_as(const fth_call *call)
{
    const fth_tile *out = &call->out[0];
    margins<T> w = {};
    w.idx = sp_view_in<int64_t>(call, IDX);
    w.mu = sp_view_in<T>(call, MU);
    w.lam = sp_view_in<T>(call, LAM);
    w.f = sp_view_out<T>(call, 0);
    w.s = sp_view_out<T>(call, 1);
    w.first_factor = out->origin[0];
    w.first_cell = out->origin[1];
    w.n_cells = out->extent[1];
    w.count = out->extent[0] * out->extent[1];
    w.all = call->node->in[LAM].size[1];
    w.r = call->node->in[LAM].size[2];
    w.fault = call->fault;
    if (w.count == 0) return FTH_OK;
    FTH_LAUNCH((marginals<T>), fth_cuda_blocks(w.count * 32, MARGINAL_THREADS), MARGINAL_THREADS,
               fth_cuda_stream(call), w);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

fth_status run_marginals(const fth_call *call)
{
    return call->node->in[LAM].dtype == FTH_F32 ? marginals_as<float>(call)
                                                : marginals_as<double>(call);
}
} // namespace

FTH_CUDA_KERNEL(spatial_local_terms) = {
    .op = "spatial_local_terms", .supports = supports, .run = run, .explain = explain};
FTH_CUDA_KERNEL(spatial_local_marginals) = {
    .op = "spatial_local_marginals", .run = run_marginals, .explain = explain};
