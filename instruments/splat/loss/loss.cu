/* loss.cu - gs_loss on a device, in two passes over the image.
 *
 * A block has a piece of one channel. It brings the piece with its border to shared memory, sums
 * the window along rows and then across them. The first pass leaves the slopes of SSIM, the second
 * sums them the same way. Sums of numbers are those of a block's threads in a fixed tree, in
 * double, and blocks are added in their order. A mask becomes flags of pixels (mask.h) and counts
 * first.
 */
#include <fathom/cuda.h>
#include <fathom/fathom.h>

extern "C" {
#include "loss.h"
#include "mask.h"
}
#include "total.cuh"

namespace
{

enum {
    TAPS = 11,
    HALF = 5,
    MOMENTS = 5,
    SLOPES = 3,
    WIDE = 32,
    THREADS = 256,
    LONG = WIDE + 2 * HALF,
    SUMS = 2, /* L1 and SSIM */
    ADDERS = 1024
};

/* Of a mask, on the device: pixels that are kept and averaged, and what follows from them. */
enum { L1_PIXELS, SSIM_PIXELS, SHARE, STEP, COUNTS };

/* Rows of a piece, and with its border; pixels of a thread, one below the other. */
template <typename real> struct shape {
    static constexpr int HIGH = sizeof(real) == 4 ? 32 : 8, TALL = HIGH + 2 * HALF,
                         EACH = WIDE * HIGH / THREADS;
};

/* The window of loss_lanes.h, half of it. */
template <typename real> __device__ inline real window(int t)
{
    const real w[HALF + 1] = {(real)0.001028380123898387f, (real)0.0075987582094967365f,
                              (real)0.036000773310661316f, (real)0.10936068743467331f,
                              (real)0.21300552785396576f,  (real)0.26601171493530273f};
    return w[t <= HALF ? t : 2 * HALF - t];
}

__device__ inline float fused(float a, float b, float c)
{
    return fmaf(a, b, c);
}
__device__ inline double fused(double a, double b, double c)
{
    return fma(a, b, c);
}

template <typename real> struct frames {
    const real *image, *target;
    int64_t image_i, image_j, target_i, target_j;
    int height, width, across, down;    /* of the image; pieces along its sides */
    int first_i, end_i, first_j, end_j; /* pixels that are averaged, without a mask */
    real share, step;                   /* dL/dmap there; of |x - y| */
    uint8_t *flags;                     /* [i j]; with a mask alone */
    double *counts;                     /* COUNTS */
    real *slope;                        /* [c SLOPES i j] */
    double *sum;                        /* of blocks, [blocks SUMS] */
    real *gradient;
    int64_t gradient_i, gradient_j;
};

struct piece {
    int channel, i0, j0;
};

template <typename real> __device__ inline piece piece_of(const frames<real> &f)
{
    const int block = (int)blockIdx.x, in_channel = block % (f.across * f.down);
    const piece p = {block / (f.across * f.down), in_channel / f.across * shape<real>::HIGH,
                     in_channel % f.across * WIDE};
    return p;
}

/* Of one pixel: the map, and its derivatives by the mean of x, of xx and of xy. */
template <typename real> __device__ inline real ssim_of(const real m[MOMENTS], real slope[SLOPES])
{
    const real C1 = (real)1e-4, C2 = (real)9e-4, a = m[0], y = m[1];
    const real s1 = fused(-a, a, m[2]), s2 = fused(-y, y, m[3]), s12 = fused(-a, y, m[4]);
    const real A = fused(a, a, fused(y, y, C1)), B = s1 + s2 + C2, C = fused(2 * a, y, C1),
               D = 2 * s12 + C2, AB = A * B, map = C * D / AB;
    slope[0] = 2 * y * (D - C) / AB - 2 * a * map / A + 2 * a * map / B;
    slope[1] = -map / B;
    slope[2] = 2 * C / AB;
    return map;
}

/* The window across rows, of the pixels of a thread: each sum in the order of its taps. */
template <typename real, int N>
__device__ inline void across(const real (*along)[shape<real>::TALL][WIDE], int top, int column,
                              real (*sum)[N])
{
    constexpr int EACH = shape<real>::EACH;
#pragma unroll
    for (int t = 0; t < TAPS + EACH - 1; t++)
#pragma unroll
        for (int c = 0; c < N; c++) {
            const real v = along[c][top + t][column];
#pragma unroll
            for (int e = 0; e < EACH; e++)
                if (t >= e && t - e < TAPS) sum[e][c] = fused(window<real>(t - e), v, sum[e][c]);
        }
}

/* ---- a mask ---- */

struct masked_pixels {
    const uint8_t *mask;
    int64_t mask_i, mask_j;
    int height, width, border, across; /* pieces along a row */
    uint8_t *flags;
    double *sum; /* of blocks, [blocks SUMS] */
};

__global__ void __launch_bounds__(THREADS) flag_pieces(const masked_pixels __grid_constant__ m)
{
    constexpr int HIGH = WIDE, TALL = HIGH + 2 * HALF;
    __shared__ uint8_t keep[TALL][LONG], along[TALL][WIDE];
    __shared__ double warps[THREADS / 32];
    const int i0 = (int)blockIdx.x / m.across * HIGH, j0 = (int)blockIdx.x % m.across * WIDE;
    for (int k = (int)threadIdx.x; k < TALL * LONG; k += THREADS) {
        const int i = i0 + k / LONG - HALF, j = j0 + k % LONG - HALF;
        const bool inside = i >= 0 && i < m.height && j >= 0 && j < m.width;
        keep[k / LONG][k % LONG] = !inside || m.mask[i * m.mask_i + j * m.mask_j] >= GS_MASK_LEAST;
    }
    __syncthreads();
    for (int k = (int)threadIdx.x; k < TALL * WIDE; k += THREADS) {
        uint8_t all = 1;
        for (int t = 0; t < TAPS; t++) all &= keep[k / WIDE][k % WIDE + t];
        along[k / WIDE][k % WIDE] = all;
    }
    __syncthreads();
    double kept = 0, averaged = 0;
    for (int k = (int)threadIdx.x; k < HIGH * WIDE; k += THREADS) {
        const int i = i0 + k / WIDE, j = j0 + k % WIDE;
        if (i >= m.height || j >= m.width) continue;
        uint8_t whole =
            i >= m.border && i < m.height - m.border && j >= m.border && j < m.width - m.border;
        for (int t = 0; t < TAPS; t++) whole &= along[k / WIDE + t][k % WIDE];
        const uint8_t here = keep[k / WIDE + HALF][k % WIDE + HALF];
        m.flags[(int64_t)i * m.width + j] = (here ? GS_KEPT : 0) | (whole ? GS_AVERAGED : 0);
        kept += here;
        averaged += whole;
    }
    const double all_kept = total_of(kept, warps), all_averaged = total_of(averaged, warps);
    if (threadIdx.x == 0) {
        m.sum[blockIdx.x * SUMS] = all_kept;
        m.sum[blockIdx.x * SUMS + 1] = all_averaged;
    }
}

__global__ void add_flags(const double *sum, int64_t blocks, double lambda, double *counts)
{
    __shared__ double warps[ADDERS / 32];
    double part[SUMS] = {0, 0};
    for (int64_t b = threadIdx.x; b < blocks; b += ADDERS)
        for (int k = 0; k < SUMS; k++) part[k] += sum[b * SUMS + k];
    const double kept = total_of(part[0], warps), averaged = total_of(part[1], warps);
    if (threadIdx.x != 0) return;
    counts[L1_PIXELS] = kept;
    counts[SSIM_PIXELS] = averaged;
    counts[SHARE] = -lambda / (3.0 * averaged);
    counts[STEP] = (1 - lambda) / (3.0 * kept);
}

/* ---- the passes ---- */

template <typename real, bool MASKED>
__global__ void __launch_bounds__(THREADS) map_pieces(const frames<real> __grid_constant__ f)
{
    constexpr int TALL = shape<real>::TALL, EACH = shape<real>::EACH;
    __shared__ __align__(16) real x[TALL][LONG], y[TALL][LONG], along[MOMENTS][TALL][WIDE];
    __shared__ double warps[THREADS / 32];
    const piece p = piece_of(f);
    for (int k = (int)threadIdx.x; k < TALL * LONG; k += THREADS) {
        const int i = p.i0 + k / LONG - HALF, j = p.j0 + k % LONG - HALF;
        const bool inside = i >= 0 && i < f.height && j >= 0 && j < f.width;
        x[k / LONG][k % LONG] = inside ? f.image[i * f.image_i + j * f.image_j + p.channel] : 0;
        y[k / LONG][k % LONG] = inside ? f.target[i * f.target_i + j * f.target_j + p.channel] : 0;
    }
    __syncthreads();
    for (int k = (int)threadIdx.x; k < TALL * WIDE / 2; k += THREADS) { /* two neighbours */
        const int i = k / (WIDE / 2), j = k % (WIDE / 2) * 2;
        real m[2][MOMENTS] = {};
#pragma unroll
        for (int t = 0; t < TAPS + 1; t++) {
            const real a = x[i][j + t], b = y[i][j + t], v[MOMENTS] = {a, b, a * a, b * b, a * b};
#pragma unroll
            for (int e = 0; e < 2; e++)
                for (int c = 0; c < MOMENTS && t >= e && t - e < TAPS; c++)
                    m[e][c] = fused(window<real>(t - e), v[c], m[e][c]);
        }
        for (int c = 0; c < MOMENTS; c++)
            for (int e = 0; e < 2; e++) along[c][i][j + e] = m[e][c];
    }
    __syncthreads();
    double l1 = 0, ssim = 0;
    const int64_t plane = (int64_t)f.height * f.width;
    const int top = (int)threadIdx.x / WIDE * EACH, column = (int)threadIdx.x % WIDE;
    real m[EACH][MOMENTS] = {};
    across<real, MOMENTS>(along, top, column, m);
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        const int row = top + e, i = p.i0 + row, j = p.j0 + column;
        if (i >= f.height || j >= f.width) continue;
        real slope[SLOPES];
        const real map = ssim_of(m[e], slope);
        const int flags = MASKED ? f.flags[(int64_t)i * f.width + j] : GS_KEPT;
        const bool inside = MASKED ? (flags & GS_AVERAGED) != 0
                                   : i >= f.first_i && i < f.end_i && j >= f.first_j && j < f.end_j;
        const real share = MASKED ? (real)f.counts[SHARE] : f.share;
        if (inside) ssim += (double)map;
        if (flags & GS_KEPT)
            l1 += fabs((double)x[row + HALF][column + HALF] - (double)y[row + HALF][column + HALF]);
        for (int c = 0; c < SLOPES && f.gradient; c++)
            f.slope[(p.channel * SLOPES + c) * plane + (int64_t)i * f.width + j] =
                inside ? share * slope[c] : 0;
    }
    const double all_l1 = total_of(l1, warps), all_ssim = total_of(ssim, warps);
    if (threadIdx.x == 0) {
        f.sum[blockIdx.x * SUMS] = all_l1;
        f.sum[blockIdx.x * SUMS + 1] = all_ssim;
    }
}

