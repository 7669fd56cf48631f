/* test_ptycho_explained.c - what patterns and halves of them say about a reconstruction.
 *
 * Predicted patterns against sums written out, and two noisy halves whose correlation is known.
 * seconds: 4
 */
#include "instruments/ptycho/metrics/halves.h"
#include "instruments/ptycho/metrics/parts.h"
#include "instruments/ptycho/metrics/residual.h"
#include "testing/test.h"

#include <complex.h>
#include <math.h>
#include <string.h>

enum { N = 8, MODES = 2, SIDE = 20, PATTERNS = 5 };
static const double pi = 3.14159265358979323846;
static const double complex unit = (double complex)_Complex_I;

static fth_context *start(int threads)
{
    fth_context *ctx = NULL;
    fth_err err = {0};
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = threads;
    opt.mem.budget_bytes = 128u << 20;
    OKE(fth_context_create(&ctx, &opt, &err), &err);
    return ctx;
}

typedef struct scene {
    pt_image object;
    fth_tensor *probe;
    double x[PATTERNS], y[PATTERNS];
    fth_tensor *counts;
} scene;

static double wave(int64_t i, int64_t seed)
{
    return fth_random_normal_at(seed, 0, 0, i);
}

/* |F(P O)|^2 / N^2 summed over modes, by the definition; the probe moves by the fraction. */
static double predicted(const scene *s, int64_t j, int64_t kr, int64_t kc)
{
    const double wx = rint(s->x[j]), wy = rint(s->y[j]), fx = s->x[j] - wx, fy = s->y[j] - wy;
    const fth_c64 *probe = fth_tensor_data(s->probe);
    double sum = 0;
    for (int m = 0; m < MODES; m++) {
        double complex spectrum[N * N], total = 0;
        for (int u = 0; u < N; u++)
            for (int v = 0; v < N; v++) {
                double complex f = 0;
                for (int r = 0; r < N; r++)
                    for (int c = 0; c < N; c++) {
                        const fth_c64 p = probe[(m * N + r) * N + c];
                        f += ((double)p.re + unit * (double)p.im) *
                             cexp(-2 * unit * pi * (u * r + v * c) / N);
                    }
                const double fu = (u < N / 2 ? u : u - N) / (double)N,
                             fv = (v < N / 2 ? v : v - N) / (double)N;
                spectrum[u * N + v] = f * cexp(-2 * unit * pi * (fu * fy + fv * fx));
            }
        for (int r = 0; r < N; r++)
            for (int c = 0; c < N; c++) {
                double complex p = 0;
                for (int u = 0; u < N; u++)
                    for (int v = 0; v < N; v++)
                        p += spectrum[u * N + v] * cexp(2 * unit * pi * (u * r + v * c) / N) /
                             (N * N);
                const int64_t row = (int64_t)wy - N / 2 + r, col = (int64_t)wx - N / 2 + c;
                const fth_c64 o = s->object.at[row * SIDE + col];
                total += p * ((double)o.re + unit * (double)o.im) *
                         cexp(-2 * unit * pi * (double)(kr * r + kc * c) / N);
            }
        sum += creal(total * conj(total)) / (N * N);
    }
    return sum;
}

static void make(scene *s, fth_context *ctx)
{
    fth_mem *mem = fth_context_mem(ctx);
    fth_err err = {0};
    OKE(pt_image_make(&s->object, mem, "object", SIDE, SIDE, &err), &err);
    for (int64_t i = 0; i < SIDE * SIDE; i++)
        s->object.at[i] = (fth_c64){(float)(1 + 0.3 * wave(i, 1)), (float)(0.3 * wave(i, 2))};
    OKE(fth_tensor_create(&s->probe, mem, "probe", FTH_C64, 3, ((int64_t[]){MODES, N, N}), &err),
        &err);
    fth_c64 *p = fth_tensor_data(s->probe);
    for (int64_t i = 0; i < MODES * N * N; i++)
        p[i] = (fth_c64){(float)wave(i, 3), (float)wave(i, 4)};
    static const double at[PATTERNS][2] = {{5, 6}, {8.25, 9.6}, {12.5, 4.75}, {10, 13.1}, {2, 10}};
    for (int j = 0; j < PATTERNS; j++) {
        s->x[j] = at[j][0];
        s->y[j] = at[j][1];
    }
    OKE(fth_tensor_create(&s->counts, mem, "counts", FTH_F32, 3, ((int64_t[]){PATTERNS, N, N}),
                          &err),
        &err);
    float *k = fth_tensor_data(s->counts);
    for (int64_t j = 0; j + 1 < PATTERNS; j++) /* the last one leaves the object */
        for (int64_t r = 0; r < N; r++)
            for (int64_t c = 0; c < N; c++)
                k[(j * N + r) * N + c] = (float)predicted(s, j, (r + N / 2) % N, (c + N / 2) % N);
    for (int64_t i = 0; i < N * N; i++) k[(PATTERNS - 1) * N * N + i] = 1;
}

