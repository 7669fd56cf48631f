/* block_factor.cu - the factor of 128 rows by one block of threads, and its preparation.
 *
 * Sixteen panels of eight columns. 128 threads have a row each: they subtract what the panel before
 * contributes to theirs, and then each makes the factor of the eight rows on the diagonal for
 * itself, in registers, and its own row by it, so that no thread waits for another between two
 * columns. Meanwhile the helpers subtract the panel before from all columns behind. Each element is
 * one chain of operations in the order of the columns. Code is short and runs in loops: a warp
 * that goes once through long code waits for most of it to come.
 */
#include "base/assert.h"
#include "cuda/matrix/block.cuh"

static constexpr int BLOCK = FTH__BLOCK, SUB = FTH__BLOCK_SUB, EIGHT = 8, LANES = 32;
/* A thread for each row makes the panel, in panels of EIGHT columns that its registers hold; eight
 * helper warps meanwhile subtract the panel before it from the rest. */
static constexpr int HELPERS = 256, THREADS = BLOCK + HELPERS, WARPS = THREADS / LANES;

/* What lies in shared memory. */
template <typename T> struct room {
    T m[BLOCK * FTH__BLOCK_PITCH<T>];
    T corner[EIGHT * EIGHT]; /* the rows on the diagonal, by rows */
    T over[BLOCK];           /* one over the diagonal of the factor */
    T inverse[BLOCK * SUB];
    int bad;
};

/* ---- between memory and shared memory ---- */

/* A lower triangle is ten squares of 32 by 32: rows and columns from so many on. */
static constexpr int SQUARES = 10;
static __device__ constexpr int down_of(int square)
{
    return (square >= 6 ? 3 : square >= 3 ? 2 : square >= 1 ? 1 : 0) * SUB;
}
static __device__ constexpr int across_of(int square)
{
    const int down = down_of(square) / SUB;
    return (square - down * (down + 1) / 2) * SUB;
}

/* Elements that a lane has of the lines of squares, which are columns or rows: whatever lies close
 * together in memory is read at once. */
struct lines {
    int64_t row, col;
    int i, k; /* of a lane in the first line of a square */
    int64_t line;
    int next; /* from line to line in memory and in shared memory */
    bool rows_near;
};
template <typename T>
static __device__ __forceinline__ lines lines_of(const fth__block_factor &f, int lane)
{
    const bool near = f.row == 1 || f.row == -1;
    return {f.row,
            f.col,
            near ? lane : 0,
            near ? 0 : lane,
            near ? f.col : f.row,
            near ? FTH__BLOCK_PITCH<T> : 1,
            near};
}

template <typename T>
static __device__ __forceinline__ void bring(const fth__block_factor &f, T *m, int warp, int lane)
{
    const lines l = lines_of<T>(f, lane);
    const T *const a = (const T *)f.a + l.i * l.row + l.k * l.col;
    T *const to = m + l.k * FTH__BLOCK_PITCH<T> + l.i;
#pragma unroll 1
    for (int at = warp; at < SUB; at += WARPS) {
        const int row = l.rows_near ? lane : at, column = l.rows_near ? at : lane;
        T v[SQUARES];
#pragma unroll
        for (int q = 0; q < SQUARES; q++) {
            const int i = down_of(q) + row, k = across_of(q) + column;
            v[q] = i == k ? (T)1 : (T)0;
            if (k <= i && i < f.n)
                v[q] = a[at * l.line + down_of(q) * l.row + across_of(q) * l.col];
        }
#pragma unroll
        for (int q = 0; q < SQUARES; q++)
            to[at * l.next + across_of(q) * FTH__BLOCK_PITCH<T> + down_of(q)] = v[q];
    }
}

/* The factor to its place, and what is below its diagonal blocks to the prepared one. */
template <typename T>
static __device__ __forceinline__ void take_out(const fth__block_factor &f, const T *m, int warp,
                                                int lane, int warps)
{
    constexpr int P = FTH__BLOCK_PITCH<T>;
    const lines l = lines_of<T>(f, lane);
    T *const a = (T *)f.a + l.i * l.row + l.k * l.col, *const to = (T *)f.to;
    const T *const from = m + l.k * P + l.i;
#pragma unroll 1
    for (int at = warp; at < SUB; at += warps) {
#pragma unroll
        for (int q = 0; q < SQUARES; q++) {
            const int i = down_of(q) + (l.rows_near ? lane : at),
                      k = across_of(q) + (l.rows_near ? at : lane);
            if (k <= i && i < f.n)
                a[at * l.line + down_of(q) * l.row + across_of(q) * l.col] =
                    from[at * l.next + across_of(q) * P + down_of(q)];
            if (down_of(q) > across_of(q))
                to[(across_of(q) + at) * BLOCK + down_of(q) + lane] =
                    m[(across_of(q) + at) * P + down_of(q) + lane];
        }
    }
}

/* ---- a panel ---- */

