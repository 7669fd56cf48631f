/* ssim.c - measures of two images, in double; see eval.h. */
#include "../loss/mask.h"
#include "eval.h"

#include <math.h>
#include <string.h>

enum { HALF = 5, TAPS = 2 * HALF + 1, MOMENTS = 5 };

static double clamped(float v)
{
    return v >= 1 ? 1 : v > 0 ? (double)v : 0;
}

double gs_psnr(const float *image, const float *target, const uint8_t *mask, int64_t pixels)
{
    double sum = 0;
    int64_t kept = 0;
    for (int64_t i = 0; i < pixels; i++) {
        if (mask && mask[i] < GS_MASK_LEAST) continue;
        kept++;
        for (int c = 0; c < 3; c++) {
            const double d = clamped(image[3 * i + c]) - (double)target[3 * i + c];
            sum += d * d;
        }
    }
    const double mse = kept > 0 ? sum / (double)(3 * kept) : 0;
    return 20 * log10(1 / sqrt(mse > 1e-10 ? mse : 1e-10));
}

typedef struct bench {
    const float *image, *target;
    int64_t width, height;
    const uint8_t *flags; /* of pixels; NULL: there is no mask */
    double window[TAPS];
    double *moment[MOMENTS]; /* along rows, of one channel */
    double *row;             /* sum of the map of each row */
    int channel;
} bench;

static void fill_window(double window[TAPS], bool legacy)
{
    const double by = legacy ? 1.125 : 1 / (2 * 1.5 * 1.5); /* LichtFeld multiplies by sigma^2 */
    double sum = 0;
    for (int t = 0; t < TAPS; t++) sum += window[t] = exp(-by * (t - HALF) * (t - HALF));
    for (int t = 0; t < TAPS; t++) window[t] /= sum;
}

static void along(void *arg, int64_t i, int worker)
{
    bench *b = arg;
    (void)worker;
    for (int64_t j = 0; j < b->width; j++) {
        double m[MOMENTS] = {0};
        for (int t = 0; t < TAPS; t++) {
            const int64_t at = j + t - HALF;
            if (at < 0 || at >= b->width) continue;
            const int64_t k = 3 * (i * b->width + at) + b->channel;
            const double x = clamped(b->image[k]), y = (double)b->target[k], g = b->window[t];
            const double v[MOMENTS] = {x, y, x * x, y * y, x * y};
            for (int q = 0; q < MOMENTS; q++) m[q] += g * v[q];
        }
        for (int q = 0; q < MOMENTS; q++) b->moment[q][i * b->width + j] = m[q];
    }
}

static void across(void *arg, int64_t i, int worker)
{
    bench *b = arg;
    double sum = 0;
    (void)worker;
    for (int64_t j = 0; j < b->width; j++) {
        double m[MOMENTS] = {0};
        if (b->flags && !(b->flags[i * b->width + j] & GS_AVERAGED)) continue;
        for (int t = 0; t < TAPS; t++) {
            const int64_t at = i + t - HALF;
            if (at < 0 || at >= b->height) continue;
            for (int q = 0; q < MOMENTS; q++)
                m[q] += b->window[t] * b->moment[q][at * b->width + j];
        }
        const double xx = m[0] * m[0], yy = m[1] * m[1], xy = m[0] * m[1], c1 = 1e-4, c2 = 9e-4;
        sum += (2 * xy + c1) * (2 * (m[4] - xy) + c2) /
               ((xx + yy + c1) * (m[2] - xx + m[3] - yy + c2));
    }
    b->row[i] = sum;
}

/* Flags of the mask, in memory that is given back with them; how many pixels are averaged. */
static fth_status flag(fth_mem *mem, const gs_ssim_job *job, uint8_t **flags, int64_t *averaged,
                       fth_err *err)
{
    const int64_t n = job->width * job->height;
    void *block = NULL;
    *averaged = n;
    if (!job->mask) return FTH_OK;
    const uint64_t scratch = gs_mask_scratch(job->height, job->width);
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, (uint64_t)n + scratch, "flags of a mask", &block, err));
    gs_mask m = {.mask = job->mask,
                 .mask_i = job->width,
                 .mask_j = 1,
                 .height = job->height,
                 .width = job->width,
                 .scratch = block,
                 .flags = (uint8_t *)block + scratch};
    gs_mask_run(&m, NULL);
    memmove(block, m.flags, (size_t)n);
    *flags = block;
    *averaged = m.averaged;
    return FTH_OK;
}

static fth_status sum_map(fth_context *ctx, bench *b, double *sum, fth_err *err)
{
    fth_status s = FTH_OK;
    *sum = 0;
    for (b->channel = 0; b->channel < 3 && s == FTH_OK; b->channel++) {
        s = fth_context_loop(ctx, "ssim", b->height, along, b, err);
        if (s == FTH_OK) s = fth_context_loop(ctx, "ssim", b->height, across, b, err);
        for (int64_t i = 0; i < b->height && s == FTH_OK; i++) *sum += b->row[i];
    }
    return s;
}

fth_status gs_ssim(fth_context *ctx, const gs_ssim_job *job, double *out, fth_err *err)
{
    fth_mem *mem = fth_context_mem(ctx);
    const int64_t n = job->width * job->height;
    bench b = {
        .image = job->image, .target = job->target, .width = job->width, .height = job->height};
    void *block = NULL;
    uint8_t *flags = NULL;
    int64_t averaged = 0;
    double sum = 0;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, (uint64_t)(MOMENTS * n + job->height) * sizeof(double),
                         "moments of SSIM", &block, err));
    for (int q = 0; q < MOMENTS; q++) b.moment[q] = (double *)block + q * n;
    b.row = (double *)block + MOMENTS * n;
    fill_window(b.window, job->legacy);
    fth_status s = flag(mem, job, &flags, &averaged, err);
    b.flags = flags;
    if (s == FTH_OK) s = sum_map(ctx, &b, &sum, err);
    if (flags) (void)fth_mem_release(mem, flags, NULL);
    (void)fth_mem_release(mem, block, NULL);
    *out = averaged > 0 ? sum / (3.0 * (double)averaged) : 1;
    return s;
}
