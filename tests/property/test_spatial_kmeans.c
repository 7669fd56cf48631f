/* test_spatial_kmeans.c - centres of k-means: as good as a plain reference, the same bits always.
 * seconds: 5 */
#include "testing/test.h"

#include "instruments/spatial/inducing/inducing.h"

#include <fathom/fathom.h>
#include <math.h>

static void *bytes(int64_t n)
{
    void *p = malloc((size_t)n + 1);
    if (!p) FAIL("no memory");
    return p;
}

static fth_context *context(int threads, uint64_t budget)
{
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = threads;
    opt.device = "cpu";
    opt.mem.budget_bytes = budget;
    fth_context *ctx = NULL;
    fth_err err = {0};
    OKE(fth_context_create(&ctx, &opt, &err), &err);
    return ctx;
}

static void drop(fth_context *ctx)
{
    fth_err err = {0};
    OKE(fth_context_destroy(ctx, &err), &err);
}

/* A third of them in a spot, or doubles, or even. */
static void place(t_random *r, int kind, float *xy, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        double x = t_random_f64(r) * 200, y = t_random_f64(r) * 100;
        if (kind == 1 && i % 3 == 0) x = t_random_normal(r) * 3 + 40, y = t_random_normal(r) + 20;
        if (kind == 2) x = floor(x / 8), y = floor(y / 8);
        if (kind == 3) y = 5;
        xy[2 * i] = (float)x;
        xy[2 * i + 1] = (float)y;
    }
}

static double square(const float *a, const double *b)
{
    const double dx = (double)a[0] - b[0], dy = (double)a[1] - b[1];
    return dx * dx + dy * dy;
}

/* Nearest centre of every place and the sum of squared distances, by looking at all. */
static double nearest(const float *xy, int64_t n, const double *c, int64_t k, int32_t *to)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t best = 0;
        for (int64_t j = 1; j < k; j++)
            if (square(xy + 2 * i, c + 2 * j) < square(xy + 2 * i, c + 2 * best)) best = j;
        if (to) to[i] = (int32_t)best;
        sum += square(xy + 2 * i, c + 2 * best);
    }
    return sum;
}

/* ---- a plain reference: k-means++ without greed, Lloyd until nothing moves ---- */

static void start_plain(t_random *r, const float *xy, int64_t n, double *c, int64_t k)
{
    double *d2 = bytes(8 * n);
    for (int64_t i = 0; i < n; i++) d2[i] = 1;
    for (int64_t j = 0; j < k; j++) {
        double sum = 0;
        for (int64_t i = 0; i < n; i++) sum += d2[i];
        double rest = t_random_f64(r) * sum;
        int64_t at = 0;
        while (at < n - 1 && (rest -= d2[at]) > 0) at++;
        for (int d = 0; d < 2; d++) c[2 * j + d] = (double)xy[2 * at + d];
        for (int64_t i = 0; i < n; i++) {
            const double now = square(xy + 2 * i, c + 2 * j);
            if (j == 0 || now < d2[i]) d2[i] = now;
        }
    }
    free(d2);
}

static double plain(t_random *r, const float *xy, int64_t n, int64_t k)
{
    double *c = bytes(16 * k), *sum = bytes(24 * k), best = HUGE_VAL;
    int32_t *to = bytes(4 * n);
    for (int restart = 0; restart < 10; restart++) {
        start_plain(r, xy, n, c, k);
        for (int step = 0; step < 100; step++) {
            nearest(xy, n, c, k, to);
            memset(sum, 0, (size_t)(24 * k));
            for (int64_t i = 0; i < n; i++) {
                for (int d = 0; d < 2; d++) sum[3 * to[i] + d] += (double)xy[2 * i + d];
                sum[3 * to[i] + 2] += 1;
            }
            for (int64_t j = 0; j < 2 * k; j++)
                if (sum[3 * (j / 2) + 2] > 0)
                    c[j] = sum[3 * (j / 2) + j % 2] / sum[3 * (j / 2) + 2];
        }
        const double now = nearest(xy, n, c, k, NULL);
        if (now < best) best = now;
    }
    free(c), free(sum), free(to);
    return best;
}

