/* block.cu - preparing triangles of 128 rows, and solutions with them; factors: block_factor.cu.
 *
 * The blocks of 32 rows on the diagonal are inverted by a warp each, a column a lane, in registers.
 * What they contribute to the rest is a product, of which every thread has a small tile. Each
 * element is one chain of operations in the order of the columns.
 */
#include "cuda/matrix/block.cuh"

#include "base/assert.h"
#include "cuda/copy/async.cuh"

static constexpr int BLOCK = FTH__BLOCK, SUB = FTH__BLOCK_SUB, SUBS = BLOCK / SUB;
static constexpr int THREADS = 128; /* one per row of the block */
/* Right-hand sides per block of threads: few, until there are enough for all 132 multiprocessors of
 * an H200; then twice as many share one read of the prepared block. */
static constexpr int FEW = 16, MANY = 32;
static constexpr int64_t ENOUGH = 132 * FEW;

template <typename T> constexpr int PITCH = FTH__BLOCK_PITCH<T>;

template <typename T> struct corner { /* of a triangle in memory */
    const T *at;
    int64_t row, col;
    int n;
};

/* The lower triangle, and the identity behind its last row. */
template <typename T> static __device__ void bring(const corner<T> &c, T *m, int threads)
{
    constexpr int AT_ONCE = 32;
    const bool rows_near = c.row == 1 || c.row == -1;
    for (int e0 = (int)threadIdx.x; e0 < BLOCK * BLOCK; e0 += AT_ONCE * threads) {
        T v[AT_ONCE];
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            const int e = e0 + u * threads, p = e / BLOCK, q = e % BLOCK;
            const int i = rows_near ? q : p, k = rows_near ? p : q;
            v[u] = i == k ? (T)1 : (T)0;
            if (k <= i && i < c.n) v[u] = c.at[i * c.row + k * c.col];
        }
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            const int e = e0 + u * threads, p = e / BLOCK, q = e % BLOCK;
            m[(rows_near ? p : q) * PITCH<T> + (rows_near ? q : p)] = v[u];
        }
    }
}

/* What lies below the diagonal blocks, as a prepared block has it. */
template <typename T> static __device__ void put_below(const T *m, T *to, int threads)
{
    for (int e = (int)threadIdx.x; e < BLOCK * BLOCK; e += threads) {
        const int k = e / BLOCK, i = e % BLOCK;
        if (i / SUB > k / SUB) to[e] = m[k * PITCH<T> + i];
    }
}

/* l x = v by the 32 rows at l, every lane of the warp with a v of its own. */
template <typename T> static __device__ void substitute(const T *l, int lane, T (&v)[SUB])
{
    constexpr int W = fth__field<T>::wide;
    const T mine = 1 / l[lane * (PITCH<T> + 1)];
#pragma unroll
    for (int k = 0; k < SUB; k++) {
        v[k] *= fth__from_lane(mine, k);
#pragma unroll
        for (int g = (k + 1) / W; g < SUB / W; g++) {
            const fth__wide<T> c = *(const fth__wide<T> *)(l + k * PITCH<T> + g * W);
#pragma unroll
            for (int w = 0; w < W; w++)
                if (g * W + w > k) v[g * W + w] = fth__minus(v[g * W + w], c.at[w], v[k]);
        }
    }
}

/* The inverse of the 32 rows at l: a column a lane, into a prepared block. */
template <typename T> static __device__ void invert(const T *l, int lane, T *to)
{
    T v[SUB];
#pragma unroll
    for (int k = 0; k < SUB; k++) v[k] = k == lane ? (T)1 : (T)0;
    substitute(l, lane, v);
    fth__put(to + lane * BLOCK, v);
}