static fth_status read_counts(void *self, const int64_t *lo, const int64_t *n, void *dst,
                              fth_err *err)
{
    (void)err;
    memcpy(dst, (const float *)self + lo[0] * N * N, (size_t)(n[0] * N * N) * sizeof(float));
    return FTH_OK;
}

TEST(residuals_of_patterns)
{
    fth_context *ctx = start(2);
    fth_err err = {0};
    scene s;
    pt_residual r;
    make(&s, ctx);
    float *k = fth_tensor_data(s.counts);
    pt_explained e = {.object = &s.object,
                      .probe = s.probe,
                      .x = s.x,
                      .y = s.y,
                      .counts = {.kind = "test",
                                 .self = k,
                                 .dtype = FTH_F32,
                                 .n_axes = 3,
                                 .size = {PATTERNS, N, N},
                                 .read = read_counts}};
    OKE(pt_residual_compute(&r, ctx, &e, &err), &err);
    EQ_I64(r.patterns, PATTERNS - 1);
    EQ_I64(r.outside, 1);
    LE_F64(r.r_factor, 2e-6);
    LE_F64(r.fourier_error, 1e-11);
    LE_F64(fabs(r.deviance), 1e-9);
    NEAR(r.scale, 1, 1e-6);
    /* counts four times larger: amplitudes of the model are half of what is measured */
    for (int64_t i = 0; i < PATTERNS * N * N; i++) k[i] *= 4;
    OKE(pt_residual_compute(&r, ctx, &e, &err), &err);
    NEAR(r.r_factor, 0.5, 1e-6);
    NEAR(r.fourier_error, 0.25, 1e-6);
    NEAR(r.scale, 2, 1e-5);
    LE_F64(r.fourier_error_scaled, 1e-10);
    /* a pixel that is wrong and masked is not looked at */
    uint8_t mask[N * N];
    memset(mask, 1, sizeof mask);
    mask[19] = 0;
    for (int64_t j = 0; j < PATTERNS; j++) k[j * N * N + 19] = 1e9f;
    e.mask = mask;
    OKE(pt_residual_compute(&r, ctx, &e, &err), &err);
    NEAR(r.r_factor, 0.5, 1e-6);
    e.counts.size[1] = e.counts.size[2] = 16;
    IS(pt_residual_compute(&r, ctx, &e, &err), FTH_E_FILE_SHAPE);
    HAS(err.text, "8 x 8 pixels, the patterns are 16 x 16");
    pt_image_free(&s.object);
    fth_tensor_release(s.probe);
    fth_tensor_release(s.counts);
    fth_err_clear(&err);
    OKE(fth_context_destroy(ctx, &err), &err);
}

/* A signal of low frequencies in both halves, noise of its own in each. */
static pt_image half(fth_context *ctx, int64_t side, double noise, int64_t seed, double dy,
                     double ramp)
{
    pt_image image;
    fth_err err = {0};
    OKE(pt_image_make(&image, fth_context_mem(ctx), "half", side, side, &err), &err);
    for (int64_t r = 0; r < side; r++)
        for (int64_t c = 0; c < side; c++) {
            double v = 0, p;
            for (int k = 1; k < 12; k++)
                v += wave(k, 11) * sin(2 * pi * k * ((double)r - dy) / (double)side + k) *
                     cos(2 * pi * (12 - k) * (double)c / (double)side + wave(k, 12));
            p = 0.3 * v + ramp * (double)c;
            const int64_t i = r * side + c;
            image.at[i] = (fth_c64){(float)(cos(p) + noise * wave(i, seed)),
                                    (float)(sin(p) + noise * wave(i, seed + 1))};
        }
    return image;
}

TEST(halves_are_laid_over_and_correlated)
{
    fth_context *ctx = start(1);
    fth_err err = {0};
    pt_image a = half(ctx, 96, 0.1, 20, 0, 0), b = half(ctx, 96, 0.1, 30, 1.5, 0.02);
    pt_halves h;
    OKE(pt_halves_compute(&h, ctx, &a, &b, &err), &err);
    NEAR(h.shift.y, -1.5, 0.05);
    NEAR(h.shift.x, 0, 0.05);
    NEAR(h.ramp_x, -0.02, 0.003);
    NEAR(h.frc[3], 1, 0.05);
    IS_TRUE(h.frc[6] > 0.9);
    double far = 0;
    for (int64_t k = 36; k < 46; k++) far += h.frc[k] / 10;
    LE_F64(far, 0.25); /* noise does not correlate */
    IS_TRUE(h.cut_half_bit > 12 && h.cut_half_bit < 40);
    IS_TRUE(h.cut50 <= h.cut1over7);
    NEAR(pt_resolution(96, 24), 4, 1e-12);
    const double noisy = h.cut50;
    pt_halves_clear(&h);
    pt_image_free(&b);
    b = half(ctx, 96, 0.5, 30, 0, 0); /* more noise, less resolution */
    OKE(pt_halves_compute(&h, ctx, &a, &b, &err), &err);
    IS_TRUE(h.cut50 < noisy);
    pt_halves_clear(&h);
    pt_image_free(&a);
    pt_image_free(&b);
    OKE(fth_context_destroy(ctx, &err), &err);
}

TEST_MAIN()