/* ---- ours ---- */

static double ours(fth_context *ctx, const float *xy, int64_t n, const sp_kmeans *opt, float *c)
{
    double inertia = -1;
    fth_err err = {0};
    OKE(sp_kmeans_run(c, ctx, xy, n, opt, &inertia, &err), &err);
    return inertia;
}

static double inertia_of(const float *xy, int64_t n, const float *c, int64_t k, int32_t *to)
{
    double *wide = bytes(16 * k);
    for (int64_t i = 0; i < 2 * k; i++) wide[i] = (double)c[i];
    const double sum = nearest(xy, n, wide, k, to);
    free(wide);
    return sum;
}

TEST(as_good_as_a_plain_reference)
{
    enum { N = 700, K = 25 };
    t_random r = t_random_make(4);
    float *xy = bytes(8 * N), c[2 * K];
    fth_context *ctx = context(2, 64 << 20);
    for (int kind = 0; kind < 4; kind++) {
        place(&r, kind, xy, N);
        const double got = ours(ctx, xy, N, &(sp_kmeans){.k = K, .seed = 42, .stream = 8}, c);
        /* Centres are rounded to f32, which costs nothing to first order. */
        NEAR(got, inertia_of(xy, N, c, K, NULL), 1e-5 * got);
        LE_F64(got, 1.02 * plain(&r, xy, N, K));
    }
    drop(ctx);
    free(xy);
}

TEST(centres_are_the_means_of_their_places)
{
    enum { N = 900, K = 40 };
    t_random r = t_random_make(5);
    float *xy = bytes(8 * N), c[2 * K];
    int32_t *to = bytes(4 * N);
    fth_context *ctx = context(1, 64 << 20);
    for (int kind = 0; kind < 4; kind++) {
        place(&r, kind, xy, N);
        ours(ctx, xy, N, &(sp_kmeans){.k = K, .seed = 1, .stream = 8}, c);
        inertia_of(xy, N, c, K, to);
        double sum[K][3] = {{0}}, shift = 0;
        for (int i = 0; i < N; i++) {
            for (int d = 0; d < 2; d++) sum[to[i]][d] += (double)xy[2 * i + d];
            sum[to[i]][2] += 1;
        }
        for (int j = 0; j < K; j++) {
            IS_TRUE(sum[j][2] > 0);
            for (int d = 0; d < 2; d++) {
                const double off = sum[j][d] / sum[j][2] - (double)c[2 * j + d];
                shift += off * off;
            }
        }
        /* The rule for stopping: a ten-thousandth of the mean variance, at most 2000 here. */
        LE_F64(shift, 0.25);
    }
    drop(ctx);
    free(xy), free(to);
}

TEST(the_same_bits_with_any_number_of_workers)
{
    enum { N = 3000, K = 100 };
    t_random r = t_random_make(6);
    float *xy = bytes(8 * N), c[4][2 * K];
    place(&r, 1, xy, N);
    const int threads[4] = {1, 2, 3, 16};
    for (int i = 0; i < 4; i++) {
        fth_context *ctx = context(threads[i], 256 << 20);
        ours(ctx, xy, N, &(sp_kmeans){.k = K, .seed = 42, .stream = 8}, c[i]);
        drop(ctx);
        SAME_BYTES(c[0], c[i], sizeof c[0]);
    }
    fth_context *ctx = context(1, 64 << 20);
    ours(ctx, xy, N, &(sp_kmeans){.k = K, .seed = 43, .stream = 8}, c[1]);
    IS_TRUE(memcmp(c[0], c[1], sizeof c[0]) != 0);
    /* Without a seed it is 123. */
    ours(ctx, xy, N, &(sp_kmeans){.k = K, .seed = 0, .stream = 8}, c[2]);
    ours(ctx, xy, N, &(sp_kmeans){.k = K, .seed = 123, .stream = 8}, c[3]);
    SAME_BYTES(c[2], c[3], sizeof c[0]);
    drop(ctx);
    free(xy);
}

