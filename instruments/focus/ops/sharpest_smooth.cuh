/* sharpest_smooth.cuh - the plane of the largest smoothed LoG of size 3, of 8 and 16 bit values.
 *
 * Included by sharpest.cu, after sharpest_log.cuh. A block owns a tile of pixels and keeps their
 * best in registers. Plane by plane it makes the energies of the tile and of what smoothing reaches
 * around it in shared memory, then sums along x, then along y; no energy visits global memory. Sums
 * have the order of the loops of the CPU.
 */
#ifndef FOCUS_OPS_SHARPEST_SMOOTH_CUH
#define FOCUS_OPS_SHARPEST_SMOOTH_CUH

constexpr int REACH = 8; /* of the smoothing that this is for: sigma 2 */
constexpr int TILE = 64, AROUND = TILE + 2 * REACH;
constexpr int WIDE = AROUND + 2 * EDGE, TO_LEFT = REACH + EDGE; /* runs stand as in the image */
constexpr int TILE_THREADS = 256, TILE_BLOCKS = 3;
constexpr int TILE_GROUPS = WIDE / COLUMNS; /* of runs of rows of energy: 21 x 10 threads */
constexpr int TILE_RUN = 8;
constexpr int ACROSS = 8;                        /* pixels that a thread smooths along x, */
constexpr int DOWN = TILE * TILE / TILE_THREADS; /* and along y */
/* Floats of a row: pairs of 16 rows, one below the other, lie in different banks. */
constexpr int ENERGY_ROW = WIDE + 2, ACROSS_ROW = TILE + 2;

struct smooth_work {
    stack_tile in;
    result r;
    fo_border border;
    int tiles_x, tiles_y;
    float w[REACH + 1];
};

struct tile_place {
    int x, y; /* of the first pixel; y of the image */
    int64_t s;
    bool whole; /* no pixel around it is at the edge or beyond */
};

/* fo_border_at of a mirrored image whose n is larger than the reach: no division is needed. */
__device__ inline int mirrored(int i, int n)
{
    return i < 0 ? -1 - i : i >= n ? 2 * n - 1 - i : i;
}

/* Energies in and around the tile; those that look beyond an edge come to nothing. */
template <typename T, bool QUADS>
__device__ void tile_energies(const smooth_work &w, const tile_place &t, const T *plane, float *e)
{
    static_assert(AROUND % TILE_RUN == 0, "runs are whole");
    const int group = (int)threadIdx.x % TILE_GROUPS,
              from = (int)threadIdx.x / TILE_GROUPS * TILE_RUN;
    const int x = t.x - TO_LEFT + group * COLUMNS;
    float *to = e + from * ENERGY_ROW + group * COLUMNS;
    if (from >= AROUND || x < EDGE || x + COLUMNS + EDGE > (int)w.in.width) return;
    log_run<T, QUADS, TILE_RUN>(
        w.in, plane + x - 2, t.y - REACH + from, [&](int n, const float *v, uint2) {
            *(float2 *)(to + n * ENERGY_ROW) = make_float2(v[0] * EIGHTH, v[1] * EIGHTH);
            *(float2 *)(to + n * ENERGY_ROW + 2) = make_float2(v[2] * EIGHTH, v[3] * EIGHTH);
        });
}