/* What the panel before, of which this row has `own`, takes from the columns from c0 on. */
template <typename T>
static __device__ __forceinline__ void take_panel(const T *m, int c0, const T (&own)[EIGHT],
                                                  T (&v)[EIGHT])
{
#pragma unroll
    for (int k = 0; k < EIGHT; k++) {
        T other[EIGHT];
        fth__get(other, m + (c0 - EIGHT + k) * FTH__BLOCK_PITCH<T> + c0);
#pragma unroll
        for (int q = 0; q < EIGHT; q++) v[q] = fth__minus(v[q], own[k], other[q]);
    }
}

/* What the hardware guesses for one over the root of a normal number, to half its bits at least. */
static __device__ __forceinline__ float guess_of(float d)
{
#ifdef FTH_EMULATED
    return 1 / sqrtf(d);
#else
    float guess;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(guess) : "f"(d));
    return guess;
#endif
}
static __device__ __forceinline__ double guess_of(double d)
{
#ifdef FTH_EMULATED
    return 1 / sqrt(d);
#else
    double guess;
    asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(guess) : "d"(d)); /* 20 bits */
    return fth__fma(0.5 * guess, fth__fma(-d * guess, guess, 1.0), guess);
#endif
}
static __device__ __forceinline__ bool is_normal(float d)
{
    return d >= FLT_MIN && d <= FLT_MAX;
}
static __device__ __forceinline__ bool is_normal(double d)
{
    return d >= DBL_MIN && d <= DBL_MAX;
}

/* Eight roots and one over each: side by side, without a branch, where all numbers are normal. */
template <typename T>
static __device__ __forceinline__ void take_roots(const T (&d)[EIGHT], T (&root)[EIGHT],
                                                  T (&over)[EIGHT])
{
    bool normal = true;
#pragma unroll
    for (int c = 0; c < EIGHT; c++) normal = normal && is_normal(d[c]);
#pragma unroll
    for (int c = 0; c < EIGHT; c++) root[c] = fth__root_from(d[c], guess_of(d[c]), &over[c]);
    if (normal) return;
#pragma unroll
    for (int c = 0; c < EIGHT; c++) root[c] = fth__root_of(d[c], &over[c]);
}

/* The factor of the corner, and of the row v below it or in it; the minor that is not positive, or
 * -1. A column contributes as it is, times itself over its pivot, so that nothing but the
 * reciprocal of a pivot stands between it and the next; the roots are taken at the end. */
template <typename T>
static __device__ __forceinline__ int factor_row(const T *corner, T (&v)[EIGHT], T (&over)[EIGHT],
                                                 int own)
{
    T d[EIGHT][EIGHT];
#pragma unroll
    for (int r = 0; r < EIGHT; r++) fth__get(d[r], corner + r * EIGHT);
#pragma unroll
    for (int c = 0; c < EIGHT; c++) {
        const T inverse = fth__reciprocal(d[c][c]), mine = v[c] * inverse;
#pragma unroll
        for (int r = c + 1; r < EIGHT; r++) {
            const T part = d[r][c] * inverse;
#pragma unroll
            for (int o = c + 1; o <= r; o++) d[r][o] = fth__minus(d[r][o], part, d[o][c]);
        }
#pragma unroll
        for (int o = c + 1; o < EIGHT; o++) v[o] = fth__minus(v[o], mine, d[o][c]);
    }
    T root[EIGHT], pivot[EIGHT];
#pragma unroll
    for (int c = 0; c < EIGHT; c++) pivot[c] = d[c][c];
    take_roots(pivot, root, over);
    int bad = -1;
#pragma unroll
    for (int c = EIGHT - 1; c >= 0; c--) {
        v[c] = c == own ? root[c] : v[c] * over[c];
        if (!(pivot[c] > 0)) bad = c;
    }
    return bad;
}

/* A row's elements of the panel at c0, from its factor of the panel before to that of this one.
 * What comes to lie above the diagonal means nothing. */
template <typename T>
static __device__ __forceinline__ void make_row(room<T> &s, int c0, int row, const T (&v)[EIGHT],
                                                T (&own)[EIGHT])
{
    T over[EIGHT];
#pragma unroll
    for (int q = 0; q < EIGHT; q++) own[q] = v[q];
    const int bad = factor_row(s.corner, own, over, row - c0);
#pragma unroll
    for (int q = 0; q < EIGHT; q++) s.m[(c0 + q) * FTH__BLOCK_PITCH<T> + row] = own[q];
    if (row != c0) return;
    fth__put(s.over + c0, over);
    if (bad >= 0) s.bad = c0 + bad;
}

/* ---- helpers ---- */

/* Rows and columns from `from` on: m -= x x^T, x the eight columns from c0 on. A lane has a square
 * of four rows. Two columns of squares, the n-th and the n-th from behind, are a warp's: side + 1
 * squares, which are 31 at most; side is even. */
