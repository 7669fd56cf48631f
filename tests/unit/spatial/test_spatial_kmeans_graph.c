/* test_spatial_kmeans_graph.c - k-means on a device: the nearest centre as an operation, and the
 * centres of the CPU, with places that leave centres empty too. seconds: 6 labels: gpu
 *
 * Devices are one made of the host and the one whose backend FATHOM_TEST_DEVICE names.
 */
#include "instruments/spatial/inducing/inducing.h"
#include "instruments/spatial/ops/nearest/centre.h"
#include "testing/engine/host_device.h"
#include "testing/engine/op_device.h"
#include "testing/engine/op_harness.h"

#include <math.h>

/* ---- the operation ---- */

static void check(int cells, int centres, bool lattice, t_random *r)
{
    char axes[80];
    float *at = malloc(8 * (size_t)cells);
    double *of = malloc(16 * (size_t)centres);
    int32_t *got = malloc(4 * (size_t)cells);
    for (int i = 0; i < 2 * cells; i++)
        at[i] = (float)(lattice ? floor(t_random_f64(r) * 9) : t_random_f64(r) * 50);
    for (int i = 0; i < 2 * centres; i++)
        of[i] = lattice ? floor(t_random_f64(r) * 9) : t_random_f64(r) * 50;
    snprintf(axes, sizeof axes, "cell=%d dim=2 centre=%d", cells, centres);
    fth_graph *g = t_graph(axes);
    const fth_val v = sp_nearest_centre_(FTH_HERE, t_input(g, "at", FTH_F32, "cell dim", at),
                                         t_input(g, "of", FTH_F64, "centre dim", of));
    t_eval(v, got);
    for (int i = 0; i < cells; i++) {
        int best = 0;
        double least = HUGE_VAL;
        for (int c = 0; c < centres; c++) {
            const double dx = of[2 * c] - (double)at[2 * i],
                         dy = of[2 * c + 1] - (double)at[2 * i + 1], d2 = dx * dx + dy * dy;
            if (d2 < least) least = d2, best = c;
        }
        EQ_I64(got[i], best);
    }
    t_graph_free(g);
    free(at), free(of), free(got);
}

TEST(the_nearest_is_found)
{
    static const int shapes[][2] = {{300, 7}, {1, 1}, {5, 1100}, {700, 33}, {64, 2048}};
    t_random r = t_random_make(1);
    t_cuts(3);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int lattice = 0; lattice < 2; lattice++)
            check(shapes[i][0], shapes[i][1], lattice, &r);
}

TEST(places_have_two_coordinates)
{
    t_random r = t_random_make(2);
    fth_graph *g = t_graph("cell=4 dim=3 centre=2");
    sp_nearest_centre_(FTH_HERE, t_noise(g, "at", FTH_F32, "cell dim", &r),
                       t_noise(g, "of", FTH_F64, "centre dim", &r));
    REFUSED(g, FTH_E_AXIS_SIZE, "expected 2 coordinates");
    t_graph_free(g);
}

/* ---- all of it ---- */

enum { CPU, HOST, NAMED, PLACES };

static fth_context *context(int place, uint64_t device_bytes)
{
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = 2;
    opt.device_memory_bytes = device_bytes;
    if (place == HOST) opt.backend = &t_host_backend;
    if (place == NAMED && !t_device()) return NULL;
    if (place == NAMED) opt.backend_path = getenv("FATHOM_TEST_DEVICE");
    if (place != CPU) opt.device = "cuda";
    fth_context *ctx = NULL;
    fth_err err = {0};
    OKE(fth_context_create(&ctx, &opt, &err), &err);
    return ctx;
}

static double centres(fth_context *ctx, const float *xy, int64_t n, int64_t k, float *out)
{
    const sp_kmeans opt = {.k = k, .seed = 5, .restarts = 3, .worth = 1};
    double inertia = -1;
    fth_err err = {0};
    OKE(sp_kmeans_run(out, ctx, xy, n, &opt, &inertia, &err), &err);
    OKE(fth_context_destroy(ctx, &err), &err);
    return inertia;
}

/* Many places in one spot leave centres without any, which are then placed by the host. */
static void compare(int64_t n, int64_t k, bool spot)
{
    float *xy = malloc(8 * (size_t)n), *want = malloc(8 * (size_t)k), *got = malloc(8 * (size_t)k);
    t_random r = t_random_make(3);
    for (int64_t i = 0; i < 2 * n; i++)
        xy[i] = (float)(spot && i / 2 % 4 ? 40 + t_random_f64(&r) / 50 : t_random_f64(&r) * 100);
    const double here = centres(context(CPU, 0), xy, n, k, want);
    for (int place = HOST; place < PLACES; place++) {
        fth_context *ctx = context(place, 0);
        if (!ctx) continue;
        const double there = centres(ctx, xy, n, k, got);
        IS_TRUE(place != HOST || t_host_device_seen().kernels > 0);
        NEAR(there, here, 1e-9 * here);
        for (int64_t i = 0; i < 2 * k; i++) NEAR(got[i], want[i], 1e-4);
    }
    free(xy), free(want), free(got);
}

TEST(centres_are_those_of_the_cpu)
{
    compare(600, 12, false);
    compare(400, 40, true);
}

TEST(a_small_device_is_not_used)
{
    float xy[400], got[10];
    t_random r = t_random_make(4);
    for (int i = 0; i < 400; i++) xy[i] = (float)t_random_f64(&r);
    IS_TRUE(centres(context(HOST, 256), xy, 200, 5, got) > 0);
    EQ_I64(t_host_device_seen().kernels, 0);
}

TEST_MAIN()
