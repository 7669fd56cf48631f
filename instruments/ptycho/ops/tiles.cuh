/* tiles.cuh - tiles of the canvas on a device, and the patterns that touch one, in their order.
 *
 * A block owns a tile of TALL by WIDE pixels, a thread a pixel. The patterns are looked through
 * THREADS at a time; those that touch the tile lie in shared memory then.
 */
#ifndef PT_OPS_TILES_CUH
#define PT_OPS_TILES_CUH

#include "fields.cuh"

namespace
{
constexpr int WIDE = 32, TALL = THREADS / WIDE;

static inline dim3 tiles_of(int64_t rows, int64_t cols)
{
    return dim3((unsigned)((cols + WIDE - 1) / WIDE), (unsigned)((rows + TALL - 1) / TALL));
}

struct touching {
    int count, of_warp[THREADS / 32];
    int which[THREADS], row[THREADS], col[THREADS]; /* corners */
};

/* Patterns first to first + THREADS that touch the tile of this block; `visits` have `columns`
 * numbers each, of which two at `corner` are row and column. All threads come here together. */
__device__ inline void find_touching(touching *t, const double *visits, int64_t columns,
                                     int64_t corner, int64_t first, int64_t size, int64_t n)
{
    const int r0 = (int)blockIdx.y * TALL, c0 = (int)blockIdx.x * WIDE,
              warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    const int64_t i = first + threadIdx.x;
    int row = 0, col = 0;
    bool touches = false;
    if (i < size) {
        row = (int)visits[i * columns + corner];
        col = (int)visits[i * columns + corner + 1];
        touches = row < r0 + TALL && row + n > r0 && col < c0 + WIDE && col + n > c0;
    }
    const unsigned lanes = __ballot_sync(0xffffffffu, touches);
    __syncthreads(); /* the list before was read */
    if (lane == 0) t->of_warp[warp] = __popc(lanes);
    __syncthreads();
    int at = __popc(lanes & ((1u << lane) - 1)), all = 0;
    for (int k = 0; k < THREADS / 32; k++) {
        at += k < warp ? t->of_warp[k] : 0;
        all += t->of_warp[k];
    }
    if (threadIdx.x == 0) t->count = all;
    if (touches) {
        t->which[at] = (int)i;
        t->row[at] = row;
        t->col[at] = col;
    }
    __syncthreads();
}

/* The pixel of this thread. */
struct tile_pixel {
    int row, col;
    bool inside;
    __device__ tile_pixel(int64_t rows, int64_t cols)
        : row((int)blockIdx.y * TALL + (int)threadIdx.x / WIDE),
          col((int)blockIdx.x * WIDE + (int)threadIdx.x % WIDE), inside(row < rows && col < cols)
    {
    }
    /* Its place in the patch of entry k, below 0 where it is not in it. */
    __device__ int64_t in(const touching &t, int k, int64_t n) const
    {
        const int64_t y = row - t.row[k], x = col - t.col[k];
        return y < 0 || x < 0 || y >= n || x >= n ? -1 : y * n + x;
    }
};
} // namespace

#endif
