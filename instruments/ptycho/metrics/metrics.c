/* metrics.c - see metrics.h. */
#include "../object/blur.h"
#include "parts.h"

#include <math.h>
#include <string.h>

static const double pi = 3.14159265358979323846;
/* Pixels cut from each side where the shift wraps around; trim and steps per pixel where the
 * options have 0 (metrics.h). COMPAT_PEAK is that of PtychoPINN. */
enum { REGISTRATION_CUT = 2, DEFAULT_TRIM = 2, DEFAULT_UPSAMPLE = 50 };
#define COMPAT_PEAK 255.0
#define COMPAT_EPS 2.2e-16
#define MS_SSIM_SIGMA 1.0
/* An image whose values differ by less than single precision can tell is constant. */
#define CONSTANT 1e-6

static const struct {
    const char *name;
    int decimals;
} table[PT_METRICS] = {
#define PT_METRIC(id, name, decimals, doc) {name, decimals},
#include "metrics.def"
#undef PT_METRIC
};

const char *pt_metric_name(pt_metric m)
{
    return table[m].name;
}

int pt_metric_decimals(pt_metric m)
{
    return table[m].decimals;
}

/* Amplitudes and phases of both, and as much again to work in. */
enum { TRUTH, RECON, WORK_A, WORK_B, ARRAYS };

typedef struct comparison {
    fth_context *ctx;
    pt_metrics *out;
    const pt_metrics_options *opt;
    double *v[ARRAYS];
    int64_t rows, cols, n;
} comparison;

static void undefined(comparison *c, pt_metric m, pt_part part, const char *why)
{
    c->out->value[m][part] = (double)NAN;
    c->out->why[m][part] = why;
}

static void undefined_likeness(comparison *c, pt_part part, const char *why)
{
    static const pt_metric of[] = {PT_METRIC_SSIM, PT_METRIC_MS_SSIM, PT_METRIC_FRC50,
                                   PT_METRIC_FRC1OVER7};
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++) undefined(c, of[i], part, why);
    for (int64_t k = 0; k < c->out->rings; k++) c->out->frc[part][k] = (double)NAN;
}

static void differences(comparison *c, pt_part part, double range)
{
    const double *t = c->v[TRUTH], *r = c->v[RECON];
    double absolute = 0, square = 0;
    for (int64_t i = 0; i < c->n; i++) {
        const double d = t[i] - r[i];
        absolute += fabs(d);
        square += d * d;
    }
    const double mse = square / (double)c->n;
    c->out->value[PT_METRIC_MAE][part] = absolute / (double)c->n;
    c->out->value[PT_METRIC_MSE][part] = mse;
    c->out->value[PT_METRIC_PSNR][part] = 20 * log10(COMPAT_PEAK / (sqrt(mse) + COMPAT_EPS));
    c->out->value[PT_METRIC_PSNR_RANGE][part] = 20 * log10(range / sqrt(mse));
    if (range <= 0) undefined(c, PT_METRIC_PSNR_RANGE, part, "the truth is constant: no range");
}

/* SSIM compares amplitudes as they are and phases as shares of a turn. */
static fth_status similarity(comparison *c, pt_part part, double range, fth_err *err)
{
    double *x = c->v[WORK_A], *y = c->v[WORK_B], s;
    for (int64_t i = 0; i < c->n; i++) {
        const double t = c->v[TRUTH][i], r = c->v[RECON][i];
        x[i] = part == PT_PART_PHASE ? (t + pi) / (2 * pi) : t;
        y[i] = part == PT_PART_PHASE ? (r + pi) / (2 * pi) : r;
    }
    FTH_TRY(pt_ssim(c->ctx, x, y, c->rows, c->cols, part == PT_PART_PHASE ? 1 : range, &s, err));
    c->out->value[PT_METRIC_SSIM][part] = s;
    if (part == PT_PART_AMPLITUDE) {
        FTH_TRY(pt_blur(c->ctx, x, c->rows, c->cols, MS_SSIM_SIGMA, err));
        FTH_TRY(pt_blur(c->ctx, y, c->rows, c->cols, MS_SSIM_SIGMA, err));
    }
    return pt_ms_ssim(c->ctx, x, y, c->rows, c->cols, &c->out->value[PT_METRIC_MS_SSIM][part], err);
}