/* ---- preparing ---- */

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    prepare(const fth__triangle t, int64_t number, T *blocks)
{
    FTH_SHARED(T, m);
    const int64_t lo = (int64_t)blockIdx.x * BLOCK;
    const int lane = (int)threadIdx.x % 32, s = (int)threadIdx.x / 32;
    const int n = t.n - lo < BLOCK ? (int)(t.n - lo) : BLOCK;
    T *const to = blocks + lo * BLOCK;
    bring<T>({(const T *)t.a + lo * (t.a_i + t.a_k), t.a_i, t.a_k, n}, m, THREADS);
    __syncthreads();
    if (t.fault && m[threadIdx.x * (PITCH<T> + 1)] == 0)
        fth_cuda_complain(
            t.fault, (uint64_t)(number * t.rows + t.first + t.step * (lo + threadIdx.x)), 0, 0);
    invert(m + s * SUB * (PITCH<T> + 1), lane, to + s * SUB * (BLOCK + 1));
    put_below(m, to, THREADS);
}

static int64_t blocks_of(int64_t n)
{
    return (n + BLOCK - 1) / BLOCK;
}

uint64_t fth__blocks_bytes(fth_dtype dtype, int64_t n)
{
    return (uint64_t)(blocks_of(n) * BLOCK * BLOCK * fth_dtype_size(dtype));
}

template <typename T>
static void launch_prepare(const fth_call *call, const fth__triangle *t, int64_t number, char *to)
{
    FTH_LAUNCH_SHARED(prepare<T>, (unsigned)blocks_of(t->n), THREADS,
                      BLOCK * PITCH<T> * (int64_t)sizeof(T), fth_cuda_stream(call), *t, number,
                      (T *)to);
}

fth_status fth__blocks_prepare(const fth_call *call, const fth__triangle *t, int64_t number,
                               char *to)
{
    if (t->dtype == FTH_F32)
        launch_prepare<float>(call, t, number, to);
    else
        launch_prepare<double>(call, t, number, to);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

/* ---- solving ---- */

/* Between shared memory, by rows of J right-hand sides, and the tile at x. */
template <typename T, int J, bool PUT>
static __device__ void move_tile(const fth__triangle &t, int64_t j0, T *tile)
{
    constexpr int AT_ONCE = 16;
    const bool rows_near = t.x_i == 1 || t.x_i == -1;
    T *const x = (T *)t.x;
    for (int e0 = (int)threadIdx.x; e0 < BLOCK * J; e0 += AT_ONCE * THREADS) {
        T v[AT_ONCE];
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            const int e = e0 + u * THREADS;
            const int i = rows_near ? e % BLOCK : e / J, j = rows_near ? e / BLOCK : e % J;
            const bool inside = i < t.n && j0 + j < t.m;
            const int64_t at = i * t.x_i + (j0 + j) * t.x_j;
            v[u] = (T)0;
            if (PUT && inside) x[at] = tile[i * (J + fth__field<T>::wide) + j];
            if (!PUT && inside) v[u] = x[at];
        }
#pragma unroll
        for (int u = 0; u < AT_ONCE && !PUT; u++) {
            const int e = e0 + u * THREADS;
            const int i = rows_near ? e % BLOCK : e / J, j = rows_near ? e / BLOCK : e % J;
            tile[i * (J + fth__field<T>::wide) + j] = v[u];
        }
    }
}

/* R rows by four columns of a tile, and what one column of a block contributes to them. */
template <typename T, int R, int ROW> struct patch {
    T v[R][4];

    __device__ __forceinline__ void begin(const T *tile)
    {
#pragma unroll
        for (int r = 0; r < R; r++) fth__get(v[r], tile + r * ROW);
    }
    __device__ __forceinline__ void end(T *tile) const
    {
#pragma unroll
        for (int r = 0; r < R; r++) fth__put(tile + r * ROW, v[r]);
    }
    /* v -= l x, 32 columns of l from its R rows on, 32 rows of x */
    __device__ __forceinline__ void take(const T *l, const T *x)
    {
#pragma unroll 8
        for (int k = 0; k < SUB; k++) {
            T row[4];
            fth__get(row, x + k * ROW);
#pragma unroll
            for (int r = 0; r < R; r++)
#pragma unroll
                for (int j = 0; j < 4; j++) v[r][j] = fth__minus(v[r][j], l[k * BLOCK + r], row[j]);
        }
    }
};

