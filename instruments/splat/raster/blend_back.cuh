/* blend_back.cuh - the vjp of gs_blend on a device: 9 sums over the pixels of a tile for each
 * Gaussian in it, and then over the tiles of a Gaussian.
 *
 * Warps walk front to back as forward does. For up to BATCH Gaussians that a patch may see its
 * pixels leave two numbers each, weight and slope, in shared memory; then some lanes per Gaussian
 * add them up, pixel by pixel. The patches of a tile are added in their order, the tiles of a
 * Gaussian in theirs: nothing is added in an order that threads decide. Part of raster_*.cu.
 */
#include "blend.cuh"
#include "slots.cuh"

namespace
{

constexpr int PATCH = PATCH_WIDE * PATCH_HIGH;

/* Three numbers that are loaded as four. */
struct __align__(16) shade
{
    real at[3], none;
};

/* -0 too. */
__device__ inline bool is_negative(float v)
{
    return __float_as_int(v) < 0;
}
__device__ inline bool is_negative(double v)
{
    return __double_as_longlong(v) < 0;
}

#if GS_RAYS
#include "ray_back.cuh"
#else
enum {
    GROUP = 64, /* Gaussians that the patches of a tile walk before their sums are added */
    BATCH = 8   /* of them, whose pixels are in shared memory together */
};

/* What the sums of a patch need of its pixels: nothing but where it is. */
struct seen_by {
};

__device__ inline seen_by seen_from(const gaze &at)
{
    (void)at;
    return seen_by{};
}

/* The sums of one Gaussian over N pixels of a patch from `from` on: a row or more. */
template <int N>
__device__ inline void add_pixels(const tile_lists &l, const brush &k, const real *weight,
                                  const real *slope, const shade *bar, const seen_by *from_there,
                                  real left, real top, int from, real out[SUMS])
{
    (void)l, (void)from_there;
    static_assert(N % PATCH_WIDE == 0, "whole rows");
    real h = 0, hx = 0, hxx = 0, hy = 0, hxy = 0, hyy = 0, colour[3] = {0, 0, 0};
    for (int r = from; r < from + N; r += PATCH_WIDE) {
        const real dy = k.v - (top + (real)(r / PATCH_WIDE) + R(0.5));
        real row = 0, row_x = 0;
#pragma unroll
        for (int j = 0; j < PATCH_WIDE; j++) {
            const real dx = k.u - (left + (real)j + R(0.5)), at = slope[r + j], by_x = at * dx,
                       w = weight[r + j];
            const shade g = bar[r + j];
            row += at;
            row_x += by_x;
            hxx = FMA(by_x, dx, hxx);
            for (int c = 0; c < 3; c++) colour[c] = FMA(w, g.at[c], colour[c]);
        }
        h += row;
        hx += row_x;
        hy = FMA(row, dy, hy);
        hxy = FMA(row_x, dy, hxy);
        hyy = FMA(row * dy, dy, hyy);
    }
    const real A = 2 * k.half_a, B = k.b, C = 2 * k.half_c;
    out[0] = FMA(A, hx, B * hy);
    out[1] = FMA(B, hx, C * hy);
    out[2] = R(0.5) * hxx;
    out[3] = hxy;
    out[4] = R(0.5) * hyy;
    out[5] = -h / k.o;
    for (int c = 0; c < 3; c++) out[6 + c] = is_negative(k.colour[c]) ? 0 : colour[c];
}
#endif

template <int TILE> struct back_shared {
    static constexpr int warps = tile_shape<TILE>::warps,
                         chunk = tile_shape<TILE>::threads < 128 ? tile_shape<TILE>::threads : 128;
    brush staged[chunk];
    shade bar[warps][PATCH]; /* cotangents of the image */
    seen_by from[warps][GS_RAYS ? (int)PATCH : 1];
    real weight[warps][BATCH][PATCH + 1], slope[warps][BATCH][PATCH + 1];
    real sum[warps][GROUP][SUMS]; /* of patches */
    uint32_t slot[chunk];
    unsigned seen[warps][GROUP / 32]; /* which of them are there */
    unsigned char hit[warps][GROUP];  /* their numbers */
};

struct cotangents {
    const real *image, *alpha, *made, *made_alpha;
    int64_t image_i, image_j, alpha_i, made_i, made_j, made_alpha_i;
    int64_t from, pixels; /* rows of pixels that are ours */
};

/* What a pixel carries from Gaussian to Gaussian. */
struct light {
    real T;    /* that is left; 0 where it ended */
    real q;    /* (see read_bars of blend_lanes.h) */
    real g[3]; /* cotangents of the image */
};

__device__ inline light light_of(const cotangents &of, const pixel &p)
{
    light v = {p.inside ? (real)1 : (real)0, 0, {0, 0, 0}};
    const int64_t i = p.y - of.from;
    if (!p.inside || i < 0 || i >= of.pixels) return v;
    if (of.alpha)
        v.q = of.alpha[i * of.alpha_i + p.x] * (1 - of.made_alpha[i * of.made_alpha_i + p.x]);
    for (int c = 0; c < 3; c++) {
        v.g[c] = of.image[i * of.image_i + p.x * of.image_j + c];
        v.q = FMA(-v.g[c], of.made[i * of.made_i + p.x * of.made_j + c], v.q);
    }
    return v;
}

/* One Gaussian at one pixel: its weight there, and h = -alpha dL/dalpha. */
__device__ inline void step_back(light *v, const brush &k, real most, const gaze &look_at,
                                 real *weight, real *slope)
{
    bool on;
    const real alpha = alpha_at(k, most, look_at, &on), rest = 1 - alpha, left = v->T * rest;
    const bool keep = on && left >= LEAST_LIGHT;
    const real w = keep ? v->T * alpha : 0;
    real near = 0;
    for (int c = 0; c < 3; c++) near = FMA(v->g[c], k.colour[c], near);
    v->q = FMA(w, near, v->q);
    const real h = -alpha * FMA(v->T, near, quick_divide(v->q, rest));
    *weight = w;
    *slope = keep ? h : 0;
    v->T = keep ? left : on ? 0 : v->T;
}

/* Which Gaussians of a group the patch of this warp may see: their numbers are left in s.hit. */
template <int TILE>
__device__ inline int find_hits(back_shared<TILE> &s, int group, int n, bool lit, real left,
                                real top)
{
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x & 31;
    int hits = 0;
    for (int word = 0; word < GROUP / 32; word++) {
        const int k = group + 32 * word + lane;
        const bool yes = lit && k < n && may_see(s.staged[k], left, top);
        const unsigned all = __ballot_sync(~0u, yes);
        if (yes)
            s.hit[warp][hits + __popc(all & ((1u << lane) - 1))] =
                (unsigned char)(32 * word + lane);
        if (lane == 0) s.seen[warp][word] = all;
        hits += __popc(all);
    }
    __syncwarp();
    return hits;
}

/* Those Gaussians in the patch, some at a time: pixels leave weight and slope, then 32 / BATCH
 * lanes for each Gaussian add them up. */
template <int TILE>
__device__ inline void walk_hits(const tile_lists &l, back_shared<TILE> &s, const brush *group,
                                 int hits, light *v, const gaze &look_at, real left, real top)
{
    constexpr int EACH = PATCH * BATCH / 32; /* pixels of a lane */
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x & 31, mine = lane % BATCH;
    const real most = (real)l.rule.most_alpha;
    for (int first = 0; first < hits; first += BATCH) {
        const int n = hits - first < BATCH ? hits - first : (int)BATCH;
        for (int k = 0; k < n; k++)
            step_back(v, group[s.hit[warp][first + k]], most, look_at, &s.weight[warp][k][lane],
                      &s.slope[warp][k][lane]);
        __syncwarp();
        real out[SUMS] = {};
        const int which = mine < n ? s.hit[warp][first + mine] : 0;
        if (mine < n)
            add_pixels<EACH>(l, group[which], s.weight[warp][mine], s.slope[warp][mine],
                             s.bar[warp], s.from[warp], left, top, lane / BATCH * EACH, out);
        for (int other = BATCH; other < 32; other *= 2)
            for (int c = 0; c < SUMS; c++) out[c] += __shfl_xor_sync(~0u, out[c], other);
        if (lane < n)
            for (int c = 0; c < SUMS; c++) s.sum[warp][which][c] = out[c];
        __syncwarp();
    }
}

/* The sums of n Gaussians of a group over the patches of the tile, in their order. */
template <int TILE>
__device__ inline void add_patches(const tile_lists &l, const back_shared<TILE> &s, int group,
                                   int n)
{
    for (int k = (int)threadIdx.x; k < n * SUMS; k += tile_shape<TILE>::threads) {
        const int which = k / SUMS, c = k - which * SUMS;
        real sum = 0;
#pragma unroll
        for (int w = 0; w < tile_shape<TILE>::warps; w++)
            if (s.seen[w][which / 32] >> which % 32 & 1) sum += s.sum[w][which][c];
        l.sum[(int64_t)s.slot[group + which] * SUMS + c] = sum;
    }
}

template <int TILE>
__global__ void __launch_bounds__(tile_shape<TILE>::threads,
                                  TILE == 16 && sizeof(real) == 4 ? (int)RESIDENT_BACK : 1)
    blend_tiles_back(const tile_lists __grid_constant__ l, const cotangents __grid_constant__ of)
{
    constexpr int CHUNK = back_shared<TILE>::chunk, THREADS = tile_shape<TILE>::threads;
    FTH_SHARED(back_shared<TILE>, shared);
    back_shared<TILE> &s = *shared;
    const int tile = (int)blockIdx.x, warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x & 31;
    const pixel p = pixel_of<TILE>(l, tile);
    const real left = (real)(p.x - lane % PATCH_WIDE), top = (real)(p.y - lane / PATCH_WIDE);
    const uint32_t begin = l.start[tile], end = l.start[tile + 1];
    uint32_t at = begin;
    light v = light_of(of, p);
    gaze look_at;
    if (begin == end) return;
    if (!gaze_of(l, p, &look_at)) v = light{0, 0, {0, 0, 0}};
    if (GS_RAYS) s.from[warp][lane] = seen_from(look_at);
    for (int c = 0; c < 3; c++) s.bar[warp][lane].at[c] = v.g[c];
    for (; at < end; at += CHUNK) {
        if (__syncthreads_and(!(v.T > 0))) break;
        const int n = (int)(end - at < CHUNK ? end - at : CHUNK);
        stage_chunk(l, at, n, s.staged, s.slot);
        for (int group = 0; group < n; group += GROUP) {
            __syncthreads(); /* sums of the group before are added */
            const bool lit = __any_sync(~0u, v.T > 0);
            const int hits = find_hits<TILE>(s, group, n, lit, left, top);
            walk_hits<TILE>(l, s, s.staged + group, hits, &v, look_at, left, top);
            __syncthreads();
            add_patches<TILE>(l, s, group, n - group < GROUP ? n - group : (int)GROUP);
        }
    }
    /* behind the last light nothing is blended */
    for (int64_t k = threadIdx.x; k < (int64_t)(end - at) * SUMS && at < end; k += THREADS)
        l.sum[(int64_t)l.item[at + k / SUMS] * SUMS + k % SUMS] = 0;
}

__global__ void clear_rows(real *bar, int64_t bar_step, int64_t n)
{
    const int64_t i = (int64_t)blockIdx.x * LIST_THREADS + threadIdx.x;
    for (int c = 0; c < NUMBERS && i < n; c++) bar[i * bar_step + c] = 0;
}

/* ---- calls ---- */

/* Tiles of 32 pixels in double need more than a block can have (raster.cu). */
template <int TILE> void back_with(const tile_lists &l, const cotangents &of, cudaStream_t stream)
{
    if constexpr (TILE < 32 || sizeof(real) == 4)
        FTH_LAUNCH_SHARED(blend_tiles_back<TILE>, (unsigned)l.tiles, tile_shape<TILE>::threads,
                          sizeof(back_shared<TILE>), stream, l, of);
}

uint64_t blend_back_scratch(const fth_call *call)
{
    return lists_bytes(call, call->in[GS_BLEND_IMAGE].extent[0], true);
}

cotangents cotangents_of(const fth_call *call)
{
    const fth_tile *image = &call->in[GS_BLEND_IMAGE], *made = &call->in[GS_BLEND_MADE_IMAGE];
    cotangents of = {};
    of.image = (const real *)image->data;
    of.image_i = image->stride[0];
    of.image_j = image->stride[1];
    of.made = (const real *)made->data;
    of.made_i = made->stride[0];
    of.made_j = made->stride[1];
    of.made_alpha = (const real *)call->in[GS_BLEND_MADE_ALPHA].data;
    of.made_alpha_i = call->in[GS_BLEND_MADE_ALPHA].stride[0];
    if (gs_blend_inputs(call->node) > GS_BLEND_ALPHA) {
        of.alpha = (const real *)call->in[GS_BLEND_ALPHA].data;
        of.alpha_i = call->in[GS_BLEND_ALPHA].stride[0];
    }
    of.from = image->origin[0];
    of.pixels = image->extent[0];
    return of;
}

fth_status blend_back(const fth_call *call)
{
    const cudaStream_t stream = fth_cuda_stream(call);
    const fth_tile *out = &call->out[0];
    const unsigned blocks = (unsigned)((out->extent[0] + LIST_THREADS - 1) / LIST_THREADS);
    real *const bar = (real *)out->data;
    if (call->in[GS_BLEND_IMAGE].extent[0] == 0 || call->node->in[GS_BLEND_IMAGE].size[1] == 0) {
        if (call->first && blocks)
            FTH_LAUNCH(clear_rows, blocks, LIST_THREADS, stream, bar, out->stride[0],
                       out->extent[0]);
        FTH_CUDA_LAUNCHED(call);
        return FTH_OK;
    }
    const fth_tile *image = &call->in[GS_BLEND_IMAGE];
    const tile_lists l =
        gs_is_listed(call->node) ? open_lists(call, image, true) : make_lists(call, image, true);
    const cotangents of = cotangents_of(call);
    if (l.rule.tile == 8)
        back_with<8>(l, of, stream);
    else if (l.rule.tile == 16)
        back_with<16>(l, of, stream);
    else
        back_with<32>(l, of, stream);
    if (blocks && call->first)
        FTH_LAUNCH(add_slots<true>, blocks, LIST_THREADS, stream, l, bar, out->stride[0]);
    else if (blocks)
        FTH_LAUNCH(add_slots<false>, blocks, LIST_THREADS, stream, l, bar, out->stride[0]);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

} // namespace