static fth_status rings(comparison *c, pt_part part, fth_err *err)
{
    pt_metrics *m = c->out;
    FTH_TRY(pt_frc(c->ctx, c->v[TRUTH], c->v[RECON], c->rows, c->cols, m->frc[part], m->ring_size,
                   err));
    FTH_TRY(pt_blur(c->ctx, m->frc[part], 1, m->rings, c->opt->frc_sigma, err));
    m->value[PT_METRIC_FRC50][part] = pt_frc_cutoff(m->frc[part], m->rings, 0.5);
    m->value[PT_METRIC_FRC1OVER7][part] = pt_frc_cutoff(m->frc[part], m->rings, 1.0 / 7);
    return FTH_OK;
}

static fth_status compare_part(comparison *c, pt_part part, fth_err *err)
{
    const pt_range t = pt_range_of(c->v[TRUTH], c->n), r = pt_range_of(c->v[RECON], c->n);
    const double range = t.high - t.low, scale = part == PT_PART_PHASE ? 1 : fmax(t.high, 1e-300);
    if (!isfinite(t.mean) || !isfinite(r.mean)) {
        const char *why = isfinite(t.mean) ? "the reconstruction has values that are not finite"
                                           : "the truth has values that are not finite";
        for (int m = 0; m < PT_METRICS; m++) undefined(c, (pt_metric)m, part, why);
        undefined_likeness(c, part, why);
        return FTH_OK;
    }
    differences(c, part, range);
    if (range <= CONSTANT * scale) {
        undefined_likeness(c, part,
                           t.high == 0 && t.low == 0
                               ? "the truth is zero"
                               : "the truth is constant: it has no structure to compare");
        undefined(c, PT_METRIC_PSNR_RANGE, part, "the truth is constant: no range");
        /* rings are counted all the same */
        return pt_frc(c->ctx, c->v[TRUTH], c->v[RECON], c->rows, c->cols, c->v[WORK_A],
                      c->out->ring_size, err);
    }
    if (c->rows < PT_SSIM_WINDOW || c->cols < PT_SSIM_WINDOW) {
        undefined(c, PT_METRIC_SSIM, part, "the images are smaller than a window of 7 x 7");
        undefined(c, PT_METRIC_MS_SSIM, part, "the images are smaller than a window of 7 x 7");
    } else {
        FTH_TRY(similarity(c, part, range, err));
    }
    return rings(c, part, err);
}

static fth_status take(comparison *c, fth_err *err)
{
    pt_metrics *m = c->out;
    void *block = NULL;
    for (int i = 0; i < ARRAYS; i++) {
        FTH_TRY(fth_mem_take(m->mem, FTH_MEM_ANY, (uint64_t)c->n * sizeof(double),
                             "images compared", &block, err));
        c->v[i] = block;
    }
    m->side = c->rows < c->cols ? c->rows : c->cols;
    m->rings = pt_frc_rings(m->side);
    FTH_TRY(fth_mem_take(m->mem, FTH_MEM_ANY, (uint64_t)m->rings * 3 * sizeof(double),
                         "ring correlations", &block, err));
    m->frc[PT_PART_AMPLITUDE] = block;
    m->frc[PT_PART_PHASE] = m->frc[PT_PART_AMPLITUDE] + m->rings;
    m->ring_size = m->frc[PT_PART_PHASE] + m->rings;
    memset(block, 0, (size_t)m->rings * 3 * sizeof(double));
    return FTH_OK;
}

/* Amplitudes, then phases: two arrays and two to work in are enough for both. */
static fth_status compare(comparison *c, const pt_image *truth, const pt_image *recon, fth_err *err)
{
    pt_split(truth, c->v[TRUTH], c->v[WORK_A]);
    pt_split(recon, c->v[RECON], c->v[WORK_A]);
    pt_scale_mean(c->v[TRUTH], c->v[RECON], c->n);
    FTH_TRY(compare_part(c, PT_PART_AMPLITUDE, err));
    pt_split(truth, c->v[WORK_A], c->v[TRUTH]);
    pt_split(recon, c->v[WORK_A], c->v[RECON]);
    pt_align_phase(c->v[TRUTH], c->rows, c->cols, c->opt->align);
    pt_align_phase(c->v[RECON], c->rows, c->cols, c->opt->align);
    return compare_part(c, PT_PART_PHASE, err);
}

