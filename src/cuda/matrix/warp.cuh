/* warp.cuh - small matrices in shared memory, one for each warp: room for them, and the way there.
 *
 * Lanes go along what lies next to itself in memory. A triangle is copied without passing through
 * registers, all of it on its way at once, which keeps the memory busy with few warps.
 */
#ifndef FTH_CUDA_WARP_CUH
#define FTH_CUDA_WARP_CUH

#include "cuda/copy/async.cuh"
#include "cuda/matrix/field.cuh"

static constexpr int FTH__MOST_WARPS = 4; /* a block ends with its slowest warp */
/* Blocks that a multiprocessor has at once, for kernels of matrices of 32 H rows: more find no room
 * for theirs where matrices are large, so threads may have the registers of so few. */
template <typename T, int H>
[[maybe_unused]] static constexpr int FTH__WARP_BLOCKS = H == 1 || sizeof(T) == 4 ? 5 : 4;
/* Shared memory of a block, about: four of them on a multiprocessor. */
static constexpr int64_t FTH__WARP_ROOM = 56 << 10;

/* Warps of a block when each needs so many bytes. */
static inline int fth__warps_of(int64_t bytes)
{
    const int64_t fit = FTH__WARP_ROOM / bytes;
    return fit < 1 ? 1 : fit > FTH__MOST_WARPS ? FTH__MOST_WARPS : (int)fit;
}

/* Blocks for `count` matrices, each warp one or few of them: who is done makes room for others. */
static inline unsigned fth__warp_blocks(uint32_t count, int warps)
{
    const uint32_t want = (count + (uint32_t)warps - 1) / (uint32_t)warps, most = 1u << 20;
    return want < most ? want : most;
}

/* A square of elements: from row to row, and from column to column. */
typedef struct fth__steps {
    int64_t row, col;
} fth__steps;

/* The lower triangle of the matrix at `from` into shared memory, which is there when all lanes have
 * met again; what lies above it stays as it was. H times 32 rows at most. */
template <typename T, int H>
static __device__ __forceinline__ void fth__bring_lower(const T *from, fth__steps s, T *to,
                                                        int to_row, int to_col, int n, int lane)
{
    const bool by_rows = s.col == 1 || s.col == -1;
    const int64_t along = by_rows ? s.col : s.row, across = by_rows ? s.row : s.col;
    const int to_along = by_rows ? to_col : to_row, to_across = by_rows ? to_row : to_col;
    from += lane * along;
    to += lane * to_along;
#pragma unroll 4
    for (int line = 0; line < n; line++, from += across, to += to_across)
#pragma unroll
        for (int h = 0; h < H; h++) {
            const int e = lane + 32 * h;
            if (by_rows ? e <= line : e >= line && e < n)
                fth__async_copy<(int)sizeof(T)>(to + 32 * h * to_along, from + 32 * h * along,
                                                true);
        }
    fth__async_group();
    fth__async_wait<0>();
}

/* And back, with zeros above the diagonal. */
template <typename T, int H>
static __device__ __forceinline__ void fth__put_lower(T *to, fth__steps s, const T *from,
                                                      int from_row, int from_col, int n, int lane)
{
    const bool by_rows = s.col == 1 || s.col == -1;
    const int64_t along = by_rows ? s.col : s.row, across = by_rows ? s.row : s.col;
    const int from_along = by_rows ? from_col : from_row,
              from_across = by_rows ? from_row : from_col;
    to += lane * along;
    from += lane * from_along;
#pragma unroll 4
    for (int line = 0; line < n; line++, to += across, from += from_across)
#pragma unroll
        for (int h = 0; h < H; h++) {
            const int e = lane + 32 * h;
            T v = {};
            if (by_rows ? e <= line : e >= line && e < n) v = from[32 * h * from_along];
            if (e < n) to[32 * h * along] = v;
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
