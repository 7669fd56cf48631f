/* test_ptycho_metrics.c - metrics of two objects against numbers of the public PtychoPINN, and
 * properties that hold for any images.
 *
 * seconds: 2
 */
#include "instruments/ptycho/metrics/parts.h"
#include "testing/test.h"

#include <math.h>
#include <string.h>

typedef struct bench {
    fth_context *ctx;
    fth_mem *mem;
    fth_err err;
} bench;

static bench start(int threads)
{
    bench b = {0};
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = threads;
    opt.mem.budget_bytes = 64u << 20;
    OKE(fth_context_create(&b.ctx, &opt, &b.err), &b.err);
    b.mem = fth_context_mem(b.ctx);
    return b;
}

static void end(bench *b)
{
    OKE(fth_context_destroy(b->ctx, &b->err), &b->err);
}

static pt_image golden(bench *b, const char *name)
{
    fth_npz *npz = NULL;
    fth_source s;
    pt_image image;
    OKE(fth_npz_open(&npz, b->mem, "tests/golden/ptycho/g7_metrics.npz", &b->err), &b->err);
    OKE(fth_npz_source(npz, name, &s, &b->err), &b->err);
    OKE(pt_image_load(&image, b->mem, &s, 0, name, &b->err), &b->err);
    fth_source_close(&s);
    fth_npz_close(npz);
    return image;
}

/* Within 1e-4 of each number of a case, PSNR within 1e-3 dB, every ring within 1e-4. */
static void compare(const pt_metrics *m, const fth_json_value *want)
{
    static const pt_metric of[] = {PT_METRIC_MAE,      PT_METRIC_MSE,     PT_METRIC_PSNR,
                                   PT_METRIC_SSIM,     PT_METRIC_MS_SSIM, PT_METRIC_FRC50,
                                   PT_METRIC_FRC1OVER7};
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++)
        for (int part = 0; part < PT_PARTS; part++) {
            const double v = fth_json_get_real(
                fth_json_at(fth_json_get(want, pt_metric_name(of[i])), part), NULL, (double)NAN);
            IS_TRUE(isfinite(v));
            IS_TRUE(m->why[of[i]][part] == NULL);
            NEAR(m->value[of[i]][part], v, of[i] == PT_METRIC_PSNR ? 1e-3 : 1e-4 * fabs(v));
        }
    for (int part = 0; part < PT_PARTS; part++) {
        const fth_json_value *curve = fth_json_at(fth_json_get(want, "frc"), part);
        EQ_I64(m->rings, fth_json_count(curve));
        for (int64_t k = 0; k < m->rings; k++)
            NEAR(m->frc[part][k], fth_json_get_real(fth_json_at(curve, k), NULL, -1), 1e-4);
    }
}

TEST(golden_numbers_of_both_alignments)
{
    bench b = start(2);
    pt_image truth = golden(&b, "truth"), recon = golden(&b, "recon"), aligned = {0};
    pt_image want = golden(&b, "aligned_recon");
    fth_json *doc = NULL;
    pt_metrics m;
    OKE(fth_json_load(&doc, b.mem, "tests/golden/ptycho/g7_metrics.json", &b.err), &b.err);
    const fth_json_value *root = fth_json_root(doc);
    OKE(pt_metrics_compute(&m, b.ctx, &truth, &recon, &(pt_metrics_options){.aligned = &aligned},
                           &b.err),
        &b.err);
    const fth_json_value *shift = fth_json_get(root, "shift_found_yx");
    NEAR(m.shift.y, fth_json_get_real(fth_json_at(shift, 0), NULL, 9), 1e-6);
    NEAR(m.shift.x, fth_json_get_real(fth_json_at(shift, 1), NULL, 9), 1e-6);
    EQ_I64(aligned.rows, want.rows);
    for (int64_t i = 0; i < want.rows * want.cols; i++) {
        NEAR(aligned.at[i].re, want.at[i].re, 1e-6);
        NEAR(aligned.at[i].im, want.at[i].im, 1e-6);
    }
    compare(&m, fth_json_get(root, "after_registration_plane"));
    pt_metrics_clear(&m);
    OKE(pt_metrics_compute(&m, b.ctx, &truth, &recon,
                           &(pt_metrics_options){.skip_registration = true, .align = PT_ALIGN_MEAN},
                           &b.err),
        &b.err);
    compare(&m, fth_json_get(root, "unregistered_mean"));
    pt_metrics_clear(&m);
    fth_json_destroy(doc);
    pt_image_free(&truth);
    pt_image_free(&recon);
    pt_image_free(&aligned);
    pt_image_free(&want);
    end(&b);
}