template <typename T> static __device__ void take_square(T *m, int c0, int from, int warp, int lane)
{
    constexpr int P = FTH__BLOCK_PITCH<T>, FOUR = 4;
    const int side = (BLOCK - from) / FOUR;
    const T *const x = m + c0 * P;
    for (int n = warp; 2 * n < side; n += HELPERS / LANES) {
        const int first = side - n; /* squares of the n-th column */
        const bool behind = lane >= first;
        const int column = behind ? side - 1 - n : n,
                  row = behind ? column + lane - first : column + lane;
        if (row >= side) continue;
        const int i = from + FOUR * row, j = from + FOUR * column;
        T v[FOUR][FOUR];
#pragma unroll
        for (int c = 0; c < FOUR; c++) fth__get(v[c], m + (j + c) * P + i);
#pragma unroll
        for (int k = 0; k < EIGHT; k++) {
            T down[FOUR], across[FOUR];
            fth__get(down, x + k * P + i);
            fth__get(across, x + k * P + j);
#pragma unroll
            for (int c = 0; c < FOUR; c++)
#pragma unroll
                for (int r = 0; r < FOUR; r++) v[c][r] = fth__minus(v[c][r], down[r], across[c]);
        }
#pragma unroll
        for (int c = 0; c < FOUR; c++) fth__put(m + (j + c) * P + i, v[c]);
    }
}

/* ---- preparation ---- */

/* The inverse of the 32 rows of the factor from `first` on, by one warp: a column a lane, eight
 * rows at a time; `x` is room for it. */
template <typename T>
static __device__ void invert(const room<T> &s, int first, int lane, T *x, T *to)
{
    constexpr int P = FTH__BLOCK_PITCH<T>;
#pragma unroll 1
    for (int k0 = 0; k0 < SUB; k0 += EIGHT) {
        const T *const l = s.m + first * (P + 1) + k0;
        T v[EIGHT];
#pragma unroll
        for (int q = 0; q < EIGHT; q++) v[q] = k0 + q == lane ? (T)1 : (T)0;
#pragma unroll 4
        for (int k = 0; k < k0; k++) {
            T rows[EIGHT];
            fth__get(rows, l + k * P);
            const T before = x[k * SUB + lane];
#pragma unroll
            for (int q = 0; q < EIGHT; q++) v[q] = fth__minus(v[q], rows[q], before);
        }
#pragma unroll
        for (int q = 0; q < EIGHT; q++) {
            T rows[EIGHT];
            fth__get(rows, l + (k0 + q) * P);
            v[q] *= s.over[first + k0 + q];
#pragma unroll
            for (int o = q + 1; o < EIGHT; o++) v[o] = fth__minus(v[o], rows[o], v[q]);
        }
#pragma unroll
        for (int q = 0; q < EIGHT; q++) x[(k0 + q) * SUB + lane] = v[q];
        fth__put(to + lane * BLOCK + k0, v);
    }
}

/* ---- all of it ---- */

template <typename T>
static __global__ void __launch_bounds__(THREADS, 1)
    factor(const fth__block_factor f, fth_fault *fault)
{
    FTH_SHARED(room<T>, rooms);
    room<T> &s = *rooms;
    const int lane = (int)threadIdx.x % LANES, warp = (int)threadIdx.x / LANES;
    const int row = (int)threadIdx.x, helper = warp - BLOCK / LANES;
    if (threadIdx.x == 0) s.bad = -1;
    bring(f, s.m, warp, lane);
    __syncthreads();
    T own[EIGHT], v[EIGHT];
#pragma unroll 1
    for (int c0 = 0; c0 < BLOCK; c0 += EIGHT) {
        if (helper < 0 && row >= c0) {
#pragma unroll
            for (int q = 0; q < EIGHT; q++) v[q] = s.m[(c0 + q) * FTH__BLOCK_PITCH<T> + row];
            if (c0 > 0) take_panel(s.m, c0, own, v);
            if (row < c0 + EIGHT) fth__put(s.corner + (row - c0) * EIGHT, v);
        }
        __syncthreads();
        if (helper < 0 && row >= c0) make_row(s, c0, row, v, own);
        if (helper >= 0 && c0 > 0) take_square(s.m, c0 - EIGHT, c0 + EIGHT, helper, lane);
        __syncthreads();
        if (s.bad >= 0) break;
    }
    if (s.bad >= 0) {
        if (threadIdx.x == 0) fth_cuda_complain(fault, f.where + (uint64_t)s.bad, 0, 0);
        return;
    }
    if (helper < 0)
        invert(s, warp * SUB, lane, s.inverse + warp * SUB * SUB,
               (T *)f.to + warp * SUB * (BLOCK + 1));
    else
        take_out(f, s.m, helper, lane, HELPERS / LANES);
}

template <typename T> static void launch_factor(const fth_call *call, const fth__block_factor *f)
{
    FTH_LAUNCH_SHARED(factor<T>, 1, THREADS, (int64_t)sizeof(room<T>), fth_cuda_stream(call), *f,
                      call->fault);
}

fth_status fth__block_factorize(const fth_call *call, const fth__block_factor *f)
{
    FTH_ASSERT(f->n > 0 && f->n <= BLOCK && (f->row == 1 || f->col == 1));
    if (f->dtype == FTH_F32)
        launch_factor<float>(call, f);
    else
        launch_factor<double>(call, f);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}
