/* blend.cuh - gs_blend on a device: a block has a tile, a warp 8 x 4 of its pixels.
 *
 * A block brings some Gaussians of its list to shared memory at a time. Each lane of a warp then
 * tests one of 32 against the warp's pixels, and all lanes blend those that may be seen there. A
 * test leaves out only what no pixel blends, so tiles of every size give the same bits. Part of
 * raster_*.cu.
 */
#include "exp_lanes.h"
#include "lists.cuh"
#if GS_RAYS
#include "ray_lanes.h"
#endif

namespace
{

enum { PATCH_WIDE = 8, PATCH_HIGH = 4 };
#define LEAST_LIGHT R(1e-4)

template <int TILE> struct tile_shape {
    static constexpr int threads = TILE * TILE, warps = threads / 32,
                         chunk = threads < (GS_RAYS ? 128 : 256)
                                     ? threads
                                     : (GS_RAYS ? 128 : 256); /* Gaussians in shared memory */
};

/* Quotients where a few units in the last place do not matter. */
__device__ inline float quick_divide(float a, float b)
{
    return __fdividef(a, b);
}
__device__ inline double quick_divide(double a, double b)
{
    return a / b;
}

/* The pixel of a thread. */
struct pixel {
    int x, y; /* of the image; its centre is half a pixel further */
    bool inside;
};

template <int TILE> __device__ inline pixel pixel_of(const tile_lists &l, int tile)
{
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x & 31;
    pixel p;
    p.x = tile % l.gw * TILE + warp % (TILE / PATCH_WIDE) * PATCH_WIDE + lane % PATCH_WIDE;
    p.y =
        (l.row + tile / l.gw) * TILE + warp / (TILE / PATCH_WIDE) * PATCH_HIGH + lane / PATCH_WIDE;
    p.inside = p.x < l.rule.width && p.y < l.rule.height;
    return p;
}

#if GS_RAYS
#include "ray_blend.cuh"
#else
/* Numbers of a splat that pixels need: the first nine, and the limit of sigma. */
enum {
    BRUSH_NUMBERS = 10,
    BRUSH_LOADS = 4,  /* of a lane that are on their way together */
    RESIDENT = 5,     /* blocks of a multiprocessor, forward and */
    RESIDENT_BACK = 4 /* backward */
};
/* What pixels need of a Gaussian, in shared memory: three loads of four numbers, by all lanes of
 * one Gaussian or by each of its own. */
struct __align__(16) brush
{
    real u, v, half_a, half_c;
    real b, o, limit, slant_x; /* B / A: where sigma is smallest along a row of pixels */
    real colour[3], slant_y;   /* -0 where a colour is negative, which is black; B / C */
};

/* Where a pixel is. */
struct gaze {
    real x, y;
};

__device__ inline bool gaze_of(const tile_lists &l, const pixel &p, gaze *to)
{
    (void)l;
    to->x = (real)p.x + R(0.5);
    to->y = (real)p.y + R(0.5);
    return true;
}

/* The column of a splat that is brought as the c-th. */
__device__ inline int column_of(int c)
{
    return c < GS_RED + 3 ? c : (int)GS_LIMIT;
}

__device__ inline brush brush_of(const tile_lists &l, const real raw[BRUSH_NUMBERS])
{
    const real A = raw[GS_A], B = raw[GS_B], C = raw[GS_C];
    brush k;
    (void)l;
    k.u = raw[GS_U];
    k.v = raw[GS_V];
    k.half_a = R(0.5) * A;
    k.half_c = R(0.5) * C;
    k.b = B;
    k.o = raw[GS_O];
    k.limit = raw[BRUSH_NUMBERS - 1];
    k.slant_x = quick_divide(B, A);
    k.slant_y = quick_divide(B, C);
    for (int c = 0; c < 3; c++) k.colour[c] = raw[GS_RED + c] >= 0 ? raw[GS_RED + c] + 0 : -R(0.0);
    return k;
}

/* May a pixel of the warp's patch, which begins at (left, top), blend this Gaussian? The test is
 * that of a tile (tile_lanes.h) without its quotients; errors are far below what is added to the
 * limit. */
__device__ inline bool may_see(const brush &k, real left, real top)
{
    const real wide = PATCH_WIDE - 1, high = PATCH_HIGH - 1, x = k.u - R(0.5), y = k.v - R(0.5),
               right = left + wide, bottom = top + high;
    const bool out_x = x < left || x > right, out_y = y < top || y > bottom;
    const real wx = x - (x < left ? left : right), wy = y - (y < top ? top : bottom),
               dx = left - x < 0 ? -wide : wide, dy = top - y < 0 ? -high : high;
    const real px = out_y ? saturate(FMA(k.slant_x, wy, wx) * (dx * (1 / (wide * wide)))) : 0,
               py = out_x ? saturate(FMA(k.slant_y, wx, wy) * (dy * (1 / (high * high)))) : 0;
    const real ex = FMA(-px, dx, wx), ey = FMA(-py, dy, wy), a = k.half_a * ex * ex,
               b = k.b * ex * ey, c = k.half_c * ey * ey, size = a + c + (b < 0 ? -b : b);
    return (!out_x && !out_y) || a + b + c <= k.limit + R(1e-3) + R(1e-5) * size;
}

/* A Gaussian at a pixel: alpha, and whether it is blended where there is light. */
__device__ inline real alpha_of(const brush &k, real most, real dx, real dy, bool *on)
{
    const real sigma = FMA(k.half_a * dx, dx, FMA(k.b * dy, dx, k.half_c * dy * dy));
    const real made = k.o * exp_of_less(-sigma);
    *on = sigma >= 0 && sigma <= k.limit;
    return made < most ? made : most;
}

__device__ inline real alpha_at(const brush &k, real most, const gaze &at, bool *on)
{
    return alpha_of(k, most, k.u - at.x, k.v - at.y, on);
}
#endif

/* The Gaussians of n slots, at most 32, by one warp: lanes bring some rows at a time, whose
 * numbers lie side by side, because a lane for each row would ask for a line of memory with each
 * number. */
__device__ inline void stage(const tile_lists &l, const uint32_t *item, int n, brush *to,
                             uint32_t *slot)
{
    enum { AT_ONCE = 32 / BRUSH_NUMBERS, LOADS = BRUSH_LOADS, STEP = sizeof(brush) / sizeof(real) };
    static_assert((int)STEP >= (int)BRUSH_NUMBERS, "a brush lies where its numbers were");
    const int lane = (int)threadIdx.x & 31, part = lane / BRUSH_NUMBERS,
              c = lane - part * BRUSH_NUMBERS, column = column_of(c);
    const uint32_t mine = lane < n ? item[lane] : 0, row = lane < n ? l.owner[mine] : 0;
    real *const raw = (real *)to, own[BRUSH_NUMBERS];
    if (slot && lane < n) slot[lane] = mine;
#pragma unroll 1
    for (int first = part; first - part < n; first += AT_ONCE * LOADS) {
        real got[LOADS];
#pragma unroll
        for (int k = 0; k < LOADS; k++) {
            const int r = first + k * AT_ONCE;
            const int64_t from = __shfl_sync(~0u, row, r & 31);
            if (part < AT_ONCE && r < n) got[k] = l.splats[from * l.splats_step + column];
        }
#pragma unroll
        for (int k = 0; k < LOADS; k++) {
            const int r = first + k * AT_ONCE;
            if (part < AT_ONCE && r < n) raw[r * STEP + c] = got[k];
        }
    }
    __syncwarp();
    for (int k = 0; k < BRUSH_NUMBERS && lane < n; k++) own[k] = raw[lane * STEP + k];
    __syncwarp();
    if (lane < n) to[lane] = brush_of(l, own);
}

/* The same for n slots, by all warps of the block that have any. */
__device__ inline void stage_chunk(const tile_lists &l, uint32_t at, int n, brush *to,
                                   uint32_t *slot)
{
    const int first = (int)threadIdx.x & ~31, mine = n - first < 32 ? n - first : 32;
    if (mine > 0) stage(l, l.item + at + first, mine, to + first, slot ? slot + first : NULL);
}

struct picture {
    real *image, *alpha;
    int64_t image_i, image_j, alpha_i;
    int64_t from, pixels; /* rows of pixels that are ours */
};

template <int TILE>
__global__ void __launch_bounds__(tile_shape<TILE>::threads,
                                  TILE == 16 && sizeof(real) == 4 ? (int)RESIDENT : 1)
    blend_tiles(const tile_lists __grid_constant__ l, const picture __grid_constant__ to)
{
    constexpr int CHUNK = tile_shape<TILE>::chunk;
    __shared__ brush staged[CHUNK];
    const int tile = (int)blockIdx.x, lane = (int)threadIdx.x & 31;
    const pixel p = pixel_of<TILE>(l, tile);
    const real left = (real)(p.x - lane % PATCH_WIDE), top = (real)(p.y - lane / PATCH_WIDE),
               most = (real)l.rule.most_alpha;
    const uint32_t begin = l.start[tile], end = l.start[tile + 1];
    gaze look_at;
    const bool is_open = gaze_of(l, p, &look_at);
    real T = p.inside && is_open ? 1 : 0, F = 1, C[3] = {0, 0, 0};
    for (uint32_t at = begin; at < end; at += CHUNK) {
        if (__syncthreads_and(!(T > 0))) break;
        const int n = (int)(end - at < CHUNK ? end - at : CHUNK);
        stage_chunk(l, at, n, staged, NULL);
        __syncthreads();
        for (int group = 0; group < n; group += 32) {
            if (!__any_sync(~0u, T > 0)) break;
            unsigned here =
                __ballot_sync(~0u, group + lane < n && may_see(staged[group + lane], left, top));
            for (; here; here &= here - 1) {
                const brush k = staged[group + __ffs((int)here) - 1];
                bool on;
                const real alpha = alpha_at(k, most, look_at, &on);
                const real rest = T * (1 - alpha);
                const bool keep = on && rest >= LEAST_LIGHT;
                const real w = keep ? T * alpha : 0;
                for (int c = 0; c < 3; c++) C[c] = FMA(w, k.colour[c], C[c]);
                F = keep ? rest : F;
                T = keep ? rest : on ? 0 : T;
            }
        }
    }
    if (!p.inside || p.y < to.from || p.y >= to.from + to.pixels) return;
    const int64_t i = p.y - to.from;
    if (to.image)
        for (int c = 0; c < 3; c++)
            to.image[i * to.image_i + p.x * to.image_j + c] =
                FMA(F, l.view[GS_VIEW_GROUND + c], C[c]);
    if (to.alpha) to.alpha[i * to.alpha_i + p.x] = 1 - F;
}

/* ---- calls ---- */

template <int TILE> void blend_with(const tile_lists &l, const picture &to, cudaStream_t stream)
{
    FTH_LAUNCH(blend_tiles<TILE>, (unsigned)l.tiles, tile_shape<TILE>::threads, stream, l, to);
}

uint64_t blend_scratch(const fth_call *call)
{
    return lists_bytes(call, call->out[0].extent[0], false);
}

fth_status blend(const fth_call *call)
{
    const fth_tile *image = &call->out[0];
    if (image->extent[0] == 0) return FTH_OK;
    const tile_lists l =
        gs_is_listed(call->node) ? open_lists(call, image, false) : make_lists(call, image, false);
    picture to = {};
    to.image = (real *)image->data;
    to.image_i = image->stride[0];
    to.image_j = image->stride[1];
    to.alpha = (real *)call->out[1].data;
    to.alpha_i = call->out[1].stride[0];
    to.from = image->origin[0];
    to.pixels = image->extent[0];
    if (l.tiles == 0) return FTH_OK;
    if (l.rule.tile == 8)
        blend_with<8>(l, to, fth_cuda_stream(call));
    else if (l.rule.tile == 16)
        blend_with<16>(l, to, fth_cuda_stream(call));
    else
        blend_with<32>(l, to, fth_cuda_stream(call));
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

} // namespace