/* What a tile at the edge has more: pixels along it, and the mirror image beyond. */
template <typename T>
__device__ void tile_edge(const smooth_work &w, const tile_place &t, const plane_values<T> &v,
                          float *e)
{
    constexpr int MOST = EDGE + COLUMNS - 1; /* columns after the last run */
    __syncthreads();                         /* runs have written there */
    const int height = (int)w.in.height, width = (int)w.in.width;
    const int top = t.y - REACH, left = t.x - TO_LEFT,
              after = EDGE + (int)run_groups(width) * COLUMNS;
    for (int i = (int)threadIdx.x; i < (3 * EDGE + MOST) * WIDE; i += TILE_THREADS) {
        const int n = i / WIDE, along = i % WIDE;
        const int y = n < EDGE ? n : n < 2 * EDGE ? height - 2 * EDGE + n : top + along;
        const int x = n < 2 * EDGE   ? left + along
                      : n < 3 * EDGE ? n - 2 * EDGE
                                     : after + n - 3 * EDGE;
        const bool mine = y >= top && y < top + AROUND && x >= left && x < left + WIDE && y >= 0 &&
                          y < height && x >= 0 && x < width;
        const bool needed = y >= w.r.y0 - REACH && y < w.r.y0 + w.r.rows + REACH;
        if (mine && needed) e[(y - top) * ENERGY_ROW + x - left] = log_near(v, y, x);
    }
    __syncthreads();
    for (int i = (int)threadIdx.x; i < AROUND * 2 * REACH; i += TILE_THREADS) {
        const int row = i / (2 * REACH), k = i % (2 * REACH);
        const int x = k < REACH ? k - REACH : width + k - REACH, from = mirrored(x, width) - left;
        if (x >= left && x < left + WIDE && from >= 0 && from < WIDE)
            e[row * ENERGY_ROW + x - left] = e[row * ENERGY_ROW + from];
    }
    __syncthreads();
    for (int i = (int)threadIdx.x; i < WIDE * 2 * REACH; i += TILE_THREADS) {
        const int column = i % WIDE, k = i / WIDE;
        const int y = k < REACH ? k - REACH : height + k - REACH, from = mirrored(y, height) - top;
        if (y >= top && y < top + AROUND && from >= 0 && from < AROUND)
            e[(y - top) * ENERGY_ROW + column] = e[from * ENERGY_ROW + column];
    }
}

/* The symmetric sum of v[0..2 REACH] about its middle. */
__device__ inline float smoothed(const float *v, const float *w)
{
    float sum = v[REACH] * w[0];
#pragma unroll
    for (int i = 1; i <= REACH; i++) sum += (v[REACH - i] + v[REACH + i]) * w[i];
    return sum;
}

__device__ void tile_across(const float *w, const float *e, float *to)
{
    for (int i = (int)threadIdx.x; i < AROUND * (TILE / ACROSS); i += TILE_THREADS) {
        const int row = i % AROUND, x = i / AROUND * ACROSS;
        const float2 *from = (const float2 *)(e + row * ENERGY_ROW + x + TO_LEFT - REACH);
        float2 *out = (float2 *)(to + row * ACROSS_ROW + x);
        float v[ACROSS + 2 * REACH];
#pragma unroll
        for (int k = 0; k < ACROSS / 2 + REACH; k++) {
            const float2 f = from[k];
            v[2 * k] = f.x, v[2 * k + 1] = f.y;
        }
#pragma unroll
        for (int k = 0; k < ACROSS / 2; k++)
            out[k] = make_float2(smoothed(v + 2 * k, w), smoothed(v + 2 * k + 1, w));
    }
}

__device__ inline uint32_t with_byte(uint32_t word, int byte, int value)
{
    return __byte_perm(word, (uint32_t)value, 0x3210u ^ (uint32_t)((4 ^ byte) << 4 * byte));
}

/* Writes what is known of a pixel now; found: 1 and the plane of this launch. */
template <typename T>
__device__ inline void put_smoothed(const smooth_work &w, float best, int found, int64_t s,
                                    int64_t at, int64_t x)
{
    const result &r = w.r;
    if (!r.last) kept_best(r, s, at)[x] = best;
    if (r.energy[0]) r.energy[0][s * r.energy_step[0][0] + at * r.energy_step[0][1] + x] = best;
    if (!found && !r.first) return; /* value and index are there */
    const int64_t z = found - 1;
    if (r.index) index_of(r, s, at)[x] = found ? (uint16_t)(w.in.z0 + z) : (uint16_t)0;
    if (r.value)
        value_of<T>(r, s, at)[x] =
            found ? ((const T *)w.in.data)[s * w.in.stack + z * w.in.plane +
                                           (r.y0 + at - w.in.first) * w.in.row + x]
                  : (T)0;
}