template <typename real, bool MASKED>
__global__ void __launch_bounds__(THREADS) slope_pieces(const frames<real> __grid_constant__ f)
{
    constexpr int TALL = shape<real>::TALL, EACH = shape<real>::EACH;
    __shared__ real s[TALL][LONG], along[SLOPES][TALL][WIDE];
    const piece p = piece_of(f);
    const int64_t plane = (int64_t)f.height * f.width;
    for (int c = 0; c < SLOPES; c++) {
        const real *from = f.slope + (p.channel * SLOPES + c) * plane;
        __syncthreads();
        for (int k = (int)threadIdx.x; k < TALL * LONG; k += THREADS) {
            const int i = p.i0 + k / LONG - HALF, j = p.j0 + k % LONG - HALF;
            const bool inside = i >= 0 && i < f.height && j >= 0 && j < f.width;
            s[k / LONG][k % LONG] = inside ? from[(int64_t)i * f.width + j] : 0;
        }
        __syncthreads();
        for (int k = (int)threadIdx.x; k < TALL * WIDE; k += THREADS) {
            real sum = 0;
#pragma unroll
            for (int t = 0; t < TAPS; t++)
                sum = fused(window<real>(t), s[k / WIDE][k % WIDE + t], sum);
            along[c][k / WIDE][k % WIDE] = sum;
        }
    }
    __syncthreads();
    const int top = (int)threadIdx.x / WIDE * EACH, column = (int)threadIdx.x % WIDE;
    real q[EACH][SLOPES] = {};
    across<real, SLOPES>(along, top, column, q);
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        const int i = p.i0 + top + e, j = p.j0 + column;
        if (i >= f.height || j >= f.width) continue;
        const real x = f.image[i * f.image_i + j * f.image_j + p.channel],
                   y = f.target[i * f.target_i + j * f.target_j + p.channel],
                   step = MASKED ? (real)f.counts[STEP] : f.step,
                   l1 = x > y   ? step
                        : x < y ? -step
                                : 0;
        const bool kept = !MASKED || (f.flags[(int64_t)i * f.width + j] & GS_KEPT);
        f.gradient[i * f.gradient_i + j * f.gradient_j + p.channel] =
            kept ? fused(2 * x, q[e][1], fused(y, q[e][2], q[e][0])) + l1 : 0;
    }
}