/* ---- registration and cropping to one size ---- */

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static fth_status cut_edges(pt_image *image, fth_mem *mem, int64_t edge, fth_err *err)
{
    pt_image cut;
    if (edge <= 0) return FTH_OK;
    FTH_TRY(pt_image_crop(&cut, mem, image, edge, edge, image->rows - 2 * edge,
                          image->cols - 2 * edge, err));
    pt_image_free(image);
    *image = cut;
    return FTH_OK;
}

static fth_status lay_over(pt_metrics *m, fth_context *ctx, pt_image *truth, pt_image *recon,
                           const pt_metrics_options *opt, fth_err *err)
{
    pt_image moved;
    FTH_TRY(pt_register(ctx, truth, recon, PT_BY_AMPLITUDE,
                        opt->upsample > 0 ? opt->upsample : DEFAULT_UPSAMPLE, &m->shift, err));
    m->registered = true;
    m->far =
        fabs(m->shift.y) > (double)truth->rows / 4 || fabs(m->shift.x) > (double)truth->cols / 4;
    FTH_TRY(pt_shift_apply(ctx, recon, m->shift, &moved, err));
    pt_image_free(recon);
    *recon = moved;
    FTH_TRY(cut_edges(truth, m->mem, REGISTRATION_CUT, err));
    return cut_edges(recon, m->mem, REGISTRATION_CUT, err);
}

static fth_status keep_copy(pt_image *to, fth_mem *mem, const pt_image *from, fth_err *err)
{
    return to ? pt_image_crop(to, mem, from, 0, 0, from->rows, from->cols, err) : FTH_OK;
}

fth_status pt_metrics_compute(pt_metrics *out, fth_context *ctx, const pt_image *truth,
                              const pt_image *recon, const pt_metrics_options *opt, fth_err *err)
{
    static const pt_metrics_options plain = {0};
    if (!opt) opt = &plain;
    const int64_t rows = least(truth->rows, recon->rows), cols = least(truth->cols, recon->cols);
    const int64_t trim = opt->trim == 0 ? DEFAULT_TRIM : opt->trim < 0 ? 0 : opt->trim;
    const int64_t edge = trim + (opt->skip_registration ? 0 : REGISTRATION_CUT);
    *out = (pt_metrics){.mem = fth_context_mem(ctx)};
    if (rows - 2 * edge < 1 || cols - 2 * edge < 1)
        return FTH_FAIL(err, FTH_E_FILE_SHAPE,
                        "the images share %lld x %lld pixels, and %lld are cut from every side: "
                        "none are left to compare",
                        (long long)rows, (long long)cols, (long long)edge);
    comparison c = {.ctx = ctx, .out = out, .opt = opt};
    pt_image t = {0}, r = {0};
    fth_status s = pt_image_crop(&t, out->mem, truth, (truth->rows - rows) / 2,
                                 (truth->cols - cols) / 2, rows, cols, err);
    if (s == FTH_OK)
        s = pt_image_crop(&r, out->mem, recon, (recon->rows - rows) / 2, (recon->cols - cols) / 2,
                          rows, cols, err);
    if (s == FTH_OK && !opt->skip_registration) s = lay_over(out, ctx, &t, &r, opt, err);
    if (s == FTH_OK) s = keep_copy(opt->compared, out->mem, &t, err);
    if (s == FTH_OK) s = keep_copy(opt->aligned, out->mem, &r, err);
    if (s == FTH_OK) s = cut_edges(&t, out->mem, trim, err);
    if (s == FTH_OK) s = cut_edges(&r, out->mem, trim, err);
    c.rows = out->rows = t.rows;
    c.cols = out->cols = t.cols;
    c.n = c.rows * c.cols;
    if (s == FTH_OK) out->correlation = pt_complex_correlation(&t, &r);
    if (s == FTH_OK) s = take(&c, err);
    if (s == FTH_OK) s = compare(&c, &t, &r, err);
    for (int i = 0; i < ARRAYS; i++) (void)fth_mem_release(out->mem, c.v[i], NULL);
    pt_image_free(&t);
    pt_image_free(&r);
    if (s != FTH_OK) {
        if (opt->compared) pt_image_free(opt->compared);
        if (opt->aligned) pt_image_free(opt->aligned);
        pt_metrics_clear(out);
    }
    return s;
}

void pt_metrics_clear(pt_metrics *m)
{
    if (m->mem) (void)fth_mem_release(m->mem, m->frc[PT_PART_AMPLITUDE], NULL);
    *m = (pt_metrics){0};
}
