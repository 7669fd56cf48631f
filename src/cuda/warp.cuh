/* warp.cuh - small matrices in shared memory, one for each warp: room for them, and the way there.
 *
 * Lanes go along what lies next to itself in memory, and a lane has sixteen elements on their way
 * before it writes the first, which keeps the memory busy with few warps.
 */
#ifndef FTH_CUDA_WARP_CUH
#define FTH_CUDA_WARP_CUH

#include "cuda/field.cuh"

static constexpr int FTH__MOST_WARPS = 4, FTH__LINES = 8;
/* Shared memory of a block, about: four of them on a multiprocessor. */
static constexpr int64_t FTH__WARP_ROOM = 56 << 10;

/* Warps of a block when each needs so many bytes. */
static inline int fth__warps_of(int64_t bytes)
{
    const int64_t fit = FTH__WARP_ROOM / bytes;
    return fit < 1 ? 1 : fit > FTH__MOST_WARPS ? FTH__MOST_WARPS : (int)fit;
}

/* A square of elements: from row to row, and from column to column. */
typedef struct fth__steps {
    int64_t row, col;
} fth__steps;

/* The matrix at `from`, or its lower triangle, into shared memory; H times 32 rows at most. */
template <typename T, int H, bool LOWER>
static __device__ __forceinline__ void fth__bring(const T *from, fth__steps s, T *to, int to_row,
                                                  int to_col, int n, int lane)
{
    const bool by_rows = s.col == 1 || s.col == -1;
    const int64_t along = by_rows ? s.col : s.row, across = by_rows ? s.row : s.col;
    const int to_along = by_rows ? to_col : to_row, to_across = by_rows ? to_row : to_col;
    for (int o = 0; o < n; o += FTH__LINES) {
        T v[FTH__LINES][H];
#pragma unroll
        for (int u = 0; u < FTH__LINES; u++)
#pragma unroll
            for (int h = 0; h < H; h++) {
                const int e = lane + 32 * h, line = o + u;
                const bool inside =
                    e < n && line < n && (!LOWER || (by_rows ? e <= line : e >= line));
                v[u][h] = T{};
                if (inside) v[u][h] = from[e * along + line * across];
            }
#pragma unroll
        for (int u = 0; u < FTH__LINES; u++)
#pragma unroll
            for (int h = 0; h < H; h++) {
                const int e = lane + 32 * h, line = o + u;
                if (e < n && line < n) to[e * to_along + line * to_across] = v[u][h];
            }
    }
}

/* And back, all of it. */
template <typename T>
static __device__ __forceinline__ void fth__put(T *to, fth__steps s, const T *from, int from_row,
                                                int from_col, int n, int lane)
{
    const bool by_rows = s.col == 1 || s.col == -1;
    for (int o = 0; o < n; o++)
        for (int e = lane; e < n; e += 32) {
            const int i = by_rows ? o : e, j = by_rows ? e : o;
            to[i * s.row + j * s.col] = from[i * from_row + j * from_col];
        }
}

/* The same by rows and in f64, and back. */
template <typename T>
static __device__ void fth__bring_full(const T *from, fth__steps s, typename fth__full<T>::type *to,
                                       int pitch, int n, int lane)
{
    const bool by_rows = s.col == 1;
    for (int o = 0; o < n; o++)
        for (int e = lane; e < n; e += 32) {
            const int i = by_rows ? o : e, j = by_rows ? e : o;
            to[i * pitch + j] = fth__to_full(from[i * s.row + j * s.col]);
        }
}
template <typename T>
static __device__ void fth__put_full(T *to, fth__steps s, const typename fth__full<T>::type *from,
                                     int pitch, int n, int lane)
{
    const bool by_rows = s.col == 1;
    for (int o = 0; o < n; o++)
        for (int e = lane; e < n; e += 32) {
            const int i = by_rows ? o : e, j = by_rows ? e : o;
            to[i * s.row + j * s.col] = fth__from_full<T>(from[i * pitch + j]);
        }
}

#endif
