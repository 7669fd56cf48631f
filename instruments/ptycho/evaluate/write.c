/* write.c - see write.h. */
#include "write.h"

#include "../figures/pictures.h"
#include "../metrics/parts.h"

#include <fathom/lines.h>

#include <math.h>
#include <stdio.h>

/* ---- JSON ---- */

static void write_pair(fth_json_writer *w, const char *key, double a, double b)
{
    fth_json_open_row(w, key, '[');
    fth_json_real(w, NULL, a);
    fth_json_real(w, NULL, b);
    fth_json_close(w);
}

static void write_list(fth_json_writer *w, const char *key, const double *v, int64_t n)
{
    fth_json_open_row(w, key, '[');
    for (int64_t i = 0; i < n; i++) fth_json_real(w, NULL, v[i]);
    fth_json_close(w);
}

static void write_undefined(fth_json_writer *w, const pt_metrics *m)
{
    bool any = false;
    for (int i = 0; i < PT_METRICS; i++)
        for (int part = 0; part < PT_PARTS; part++) any = any || m->why[i][part];
    if (!any) return;
    fth_json_open(w, "undefined", '{');
    for (int i = 0; i < PT_METRICS; i++) {
        if (!m->why[i][0] && !m->why[i][1]) continue;
        fth_json_open_row(w, pt_metric_name((pt_metric)i), '[');
        for (int part = 0; part < PT_PARTS; part++) fth_json_text(w, NULL, m->why[i][part]);
        fth_json_close(w);
    }
    fth_json_close(w);
}

static void write_metrics(fth_json_writer *w, const pt_verdict *v)
{
    const pt_metrics *m = v->metrics;
    for (int i = 0; i < PT_METRICS; i++)
        write_pair(w, pt_metric_name((pt_metric)i), m->value[i][0], m->value[i][1]);
    fth_json_real(w, "complex_correlation", m->correlation);
    fth_json_open(w, "frc", '[');
    write_list(w, NULL, m->frc[PT_PART_AMPLITUDE], m->rings);
    write_list(w, NULL, m->frc[PT_PART_PHASE], m->rings);
    fth_json_close(w);
    write_undefined(w, m);
    fth_json_bool(w, "registered", m->registered);
    if (m->registered) write_pair(w, "shift_found_yx", m->shift.y, m->shift.x);
    fth_json_text(w, "phase_align", v->align == PT_ALIGN_MEAN ? "mean" : "plane");
    fth_json_open_row(w, "compared", '[');
    fth_json_int(w, NULL, m->rows);
    fth_json_int(w, NULL, m->cols);
    fth_json_close(w);
    if (v->pixel_m > 0) {
        const double unit = v->pixel_m * (double)m->side;
        write_pair(w, "resolution_m", unit / m->value[PT_METRIC_FRC50][0],
                   unit / m->value[PT_METRIC_FRC50][1]);
    }
}

static void write_residual(fth_json_writer *w, const pt_residual *r)
{
    fth_json_real(w, "r_factor", r->r_factor);
    fth_json_real(w, "fourier_error", r->fourier_error);
    fth_json_real(w, "fourier_error_scaled", r->fourier_error_scaled);
    fth_json_real(w, "model_scale", r->scale);
    fth_json_real(w, "poisson_deviance", r->deviance);
    fth_json_int(w, "patterns", r->patterns);
    fth_json_int(w, "patterns_outside", r->outside);
}

static void write_halves(fth_json_writer *w, const pt_verdict *v)
{
    const pt_halves *h = v->halves;
    fth_json_open(w, "halves", '{');
    fth_json_real(w, "frc50", h->cut50);
    fth_json_real(w, "frc1over7", h->cut1over7);
    fth_json_real(w, "frc_half_bit", h->cut_half_bit);
    fth_json_real(w, "resolution_px", pt_resolution(h->side, h->cut_half_bit));
    if (v->pixel_m > 0)
        fth_json_real(w, "resolution_m", v->pixel_m * pt_resolution(h->side, h->cut_half_bit));
    write_pair(w, "shift_found_yx", h->shift.y, h->shift.x);
    write_pair(w, "ramp_removed_yx", h->ramp_y, h->ramp_x);
    write_list(w, "frc", h->frc, h->rings);
    fth_json_close(w);
}

