/* evaluate.c - see evaluate.h. */
#include "evaluate.h"

#include "../scan/scan.h"
#include "draw.h"

#include <math.h>
#include <string.h>

pt_metrics_options pt_evaluate_options(const fth_config *cfg)
{
    return (pt_metrics_options){.skip_registration = fth_config_bool(cfg, "skip_registration"),
                                .align = strcmp(fth_config_text(cfg, "phase_align"), "mean") == 0
                                             ? PT_ALIGN_MEAN
                                             : PT_ALIGN_PLANE,
                                .upsample = (int)fth_config_int(cfg, "registration_upsample"),
                                .frc_sigma = fth_config_real(cfg, "frc_sigma")};
}

/* ---- against a truth ---- */

/* The part of the sample that both show, cropped from each. */
static fth_status cut_out(const pt_evaluation *e, const pt_recon *truth, const pt_recon *recon,
                          int64_t margin, pt_image *t, pt_image *r, fth_err *err)
{
    fth_mem *mem = fth_context_mem(e->ctx);
    pt_overlay o;
    FTH_TRY(pt_recon_overlay(truth, recon, margin, &o, err));
    FTH_TRY(pt_image_crop(t, mem, &truth->object, o.first_row, o.first_col, o.rows, o.cols, err));
    return pt_image_crop(r, mem, &recon->object, o.second_row, o.second_col, o.rows, o.cols, err);
}

static fth_status compare(const pt_evaluation *e, const pt_recon *truth, const pt_recon *recon,
                          pt_found *out, pt_image *aligned, pt_image *compared, fth_err *err)
{
    pt_metrics_options opt = pt_evaluate_options(e->config);
    pt_image t = {0}, r = {0};
    opt.aligned = aligned;
    opt.compared = compared;
    fth_status s =
        cut_out(e, truth, recon, fth_config_int(e->config, "evaluate_margin"), &t, &r, err);
    if (s == FTH_OK) s = pt_metrics_compute(&out->metrics, e->ctx, &t, &r, &opt, err);
    out->has_metrics = s == FTH_OK;
    pt_image_free(&t);
    pt_image_free(&r);
    return s;
}

/* Only where both halves were scanned: unscanned borders are equal in both and would correlate. */
static fth_status correlate_halves(const pt_evaluation *e, const pt_recon *second,
                                   const pt_recon *first, pt_found *out, fth_err *err)
{
    pt_image a = {0}, b = {0};
    fth_status s = cut_out(e, second, first, 0, &b, &a, err);
    if (s == FTH_OK) s = pt_halves_compute(&out->halves, e->ctx, &a, &b, err);
    out->has_halves = s == FTH_OK;
    pt_image_free(&a);
    pt_image_free(&b);
    return s;
}

/* ---- against the patterns ---- */

static fth_status explain(const pt_evaluation *e, const pt_recon *recon, pt_found *out,
                          fth_err *err)
{
    pt_scan scan;
    pt_scan_options opt;
    pt_scan_options_read(e->config, &opt);
    FTH_TRY(pt_scan_open(&scan, e->ctx, e->truth, &opt, err));
    pt_explained x = {.object = &recon->object,
                      .origin_x = recon->origin_x,
                      .origin_y = recon->origin_y,
                      .probe = recon->probe,
                      .x = scan.x,
                      .y = scan.y,
                      .xy_stride = 1,
                      .mask = scan.mask};
    fth_status s = FTH_OK;
    if (!recon->probe)
        s = FTH_FAIL(err, FTH_E_FILE_KEY,
                     "%s has no probe, which predicting the patterns of %s needs", recon->path,
                     e->truth);
    if (recon->positions && recon->n_positions == scan.n) {
        x.x = fth_tensor_data(recon->positions);
        x.y = x.x + 1;
        x.xy_stride = 2;
    }
    if (s == FTH_OK) s = pt_scan_view(&scan, PT_COUNTS, FTH_F32, &x.counts, err);
    if (s == FTH_OK) s = pt_residual_compute(&out->residual, e->ctx, &x, err);
    out->has_residual = s == FTH_OK;
    /* undo the intensity scale of the patterns: the deviance is of photons */
    if (isfinite(scan.meta.intensity_scale))
        out->residual.deviance *= scan.meta.intensity_scale * scan.meta.intensity_scale;
    if (out->pixel_m == 0 && isfinite(scan.meta.pixel_m)) out->pixel_m = scan.meta.pixel_m;
    pt_scan_close(&scan);
    return s;
}

