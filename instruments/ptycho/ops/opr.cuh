/* opr.cuh - opr_lanes.h on a device: eigenprobes of a batch, and their shares in each pattern.
 *
 * Kernels of a pattern are a block, kernels of the batch's sums one block or a thread a pixel;
 * patterns are added in their order.
 */
#ifndef PT_OPS_OPR_CUH
#define PT_OPS_OPR_CUH

#include "sweep.cuh"

namespace
{
enum { OPR_SHARE, OPR_SIZE }; /* numbers of a pattern in `one` */
constexpr int OPR_NORM = 3;   /* in `found`: of the shares before they change */

template <typename T> __device__ inline double &of_pattern(const work<T> &w, int64_t i, int which)
{
    return w.one[i * SUMS + which];
}
template <typename T> __device__ inline double &share_of(const work<T> &w, int64_t i, int q)
{
    return w.shares[(w.first + i) * (w.rule.opr + 1) + q];
}
template <typename T> __device__ inline bool opr_stands(const work<T> &w)
{
    return size_of(w) == 0 || w.switches[PT_SWITCH_PROBE] == 0;
}

/* The first mode as pattern i (blockIdx.y) sees it. */
template <typename T> __global__ void mix_probe(const work<T> w)
{
    const int64_t i = blockIdx.y, all = 2 * w.nn, step = (int64_t)gridDim.x * blockDim.x;
    if (i >= size_of(w)) return;
    T *lit = w.lit + i * w.modes * all;
    for (int64_t p = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; p < all; p += step) {
        T sum = (T)share_of(w, i, 0) * w.probe[p];
        for (int q = 0; q < w.rule.opr; q++) sum += (T)share_of(w, i, q + 1) * w.eigen[q * all + p];
        lit[p] = sum;
    }
}

/* What a pattern wants of the first mode: conj(O) chi. Its share of the first trend is 1. */
template <typename T> __global__ void opr_rest(const work<T> w)
{
    const int64_t i = blockIdx.y, step = (int64_t)gridDim.x * blockDim.x;
    if (i >= size_of(w) || opr_stands(w)) return;
    const int64_t at = corner_of(w, i);
    const T *chi = w.chi + i * w.modes * 2 * w.nn;
    T *rest = w.rest + i * 2 * w.nn;
    for (int64_t p = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; p < w.nn; p += step)
        put(rest, w.nn, p, times_c(object_at(w, at, p / w.n, p % w.n), get(chi, w.nn, p)));
    if (blockIdx.x == 0 && threadIdx.x == 0) of_pattern(w, i, OPR_SHARE) = 1;
}

/* The mean over the batch of what is left over, each times its share. */
template <typename T> __global__ void opr_trend(const work<T> w, int subtract)
{
    const int64_t size = size_of(w), all = 2 * w.nn, step = (int64_t)gridDim.x * blockDim.x;
    if (opr_stands(w)) return;
    for (int64_t p = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; p < all; p += step) {
        T sum = 0;
        for (int64_t i = 0; i < size; i++)
            sum += (T)of_pattern(w, i, OPR_SHARE) * w.rest[i * all + p];
        sum *= 1 / (T)size;
        w.trend[p] = sum;
        for (int64_t i = 0; subtract && i < size; i++) w.rest[i * all + p] -= sum;
    }
}

/* One block: the squares of the shares. */
template <typename T> __global__ void opr_norm(const work<T> w, int q)
{
    const int64_t size = size_of(w);
    if (opr_stands(w)) return;
    double norm[1] = {0};
    for (int64_t i = threadIdx.x; i < size; i += blockDim.x)
        norm[0] += share_of(w, i, q + 1) * share_of(w, i, q + 1);
    sum_block(norm);
    if (threadIdx.x == 0) w.found[OPR_NORM] = norm[0];
}

/* Shares of the trend: mean Re(conj(rest) E), and what the pattern had. */
template <typename T> __global__ void opr_overlap(const work<T> w, int q)
{
    const int64_t i = blockIdx.x, all = 2 * w.nn;
    if (i >= size_of(w) || opr_stands(w) || !(w.found[OPR_NORM] > 0)) return;
    const T *rest = w.rest + i * all, *e = w.eigen + q * all;
    double sum[1] = {0};
    for (int64_t p = threadIdx.x; p < all; p += blockDim.x) sum[0] += (double)(rest[p] * e[p]);
    sum_block(sum);
    if (threadIdx.x == 0)
        of_pattern(w, i, OPR_SHARE) =
            (sum[0] / (double)w.nn + share_of(w, i, q + 1)) / w.found[OPR_NORM];
}

/* One block: the eigenprobe follows the trend; its mean square stays 1. */
template <typename T> __global__ void opr_follow(const work<T> w, int q)
{
    const int64_t all = 2 * w.nn;
    if (opr_stands(w) || !(w.found[OPR_NORM] > 0)) return;
    T *e = w.eigen + q * all;
    double sum[1] = {0};
    for (int64_t p = threadIdx.x; p < all; p += blockDim.x)
        sum[0] += (double)w.trend[p] * (double)w.trend[p];
    sum_block(sum);
    const double length = sqrt(2 * sum[0] / (double)all);
    const double part = 0.01 * (double)size_of(w);
    const T step = (T)(0.1 < part * length ? 0.1 / length : part);
    sum[0] = 0;
    for (int64_t p = threadIdx.x; p < all; p += blockDim.x) {
        if (length > 0) e[p] += step * w.trend[p];
        sum[0] += (double)e[p] * (double)e[p];
    }
    sum_block(sum);
    const double now = sqrt(2 * sum[0] / (double)all);
    for (int64_t p = threadIdx.x; now > 0 && p < all; p += blockDim.x)
        e[p] = (T)((double)e[p] / now);
}

/* share = mean Re(chi conj(O f)), size = mean |O f|^2; f: eigenprobe q, the probe where q < 0. */
template <typename T> __global__ void opr_along(const work<T> w, int q)
{
    const int64_t i = blockIdx.x;
    if (i >= size_of(w) || opr_stands(w) || (q >= 0 && !(w.found[OPR_NORM] > 0))) return;
    const int64_t at = corner_of(w, i);
    const T *f = q < 0 ? w.probe : w.eigen + q * 2 * w.nn, *chi = w.chi + i * w.modes * 2 * w.nn;
    double sum[2] = {0, 0};
    for (int64_t p = threadIdx.x; p < w.nn; p += blockDim.x) {
        const pair<T> u = times(object_at(w, at, p / w.n, p % w.n), get(f, w.nn, p));
        sum[0] += (double)times_c(u, get(chi, w.nn, p)).re;
        sum[1] += (double)power(u);
    }
    sum_block(sum);
    if (threadIdx.x > 0) return;
    of_pattern(w, i, OPR_SHARE) = sum[0] / (double)w.nn;
    of_pattern(w, i, OPR_SIZE) = sum[1] / (double)w.nn;
}

/* One block: the shares follow the patterns. */
template <typename T> __global__ void opr_shares(const work<T> w, int q)
{
    const int64_t size = size_of(w);
    if (opr_stands(w) || (q >= 0 && !(w.found[OPR_NORM] > 0))) return;
    double mean[1] = {0};
    for (int64_t i = threadIdx.x; q >= 0 && i < size; i += blockDim.x)
        mean[0] += of_pattern(w, i, OPR_SIZE) / (double)size;
    sum_block(mean);
    const double by = q < 0 ? 0.1 : 1;
    for (int64_t i = threadIdx.x; i < size; i += blockDim.x) {
        const double length = of_pattern(w, i, OPR_SIZE) + 0.1 * mean[0];
        if (length > 0) share_of(w, i, q + 1) += by * of_pattern(w, i, OPR_SHARE) / length;
    }
}

/* What is left over, without what the eigenprobe takes up. */
template <typename T> __global__ void opr_project(const work<T> w, int q)
{
    const int64_t i = blockIdx.x;
    if (i >= size_of(w) || opr_stands(w) || !(w.found[OPR_NORM] > 0)) return;
    const T *e = w.eigen + q * 2 * w.nn;
    T *rest = w.rest + i * 2 * w.nn;
    double sum[2] = {0, 0};
    for (int64_t p = threadIdx.x; p < w.nn; p += blockDim.x) {
        const pair<T> u = times_c(get(e, w.nn, p), get(rest, w.nn, p));
        sum[0] += (double)u.re;
        sum[1] += (double)u.im;
    }
    sum_block(sum);
    const pair<T> by = {(T)(sum[0] / (double)w.nn), (T)(sum[1] / (double)w.nn)};
    for (int64_t p = threadIdx.x; p < w.nn; p += blockDim.x) {
        const pair<T> was = get(rest, w.nn, p), u = times(by, get(e, w.nn, p));
        put(rest, w.nn, p, pair<T>{was.re - u.re, was.im - u.im});
    }
}

template <typename T> void queue_opr(const work<T> &w, cudaStream_t stream)
{
    const unsigned batch = (unsigned)w.rule.batch, pixels = fth_cuda_blocks(2 * w.nn, THREADS);
    FTH_LAUNCH(opr_rest<T>, dim3(pixels, batch), THREADS, stream, w);
    FTH_LAUNCH(opr_trend<T>, pixels, THREADS, stream, w, 1);
    for (int q = 0; q < w.rule.opr; q++) {
        FTH_LAUNCH(opr_norm<T>, 1, THREADS, stream, w, q);
        FTH_LAUNCH(opr_overlap<T>, batch, THREADS, stream, w, q);
        FTH_LAUNCH(opr_trend<T>, pixels, THREADS, stream, w, 0);
        FTH_LAUNCH(opr_follow<T>, 1, 32 * WARPS, stream, w, q);
        FTH_LAUNCH(opr_along<T>, batch, THREADS, stream, w, q);
        FTH_LAUNCH(opr_shares<T>, 1, THREADS, stream, w, q);
        FTH_LAUNCH(opr_project<T>, batch, THREADS, stream, w, q);
    }
    FTH_LAUNCH(opr_along<T>, batch, THREADS, stream, w, -1);
    FTH_LAUNCH(opr_shares<T>, 1, THREADS, stream, w, -1);
}
} // namespace

#endif
