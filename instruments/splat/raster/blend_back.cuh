/* blend_back.cuh - the vjp of gs_blend on a device: 9 sums over the pixels of a tile for each
 * Gaussian in it, and then over the tiles of a Gaussian.
 *
 * Warps walk front to back as forward does. For up to BATCH Gaussians that a patch may see its
 * pixels leave two numbers each, weight and slope, in shared memory; then some lanes per Gaussian
 * add them up, pixel by pixel. The patches of a tile are added in their order, the tiles of a
 * Gaussian in theirs: nothing is added in an order that threads decide. Part of raster_*.cu.
 */
#include "blend.cuh"

namespace
{

enum { GROUP = 32, PATCH = 32 };

/* Three numbers that are loaded as four. */
struct __align__(16) shade
{
    real at[3], none;
};

/* Shared memory of a block. BATCH Gaussians have 32 / BATCH lanes each. */
template <int TILE> struct back_shared {
    static constexpr int warps = tile_shape<TILE>::warps, chunk = tile_shape<TILE>::chunk,
                         batch = TILE < 32 && sizeof(real) == 4 ? 16 : 8;
    brush staged[chunk];
    shade bar[warps][PATCH]; /* cotangents of the image */
    real weight[warps][batch][PATCH + 1], slope[warps][batch][PATCH + 1];
    real sum[2][warps][GROUP][GS_SUMS]; /* of patches, by turns */
    unsigned seen[2][warps];            /* which of them are there */
    uint32_t slot[chunk];
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

/* -0 too. */
__device__ inline bool is_negative(float v)
{
    return __float_as_int(v) < 0;
}
__device__ inline bool is_negative(double v)
{
    return __double_as_longlong(v) < 0;
}

/* One Gaussian at one pixel: its weight there, and h = -alpha dL/dalpha. */
__device__ inline void step_back(light *v, const brush &k, real most, real x, real y, real *weight,
                                 real *slope)
{
    bool on;
    const real alpha = alpha_of(k, most, k.u - x, k.v - y, &on), rest = 1 - alpha,
               left = v->T * rest;
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

/* The sums of one Gaussian over the pixels [from, from + n) of a patch. */
__device__ inline void add_pixels(const brush &k, const real *weight, const real *slope,
                                  const shade *bar, real left, real top, int from, int n,
                                  real out[GS_SUMS])
{
    real h = 0, hx = 0, hxx = 0, hy = 0, hxy = 0, hyy = 0, colour[3] = {0, 0, 0};
    for (int r = from; r < from + n; r += PATCH_WIDE) {
        const real dy = k.v - (top + (real)(r / PATCH_WIDE) + R(0.5));
        real row = 0, row_x = 0;
        const int wide = n < PATCH_WIDE ? n : (int)PATCH_WIDE;
#pragma unroll
        for (int j = 0; j < wide; j++) {
            const real dx = k.u - (left + (real)(r % PATCH_WIDE + j) + R(0.5)), at = slope[r + j],
                       by_x = at * dx;
            row += at;
            row_x += by_x;
            hxx = FMA(by_x, dx, hxx);
            const shade g = bar[r + j];
            const real w = weight[r + j];
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

/* The Gaussians of `here`, numbers of a group, in the patch of this warp. */
template <int TILE>
__device__ inline void walk_group(back_shared<TILE> &s, const brush *group, unsigned here, light *v,
                                  real most, real x, real y, real left, real top,
                                  real (*sum)[GS_SUMS])
{
    constexpr int BATCH = back_shared<TILE>::batch,
                  EACH = PATCH * BATCH / 32; /* pixels of a lane */
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x & 31;
    while (here) {
        int mine = 0, n = 0;
        for (; here && n < BATCH; here &= here - 1, n++) {
            const int which = __ffs((int)here) - 1;
            if (lane % BATCH == n) mine = which;
            step_back(v, group[which], most, x, y, &s.weight[warp][n][lane],
                      &s.slope[warp][n][lane]);
        }
        __syncwarp();
        real out[GS_SUMS] = {0, 0, 0, 0, 0, 0, 0, 0, 0};
        if (lane % BATCH < n)
            add_pixels(group[mine], s.weight[warp][lane % BATCH], s.slope[warp][lane % BATCH],
                       s.bar[warp], left, top, lane / BATCH * EACH, EACH, out);
        for (int other = BATCH; other < 32; other *= 2)
            for (int c = 0; c < GS_SUMS; c++) out[c] += __shfl_xor_sync(~0u, out[c], other);
        if (lane < n)
            for (int c = 0; c < GS_SUMS; c++) sum[mine][c] = out[c];
        __syncwarp();
    }
}

template <int TILE>
__global__ void __launch_bounds__(tile_shape<TILE>::threads)
    blend_tiles_back(const tile_lists __grid_constant__ l, const cotangents __grid_constant__ of)
{
    constexpr int CHUNK = tile_shape<TILE>::chunk, WARPS = tile_shape<TILE>::warps,
                  THREADS = tile_shape<TILE>::threads;
    FTH_SHARED(back_shared<TILE>, shared);
    back_shared<TILE> &s = *shared;
    const int tile = (int)blockIdx.x, warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x & 31;
    const pixel p = pixel_of<TILE>(l, tile);
    const real x = (real)p.x + R(0.5), y = (real)p.y + R(0.5),
               left = (real)(p.x - lane % PATCH_WIDE), top = (real)(p.y - lane / PATCH_WIDE),
               most = (real)l.rule.most_alpha;
    const uint32_t begin = l.start[tile], end = l.start[tile + 1];
    uint32_t at = begin;
    light v = light_of(of, p);
    if (begin == end) return;
    for (int c = 0; c < 3; c++) s.bar[warp][lane].at[c] = v.g[c];
    int turn = 0;
    for (; at < end; at += CHUNK) {
        if (__syncthreads_and(!(v.T > 0))) break;
        const int n = (int)(end - at < CHUNK ? end - at : CHUNK);
        if ((int)threadIdx.x < n) {
            s.slot[threadIdx.x] = l.item[at + threadIdx.x];
            s.staged[threadIdx.x] = brush_at(l, s.slot[threadIdx.x]);
        }
        __syncthreads();
        for (int group = 0; group < n; group += GROUP, turn = !turn) {
            const bool lit = __any_sync(~0u, v.T > 0);
            const unsigned here = __ballot_sync(
                ~0u, lit && group + lane < n && may_see(s.staged[group + lane], left, top));
            if (lane == 0) s.seen[turn][warp] = here;
            walk_group<TILE>(s, s.staged + group, here, &v, most, x, y, left, top,
                             s.sum[turn][warp]);
            __syncthreads();
            const int count = (n - group < GROUP ? n - group : GROUP) * GS_SUMS;
            for (int k = (int)threadIdx.x; k < count; k += THREADS) {
                const int which = k / GS_SUMS, c = k - which * GS_SUMS;
                real sum = 0;
                for (int w = 0; w < WARPS; w++)
                    if (s.seen[turn][w] >> which & 1) sum += s.sum[turn][w][which][c];
                l.sum[(int64_t)s.slot[group + which] * GS_SUMS + c] = sum;
            }
        }
    }
    /* behind the last light nothing is blended */
    for (int64_t k = threadIdx.x; k < (int64_t)(end - at) * GS_SUMS && at < end; k += THREADS)
        l.sum[(int64_t)l.item[at + k / GS_SUMS] * GS_SUMS + k % GS_SUMS] = 0;
}

/* A Gaussian adds its slots in order; those that are not seen have 0. The slots of a warp's 32 lie
 * one behind the other: they pass through shared memory 32 at a time, and so do the rows. */
__global__ void __launch_bounds__(LIST_THREADS)
    add_slots(const tile_lists l, real *bar, int64_t bar_step, bool first)
{
    __shared__ real staged[LIST_THREADS * (int)GS_SUMS];
    __shared__ int32_t rows[LIST_THREADS];
    const int lane = (int)threadIdx.x & 31;
    real *const here = staged + (threadIdx.x - (unsigned)lane) * GS_SUMS;
    int32_t *const row = rows + (threadIdx.x - (unsigned)lane);
    const int64_t i = (int64_t)blockIdx.x * LIST_THREADS + threadIdx.x, i0 = i - lane;
    const int64_t slots = (int64_t)l.count->slots, seen = slots > 0 ? (int64_t)l.count->seen : 0;
    if (i0 >= l.n || (!first && i0 >= seen)) return;
    const int64_t last = i0 + 32 < seen ? i0 + 32 : seen,
                  begin = i < seen ? (int64_t)l.first[i] : slots,
                  end = i + 1 < seen ? (int64_t)l.first[i + 1] : slots,
                  all = last < seen ? (int64_t)l.first[last] : slots;
    real sum[GS_SUMS];
    row[lane] = i < l.n ? l.order[i] : -1;
    for (int c = 0; c < GS_SUMS; c++)
        sum[c] = first || i >= seen ? 0 : bar[(int64_t)row[lane] * bar_step + c];
    for (int64_t at = __shfl_sync(~0u, begin, 0); at < all; at += 32) {
        const int64_t n = (all - at < 32 ? all - at : 32) * GS_SUMS;
        for (int k = lane; k < n; k += 32) here[k] = l.sum[at * GS_SUMS + k];
        __syncwarp();
        for (int64_t slot = begin > at ? begin : at; slot < end && slot < at + 32; slot++)
            for (int c = 0; c < GS_SUMS; c++) sum[c] += here[(slot - at) * GS_SUMS + c];
        __syncwarp();
    }
    for (int c = 0; c < GS_SUMS; c++) here[lane * GS_SUMS + c] = sum[c];
    __syncwarp();
    const int64_t most = first ? l.n : seen, n = most - i0 < 32 ? most - i0 : 32;
    const int wide = first ? (int)GS_SPLAT : (int)GS_SUMS;
    for (int k = lane; k < n * wide; k += 32) {
        const int which = k / wide, c = k - which * wide;
        bar[(int64_t)row[which] * bar_step + c] = c < GS_SUMS ? here[which * GS_SUMS + c] : 0;
    }
}

__global__ void clear_rows(real *bar, int64_t bar_step, int64_t n)
{
    const int64_t i = (int64_t)blockIdx.x * LIST_THREADS + threadIdx.x;
    for (int c = 0; c < GS_SPLAT && i < n; c++) bar[i * bar_step + c] = 0;
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
    if (call->node->n_in > GS_BLEND_ALPHA) {
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
    const tile_lists l = make_lists(call, &call->in[GS_BLEND_IMAGE], true);
    const cotangents of = cotangents_of(call);
    if (l.rule.tile == 8)
        back_with<8>(l, of, stream);
    else if (l.rule.tile == 16)
        back_with<16>(l, of, stream);
    else
        back_with<32>(l, of, stream);
    if (blocks)
        FTH_LAUNCH(add_slots, blocks, LIST_THREADS, stream, l, bar, out->stride[0],
                   (bool)call->first);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

} // namespace
