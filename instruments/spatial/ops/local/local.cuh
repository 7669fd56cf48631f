/* local.cuh - the linear system of one cell on a device: a small matrix in the registers of one
 * team, a thread block or a warp.
 *
 * As on the CPU (local.h) a right-hand side is one more row of the matrix, and numbers are f64. The
 * lower triangle is cut into tiles of 4 by 4; a thread holds one of them, or a few. Columns of
 * tiles are processed in order: one thread factors the diagonal tile, the tiles below are solved,
 * and every tile to the right subtracts the products of their rows. Tiles exchange data through
 * shared memory, where adjacent tiles are adjacent, without bank conflicts.
 *
 * Included inside the unnamed namespace of a .cu file.
 */
#ifndef SPATIAL_OPS_LOCAL_CUH
#define SPATIAL_OPS_LOCAL_CUH

#include "local_node.h"

#include <float.h>

constexpr int SIDE = 4;

/* A matrix of k columns and k + more rows, in tiles. */
struct sp_tiled_matrix {
    int k, more;
    int rows, cols, tiles; /* of tiles */
};
static inline sp_tiled_matrix sp_tiled_matrix_of(int64_t k, int64_t more)
{
    sp_tiled_matrix m = {};
    m.k = (int)k;
    m.more = (int)more;
    m.cols = (m.k + SIDE - 1) / SIDE;
    m.rows = (m.k + m.more + SIDE - 1) / SIDE;
    m.tiles = m.cols * m.rows - m.cols * (m.cols - 1) / 2;
    return m;
}

/* The team of one matrix: all threads of a block, or a warp, which needs no barrier. */
struct sp_block_team {
    static constexpr bool WARPS = false;
    static __device__ int at()
    {
        return (int)threadIdx.x;
    }
    static __device__ int size()
    {
        return (int)blockDim.x;
    }
    static __device__ int number()
    {
        return 0;
    }
    static __device__ int teams()
    {
        return 1;
    }
    static __device__ void meet()
    {
        __syncthreads();
    }
    static __device__ bool all(bool yes)
    {
        return __syncthreads_and(yes) != 0;
    }
};
struct sp_warp {
    static constexpr bool WARPS = true; /* several to a block */
    static __device__ int at()
    {
        return (int)threadIdx.x % 32;
    }
    static __device__ int size()
    {
        return 32;
    }
    static __device__ int number()
    {
        return (int)threadIdx.x / 32;
    }
    static __device__ int teams()
    {
        return (int)blockDim.x / 32;
    }
    static __device__ void meet()
    {
        __syncwarp();
    }
    static __device__ bool all(bool yes)
    {
        return __all_sync(~0u, yes) != 0;
    }
};

/* How many threads, and tiles of each: a template for as many as stay in registers. */
struct sp_small {
    static constexpr int THREADS = 128, TILES = 1, BLOCKS = 5;
    typedef sp_block_team team;
};
struct sp_middle {
    static constexpr int THREADS = 512, TILES = 1, BLOCKS = 1;
    typedef sp_block_team team;
};
struct sp_large {
    static constexpr int THREADS = 256, TILES = 16, BLOCKS = 1; /* in local memory */
    typedef sp_block_team team;
};
/* The same of warps, several to a block. */
struct sp_warp_1 {
    static constexpr int THREADS = 128, TILES = 1, BLOCKS = 5;
    typedef sp_warp team;
};
struct sp_warp_3 {
    static constexpr int THREADS = 128, TILES = 3, BLOCKS = 3;
    typedef sp_warp team;
};
static inline bool sp_matrix_fits(int64_t k, int64_t more)
{
    const int64_t most = (int64_t)sp_large::THREADS * sp_large::TILES;
    return k > 0 && k < 4096 && more < 4096 && sp_tiled_matrix_of(k, more).tiles <= most;
}
static inline int sp_matrix_threads(const sp_tiled_matrix &m, int most)
{
    const int want = (m.tiles + 31) / 32 * 32;
    return want < most ? want : most;
}

/* The tiles of a thread; unused slots have row and column -1. */
template <int TILES> struct sp_tiles {
    int i[TILES], j[TILES];
    double v[TILES][SIDE][SIDE];
};