void pt_verdict_json(const pt_verdict *v, fth_json_writer *w)
{
    if (v->metrics) write_metrics(w, v);
    if (v->residual) write_residual(w, v->residual);
    if (v->halves) write_halves(w, v);
}

fth_status pt_verdict_save_json(const pt_verdict *v, fth_mem *mem, const char *path, fth_err *err)
{
    fth_json_writer w;
    fth_json_begin(&w, mem, true);
    w.nan = FTH_JSON_NAN_NAME;
    fth_json_open(&w, NULL, '{');
    pt_verdict_json(v, &w);
    fth_json_close(&w);
    return fth_json_save(&w, path, err);
}

/* ---- CSV ---- */

fth_status pt_verdicts_save_csv(const pt_verdict *v, int n, fth_mem *mem, const char *path,
                                fth_err *err)
{
    fth_lines t;
    fth_lines_begin(&t, mem);
    fth_lines_add(&t, "metric");
    for (int k = 0; k < n; k++)
        for (int part = 0; part < PT_PARTS; part++) {
            char name[160];
            snprintf(name, sizeof name, "%.120s%s%s", v[k].name ? v[k].name : "",
                     v[k].name ? "_" : "", part ? "phase" : "amplitude");
            fth_lines_add(&t, ",");
            fth_lines_field(&t, name);
        }
    fth_lines_add(&t, "\n");
    for (int i = 0; i < PT_METRICS; i++) {
        fth_lines_add(&t, "%s", pt_metric_name((pt_metric)i));
        for (int k = 0; k < n; k++)
            for (int part = 0; part < PT_PARTS; part++) {
                fth_lines_add(&t, ",");
                if (v[k].metrics) fth_lines_real(&t, v[k].metrics->value[i][part]);
            }
        fth_lines_add(&t, "\n");
    }
    return fth_lines_save(&t, path, err);
}

static void curve_row(fth_lines *t, int64_t ring, int64_t side, const double *v, int n)
{
    fth_lines_add(t, "%lld,", (long long)ring);
    fth_lines_real(t, (double)ring / (double)side);
    for (int i = 0; i < n; i++) {
        fth_lines_add(t, ",");
        fth_lines_real(t, v[i]);
    }
    fth_lines_add(t, "\n");
}

fth_status pt_verdict_save_curves(const pt_verdict *v, fth_mem *mem, const char *path, fth_err *err)
{
    fth_lines t;
    fth_lines_begin(&t, mem);
    if (v->halves) {
        const pt_halves *h = v->halves;
        fth_lines_add(&t, "ring,per_pixel,halves,half_bit,one_bit\n");
        for (int64_t k = 0; k < h->rings; k++) {
            const double row[] = {h->frc[k], h->half_bit[k], h->one_bit[k]};
            curve_row(&t, k, h->side, row, 3);
        }
        return fth_lines_save(&t, path, err);
    }
    const pt_metrics *m = v->metrics;
    fth_lines_add(&t, "ring,per_pixel,amplitude,phase,half_bit,one_bit\n");
    for (int64_t k = 0; k < m->rings; k++) {
        const double n = m->ring_size[k];
        const double row[] = {m->frc[PT_PART_AMPLITUDE][k], m->frc[PT_PART_PHASE][k],
                              pt_frc_threshold(PT_SNR_HALF_BIT, n),
                              pt_frc_threshold(PT_SNR_ONE_BIT, n)};
        curve_row(&t, k, m->side, row, 4);
    }
    return fth_lines_save(&t, path, err);
}

/* ---- figure ---- */

static void frc_panel(fth_panel *p, const char *title)
{
    fth_panel_set(p, &(fth_panel_options){.title = title});
    fth_panel_axis(p, FTH_AXIS_X, &(fth_axis_options){.label = "ring"});
    fth_panel_axis(p, FTH_AXIS_Y,
                   &(fth_axis_options){.label = "correlation", .low = 0, .high = 1.02});
    fth_panel_reference(p, FTH_AXIS_Y, 0.5, &(fth_line){.dash = FTH_DASH_DASHED});
    fth_panel_reference(p, FTH_AXIS_Y, 1.0 / 7, &(fth_line){.dash = FTH_DASH_DOTTED});
}

