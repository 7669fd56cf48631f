/* test_splat_sparsity.c - ADMM of opacities: the k-th smallest of numbers against sorting, z and u
 * against a plain loop, rows that are pruned on the host and on a device.
 * labels: gpu
 * seconds: 2 */
#include "instruments/splat/sparsity/kth.h"
#include "instruments/splat/sparsity/sparsity.h"
#include "testing/engine/op_device.h"
#include "testing/splat/splat_device.h"

#include <math.h>
#include <stdlib.h>

static const uint64_t MiB = 1 << 20;

static int by_value(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

TEST(the_kth_smallest_is_that_of_sorting)
{
    enum { N = 500 };
    t_random r = t_random_make(1);
    for (int kind = 0; kind < 4; kind++) {
        float v[N], sorted[N];
        for (int i = 0; i < N; i++) {
            const double x = t_random_normal(&r);
            v[i] = (float)(kind == 0   ? x
                           : kind == 1 ? 0.5 + 1e-6 * x /* all digits but the last are the same */
                           : kind == 2 ? floor(2 * x)   /* many are equal */
                                       : x * exp(40 * t_random_f64(&r) - 20));
        }
        memcpy(sorted, v, sizeof v);
        qsort(sorted, N, sizeof *sorted, by_value);
        for (int k = 1; k <= N; k++) EQ_F64(gs_kth_smallest(v, N, k), sorted[k - 1]);
    }
    EQ_F64(gs_kth_smallest(&(float){-3}, 1, 1), -3);
}

/* One step of z and u, by the words of the method. */
static void plain(const float *logit, float *z, float *u, int64_t n, int64_t k, bool start)
{
    float *sorted = malloc((size_t)n * sizeof *sorted), *o = malloc((size_t)n * sizeof *o);
    for (int64_t i = 0; i < n; i++) {
        o[i] = (float)(1 / (1 + exp(-(double)logit[i])));
        sorted[i] = o[i] + u[i];
    }
    qsort(sorted, (size_t)n, sizeof *sorted, by_value);
    for (int64_t i = 0; i < n; i++) {
        const float x = o[i] + u[i];
        z[i] = k > 0 && x <= sorted[k - 1] ? 0 : x;
        if (!start) u[i] += o[i] - z[i];
    }
    free(sorted);
    free(o);
}

TEST(z_and_u_follow_the_opacities)
{
    static const double ratios[] = {0.6, 0, 0.999, 0.3};
    for (int c = 0; c < 4; c++) {
        const int64_t n = c == 3 ? 1 : 700, k = (int64_t)(ratios[c] * (double)n);
        fth_context *ctx = t_rows_context(2, 64 * MiB);
        gs_rows rows;
        gs_sparsity s;
        float z[700], u[700] = {0};
        t_rows_make(&rows, ctx, n, n, 0, GS_ROWS_ADAM, (uint64_t)c);
        OK(gs_sparsity_create(&s, fth_context_mem(ctx), n, ratios[c], NULL));
        for (int turn = 0; turn < 4; turn++) {
            gs_rows_memory m;
            OK(gs_rows_open(&rows, &m, NULL));
            OK(turn ? gs_sparsity_update(&s, &rows, NULL) : gs_sparsity_begin(&s, &rows, NULL));
            plain(m.at[GS_VALUE][GS_OPACITY], z, u, n, k, turn == 0);
            SAME_BYTES(fth_tensor_view(s.z), z, (size_t)n * sizeof *z);
            SAME_BYTES(fth_tensor_view(s.u), u, (size_t)n * sizeof *u);
            const float *aim = fth_tensor_view(s.aim);
            int64_t none = 0;
            for (int64_t i = 0; i < n; i++) {
                EQ_F64(aim[i], z[i] - u[i]);
                none += z[i] == 0;
                m.at[GS_VALUE][GS_OPACITY][i] *= 0.9f; /* as training would move them */
            }
            EQ_I64(none, k);
        }
        gs_sparsity_free(&s);
        gs_rows_free(&rows);
        OK(fth_context_destroy(ctx, NULL));
    }
}

/* The rows that are left are the most opaque ones, whole and in their order. */
static void check_pruned(int64_t n, double ratio, bool ties, fth_context *device)
{
    fth_context *ctx = t_rows_context(2, 64 * MiB);
    gs_rows rows, other;
    gs_rows_memory m;
    const int64_t k = gs_sparsity_count(ratio, n);
    t_rows_make(&rows, ctx, n, n, 1, GS_ROWS_ADAM, 5);
    OK(gs_rows_open(&rows, &m, NULL));
    float *logit = malloc((size_t)n * sizeof *logit), *sorted = malloc((size_t)n * sizeof *logit),
          *left = malloc((size_t)n * 3 * sizeof *left);
    for (int64_t i = 0; i < n; i++) {
        if (ties) m.at[GS_VALUE][GS_OPACITY][i] = floorf(m.at[GS_VALUE][GS_OPACITY][i]);
        m.at[GS_SECOND][GS_MEANS][3 * i] = (float)i; /* moments go with their rows */
    }
    memcpy(logit, m.at[GS_VALUE][GS_OPACITY], (size_t)n * sizeof *logit);
    memcpy(sorted, logit, (size_t)n * sizeof *logit);
    qsort(sorted, (size_t)n, sizeof *sorted, by_value);
    if (device) {
        OK(gs_rows_create(&other, device, n, n, 1, GS_ROWS_ADAM | GS_ROWS_DEVICE, NULL));
        for (int p = 0; p < GS_PARTS; p++)
            for (int a = 0; a < GS_ATTRIBUTES; a++)
                OK(fth_tensor_put_rows(other.tensor[p][a], 0, n, m.at[p][a], NULL));
    }
    gs_rows *pruned = device ? &other : &rows;
    OK(gs_sparsity_prune(pruned, ratio, NULL));
    EQ_I64(pruned->n, n - k);
    OK(fth_tensor_get_rows(pruned->tensor[GS_SECOND][GS_MEANS], 0, n - k, left, NULL));
    int64_t equal = 0;
    for (int64_t i = 0; i < n - k; i++) {
        const int64_t was = (int64_t)left[3 * i];
        IS_TRUE(i == 0 || was > (int64_t)left[3 * i - 3]);
        IS_TRUE(k == 0 || logit[was] >= sorted[k - 1]);
        if (k > 0 && logit[was] == sorted[k - 1] && equal++ == 0) /* those before it are gone */
            for (int64_t j = was + 1, at = i + 1; j < n; j++)
                if (logit[j] == logit[was]) {
                    while (at < n - k && (int64_t)left[3 * at] < j) at++;
                    IS_TRUE(at < n - k && (int64_t)left[3 * at] == j);
                }
    }
    if (device) gs_rows_free(&other);
    gs_rows_free(&rows);
    free(logit);
    free(sorted);
    free(left);
    OK(fth_context_destroy(ctx, NULL));
}

TEST(the_least_opaque_rows_go)
{
    EQ_I64(gs_sparsity_count(0.6, 1001), 600);
    EQ_I64(gs_sparsity_count(0.999, 7), 6);
    for (int ties = 0; ties < 2; ties++) {
        check_pruned(1001, 0.6, ties, NULL);
        check_pruned(2, 0.5, ties, NULL);
        check_pruned(1, 0.9, ties, NULL);
        check_pruned(300, 0, ties, NULL);
    }
}

TEST(rows_on_a_device_are_pruned_alike)
{
    for (int threads = 0; threads < 2; threads++) {
        if (!threads && !t_device()) continue;
        fth_context *device = t_rows_device(128 * MiB, threads);
        if (!device) continue;
        check_pruned(1500, 0.6, true, device);
        OK(fth_context_destroy(device, NULL));
    }
}

TEST_MAIN()