/* f(n) for each of them, unrolled: a dynamic index would spill them from registers. */
template <int TILES, typename F> __device__ __forceinline__ void sp_each_tile(F f)
{
    if constexpr (TILES <= 4) {
#pragma unroll
        for (int n = 0; n < TILES; n++) f(n);
    } else {
#pragma unroll 1
        for (int n = 0; n < TILES; n++) f(n);
    }
}

/* Tiles are counted down the columns, so that threads whose columns are done are adjacent. */
template <typename TEAM = sp_block_team, int TILES>
__device__ inline void sp_tiles_place(const sp_tiled_matrix &m, sp_tiles<TILES> *t)
{
    sp_each_tile<TILES>([&](int n) {
        int left = TEAM::at() + n * TEAM::size(), j = 0;
        const bool there = left < m.tiles;
        while (there && left >= m.rows - j) left -= m.rows - j++;
        t->i[n] = there ? j + left : -1;
        t->j[n] = there ? j : -1;
    });
}

/* Shared memory of the factor: `panel` the rows of a column of tiles, as pairs [4 rows x 2 pairs]
 * [tile]; `diagonal` a tile; `by` the reciprocals of all diagonals. */
struct sp_shared {
    double2 *panel;
    double *diagonal, *by, *x; /* by, x: [cols * SIDE]; x is the solution */
};
static inline __host__ __device__ int64_t sp_shared_doubles(const sp_tiled_matrix &m)
{
    return 2 * 8 * m.rows + SIDE * SIDE + 2 * SIDE * m.cols;
}
__device__ inline sp_shared sp_shared_at(const sp_tiled_matrix &m, double *room)
{
    sp_shared s;
    s.panel = (double2 *)room;
    s.diagonal = room + 2 * 8 * m.rows;
    s.by = s.diagonal + SIDE * SIDE;
    s.x = s.by + SIDE * m.cols;
    return s;
}

/* Columns of tile column p inside the matrix. */
__device__ inline int sp_own(const sp_tiled_matrix &m, int p)
{
    return m.k - SIDE * p < SIDE ? m.k - SIDE * p : SIDE;
}

/* The tile on the diagonal, `own` columns of it, whose reciprocals go to `bys`. false: not positive
 * definite. */
__device__ inline bool sp_factor_diagonal(double (&v)[SIDE][SIDE], int own, const sp_shared &s,
                                          double *bys)
{
    bool ok = true;
#pragma unroll
    for (int c = 0; c < SIDE; c++) {
        if (c >= own) continue; /* no break: column indices must be compile-time constants */
        const double by = rsqrt(v[c][c]);
        ok &= by > 0 && by <= DBL_MAX; /* the root of a negative number is NaN */
        bys[c] = by;
#pragma unroll
        for (int r = c; r < SIDE; r++) v[r][c] *= by;
#pragma unroll
        for (int d = c + 1; d < SIDE; d++)
#pragma unroll
            for (int r = d; r < SIDE; r++) v[r][d] = fma(-v[r][c], v[d][c], v[r][d]);
    }
#pragma unroll
    for (int r = 0; r < SIDE; r++)
#pragma unroll
        for (int c = 0; c < SIDE; c++) s.diagonal[r * SIDE + c] = v[r][c];
    return ok;
}

/* A tile below it. */
__device__ inline void sp_factor_below(double (&v)[SIDE][SIDE], int own, const sp_shared &s,
                                       const double *bys)
{
#pragma unroll
    for (int c = 0; c < SIDE; c++) {
        if (c >= own) continue;
        const double by = bys[c];
#pragma unroll
        for (int r = 0; r < SIDE; r++) v[r][c] *= by;
#pragma unroll
        for (int d = c + 1; d < SIDE; d++)
#pragma unroll
            for (int r = 0; r < SIDE; r++)
                v[r][d] = fma(-v[r][c], s.diagonal[d * SIDE + c], v[r][d]);
    }
}

__device__ inline void sp_panel_put(const sp_tiled_matrix &m, const sp_shared &s, int i,
                                    const double (&v)[SIDE][SIDE])
{
#pragma unroll
    for (int r = 0; r < SIDE; r++)
#pragma unroll
        for (int c = 0; c < 2; c++)
            s.panel[(2 * r + c) * m.rows + i] = make_double2(v[r][2 * c], v[r][2 * c + 1]);
}