/* Rows from 32 S on: the first 32 of them by the inverse, then what these take from the rest. */
template <typename T, int J, int S> static __device__ void solve_from(const T *block, T *tile)
{
    constexpr int ROW = J + fth__field<T>::wide, GROUPS = THREADS / (J / 4), OWN = SUB / GROUPS;
    const int col = (int)threadIdx.x % (J / 4) * 4, group = (int)threadIdx.x / (J / 4);
    const T *const x = tile + S * SUB * ROW + col;
    patch<T, OWN, ROW> own = {};
    own.take(block + S * SUB * (BLOCK + 1) + group * OWN, x);
#pragma unroll
    for (int r = 0; r < OWN; r++)
#pragma unroll
        for (int j = 0; j < 4; j++) own.v[r][j] = -own.v[r][j];
    __syncthreads();
    own.end(tile + (S * SUB + group * OWN) * ROW + col);
    __syncthreads();
    if constexpr (S + 1 < SUBS) {
        constexpr int REST = (BLOCK - (S + 1) * SUB) / GROUPS;
        const int row = (S + 1) * SUB + group * REST;
        patch<T, REST, ROW> rest;
        rest.begin(tile + row * ROW + col);
        rest.take(block + S * SUB * BLOCK + row, x);
        rest.end(tile + row * ROW + col);
        __syncthreads();
        solve_from<T, J, S + 1>(block, tile);
    }
}

template <typename T, int J>
static __global__ void __launch_bounds__(THREADS) solve(const fth__triangle t, const T *prepared)
{
    FTH_SHARED(T, block);
    constexpr int W = fth__field<T>::wide;
    T *const tile = block + BLOCK * BLOCK;
    for (int e = (int)threadIdx.x; e < BLOCK * BLOCK / W; e += THREADS) {
        const int k = e * W / BLOCK, i = e * W % BLOCK;
        if (i / SUB >= k / SUB) /* nothing else is prepared */
            fth__async_copy<16>((fth__wide<T> *)block + e, (const fth__wide<T> *)prepared + e,
                                true);
    }
    fth__async_group();
    for (int64_t j0 = (int64_t)blockIdx.x * J; j0 < t.m; j0 += (int64_t)gridDim.x * J) {
        move_tile<T, J, false>(t, j0, tile);
        fth__async_wait<0>();
        __syncthreads();
        solve_from<T, J, 0>(block, tile);
        move_tile<T, J, true>(t, j0, tile);
        __syncthreads();
    }
}

template <typename T, int J>
static void launch_solve(const fth_call *call, const fth__triangle *t, const char *block)
{
    const int64_t elements = BLOCK * BLOCK + BLOCK * (J + fth__field<T>::wide);
    FTH_LAUNCH_SHARED((solve<T, J>), fth_cuda_blocks(t->m, J), THREADS,
                      elements * (int64_t)sizeof(T), fth_cuda_stream(call), *t, (const T *)block);
}

fth_status fth__block_solve(const fth_call *call, const fth__triangle *t, const char *block)
{
    if (t->m == 0) return FTH_OK;
    const bool few = t->m <= ENOUGH, wide = t->dtype == FTH_F64;
    FTH_ASSERT(t->n > 0 && t->n <= BLOCK && (wide || t->dtype == FTH_F32));
    if (few && wide)
        launch_solve<double, FEW>(call, t, block);
    else if (few)
        launch_solve<float, FEW>(call, t, block);
    else if (wide)
        launch_solve<double, MANY>(call, t, block);
    else
        launch_solve<float, MANY>(call, t, block);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}
