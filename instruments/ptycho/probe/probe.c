/* probe.c - see probe.h. */
#include "probe.h"

#include "../object/blur.h"
#include "../settings/settings.h"

#include <math.h>
#include <string.h>

#define PI 3.14159265358979323846
static const double floor_of_probe = 1e-9;

fth_status pt_probe_default(fth_context *ctx, int64_t N, double scale, double *out, fth_err *err)
{
    const double std = (double)N / (scale * PI * PI), middle = ((double)N - 1) / 2;
    double most = 0; /* the window's own maximum: with an even N no sample lies on the middle */
    for (int64_t i = 0; i < N; i++) {
        const double u = ((double)i - middle) / std;
        most = fmax(most, exp(-0.5 * u * u));
    }
    for (int64_t i = 0; i < N; i++)
        for (int64_t j = 0; j < N; j++) {
            const double u = ((double)i - middle) / std, v = ((double)j - middle) / std;
            const double f = exp(-0.5 * u * u) / most, g = exp(-0.5 * v * v) / most;
            out[i * N + j] = f * g > 0.5 ? 1 : 0;
        }
    FTH_TRY(pt_blur(ctx, out, N, N, 1, err));
    for (int64_t i = 0; i < N * N; i++) out[i] += floor_of_probe;
    return FTH_OK;
}

void pt_probe_mask_hard(int64_t N, double *out)
{
    for (int64_t i = 0; i < N; i++)
        for (int64_t j = 0; j < N; j++) {
            const double y = (double)(i - N / 2) + 0.5, x = (double)(j - N / 2) + 0.5;
            out[i * N + j] = sqrt(x * x + y * y) < (double)(N / 4) ? 1 : 0;
        }
}

/* One axis with zeros outside: the taps of line i, `step` apart, into out. */
static void smooth_line(const double *in, double *out, int64_t n, int64_t step, int64_t radius,
                        const double *weight)
{
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int64_t k = -radius; k <= radius; k++)
            if (i + k >= 0 && i + k < n) sum += weight[k + radius] * in[(i + k) * step];
        out[i * step] = sum;
    }
}

fth_status pt_probe_mask_soft(fth_context *ctx, int64_t N, double diameter, double sigma,
                              double *out, fth_err *err)
{
    fth_mem *mem = fth_context_mem(ctx);
    const int64_t radius = (int64_t)ceil(3 * sigma);
    const double r = (diameter > 0 ? diameter : (double)N / 2) / 2;
    void *other = NULL, *weights = NULL;
    double sum = 0, most = 0;
    for (int64_t i = 0; i < N * N; i++) {
        const double y = (double)(i / N - N / 2) + 0.5, x = (double)(i % N - N / 2) + 0.5;
        out[i] = sqrt(x * x + y * y) <= r ? 1 : 0;
    }
    if (!(sigma > 0)) return FTH_OK;
    FTH_TRY(
        fth_mem_take(mem, FTH_MEM_ANY, (uint64_t)(N * N) * sizeof(double), "mask", &other, err));
    const fth_status s = fth_mem_take(
        mem, FTH_MEM_META, (uint64_t)(2 * radius + 1) * sizeof(double), "weights", &weights, err);
    if (s == FTH_OK) {
        double *w = weights, *o = other;
        for (int64_t k = -radius; k <= radius; k++) {
            w[k + radius] = exp(-0.5 * (double)(k * k) / (sigma * sigma));
            sum += w[k + radius];
        }
        for (int64_t k = 0; k <= 2 * radius; k++) w[k] /= sum;
        for (int64_t i = 0; i < N; i++) smooth_line(out + i * N, o + i * N, N, 1, radius, w);
        for (int64_t j = 0; j < N; j++) smooth_line(o + j, out + j, N, N, radius, w);
        for (int64_t i = 0; i < N * N; i++) most = fmax(most, out[i]);
        for (int64_t i = 0; i < N * N; i++) out[i] = fmin(fmax(out[i] / most, 0), 1);
    }
    fth_mem_release(mem, weights, NULL);
    fth_mem_release(mem, other, NULL);
    return s;
}

double pt_probe_normalise(fth_c128 *probe, int64_t modes, int64_t N, const double *mask,
                          double scale)
{
    double sum = 0;
    for (int64_t i = 0; i < modes * N * N; i++)
        sum += hypot(probe[i].re, probe[i].im) * (mask ? mask[i % (N * N)] : 1);
    const double f = 1 / (scale * sum / (double)(modes * N * N));
    for (int64_t i = 0; i < modes * N * N; i++) {
        probe[i].re *= f;
        probe[i].im *= f;
    }
    return f;
}
