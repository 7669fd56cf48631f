/* test_spatial_correlate.c - correlations of columns as a graph, against long hand. seconds: 3
 * labels: gpu
 *
 * On the CPU, on a device made of the host, and on the one whose backend FATHOM_TEST_DEVICE names.
 */
#include "instruments/spatial/statistics/correlate.h"
#include "testing/engine/host_device.h"
#include "testing/engine/op_device.h"

#include <math.h>

enum { CPU, HOST, NAMED, PLACES };
enum { CELLS = 500, ROWS = 120, KNOWN = 3, COLS = 5 };

static fth_context *context(int place)
{
    fth_options opt;
    fth_options_default(&opt);
    if (place == HOST) opt.backend = &t_host_backend;
    if (place == NAMED && !t_device()) return NULL;
    if (place == NAMED) opt.backend_path = getenv("FATHOM_TEST_DEVICE");
    if (place != CPU) opt.device = "cuda";
    opt.mem.budget_bytes = (uint64_t)1 << 30;
    opt.device_memory_bytes = 64 << 20;
    fth_context *ctx = NULL;
    fth_err err = {0};
    OKE(fth_context_create(&ctx, &opt, &err), &err);
    return ctx;
}

static double one(const sp_columns *c, int64_t i, int64_t j)
{
    const double x = c->data[(c->row ? c->row[i] : i) * c->cols + j];
    return c->log ? log(fmax(x, 1e-300)) : x;
}

static double by_hand(const sp_columns *a, int64_t k, const sp_columns *b, int64_t j, int64_t n)
{
    double sa = 0, sb = 0, aa = 0, bb = 0, ab = 0;
    for (int64_t i = 0; i < n; i++) sa += one(a, i, k) / (double)n, sb += one(b, i, j) / (double)n;
    for (int64_t i = 0; i < n; i++) {
        const double x = one(a, i, k) - sa, y = one(b, i, j) - sb;
        aa += x * x, bb += y * y, ab += x * y;
    }
    return ab / sqrt(aa * bb);
}

static void check(const sp_columns *a, const sp_columns *b, int64_t n)
{
    for (int place = 0; place < PLACES; place++) {
        fth_context *ctx = context(place);
        if (!ctx) continue;
        double got[KNOWN * COLS];
        fth_err err = {0};
        OKE(sp_correlate(got, ctx, a, b, n, &err), &err);
        for (int64_t k = 0; k < KNOWN; k++)
            for (int64_t j = 0; j < COLS; j++)
                NEAR(got[k * COLS + j], by_hand(a, k, b, j, n), 1e-12);
        IS_TRUE(place != HOST || t_host_device_seen().kernels > 0);
        OKE(fth_context_destroy(ctx, &err), &err);
    }
}

TEST(correlations_are_those_of_long_hand)
{
    static double truth[CELLS * KNOWN], all[CELLS * COLS];
    static int64_t row[ROWS];
    t_random r = t_random_make(1);
    for (int i = 0; i < CELLS * KNOWN; i++) truth[i] = t_random_normal(&r) + 100;
    for (int i = 0; i < CELLS * COLS; i++)
        all[i] = i % 17 ? exp(t_random_normal(&r)) + truth[i / COLS * KNOWN + i % KNOWN] - 98 : 0;
    for (int i = 0; i < ROWS; i++) row[i] = (i * 7) % CELLS;
    const sp_columns known = {truth, CELLS, KNOWN, NULL, false},
                     some = {truth, CELLS, KNOWN, row, false};
    for (int log = 0; log < 2; log++) {
        check(&known, &(sp_columns){all, CELLS, COLS, NULL, log}, CELLS);
        check(&some, &(sp_columns){all, CELLS, COLS, row, log}, ROWS);
        check(&some, &(sp_columns){all, ROWS, COLS, NULL, log}, ROWS);
    }
}

TEST_MAIN()