struct results {
    double *loss, *l1, *ssim; /* NULL: nobody wants it */
    double lambda, l1_pixels, ssim_pixels;
    const double *counts; /* of a mask; NULL: none */
};

/* One block: thread t has blocks t, t + ADDERS .. of the pieces. */
__global__ void add_pieces(const double *sum, int64_t blocks, const results to)
{
    __shared__ double warps[ADDERS / 32];
    double part[SUMS] = {0, 0};
    for (int64_t b = threadIdx.x; b < blocks; b += ADDERS)
        for (int k = 0; k < SUMS; k++) part[k] += sum[b * SUMS + k];
    const double l1_sum = total_of(part[0], warps), ssim_sum = total_of(part[1], warps);
    if (threadIdx.x != 0) return;
    const double l1_pixels = to.counts ? to.counts[L1_PIXELS] : to.l1_pixels,
                 ssim_pixels = to.counts ? to.counts[SSIM_PIXELS] : to.ssim_pixels,
                 l1 = l1_pixels > 0 ? l1_sum / (3.0 * l1_pixels) : 0,
                 ssim = ssim_pixels > 0 ? ssim_sum / (3.0 * ssim_pixels) : 1;
    if (to.loss) *to.loss = (1 - to.lambda) * l1 + to.lambda * (1 - ssim);
    if (to.l1) *to.l1 = l1;
    if (to.ssim) *to.ssim = ssim;
}