/* A tile right of the panel: subtract the products of rows i and j of the panel, column by column.
 */
__device__ inline void sp_subtract(const sp_tiled_matrix &m, const sp_shared &s, int i, int j,
                                   double (&v)[SIDE][SIDE])
{
#pragma unroll
    for (int c = 0; c < 2; c++) {
        double2 x[SIDE], y[SIDE];
#pragma unroll
        for (int r = 0; r < SIDE; r++) {
            x[r] = s.panel[(2 * r + c) * m.rows + i];
            y[r] = s.panel[(2 * r + c) * m.rows + j];
        }
#pragma unroll
        for (int r = 0; r < SIDE; r++)
#pragma unroll
            for (int d = 0; d < SIDE; d++)
                v[r][d] = fma(-x[r].y, y[d].y, fma(-x[r].x, y[d].x, v[r][d]));
    }
}

/* The factor in place, right-hand sides with it; false in some thread: not positive definite.
 * Called by every thread of the team; afterwards shared memory can be reused, except `by`. */
template <typename TEAM = sp_block_team, int TILES>
__device__ inline bool sp_factor(const sp_tiled_matrix &m, const sp_shared &s, sp_tiles<TILES> *t)
{
    bool ok = true;
    for (int p = 0; p < m.cols; p++) {
        const int own = sp_own(m, p);
        sp_each_tile<TILES>([&](int n) {
            if (t->j[n] == p && t->i[n] == p)
                ok &= sp_factor_diagonal(t->v[n], own, s, s.by + SIDE * p);
        });
        TEAM::meet();
        sp_each_tile<TILES>([&](int n) {
            if (t->j[n] != p || t->i[n] == p) return;
            sp_factor_below(t->v[n], own, s, s.by + SIDE * p);
            sp_panel_put(m, s, t->i[n], t->v[n]);
        });
        TEAM::meet();
        sp_each_tile<TILES>([&](int n) {
            if (t->j[n] > p) sp_subtract(m, s, t->i[n], t->j[n], t->v[n]);
        });
    }
    TEAM::meet();
    return ok;
}

/* The row of right-hand side q, which is the solution of the first triangle, to x. */
template <typename TEAM = sp_block_team, int TILES>
__device__ inline void sp_first_half(const sp_tiled_matrix &m, const sp_shared &s,
                                     const sp_tiles<TILES> &t, int q)
{
    const int row = m.k + q, u = row % SIDE;
    sp_each_tile<TILES>([&](int n) {
        const double(&v)[SIDE][SIDE] = t.v[n];
#pragma unroll
        for (int c = 0; c < SIDE; c++) { /* selected, not indexed: rows are registers */
            const double low = u == 0 ? v[0][c] : v[1][c], high = u == 2 ? v[2][c] : v[3][c];
            if (t.i[n] == row / SIDE) s.x[SIDE * t.j[n] + c] = u < 2 ? low : high;
        }
    });
    TEAM::meet();
}

__device__ inline void sp_back_diagonal(const double (&v)[SIDE][SIDE], int own, const double *bys,
                                        double *x)
{
    double y[SIDE];
#pragma unroll
    for (int c = 0; c < SIDE; c++) y[c] = x[c];
#pragma unroll
    for (int c = SIDE - 1; c >= 0; c--) {
        if (c >= own) continue;
        y[c] *= bys[c];
#pragma unroll
        for (int d = 0; d < c; d++) y[d] = fma(-v[c][d], y[c], y[d]);
    }
#pragma unroll
    for (int c = 0; c < SIDE; c++)
        if (c < own) x[c] = y[c];
}

