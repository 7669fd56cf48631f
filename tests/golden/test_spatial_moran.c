/* test_spatial_moran.c - Moran's I against the golden set, its p-values against long hand.
 * seconds: 5 labels: gpu
 *
 * On the CPU, on a device made of the host, and on the one whose backend FATHOM_TEST_DEVICE names.
 */
#include "testing/engine/host_device.h"
#include "testing/engine/op_device.h"
#include "testing/spatial/spatial_arrays.h"

#include "instruments/spatial/statistics/moran.h"

#include <fathom/graph.h>
#include <math.h>

enum { N = 300, L = 3 };

enum { CPU, HOST, NAMED, PLACES };

/* NULL: there is no such device. */
static fth_context *context(int threads, int place)
{
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = threads;
    opt.mem.budget_bytes = 64 << 20;
    opt.device_memory_bytes = 16 << 20;
    if (place == HOST) opt.backend = &t_host_backend;
    if (place == NAMED) opt.backend_path = getenv("FATHOM_TEST_DEVICE");
    if (place == NAMED && !t_device()) return NULL;
    if (place != CPU) opt.device = "cuda";
    fth_context *ctx = NULL;
    OK(fth_context_create(&ctx, &opt, NULL));
    return ctx;
}

static void drop(fth_context *ctx)
{
    fth_err err = {0};
    OKE(fth_context_destroy(ctx, &err), &err);
}

TEST(values_and_order_are_the_golden_ones)
{
    float *F = t_npz_f32(SPATIAL_GOLDEN("analysis.npz"), "F", NULL);
    float *X = t_npz_f32(SPATIAL_GOLDEN("data.npz"), "X", NULL);
    double *I = t_npz_f64(SPATIAL_GOLDEN("analysis.npz"), "moran", NULL);
    double *order = t_npz_f64(SPATIAL_GOLDEN("analysis.npz"), "moran_order", NULL);
    for (int place = 0; place < PLACES; place++) {
        fth_context *ctx = context(2, place);
        if (!ctx) continue;
        sp_moran m;
        fth_err err = {0};
        OKE(sp_moran_run(&m, ctx, X, F, N, L, &err), &err);
        for (int l = 0; l < L; l++) {
            NEAR(m.I[l], I[l], 1e-12);
            EQ_I64(m.order[l], (int64_t)order[l]);
        }
        sp_moran_clear(&m);
        IS_TRUE(place != HOST || t_host_device_seen().kernels > 0);
        drop(ctx);
    }
    free(F);
    free(X);
    free(I);
    free(order);
}

/* The usual formulas with the whole matrix of weights. */
static double chance(const float *xy, int n, double I)
{
    const int k = n - 1 < 6 ? n - 1 : 6;
    double *w = calloc((size_t)(n * n), sizeof *w), s1 = 0, s2 = 0;
    for (int i = 0; i < n; i++)
        for (int a = 0; a < k; a++) {
            int best = -1;
            double least = (double)INFINITY;
            for (int j = 0; j < n; j++) {
                const double dx = (double)xy[2 * i] - (double)xy[2 * j];
                const double dy = (double)xy[2 * i + 1] - (double)xy[2 * j + 1];
                if (j == i || w[i * n + j] > 0 || dx * dx + dy * dy >= least) continue;
                least = dx * dx + dy * dy;
                best = j;
            }
            w[i * n + best] = 1.0 / k;
        }
    for (int i = 0; i < n; i++) {
        double row = 0, col = 0;
        for (int j = 0; j < n; j++) {
            const double both = w[i * n + j] + w[j * n + i];
            s1 += both * both / 2;
            row += w[i * n + j];
            col += w[j * n + i];
        }
        s2 += (row + col) * (row + col);
    }
    free(w);
    const double m = n, e = -1 / (m - 1);
    const double v = (m * m * s1 - m * s2 + 3 * m * m) / ((m * m - 1) * m * m) - e * e;
    return 0.5 * erfc((I - e) / sqrt(2 * v));
}

static void check_chances(const float *X, fth_context *ctx)
{
    for (int n = 9; n <= 60; n += 17) {
        float x[60 * 2];
        for (int i = 0; i < n; i++) {
            x[2 * i] = X[2 * i];                     /* a slope */
            x[2 * i + 1] = (float)((i * 7919) % 13); /* nothing */
        }
        sp_moran m;
        OK(sp_moran_run(&m, ctx, X, x, n, 2, NULL));
        for (int l = 0; l < 2; l++) NEAR(m.p[l], chance(X, n, m.I[l]), 1e-12);
        IS_TRUE(n < 10 || (m.p[0] < 1e-6 && m.p[1] > 1e-3));
        NEAR(m.q[m.order[0]], fmin(1, 2 * m.p[m.order[0]]), 1e-15);
        sp_moran_clear(&m);
    }
}

TEST(chances_are_those_of_the_whole_matrix)
{
    float *X = t_npz_f32(SPATIAL_GOLDEN("data.npz"), "X", NULL);
    for (int place = 0; place < PLACES; place++) {
        fth_context *ctx = context(1, place);
        if (!ctx) continue;
        check_chances(X, ctx);
        drop(ctx);
    }
    free(X);
}

static void check_constant(const float *X, const float *x, fth_context *ctx)
{
    sp_moran m;
    OK(sp_moran_run(&m, ctx, X, x, N, 3, NULL));
    IS_TRUE(isnan(m.I[0]) && isnan(m.p[0]) && isnan(m.q[0]));
    EQ_I64(m.order[2], 0);
    EQ_I64(m.order[0], 2);
    sp_moran_clear(&m);
    /* A single cell has no neighbour. */
    OK(sp_moran_run(&m, ctx, X, x, 1, 3, NULL));
    IS_TRUE(isnan(m.I[0]) && isnan(m.I[2]));
    sp_moran_clear(&m);
}

TEST(a_constant_factor_has_no_value_and_comes_last)
{
    float *X = t_npz_f32(SPATIAL_GOLDEN("data.npz"), "X", NULL), x[N * 3];
    for (int i = 0; i < N; i++) {
        x[3 * i] = 0.1f;
        x[3 * i + 1] = (float)i;
        x[3 * i + 2] = X[2 * i + 1];
    }
    for (int place = 0; place < PLACES; place++) {
        fth_context *ctx = context(2, place);
        if (!ctx) continue;
        check_constant(X, x, ctx);
        drop(ctx);
    }
    free(X);
}

/* Where the device has too little room the host does it. */
TEST(a_small_device_is_not_used)
{
    float *F = t_npz_f32(SPATIAL_GOLDEN("analysis.npz"), "F", NULL);
    float *X = t_npz_f32(SPATIAL_GOLDEN("data.npz"), "X", NULL);
    double *I = t_npz_f64(SPATIAL_GOLDEN("analysis.npz"), "moran", NULL);
    fth_options opt;
    fth_options_default(&opt);
    opt.device = "cuda";
    opt.backend = &t_host_backend;
    opt.device_memory_bytes = 4096;
    fth_context *ctx = NULL;
    OK(fth_context_create(&ctx, &opt, NULL));
    sp_moran m;
    OK(sp_moran_run(&m, ctx, X, F, N, L, NULL));
    for (int l = 0; l < L; l++) NEAR(m.I[l], I[l], 1e-12);
    EQ_I64(t_host_device_seen().kernels, 0);
    sp_moran_clear(&m);
    drop(ctx);
    free(F);
    free(X);
    free(I);
}

TEST_MAIN()