fth_status pt_verdicts_draw_frc(const pt_verdict *v, int n, fth_mem *mem, const char *path,
                                uint64_t *bytes, fth_err *err)
{
    fth_figure *fig = NULL;
    const bool halves = n > 0 && v[0].halves;
    FTH_TRY(fth_figure_create(&fig, mem,
                              &(fth_figure_options){.panels = halves ? 1 : 2,
                                                    .panel_width = 4.4,
                                                    .panel_height = 3.4,
                                                    .title = "Fourier ring correlation"},
                              err));
    if (halves) {
        const pt_halves *h = v[0].halves;
        fth_panel *p = fth_figure_panel(fig, 0);
        frc_panel(p, "two halves of the patterns");
        fth_panel_line(p, (fth_column){0}, fth_column_of(FTH_F64, h->frc, h->rings),
                       &(fth_line){.label = "halves"});
        fth_panel_line(p, (fth_column){0}, fth_column_of(FTH_F64, h->half_bit, h->rings),
                       &(fth_line){.label = "half a bit", .width = 1});
        fth_panel_line(p, (fth_column){0}, fth_column_of(FTH_F64, h->one_bit, h->rings),
                       &(fth_line){.label = "one bit", .width = 1});
        return pt_figure_finish(fig, path, bytes, err);
    }
    for (int part = 0; part < PT_PARTS; part++) {
        fth_panel *p = fth_figure_panel(fig, part);
        frc_panel(p, part ? "phase" : "amplitude");
        for (int k = 0; k < n; k++)
            if (v[k].metrics)
                fth_panel_line(p, (fth_column){0},
                               fth_column_of(FTH_F64, v[k].metrics->frc[part], v[k].metrics->rings),
                               &(fth_line){.label = n > 1 ? v[k].name : NULL});
    }
    return pt_figure_finish(fig, path, bytes, err);
}

/* ---- human-readable table ---- */

static void print_metrics(const pt_verdict *v, FILE *out)
{
    const pt_metrics *m = v->metrics;
    fprintf(out, "%-12s %14s %14s\n", "metric", "amplitude", "phase");
    for (int i = 0; i < PT_METRICS; i++) {
        const int d = pt_metric_decimals((pt_metric)i);
        fprintf(out, "%-12s %14.*f %14.*f", pt_metric_name((pt_metric)i), d, m->value[i][0], d,
                m->value[i][1]);
        const char *why = m->why[i][0] ? m->why[i][0] : m->why[i][1];
        if (why) fprintf(out, "   %s", why);
        fprintf(out, "\n");
    }
    fprintf(out, "complex_correlation %.5f\n", m->correlation);
    if (m->registered)
        fprintf(out, "shift        y %.2f, x %.2f px%s\n", m->shift.y, m->shift.x,
                m->far ? ": more than a quarter of the image, check it" : "");
    fprintf(out, "compared     %lld x %lld px\n", (long long)m->rows, (long long)m->cols);
}

void pt_verdict_print(const pt_verdict *v, FILE *out)
{
    if (v->metrics) print_metrics(v, out);
    if (v->residual) {
        const pt_residual *r = v->residual;
        fprintf(out, "R-factor     %.5f of %lld patterns\n", r->r_factor, (long long)r->patterns);
        fprintf(out, "Fourier err  %.3e, %.3e after scaling the model by %.4g\n", r->fourier_error,
                r->fourier_error_scaled, r->scale);
        fprintf(out, "deviance     %.4f per pixel (Poisson)\n", r->deviance);
        if (r->outside)
            fprintf(out, "warning      %lld patches leave the object and were not counted\n",
                    (long long)r->outside);
    }
    if (v->halves) {
        const pt_halves *h = v->halves;
        fprintf(out, "half bit     ring %.2f of %lld: %.3f px", h->cut_half_bit,
                (long long)(h->side / 2), pt_resolution(h->side, h->cut_half_bit));
        if (v->pixel_m > 0)
            fprintf(out, ", %.4g m", v->pixel_m * pt_resolution(h->side, h->cut_half_bit));
        fprintf(out, "\nFRC 1/2      ring %.2f\nFRC 1/7      ring %.2f\n", h->cut50, h->cut1over7);
    }
}