/* ---- calls ---- */

int pieces(int64_t n, int each)
{
    return (int)((n + each - 1) / each);
}

uint64_t slopes_bytes(const fth_desc *d)
{
    return ((uint64_t)(3 * SLOPES * d->size[0] * d->size[1] * fth_dtype_size(d->dtype)) + 63) / 64 *
           64;
}

int64_t blocks_of(const fth_desc *d)
{
    const int high = d->dtype == FTH_F32 ? shape<float>::HIGH : shape<double>::HIGH;
    return (int64_t)3 * pieces(d->size[0], high) * pieces(d->size[1], WIDE);
}

int64_t flag_blocks(const fth_desc *d)
{
    return (int64_t)pieces(d->size[0], WIDE) * pieces(d->size[1], WIDE);
}

uint64_t sums_bytes(const fth_desc *d)
{
    return (uint64_t)blocks_of(d) * SUMS * sizeof(double);
}

/* Slopes, sums of blocks; of a mask sums of its blocks, counts and flags. */
uint64_t scratch(const fth_call *call)
{
    const fth_desc *d = &call->node->in[0];
    const uint64_t plain = slopes_bytes(d) + sums_bytes(d);
    if (call->node->n_in < 3) return plain;
    return plain + ((uint64_t)flag_blocks(d) * SUMS + COUNTS) * sizeof(double) +
           (uint64_t)(d->size[0] * d->size[1]);
}

