/* slots.cuh - on a device: the sums of a Gaussian over its tiles, from the slots that the vjp of
 * gs_blend has filled. Part of raster_*.cu.
 *
 * A warp has 32 rows of the model, whose cotangents it writes as one stretch; the slots of a row
 * lie side by side, those of its neighbours anywhere. So the lanes bring the slots of all 32 rows
 * together, 32 at a time, and each then adds its own, in their order. Rows by depth would read
 * slots as they lie, but write rows one by one: 10 M rows took 0.97 ms on an H200.
 */
#include "lists.cuh"

namespace
{

/* The lane whose row has entry `at` of the slots of a warp; `before` are the entries of the lanes
 * before one. */
__device__ inline int lane_of_entry(uint32_t before, uint32_t at)
{
    int lane = 0;
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
        if (__shfl_sync(~0u, before, lane + step) <= at) lane += step;
    return lane;
}

/* Some entries of the slots of a warp, at most 32, whose slots the lanes have. */
__device__ inline void bring_slots(const tile_lists &l, uint32_t slot, int n, real *to)
{
    const int lane = (int)threadIdx.x & 31;
    real got[SUMS];
#pragma unroll
    for (int k = 0; k < SUMS; k++) {
        const int e = k * 32 + lane, which = e / SUMS;
        const int64_t from = __shfl_sync(~0u, slot, which);
        if (which < n) got[k] = l.sum[from * SUMS + e - which * SUMS];
    }
#pragma unroll
    for (int k = 0; k < SUMS; k++)
        if ((k * 32 + lane) / SUMS < n) to[k * 32 + lane] = got[k];
}

/* Which of the sums a column of cotangents is; below 0: none. */
__device__ inline int sum_of_column(int c)
{
    return c < GS_SUMS ? c : GS_RAYS && c >= GS_RAY_M ? c - GS_RAY_M + GS_SUMS : -1;
}

/* FIRST: whole rows are written, 0 where a Gaussian is not seen; else the sums are added to. */
template <bool FIRST>
__global__ void __launch_bounds__(LIST_THREADS)
    add_slots(const tile_lists __grid_constant__ l, real *bar, int64_t bar_step)
{
    constexpr int WIDE = FIRST ? (int)NUMBERS : (int)SUMS;
    __shared__ real staged[LIST_THREADS * (int)SUMS];
    const int lane = (int)threadIdx.x & 31;
    real *const here = staged + (threadIdx.x - (unsigned)lane) * SUMS;
    const int64_t row = (int64_t)blockIdx.x * LIST_THREADS + threadIdx.x, first = row - lane;
    const uint32_t slots = (uint32_t)l.count->slots;
    if (first >= l.n) return;
    const uint32_t rank = slots > 0 && row < l.n ? l.rank[row] : NO_RANK;
    uint32_t begin = 0, mine = 0;
    if (rank != NO_RANK) {
        begin = l.first[rank];
        mine = (rank + 1 < l.count->seen ? l.first[rank + 1] : slots) - begin;
    }
    uint32_t before = mine; /* entries of the lanes up to this one */
    for (int k = 1; k < 32; k *= 2) {
        const uint32_t other = __shfl_up_sync(~0u, before, (unsigned)k);
        if (lane >= k) before += other;
    }
    const uint32_t all = __shfl_sync(~0u, before, 31);
    before -= mine;
    real sum[SUMS];
    for (int c = 0; c < SUMS; c++)
        sum[c] = FIRST || row >= l.n ? 0 : bar[row * bar_step + COLUMN_OF_SUM(c)];
    for (uint32_t at = 0; at < all; at += 32) {
        const uint32_t end = all - at < 32 ? all : at + 32;
        const uint32_t entry = at + (uint32_t)lane < all ? at + (uint32_t)lane : all - 1;
        const int from = lane_of_entry(before, entry);
        const uint32_t slot =
            __shfl_sync(~0u, begin, from) + entry - __shfl_sync(~0u, before, from);
        bring_slots(l, slot, (int)(end - at), here);
        __syncwarp();
        for (uint32_t k = before > at ? before : at; k < before + mine && k < end; k++)
            for (int c = 0; c < SUMS; c++) sum[c] += here[(k - at) * SUMS + c];
        __syncwarp();
    }
    for (int c = 0; c < SUMS; c++) here[lane * SUMS + c] = sum[c];
    __syncwarp();
    const int n = (int)(l.n - first < 32 ? l.n - first : 32);
    for (int k = lane; k < n * WIDE; k += 32) {
        const int which = k / WIDE, c = k - which * WIDE;
        const int sum_at = FIRST ? sum_of_column(c) : c, column = FIRST ? c : COLUMN_OF_SUM(c);
        bar[(first + which) * bar_step + column] = sum_at >= 0 ? here[which * SUMS + sum_at] : 0;
    }
}

} // namespace