/* x of L^T x = x. */
template <typename TEAM = sp_block_team, int TILES>
__device__ inline void sp_second_half(const sp_tiled_matrix &m, const sp_shared &s,
                                      const sp_tiles<TILES> &t)
{
    for (int p = m.cols - 1; p >= 0; p--) {
        const int own = sp_own(m, p);
        sp_each_tile<TILES>([&](int n) {
            if (t.i[n] == p && t.j[n] == p)
                sp_back_diagonal(t.v[n], own, s.by + SIDE * p, s.x + SIDE * p);
        });
        TEAM::meet();
        sp_each_tile<TILES>([&](int n) {
            if (t.i[n] != p || t.j[n] == p) return;
            double *to = s.x + SIDE * t.j[n];
#pragma unroll
            for (int c = 0; c < SIDE; c++) {
                double y = to[c];
#pragma unroll
                for (int r = SIDE - 1; r >= 0; r--)
                    if (r < own) y = fma(-t.v[n][r][c], s.x[SIDE * p + r], y);
                to[c] = y;
            }
        });
        TEAM::meet();
    }
}

__device__ inline void sp_forward_diagonal(const double (&v)[SIDE][SIDE], int own,
                                           const double *bys, double *x)
{
    double y[SIDE];
#pragma unroll
    for (int c = 0; c < SIDE; c++) y[c] = x[c];
#pragma unroll
    for (int c = 0; c < SIDE; c++) {
        if (c >= own) continue;
        y[c] *= bys[c];
#pragma unroll
        for (int d = c + 1; d < SIDE; d++) y[d] = fma(-v[d][c], y[c], y[d]);
    }
#pragma unroll
    for (int c = 0; c < SIDE; c++)
        if (c < own) x[c] = y[c];
}

/* x of L x = x, for a right-hand side that was not in the matrix. */
template <typename TEAM = sp_block_team, int TILES>
__device__ inline void sp_forward(const sp_tiled_matrix &m, const sp_shared &s,
                                  const sp_tiles<TILES> &t)
{
    for (int p = 0; p < m.cols; p++) {
        const int own = sp_own(m, p);
        sp_each_tile<TILES>([&](int n) {
            if (t.i[n] == p && t.j[n] == p)
                sp_forward_diagonal(t.v[n], own, s.by + SIDE * p, s.x + SIDE * p);
        });
        TEAM::meet();
        sp_each_tile<TILES>([&](int n) {
            if (t.j[n] != p || t.i[n] == p || t.i[n] >= m.cols) return;
            double *to = s.x + SIDE * t.i[n];
#pragma unroll
            for (int r = 0; r < SIDE; r++) {
                double y = to[r];
#pragma unroll
                for (int c = 0; c < SIDE; c++)
                    if (c < own) y = fma(-t.v[n][r][c], s.x[SIDE * p + c], y);
                to[r] = y;
            }
        });
        TEAM::meet();
    }
}

/* ---- sums over a warp, in one order ---- */

__device__ inline double sp_warp_sum(double v)
{
#pragma unroll
    for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(~0u, v, d);
    return v;
}

/* ---- tiles of values ---- */

/* Elements of a tile by their places in the whole value; NULL: not wanted. */
template <typename T> struct sp_view {
    T *data;
    int64_t step[4];
    __device__ T *at(int64_t i, int64_t j = 0, int64_t k = 0, int64_t l = 0) const
    {
        return data + i * step[0] + j * step[1] + k * step[2] + l * step[3];
    }
};
template <typename T> sp_view<T> sp_view_of(const fth_desc *d, const fth_tile *t)
{
    sp_view<T> v = {};
    int64_t origin = 0;
    for (int i = 0; i < d->n_axes && i < 4; i++) {
        v.step[i] = t->stride[i];
        origin += t->origin[i] * t->stride[i];
    }
    v.data = t->data ? (T *)t->data - origin : nullptr;
    return v;
}
template <typename T> sp_view<const T> sp_view_in(const fth_call *call, int i)
{
    return sp_view_of<const T>(&call->node->in[i], &call->in[i]);
}
/* With an axis at place `at` that was not there: every index along it is the same element. */
template <typename T> sp_view<T> sp_view_shared(sp_view<T> v, int at, bool shared)
{
    if (!shared) return v;
    for (int i = 3; i > at; i--) v.step[i] = v.step[i - 1];
    v.step[at] = 0;
    return v;
}
template <typename T> sp_view<T> sp_view_out(const fth_call *call, int i)
{
    return sp_view_of<T>(&call->node->out[i], &call->out[i]);
}

#endif
