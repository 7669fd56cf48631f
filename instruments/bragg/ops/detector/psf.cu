/* psf.cu - the point spread on a device: a thread per pixel adds up its sources in their order.
 *
 * Shares depend on the distance alone: a table of all of them is computed first where it is small
 * enough.
 */
#include "../render/device.h"

namespace
{
#include "psf_shape.c"

enum { THREADS = 128 };

struct image {
    const void *data;
    bool single;
    int64_t rows, cols, first, stride[2];
};

image image_of(const fth_tile *t, fth_dtype dtype)
{
    return image{t->data,      dtype == FTH_F32, t->extent[0],
                 t->extent[1], t->origin[0],     {t->stride[0], t->stride[1]}};
}

__device__ inline double photons_at(const image &in, int64_t y, int64_t x)
{
    const int64_t at = y * in.stride[0] + x * in.stride[1];
    return in.single ? (double)((const float *)in.data)[at] : ((const double *)in.data)[at];
}

/* ---- circles ---- */

__global__ void circles(br_psf psf, image in, int32_t *radius, int64_t r0, int64_t r1, double *lost,
                        int64_t l0, int64_t l1)
{
    const int64_t n = in.rows * in.cols;
    for (int64_t i = THREAD_INDEX; i < n; i += THREAD_COUNT) {
        const int64_t y = i / in.cols, x = i % in.cols;
        const double photons = photons_at(in, y, x);
        const int64_t r = br_psf_radius(&psf, photons);
        if (radius) radius[y * r0 + x * r1] = (int32_t)r;
        if (lost) lost[y * l0 + x * l1] = br_psf_outside(&psf, photons, r);
    }
}

fth_status circle_run(const fth_call *call)
{
    const br_psf *psf = (const br_psf *)call->node->attr;
    const image in = image_of(&call->in[0], call->node->in[0].dtype);
    const fth_tile *radius = &call->out[0], *lost = &call->out[1];
    FTH_LAUNCH(circles, blocks_for(in.rows * in.cols, THREADS), THREADS, fth_cuda_stream(call),
               *psf, in, (int32_t *)radius->data, radius->stride[0], radius->stride[1],
               (double *)lost->data, lost->stride[0], lost->stride[1]);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}

/* ---- the point spread ---- */

/* share[dy (reach + 1) + dx] */
__global__ void make_shares(br_psf psf, int64_t reach, double *share)
{
    const int64_t n = (reach + 1) * (reach + 1);
    for (int64_t i = THREAD_INDEX; i < n; i += THREAD_COUNT)
        share[i] = br_psf_share(&psf, i % (reach + 1), i / (reach + 1));
}

/* The largest radius of each row that is read: rows that reach no target are skipped. */
__global__ void make_widest(const int32_t *radius, int64_t rows, int64_t cols, int64_t r0,
                            int64_t r1, int32_t *widest)
{
    const int64_t y = THREAD_INDEX;
    if (y >= rows) return;
    int32_t most = 0;
    for (int64_t x = 0; x < cols; x++) {
        const int32_t r = radius[y * r0 + x * r1];
        if (r > most) most = r;
    }
    widest[y] = most;
}

struct smear {
    br_psf psf;
    image in;
    const int32_t *radius;
    int64_t r0, r1, circle_first;
    const double *share; /* NULL: too many */
    const int32_t *widest;
    int64_t reach;
    double *out;
    int64_t rows, cols, first, o0, o1;
};

__device__ inline double share_at(const smear &s, int64_t dx, int64_t dy)
{
    return s.share ? s.share[dy * (s.reach + 1) + dx] : br_psf_share(&s.psf, dx, dy);
}

__device__ double gathered(const smear &s, int64_t yt, int64_t xt)
{
    const int64_t top = s.in.first, last = top + s.in.rows - 1;
    double sum = 0;
    for (int64_t ys = yt - s.reach < top ? top : yt - s.reach; ys <= last && ys <= yt + s.reach;
         ys++) {
        const int64_t dy = ys < yt ? yt - ys : ys - yt, most = s.widest[ys - s.circle_first];
        if (most < dy) continue;
        const int64_t far = most < s.reach ? most : s.reach, from = xt < far ? 0 : xt - far,
                      to = xt + far < s.cols ? xt + far : s.cols - 1;
        for (int64_t xs = from; xs <= to; xs++) {
            const int64_t r = s.radius[(ys - s.circle_first) * s.r0 + xs * s.r1],
                          dx = xs < xt ? xt - xs : xs - xt;
            if (dx * dx + dy * dy > r * r) continue;
            const double photons = photons_at(s.in, ys - top, xs);
            sum += r == 0 ? photons : photons * share_at(s, dx, dy);
        }
    }
    return sum;
}

__global__ void __launch_bounds__(THREADS) spread(smear s)
{
    const int64_t n = s.rows * s.cols;
    for (int64_t i = THREAD_INDEX; i < n; i += THREAD_COUNT) {
        const int64_t y = i / s.cols, x = i % s.cols;
        s.out[y * s.o0 + x * s.o1] = gathered(s, s.first + y, x);
    }
}

enum { MOST_SHARES = 1 << 22 }; /* beyond that they are computed where needed */

int64_t shares_of(const fth_call *call)
{
    const int64_t reach = br_psf_reach((const br_psf *)call->node->attr);
    return (double)reach * (double)reach < (double)MOST_SHARES ? (reach + 1) * (reach + 1) : 0;
}

uint64_t smear_scratch(const fth_call *call)
{
    return (uint64_t)shares_of(call) * sizeof(double) +
           (uint64_t)call->in[1].extent[0] * sizeof(int32_t);
}

fth_status smear_run(const fth_call *call)
{
    const br_psf *psf = (const br_psf *)call->node->attr;
    const fth_tile *circle = &call->in[1], *out = &call->out[0];
    const int64_t shares = shares_of(call);
    double *share = (double *)call->scratch;
    int32_t *widest = (int32_t *)(share + shares);
    const cudaStream_t stream = fth_cuda_stream(call);
    const smear s = {.psf = *psf,
                     .in = image_of(&call->in[0], call->node->in[0].dtype),
                     .radius = (const int32_t *)circle->data,
                     .r0 = circle->stride[0],
                     .r1 = circle->stride[1],
                     .circle_first = circle->origin[0],
                     .share = shares ? share : NULL,
                     .widest = widest,
                     .reach = br_psf_reach(psf),
                     .out = (double *)out->data,
                     .rows = out->extent[0],
                     .cols = out->extent[1],
                     .first = out->origin[0],
                     .o0 = out->stride[0],
                     .o1 = out->stride[1]};
    if (shares) {
        FTH_LAUNCH(make_shares, blocks_for(shares, 64), 64, stream, *psf, s.reach, share);
        FTH_CUDA_LAUNCHED(call);
    }
    FTH_LAUNCH(make_widest, blocks_for(circle->extent[0], 64), 64, stream, s.radius,
               circle->extent[0], circle->extent[1], s.r0, s.r1, widest);
    FTH_CUDA_LAUNCHED(call);
    FTH_LAUNCH(spread, blocks_for(s.rows * s.cols, THREADS), THREADS, stream, s);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}
} // namespace

FTH_CUDA_KERNEL(bragg_psf_circle) = {.op = "bragg_psf_circle", .run = circle_run};
FTH_CUDA_KERNEL(bragg_psf) = {.op = "bragg_psf", .scratch = smear_scratch, .run = smear_run};
