/* estimate.c - a probe estimated from the patterns alone: the transform of the mean pattern gives
 * its width.
 */
#include "probe.h"

#include "../settings/settings.h"

#include <math.h>
#include <string.h>

#define PI 3.14159265358979323846

/* Sums over the rows of the mean amplitude: all that one line of its transform needs. */
static fth_status mean_columns(pt_scan *scan, double *sum, fth_err *err)
{
    const int64_t N = scan->N;
    fth_source amplitude;
    void *room = NULL;
    FTH_TRY(pt_scan_view(scan, PT_AMPLITUDE, FTH_F64, &amplitude, err));
    FTH_TRY(fth_mem_take(scan->mem, FTH_MEM_ANY, (uint64_t)(N * N) * sizeof(double), "a pattern",
                         &room, err));
    const double *v = room;
    fth_status s = FTH_OK;
    memset(sum, 0, (size_t)N * sizeof *sum);
    for (int64_t i = 0; s == FTH_OK && i < scan->n; i++) {
        const int64_t lo[3] = {i, 0, 0}, one[3] = {1, N, N};
        s = amplitude.read(amplitude.self, lo, one, room, err);
        for (int64_t k = 0; s == FTH_OK && k < N * N; k++)
            if (!scan->mask || scan->mask[k]) sum[k % N] += v[k] / (double)scan->n;
    }
    fth_mem_release(scan->mem, room, NULL);
    return s;
}

/* The second moment of the line through the middle of the transform's modulus. */
static double spread_of(const double *sum, int64_t N)
{
    double all = 0, moment = 0;
    for (int64_t i = 0; i < N; i++) {
        const double u = (double)(i - N / 2);
        double re = 0, im = 0;
        for (int64_t x = 0; x < N; x++) {
            const double phase = 2 * PI * u * (double)(x - N / 2) / (double)N;
            re += sum[x] * cos(phase);
            im += sum[x] * sin(phase);
        }
        const double q = hypot(re, im);
        all += q;
        moment += q * u * u;
    }
    return moment / all;
}

static void fill(fth_c128 *out, int64_t N, double spread, const double *mask, double wanted)
{
    double sum = 0;
    for (int64_t i = 0; i < N * N; i++) {
        const double y = (double)(i / N - N / 2) + 0.5, x = (double)(i % N - N / 2) + 0.5;
        out[i] = (fth_c128){(exp(-(x * x + y * y) / (2 * spread)) + 1e-9) * mask[i], 0};
        sum += out[i].re;
    }
    for (int64_t i = 0; i < N * N; i++) out[i].re *= wanted / sum;
}

fth_status pt_probe_estimate(pt_scan *scan, double default_scale, fth_c128 *out, fth_err *err)
{
    const int64_t N = scan->N;
    void *line = NULL, *image = NULL;
    double sum = 0;
    FTH_TRY(
        fth_mem_take(scan->mem, FTH_MEM_META, (uint64_t)N * sizeof(double), "sums", &line, err));
    fth_status s = fth_mem_take(scan->mem, FTH_MEM_ANY, (uint64_t)(N * N) * sizeof(double),
                                "default probe", &image, err);
    if (s == FTH_OK) s = mean_columns(scan, line, err);
    if (s == FTH_OK) s = pt_probe_default(scan->ctx, N, default_scale, image, err);
    if (s == FTH_OK) {
        for (int64_t i = 0; i < N * N; i++) sum += ((const double *)image)[i];
        pt_probe_mask_hard(N, image);
        const double spread = spread_of(line, N);
        if (spread > 0 && isfinite(spread))
            fill(out, N, spread, image, sum);
        else
            s = FTH_FAIL(err, FTH_E_NUMERIC,
                         "%s: no probe can be estimated: the mean pattern has no width",
                         scan->path);
    }
    fth_mem_release(scan->mem, image, NULL);
    fth_mem_release(scan->mem, line, NULL);
    return s;
}

fth_status pt_probe_settle(pt_scan *scan, const fth_config *cfg, fth_err *err)
{
    const int64_t count = scan->N * scan->N;
    const double scale = fth_config_real(cfg, "default_probe_scale");
    void *block = NULL;
    if (scan->modes > 0) return FTH_OK;
    FTH_TRY(pt_scan_hold(scan, (uint64_t)count * sizeof(fth_c128), "probe", &block, err));
    fth_c128 *probe = block;
    if (fth_config_choice(cfg, "probe_guess") == PT_GUESS_DEFAULT) {
        double *image = block; /* the first half, then spread from its end */
        FTH_TRY(pt_probe_default(scan->ctx, scan->N, scale, image, err));
        for (int64_t i = count; i-- > 0;) probe[i] = (fth_c128){image[i], 0};
    } else {
        FTH_TRY(pt_probe_estimate(scan, scale, probe, err));
    }
    scan->probe = probe;
    scan->modes = 1;
    return FTH_OK;
}