/* A smooth field, periodic, of given size, shifted. */
static pt_image waves(bench *b, int64_t rows, int64_t cols, double dy, double dx)
{
    pt_image image;
    OKE(pt_image_make(&image, b->mem, "waves", rows, cols, &b->err), &b->err);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < cols; c++) {
            const double y = 6.283185307179586 * ((double)r - dy) / (double)rows,
                         x = 6.283185307179586 * ((double)c - dx) / (double)cols;
            const double a = 2 + 0.5 * sin(y) + 0.3 * cos(2 * x + 1) + 0.2 * sin(3 * y + 2 * x) +
                             0.15 * cos(5 * x - 4 * y),
                         p = 0.4 * cos(x) + 0.3 * sin(2 * y) + 0.2 * sin(x + 3 * y);
            image.at[r * cols + c] = (fth_c64){(float)(a * cos(p)), (float)(a * sin(p))};
        }
    return image;
}

TEST(shifts_are_found_and_undone)
{
    static const double shift[][2] = {{0, 0}, {3, -5}, {0.5, 0.26}, {-7.3, 11.72}};
    bench b = start(1);
    for (int odd = 0; odd < 2; odd++)
        for (size_t i = 0; i < sizeof shift / sizeof shift[0]; i++) {
            pt_image a = waves(&b, 64 + odd, 50 - odd, 0, 0), moved;
            pt_image c = waves(&b, 64 + odd, 50 - odd, shift[i][0], shift[i][1]);
            pt_shift found;
            OKE(pt_register(b.ctx, &a, &c, PT_BY_FIELD, 50, &found, &b.err), &b.err);
            NEAR(found.y, -shift[i][0], 0.0101);
            NEAR(found.x, -shift[i][1], 0.0101);
            OKE(pt_shift_apply(b.ctx, &c, (pt_shift){-shift[i][0], -shift[i][1]}, &moved, &b.err),
                &b.err);
            for (int64_t k = 0; k < a.rows * a.cols; k++) {
                NEAR(moved.at[k].re, a.at[k].re, 2e-6);
                NEAR(moved.at[k].im, a.at[k].im, 2e-6);
            }
            pt_image_free(&a);
            pt_image_free(&c);
            pt_image_free(&moved);
        }
    end(&b);
}

TEST(an_image_agrees_with_itself)
{
    bench b = start(1);
    pt_image a = waves(&b, 96, 80, 0, 0), c = waves(&b, 96, 80, 0, 0);
    pt_metrics m;
    /* a complex factor and a ramp of phase are no difference */
    for (int64_t i = 0; i < 96 * 80; i++) {
        const double p = 0.7 + 0.003 * (double)(i / 80) - 0.002 * (double)(i % 80);
        const fth_c64 v = c.at[i];
        c.at[i].re = (float)(3 * ((double)v.re * cos(p) - (double)v.im * sin(p)));
        c.at[i].im = (float)(3 * ((double)v.re * sin(p) + (double)v.im * cos(p)));
    }
    OKE(pt_metrics_compute(&m, b.ctx, &a, &c, NULL, &b.err), &b.err);
    EQ_F64(m.shift.y, 0);
    EQ_F64(m.shift.x, 0);
    for (int part = 0; part < PT_PARTS; part++) {
        LE_F64(m.value[PT_METRIC_MAE][part], 1e-6);
        NEAR(m.value[PT_METRIC_SSIM][part], 1, 1e-6);
        NEAR(m.value[PT_METRIC_MS_SSIM][part], 1, 1e-6);
        NEAR(m.frc[part][1], 1, 1e-6);
        NEAR(m.frc[part][5], 1, 1e-4);
    }
    pt_metrics_clear(&m);
    pt_image_free(&a);
    pt_image_free(&c);
    end(&b);
}

