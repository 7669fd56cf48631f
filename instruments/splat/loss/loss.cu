/* loss.cu - gs_loss on a device, in two passes over the image.
 *
 * A block has a piece of one channel. It brings the piece with its border to shared memory, sums
 * the window along rows and then across them. The first pass leaves the slopes of SSIM, the second
 * sums them the same way. Sums of numbers are those of a block's threads in a fixed tree, in
 * double, and blocks are added in their order.
 */
#include <fathom/cuda.h>
#include <fathom/fathom.h>

extern "C" {
#include "loss.h"
}

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
    int first_i, end_i, first_j, end_j; /* pixels that are averaged */
    real share, step;                   /* dL/dmap there; of |x - y| */
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

/* Sum over the threads of a block, in a fixed tree; of thread 0. */
__device__ inline double total_of(double x, double *shared)
{
    for (int d = 16; d > 0; d /= 2) x += __shfl_xor_sync(~0u, x, d);
    __syncthreads();
    if ((threadIdx.x & 31) == 0) shared[threadIdx.x / 32] = x;
    __syncthreads();
    double sum = 0;
    if (threadIdx.x == 0)
        for (unsigned w = 0; w < blockDim.x / 32; w++) sum += shared[w];
    return sum;
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

template <typename real>
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
        const bool inside = i >= f.first_i && i < f.end_i && j >= f.first_j && j < f.end_j;
        if (inside) ssim += (double)map;
        l1 += fabs((double)x[row + HALF][column + HALF] - (double)y[row + HALF][column + HALF]);
        for (int c = 0; c < SLOPES && f.gradient; c++)
            f.slope[(p.channel * SLOPES + c) * plane + (int64_t)i * f.width + j] =
                inside ? f.share * slope[c] : 0;
    }
    const double all_l1 = total_of(l1, warps), all_ssim = total_of(ssim, warps);
    if (threadIdx.x == 0) {
        f.sum[blockIdx.x * SUMS] = all_l1;
        f.sum[blockIdx.x * SUMS + 1] = all_ssim;
    }
}

template <typename real>
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
                   l1 = x > y   ? f.step
                        : x < y ? -f.step
                                : 0;
        f.gradient[i * f.gradient_i + j * f.gradient_j + p.channel] =
            fused(2 * x, q[e][1], fused(y, q[e][2], q[e][0])) + l1;
    }
}

struct results {
    double *loss, *l1, *ssim; /* NULL: nobody wants it */
    double lambda, l1_count, ssim_count;
};

/* One block: thread t has blocks t, t + ADDERS .. of the pieces. */
__global__ void add_pieces(const double *sum, int64_t blocks, const results to)
{
    __shared__ double warps[ADDERS / 32];
    double part[SUMS] = {0, 0};
    for (int64_t b = threadIdx.x; b < blocks; b += ADDERS)
        for (int k = 0; k < SUMS; k++) part[k] += sum[b * SUMS + k];
    const double l1 = total_of(part[0], warps) / to.l1_count,
                 ssim = total_of(part[1], warps) / to.ssim_count;
    if (threadIdx.x != 0) return;
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

uint64_t scratch(const fth_call *call)
{
    const fth_desc *d = &call->node->in[0];
    return slopes_bytes(d) + (uint64_t)blocks_of(d) * SUMS * sizeof(double);
}

template <typename real> void run_as(const fth_call *call)
{
    const fth_desc *d = &call->node->in[0];
    const gs_loss *a = (const gs_loss *)call->node->attr;
    const fth_tile *image = &call->in[0], *target = &call->in[1],
                   *gradient = &call->out[GS_LOSS_GRADIENT];
    const int64_t height = d->size[0], width = d->size[1], blocks = blocks_of(d);
    const int border = height > 2 * HALF && width > 2 * HALF ? HALF : 0;
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
    const double averaged = 3.0 * (double)((height - 2 * border) * (width - 2 * border)),
                 all = 3.0 * (double)(height * width);
    f.share = (real)(-a->lambda / averaged);
    f.step = (real)((1 - a->lambda) / all);
    f.slope = (real *)call->scratch;
    f.sum = (double *)((char *)call->scratch + slopes_bytes(d));
    f.gradient = (real *)gradient->data;
    f.gradient_i = gradient->stride[0];
    f.gradient_j = gradient->stride[1];
    const results to = {(double *)call->out[GS_LOSS].data,
                        (double *)call->out[GS_LOSS_L1].data,
                        (double *)call->out[GS_LOSS_SSIM].data,
                        a->lambda,
                        all,
                        averaged};
    const cudaStream_t stream = fth_cuda_stream(call);
    if (blocks) FTH_LAUNCH(map_pieces<real>, (unsigned)blocks, THREADS, stream, f);
    FTH_LAUNCH(add_pieces, 1, ADDERS, stream, (const double *)f.sum, blocks, to);
    if (blocks && f.gradient) FTH_LAUNCH(slope_pieces<real>, (unsigned)blocks, THREADS, stream, f);
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