template <typename T, bool QUADS>
__global__ void __launch_bounds__(TILE_THREADS, TILE_BLOCKS) smooth_tiles(const smooth_work w)
{
    __shared__ __align__(16) float energy[AROUND * ENERGY_ROW];
    __shared__ __align__(16) float across[AROUND * ACROSS_ROW];
    const result &r = w.r;
    const int tiles = w.tiles_x * w.tiles_y, tile = (int)blockIdx.x % tiles;
    tile_place t;
    t.s = (int)blockIdx.x / tiles;
    t.x = tile % w.tiles_x * TILE;
    t.y = (int)r.y0 + tile / w.tiles_x * TILE;
    t.whole = t.x >= TO_LEFT + EDGE && t.y >= REACH + EDGE &&
              t.x + WIDE - TO_LEFT + EDGE <= w.in.width &&
              t.y + TILE + REACH + EDGE <= w.in.height && t.y + TILE <= r.y0 + r.rows;
    const int column = (int)threadIdx.x % TILE, row = (int)threadIdx.x / TILE * DOWN;
    const int x = t.x + column;
    const int64_t at = t.y + row - r.y0; /* of the results */
    float best[DOWN];
    uint32_t found[DOWN / 4] = {}; /* a byte each: 1 and the plane; 0: before these, or none */
#pragma unroll
    for (int n = 0; n < DOWN; n++)
        best[n] = r.first || x >= r.width || at + n >= r.rows ? FO_NO_PLANE
                                                              : kept_best(r, t.s, at + n)[x];
    const T *plane = (const T *)w.in.data + t.s * w.in.stack - w.in.first * w.in.row;
    for (int z = 0; z < (int)w.in.planes; z++, plane += w.in.plane) {
        if (!r.kept[t.s * r.kept_step[0] + z * r.kept_step[1]]) continue;
        tile_energies<T, QUADS>(w, t, plane, energy);
        if (!t.whole) tile_edge(w, t, plane_of<T>(w.in, t.s, z, w.border), energy);
        __syncthreads();
        tile_across(w.w, energy, across);
        __syncthreads();
        const float *from = across + row * ACROSS_ROW + column;
        float v[2 * REACH + 1];
#pragma unroll
        for (int n = 0; n < 2 * REACH; n++) v[n + 1] = from[n * ACROSS_ROW];
#pragma unroll
        for (int n = 0; n < DOWN; n++) {
#pragma unroll
            for (int k = 0; k < 2 * REACH; k++) v[k] = v[k + 1];
            v[2 * REACH] = from[(n + 2 * REACH) * ACROSS_ROW];
            const float e = smoothed(v, w.w);
            const bool more = e > best[n];
            best[n] = more ? e : best[n];
            found[n / 4] = more ? with_byte(found[n / 4], n % 4, z + 1) : found[n / 4];
        }
    }
#pragma unroll
    for (int n = 0; n < DOWN; n++)
        if (x < r.width && at + n < r.rows)
            put_smoothed<T>(w, best[n], (int)(found[n / 4] >> 8 * (n % 4) & 255u), t.s, at + n, x);
}

/* Images that the tiles can mirror, and weights that they are made for. */
static inline bool has_tiles(const fth_desc *stack, const fo_energy *e)
{
    return e->smooth == REACH && stack->size[FO_X] >= 2 * REACH && stack->size[FO_Y] >= 2 * REACH;
}

template <typename T, bool QUADS> void launch_smooth_tiles(const fth_call *call, const fo_energy *e)
{
    by_most_planes(call, [&](const stack_tile &in, const result &r) {
        smooth_work w = {};
        w.in = in;
        w.r = r;
        w.border = (fo_border)e->border;
        for (int i = 0; i <= REACH; i++) w.w[i] = e->weight[i];
        w.tiles_x = (int)((r.width + TILE - 1) / TILE);
        w.tiles_y = (int)((r.rows + TILE - 1) / TILE);
        FTH_LAUNCH((smooth_tiles<T, QUADS>), (unsigned)(r.stacks * w.tiles_x * w.tiles_y),
                   TILE_THREADS, fth_cuda_stream(call), w);
    });
}

#endif