/* ---- all of it ---- */

static fth_status with_recon(const pt_evaluation *e, const pt_recon *recon, pt_found *out,
                             pt_image *aligned, pt_image *compared, fth_err *err)
{
    fth_mem *mem = fth_context_mem(e->ctx);
    fth_err missing = {0};
    pt_recon truth = {0};
    const bool patterns = pt_has_patterns(mem, e->truth);
    fth_status s = pt_recon_open(&truth, mem, e->truth, &missing);
    const bool has_truth = s == FTH_OK;
    out->pixel_m = recon->pixel_m > 0 ? recon->pixel_m : truth.pixel_m;
    /* without an object in the scan, compare with its patterns */
    if (!has_truth && (!patterns || (s != FTH_E_FILE_KEY && s != FTH_E_FILE_FORMAT))) {
        if (err) *err = missing;
        return s;
    }
    s = FTH_OK;
    if (has_truth && fth_config_bool(e->config, "halves")) {
        s = correlate_halves(e, &truth, recon, out, err);
    } else if (has_truth) {
        s = compare(e, &truth, recon, out, aligned, compared, err);
    }
    pt_recon_close(&truth);
    if (s == FTH_OK && (!has_truth || (patterns && fth_config_bool(e->config, "residuals"))))
        s = explain(e, recon, out, err);
    return s;
}

fth_status pt_evaluate_files(const pt_evaluation *e, pt_found *out, pt_image *aligned,
                             pt_image *compared, fth_err *err)
{
    pt_recon recon = {0};
    *out = (pt_found){.align = pt_evaluate_options(e->config).align};
    FTH_TRY(pt_recon_open(&recon, fth_context_mem(e->ctx), e->recon, err));
    const fth_status s = with_recon(e, &recon, out, aligned, compared, err);
    pt_recon_close(&recon);
    if (s != FTH_OK) pt_found_clear(out);
    return s;
}

pt_verdict pt_found_verdict(const pt_found *f)
{
    return (pt_verdict){.metrics = f->has_metrics ? &f->metrics : NULL,
                        .residual = f->has_residual ? &f->residual : NULL,
                        .halves = f->has_halves ? &f->halves : NULL,
                        .align = f->align,
                        .pixel_m = f->pixel_m};
}

void pt_found_clear(pt_found *f)
{
    pt_metrics_clear(&f->metrics);
    pt_halves_clear(&f->halves);
    *f = (pt_found){0};
}

static fth_status save_all(const pt_evaluation *e, const pt_found *f, const pt_image *aligned,
                           const pt_image *compared, fth_err *err)
{
    fth_mem *mem = fth_context_mem(e->ctx);
    const pt_verdict v = pt_found_verdict(f);
    char path[FTH_PATH];
    FTH_TRY(fth_folder_make_all(mem, e->folder, err));
    FTH_TRY(fth_path_join(path, e->folder, PT_METRICS_JSON, err));
    FTH_TRY(pt_verdict_save_json(&v, mem, path, err));
    if (v.metrics) {
        FTH_TRY(fth_path_join(path, e->folder, PT_METRICS_CSV, err));
        FTH_TRY(pt_verdicts_save_csv(&v, 1, mem, path, err));
    }
    if (!v.metrics && !v.halves) return FTH_OK;
    FTH_TRY(fth_path_join(path, e->folder, PT_FRC_CSV, err));
    FTH_TRY(pt_verdict_save_curves(&v, mem, path, err));
    if (e->no_figures) return FTH_OK;
    FTH_TRY(fth_path_join(path, e->folder, PT_FRC_PNG, err));
    FTH_TRY(pt_verdicts_draw_frc(&v, 1, mem, path, NULL, err));
    if (!v.metrics) return FTH_OK;
    const pt_shown shown[2] = {{"reconstruction", aligned}, {"truth", compared}};
    FTH_TRY(fth_path_join(path, e->folder, PT_EVALUATION_PNG, err));
    return pt_draw_side_by_side(mem, shown, 2, f->align, true, path, NULL, err);
}

fth_status pt_evaluate(const pt_evaluation *e, pt_found *out, fth_err *err)
{
    pt_image aligned = {0}, compared = {0};
    FTH_TRY(pt_evaluate_files(e, out, &aligned, &compared, err));
    const fth_status s = save_all(e, out, &aligned, &compared, err);
    pt_image_free(&aligned);
    pt_image_free(&compared);
    if (s != FTH_OK) pt_found_clear(out);
    return s;
}
