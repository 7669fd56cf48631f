/* test_bragg_device.c - the founding image on a device: 2463 x 2527 pixels over ten steps of the
 * spindle, with 1, 10 and 100 domains, inside image and table and 64 MB.
 * seconds: 20 labels: gpu alone
 *
 * What counts is what the driver says is gone after the context was there. The image is the CPU's,
 * and the same bits within any budget and with any number of workers. Without a GPU some rows are
 * rendered, on a device made of the host.
 */
#include "testing/bragg/bragg.h"
#include "testing/bragg/bragg_run.h"
#include "testing/engine/host_device.h"

#include <math.h>

enum { SLOW = 2527, FAST = 2463 };
static const double more = 64e6;

typedef struct device {
    const fth_backend *made;
    const char *path;
    bool gpu; /* large enough for all of it */
} device;

static device real_device(void)
{
    fth_device *d;
    if (!t_device()) SKIP("FATHOM_TEST_DEVICE names no backend");
    return (device){.path = getenv("FATHOM_TEST_DEVICE"),
                    .gpu = strcmp(t_device_backend(&d)->name, "cuda") == 0};
}

static double table_bytes(const br_scene *s)
{
    return 8.0 * (double)((s->h_max - s->h_min + 2) * (s->k_max - s->k_min + 2) *
                          (s->l_max - s->l_min + 2));
}

static void check_bytes(const tb_case *c, const tb_run *run)
{
    const fth_run_report *r = &run->report;
    const double image = (double)(fth_dtype_size(run->dtype) * c->s.slow * c->s.fast);
    printf("%d domains, %s: planned %.2f MB, growth %.2f MB of at most %.2f MB\n",
           (int)c->s.mosaics, fth_dtype_name(run->dtype), 1e-6 * (double)r->planned_bytes,
           1e-6 * (double)r->growth_bytes, 1e-6 * (image + table_bytes(&c->s) + more));
    EQ_U64(r->ledger_bytes, r->planned_bytes);
    IS_TRUE(r->on_device && r->growth_known);
    LE_F64(r->planned_bytes, image + table_bytes(&c->s) + more);
    LE_F64(r->growth_bytes, image + table_bytes(&c->s) + more);
}

/* Default budget, then a small one; one worker, then four. */
static void *render(const tb_case *c, const device *d, fth_dtype dtype)
{
    const size_t bytes = (size_t)(fth_dtype_size(dtype) * c->s.slow * c->s.fast);
    char *image[2] = {malloc(bytes), malloc(bytes)};
    IS_TRUE(image[0] && image[1]);
    for (int i = 0; i < 3; i++) {
        tb_run run = {.dtype = dtype,
                      .image = image[i > 0],
                      .threads = i == 2 ? 4 : 1,
                      .device_bytes = i == 2 ? 16 << 20 : 0,
                      .through_a_file = i == 1,
                      .backend = d->made,
                      .backend_path = d->path};
        memset(run.image, 0xff, bytes);
        tb_render(c, &run);
        check_bytes(c, &run);
        if (i > 0) SAME_BYTES(image[0], image[1], bytes);
    }
    free(image[1]);
    return image[0];
}

static void founding(const device *d, int64_t domains, fth_dtype dtype)
{
    tb_case c;
    tb_founding(&c, domains, d->gpu ? SLOW : 1);
    void *image = render(&c, d, dtype);
    double sum = 0;
    for (int64_t i = 0; i < c.s.slow * c.s.fast; i++)
        sum += dtype == FTH_F32 ? (double)((float *)image)[i] : ((double *)image)[i];
    IS_TRUE(sum > 0);
    free(image);
    tb_free(&c);
}

/* Some rows, as the CPU makes them. */
static void compare_rows(const device *d, int64_t domains, int64_t rows)
{
    tb_case c;
    tb_founding(&c, domains, rows);
    double *want = calloc(SLOW * FAST, sizeof *want), most = 0;
    IS_TRUE(want != NULL);
    tb_run run = {.dtype = FTH_F64, .image = want, .threads = 2};
    tb_render(&c, &run);
    double *got = render(&c, d, FTH_F64);
    for (int64_t i = 0; i < SLOW * FAST; i++) most = fmax(most, want[i]);
    IS_TRUE(most > 0);
    for (int64_t i = 0; i < SLOW * FAST; i++)
        if (!(fabs(got[i] - want[i]) <= 1e-5 * fabs(want[i]) + 1e-9 * most))
            FAIL("pixel %lld is %.17g and not %.17g", (long long)i, got[i], want[i]);
    free(want);
    free(got);
    tb_free(&c);
}

TEST(rows_on_a_device_made_of_the_host)
{
    const device d = {.made = &t_host_backend};
    founding(&d, 1, FTH_F32);
    compare_rows(&d, 10, 1);
}

TEST(images)
{
    const device d = real_device();
    for (int64_t domains = 1; domains <= (d.gpu ? 100 : 1); domains *= 10) {
        founding(&d, domains, FTH_F32);
        founding(&d, domains, FTH_F64);
    }
}

TEST(rows_are_those_of_the_cpu)
{
    const device d = real_device();
    compare_rows(&d, 1, d.gpu ? 50 : 1);
    if (d.gpu) compare_rows(&d, 100, 2);
}

/* ---- the whole command ---- */

static double bytes_at(const char *text)
{
    double x = 0;
    char unit[8] = "";
    if (sscanf(text, "%lf %7s", &x, unit) != 2) FAIL("no size in '%.40s'", text);
    return x * (unit[0] == 'G' ? 0x1p30 : unit[0] == 'M' ? 0x1p20 : unit[0] == 'K' ? 0x1p10 : 1.0);
}

/* Every run that the command told of. */
static void check_text(const char *text, double most)
{
    int runs = 0;
    for (const char *at = text; (at = strstr(at, "ledger  ")); at++, runs++) {
        unsigned long long ledger = 0, planned = 1;
        if (sscanf(at, "ledger  %llu bytes, planned %llu", &ledger, &planned) != 2)
            FAIL("no numbers in '%.60s'", at);
        EQ_U64(ledger, planned);
        const char *growth = strstr(at, "growth  ");
        IS_TRUE(growth != NULL);
        printf("%.*s\n", (int)strcspn(growth, "\n"), growth);
        LE_F64(bytes_at(growth + 8), most);
    }
    IS_TRUE(runs > 0);
}

TEST(whole_commands)
{
    const device d = real_device();
    for (int domains = 1; domains <= (d.gpu ? 100 : 1); domains *= 10) {
        char args[400], folder[20];
        snprintf(args, sizeof args,
                 "-hkl P1_full.hkl -cell 40 45 50 90 90 90 -misset 10 20 30 -N 5 -lambda 1 "
                 "-distance 200 -pixel 0.172 -detpixels_f %d -detpixels_s %d -osc 1 -phisteps 10 "
                 "-mosaic 0.3 -mosaic_dom %d -oversample 1 -seed 1 -noprogress%s",
                 FAST, SLOW, domains, d.gpu ? "" : " -roi 0 2462 1200 1200");
        snprintf(folder, sizeof folder, "founding%d", domains);
        bg_run r = {.args = args, .compat = "spec"};
        bg_enter(&r, folder);
        OKE(bg_go(&r), &r.err);
        check_text(r.text, 4.0 * SLOW * FAST + 8.0 * 22 * 22 * 22 + more);
        free(r.text);
        bg_leave(&r);
    }
}

TEST_MAIN()