TEST(threads_do_not_change_a_bit)
{
    pt_metrics m[2];
    double curve[2][200];
    for (int i = 0; i < 2; i++) {
        bench b = start(1 + i);
        pt_image truth = golden(&b, "truth"), recon = golden(&b, "recon");
        OKE(pt_metrics_compute(&m[i], b.ctx, &truth, &recon, NULL, &b.err), &b.err);
        memcpy(curve[i], m[i].frc[PT_PART_PHASE], (size_t)m[i].rings * sizeof(double));
        const int64_t rings = m[i].rings;
        double value[PT_METRICS][PT_PARTS];
        memcpy(value, m[i].value, sizeof value);
        pt_metrics_clear(&m[i]);
        memcpy(m[i].value, value, sizeof value);
        m[i].rings = rings;
        pt_image_free(&truth);
        pt_image_free(&recon);
        end(&b);
    }
    EQ_I64(m[0].rings, m[1].rings);
    SAME_BYTES(m[0].value, m[1].value, sizeof m[0].value);
    SAME_BYTES(curve[0], curve[1], (size_t)m[0].rings * sizeof(double));
}

TEST(what_does_not_exist_has_a_reason)
{
    bench b = start(1);
    pt_image flat, a = waves(&b, 40, 40, 0, 0);
    pt_metrics m;
    OKE(pt_image_make(&flat, b.mem, "flat", 40, 40, &b.err), &b.err);
    for (int64_t i = 0; i < 1600; i++) flat.at[i] = (fth_c64){0.5f, 0};
    const pt_metrics_options opt = {.skip_registration = true};
    OKE(pt_metrics_compute(&m, b.ctx, &flat, &a, &opt, &b.err), &b.err);
    for (int part = 0; part < PT_PARTS; part++) {
        IS_TRUE(isnan(m.value[PT_METRIC_SSIM][part]) && isnan(m.value[PT_METRIC_FRC50][part]));
        HAS(m.why[PT_METRIC_SSIM][part], part == PT_PART_PHASE ? "zero" : "constant");
        IS_TRUE(isfinite(m.value[PT_METRIC_MAE][part]));
        IS_TRUE(m.why[PT_METRIC_MAE][part] == NULL);
    }
    pt_metrics_clear(&m);
    a.at[777].re = NAN;
    OKE(pt_metrics_compute(&m, b.ctx, &flat, &a, &opt, &b.err), &b.err);
    HAS(m.why[PT_METRIC_MAE][PT_PART_AMPLITUDE], "reconstruction has values that are not finite");
    pt_metrics_clear(&m);
    pt_image_free(&a);
    a = waves(&b, 7, 40, 0, 0);
    IS(pt_metrics_compute(&m, b.ctx, &flat, &a, NULL, &b.err), FTH_E_FILE_SHAPE);
    HAS(b.err.text, "7 x 40");
    pt_image_free(&flat);
    pt_image_free(&a);
    end(&b);
}

TEST(cut_offs_and_thresholds)
{
    const double curve[] = {1, 0.9, 0.7, 0.3, 0.1, 0.6}, low[] = {0.4, 0.9}, high[] = {1, 0.8};
    NEAR(pt_frc_cutoff(curve, 6, 0.5), 2.5, 1e-12);
    NEAR(pt_frc_cutoff(curve, 6, 1.0 / 7), 3 + (0.3 - 1.0 / 7) / 0.2, 1e-12);
    EQ_F64(pt_frc_cutoff(low, 2, 0.5), 0);
    EQ_F64(pt_frc_cutoff(high, 2, 0.5), 2);
    /* the published half-bit and one-bit curves (van Heel and Schatz 2005) */
    for (double n = 1; n < 1e6; n *= 3) {
        NEAR(pt_frc_threshold(PT_SNR_HALF_BIT, n),
             (0.2071 + 1.9102 / sqrt(n)) / (1.2071 + 0.9102 / sqrt(n)), 1e-4);
        NEAR(pt_frc_threshold(PT_SNR_ONE_BIT, n),
             (0.5 + 2.4142 / sqrt(n)) / (1.5 + 1.4142 / sqrt(n)), 1e-4);
    }
}

TEST_MAIN()