/* Flags and counts of the mask. */
template <typename real> void read_mask(const fth_call *call, frames<real> *f)
{
    const fth_desc *d = &call->node->in[0];
    const gs_loss *a = (const gs_loss *)call->node->attr;
    const fth_tile *mask = &call->in[2];
    const int64_t blocks = flag_blocks(d);
    const cudaStream_t stream = fth_cuda_stream(call);
    double *sum = (double *)((char *)call->scratch + slopes_bytes(d) + sums_bytes(d));
    f->counts = sum + blocks * SUMS;
    f->flags = (uint8_t *)(f->counts + COUNTS);
    masked_pixels m = {};
    m.mask = (const uint8_t *)mask->data;
    m.mask_i = mask->stride[0];
    m.mask_j = mask->stride[1];
    m.height = f->height;
    m.width = f->width;
    m.border = f->first_i;
    m.across = pieces(f->width, WIDE);
    m.flags = f->flags;
    m.sum = sum;
    if (blocks) FTH_LAUNCH(flag_pieces, (unsigned)blocks, THREADS, stream, m);
    FTH_LAUNCH(add_flags, 1, ADDERS, stream, (const double *)sum, blocks, a->lambda, f->counts);
}

template <typename real, bool MASKED>
void launch(const fth_call *call, const frames<real> &f, const results &to, int64_t blocks)
{
    const cudaStream_t stream = fth_cuda_stream(call);
    if (blocks) FTH_LAUNCH((map_pieces<real, MASKED>), (unsigned)blocks, THREADS, stream, f);
    FTH_LAUNCH(add_pieces, 1, ADDERS, stream, (const double *)f.sum, blocks, to);
    if (blocks && f.gradient)
        FTH_LAUNCH((slope_pieces<real, MASKED>), (unsigned)blocks, THREADS, stream, f);
}

template <typename real> void run_as(const fth_call *call)
{
    const fth_desc *d = &call->node->in[0];
    const gs_loss *a = (const gs_loss *)call->node->attr;
    const fth_tile *image = &call->in[0], *target = &call->in[1],
                   *gradient = &call->out[GS_LOSS_GRADIENT];
    const int64_t height = d->size[0], width = d->size[1], blocks = blocks_of(d);
    const int border = (int)gs_mask_border(height, width);
    frames<real> f = {};
    f.image = (const real *)image->data;
    f.image_i = image->stride[0];
    f.image_j = image->stride[1];
    f.target = (const real *)target->data;
    f.target_i = target->stride[0];
    f.target_j = target->stride[1];
    f.height = (int)height;
    f.width = (int)width;
    f.across = pieces(width, WIDE);
    f.down = pieces(height, shape<real>::HIGH);
    f.first_i = f.first_j = border;
    f.end_i = (int)height - border;
    f.end_j = (int)width - border;
    const double averaged = (double)((height - 2 * border) * (width - 2 * border)),
                 all = (double)(height * width);
    f.share = (real)(-a->lambda / (3.0 * averaged));
    f.step = (real)((1 - a->lambda) / (3.0 * all));
    f.slope = (real *)call->scratch;
    f.sum = (double *)((char *)call->scratch + slopes_bytes(d));
    f.gradient = (real *)gradient->data;
    f.gradient_i = gradient->stride[0];
    f.gradient_j = gradient->stride[1];
    const bool masked = call->node->n_in > 2;
    if (masked) read_mask(call, &f);
    const results to = {(double *)call->out[GS_LOSS].data,
                        (double *)call->out[GS_LOSS_L1].data,
                        (double *)call->out[GS_LOSS_SSIM].data,
                        a->lambda,
                        all,
                        averaged,
                        f.counts};
    if (masked)
        launch<real, true>(call, f, to, blocks);
    else
        launch<real, false>(call, f, to, blocks);
}

fth_status run(const fth_call *call)
{
    if (call->node->in[0].dtype == FTH_F32)
        run_as<float>(call);
    else
        run_as<double>(call);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

} // namespace

FTH_CUDA_KERNEL(splat_loss) = {.op = "splat_loss", .scratch = scratch, .run = run};