TEST(more_restarts_and_iterations_are_no_worse)
{
    enum { N = 2000, K = 60 };
    t_random r = t_random_make(7);
    float *xy = bytes(8 * N), c[2 * K];
    place(&r, 0, xy, N);
    fth_context *ctx = context(1, 64 << 20);
    sp_kmeans opt = {.k = K, .seed = 42, .stream = 8, .restarts = 1, .iterations = 1};
    const double once = ours(ctx, xy, N, &opt, c);
    opt.iterations = 0;
    const double settled = ours(ctx, xy, N, &opt, c);
    opt.restarts = 0;
    const double ten = ours(ctx, xy, N, &opt, c);
    IS_TRUE(settled < once);
    LE_F64(ten, settled);
    drop(ctx);
    free(xy);
}

/* Places on few lattice points: distinct ones are fewer than places. */
TEST(every_centre_has_places_as_long_as_there_are_enough)
{
    t_random r = t_random_make(8);
    float xy[120], c[120];
    fth_context *ctx = context(2, 64 << 20);
    for (int round = 0; round < 300; round++) {
        const int64_t n = t_random_i64(&r, 1, 60), side = t_random_i64(&r, 1, 8);
        bool there[64] = {false};
        int64_t distinct = 0;
        for (int64_t i = 0; i < n; i++) {
            const int64_t x = t_random_i64(&r, 0, side - 1), y = t_random_i64(&r, 0, side - 1);
            distinct += !there[8 * y + x];
            there[8 * y + x] = true;
            xy[2 * i] = (float)x * 1.5f - 3;
            xy[2 * i + 1] = (float)y * 0.25f;
        }
        const int64_t k = t_random_i64(&r, 1, 60);
        const sp_kmeans opt = {.k = k, .seed = round, .stream = 8, .restarts = 2};
        fth_err err = {0};
        double inertia;
        if (k > distinct) {
            char text[64];
            IS(sp_kmeans_run(c, ctx, xy, n, &opt, &inertia, &err), FTH_E_NUMERIC);
            snprintf(text, sizeof text, "only %lld distinct positions", (long long)distinct);
            HAS(err.text, text);
            continue;
        }
        OKE(sp_kmeans_run(c, ctx, xy, n, &opt, &inertia, &err), &err);
        int32_t to[60];
        int64_t used = 0;
        bool taken[60] = {false};
        inertia_of(xy, n, c, k, to);
        for (int64_t i = 0; i < n; i++) used += !taken[to[i]], taken[to[i]] = true;
        EQ_I64(used, k);
        if (k == distinct) EQ_F64(inertia, 0);
    }
    drop(ctx);
}

static bool stop(void *user, double fraction)
{
    int *asked = user;
    LE_F64(fraction, 1);
    return ++*asked < 3;
}

TEST(it_can_be_cancelled)
{
    t_random r = t_random_make(9);
    float xy[2000], c[20];
    place(&r, 0, xy, 1000);
    fth_context *ctx = context(1, 64 << 20);
    int asked = 0;
    const sp_kmeans opt = {.k = 10, .seed = 1, .stream = 8, .progress = stop, .user = &asked};
    IS(sp_kmeans_run(c, ctx, xy, 1000, &opt, NULL, NULL), FTH_E_CANCELLED);
    IS_TRUE(asked >= 3);
    drop(ctx);
}

TEST(what_does_not_fit_is_refused_and_nothing_leaks)
{
    t_random r = t_random_make(10);
    float *xy = bytes(8 * 50000), c[20];
    place(&r, 0, xy, 50000);
    fth_context *ctx = context(2, 1 << 20);
    fth_err err = {0};
    IS(sp_kmeans_run(c, ctx, xy, 50000, &(sp_kmeans){.k = 10, .stream = 8}, NULL, &err),
       FTH_E_BUDGET);
    IS(sp_kmeans_run(c, ctx, xy, 100, &(sp_kmeans){.k = 0, .stream = 8}, NULL, NULL), FTH_E_USAGE);
    drop(ctx);
    free(xy);
}

TEST_MAIN()
