/* pictures.c - see pictures.h. */
#include "pictures.h"

#include "../recon/recon.h"
#include "view.h"

#include <math.h>
#include <stdio.h>

pt_pictures pt_pictures_of(const pt_recon *r, fth_mem *mem)
{
    pt_pictures p = {.mem = mem,
                     .object = r->object.at,
                     .object_dtype = FTH_C64,
                     .rows = r->object.rows,
                     .cols = r->object.cols,
                     .probe = r->probe ? fth_tensor_data(r->probe) : NULL,
                     .probe_dtype = FTH_C64,
                     .modes = r->modes,
                     .side = r->side,
                     .errors = r->errors ? fth_tensor_data(r->errors) : NULL,
                     .n_errors = r->n_errors,
                     .origin_x = r->origin_x,
                     .origin_y = r->origin_y,
                     .pixel_m = r->pixel_m};
    if (r->positions) {
        p.x = fth_tensor_data(r->positions);
        p.y = p.x + 1;
        p.xy_stride = 2;
        p.n_patterns = r->n_positions;
    }
    return p;
}

enum { MOST_MODES = 8, MOST_COLUMNS = 4 };

fth_status pt_figure_finish(fth_figure *fig, const char *path, uint64_t *bytes, fth_err *err)
{
    uint64_t need = 0;
    const fth_status s =
        bytes ? fth_figure_plan(fig, path, &need, err) : fth_figure_save(fig, path, err);
    if (bytes && need > *bytes) *bytes = need;
    fth_figure_destroy(fig);
    return s;
}

void pt_panel_size(int64_t rows, int64_t cols, double *width, double *height)
{
    const double ratio = (double)rows / (double)cols, bar = 1.2, title = 0.8, longest = 6;
    const double w = ratio > 1 ? longest / ratio : longest,
                 h = ratio > 1 ? longest : longest * ratio;
    *width = fmax(w, 2.2) + bar;
    *height = fmax(h, 1.6) + title;
}

double pt_scale_bar(int64_t cols, double pixel_m, char *label, size_t bytes)
{
    static const struct {
        double metres;
        const char *name;
    } unit[] = {{1e-3, "mm"}, {1e-6, "um"}, {1e-9, "nm"}, {1e-12, "pm"}};
    if (!(pixel_m > 0) || cols < 1) return 0;
    /* tolerance, so that rounding does not turn 200 pm into 100 */
    const double want = (double)cols * pixel_m / 5 * (1 + 1e-9), ten = pow(10, floor(log10(want)));
    const double length = want >= 5 * ten ? 5 * ten : want >= 2 * ten ? 2 * ten : ten;
    int u = 3;
    for (int i = 3; i >= 0; i--)
        if (length >= unit[i].metres * 0.999) u = i;
    snprintf(label, bytes, "%.3g %s", length / unit[u].metres, unit[u].name);
    return length / pixel_m;
}

/* ---- object ---- */

fth_status pt_draw_object(const pt_pictures *p, bool phase, const char *path, uint64_t *bytes,
                          fth_err *err)
{
    pt_view view = {.data = p->object,
                    .dtype = p->object_dtype,
                    .rows = p->rows,
                    .cols = p->cols,
                    .part = phase ? PT_VIEW_PHASE : PT_VIEW_AMPLITUDE};
    const fth_source source = pt_view_source(&view);
    double low = p->phase_low, high = p->phase_high;
    char label[32];
    fth_figure *fig = NULL;
    fth_figure_options opt = {.dpi = 150};
    /* few patterns illuminate the edge of a canvas, so its amplitudes can be anything */
    if (!phase || low == high) FTH_TRY(pt_view_limits(&view, p->mem, 0.5, 99.5, &low, &high, err));
    pt_panel_size(p->rows, p->cols, &opt.panel_width, &opt.panel_height);
    FTH_TRY(fth_figure_create(&fig, p->mem, &opt, err));
    fth_panel *panel = fth_figure_panel(fig, 0);
    const double bar = pt_scale_bar(p->cols, p->pixel_m, label, sizeof label);
    fth_panel_set(panel, &(fth_panel_options){.title = phase ? "reconstructed phase"
                                                             : "reconstructed amplitude",
                                              .colour_bar = phase ? "phase [rad]" : "amplitude",
                                              .scale_bar = bar,
                                              .scale_label = bar > 0 ? label : NULL});
    fth_panel_image(panel, fth_grid_source(&source),
                    &(fth_image){.colours = {.map = phase ? FTH_MAP_VIRIDIS : FTH_MAP_GRAY,
                                             .low = low,
                                             .high = high,
                                             .below = true,
                                             .above = true}});
    return pt_figure_finish(fig, path, bytes, err);
}

/* ---- probe ---- */

static double power_of(const pt_pictures *p, int64_t mode)
{
    const int64_t n = p->side * p->side;
    const float *f = (const float *)p->probe;
    const double *d = (const double *)p->probe;
    double sum = 0;
    for (int64_t i = 2 * mode * n; i < 2 * (mode + 1) * n; i++) {
        const double v = p->probe_dtype == FTH_C128 ? d[i] : (double)f[i];
        sum += v * v;
    }
    return sum;
}

static void add_mode(fth_figure *fig, pt_view *view, const fth_source *source, int64_t at,
                     const char *title)
{
    const bool phase = view->part == PT_VIEW_PHASE;
    fth_panel *panel = fth_figure_panel(fig, at);
    fth_panel_set(panel, &(fth_panel_options){.title = title,
                                              .colour_bar = phase ? "phase [rad]" : "amplitude"});
    fth_colours colours = {.map = phase ? FTH_MAP_TWILIGHT : FTH_MAP_VIRIDIS};
    if (phase) {
        colours.low = -3.14159265358979323846;
        colours.high = 3.14159265358979323846;
    }
    fth_panel_image(panel, fth_grid_source(source), &(fth_image){.colours = colours});
}

fth_status pt_draw_probe(const pt_pictures *p, const char *path, uint64_t *bytes, fth_err *err)
{
    const int64_t modes = p->modes < MOST_MODES ? p->modes : MOST_MODES;
    const int64_t across = modes < MOST_COLUMNS ? modes : MOST_COLUMNS,
                  bands = (modes + across - 1) / across;
    const char *base = p->probe;
    pt_view view[2 * MOST_MODES];
    fth_source source[2 * MOST_MODES];
    double total = 0;
    fth_figure *fig = NULL;
    FTH_TRY(fth_figure_create(&fig, p->mem,
                              &(fth_figure_options){.panels = 2 * bands * across,
                                                    .columns = across,
                                                    .panel_width = 3.6,
                                                    .panel_height = 3.2},
                              err));
    for (int64_t m = 0; m < p->modes; m++) total += power_of(p, m);
    for (int64_t m = 0; m < modes; m++) {
        const int64_t at = m / across * 2 * across + m % across;
        char title[96];
        for (int part = 0; part < 2; part++) {
            pt_view *v = &view[2 * m + part];
            *v = (pt_view){.data = base + m * p->side * p->side * fth_dtype_size(p->probe_dtype),
                           .dtype = p->probe_dtype,
                           .rows = p->side,
                           .cols = p->side,
                           .part = part ? PT_VIEW_PHASE : PT_VIEW_AMPLITUDE};
            source[2 * m + part] = pt_view_source(v);
        }
        snprintf(title, sizeof title, "mode %lld: power %.4g (%.1f %%)", (long long)m,
                 power_of(p, m), total > 0 ? 100 * power_of(p, m) / total : 0);
        add_mode(fig, &view[2 * m], &source[2 * m], at, title);
        add_mode(fig, &view[2 * m + 1], &source[2 * m + 1], at + across, "");
    }
    return pt_figure_finish(fig, path, bytes, err);
}

/* ---- errors ---- */

/* Epochs are counted from 1. */
static fth_status count_up(void *self, const int64_t *lo, const int64_t *n, void *dst, fth_err *err)
{
    double *out = dst;
    (void)self, (void)err;
    for (int64_t i = 0; i < n[0]; i++) out[i] = (double)(lo[0] + i + 1);
    return FTH_OK;
}

void pt_add_errors(const pt_pictures *p, fth_source *epochs, fth_panel *panel)
{
    bool positive = true;
    for (int64_t i = 0; i < p->n_errors; i++) positive = positive && !(p->errors[i] <= 0);
    *epochs = (fth_source){
        .kind = "epochs", .dtype = FTH_F64, .n_axes = 1, .size = {p->n_errors}, .read = count_up};
    fth_panel_set(panel, &(fth_panel_options){.title = "error by epoch"});
    fth_panel_line(panel, fth_column_row(epochs, 0), fth_column_of(FTH_F64, p->errors, p->n_errors),
                   NULL);
    fth_panel_axis(panel, FTH_AXIS_X, &(fth_axis_options){.label = "epoch"});
    fth_panel_axis(panel, FTH_AXIS_Y,
                   &(fth_axis_options){.label = p->errors_name ? p->errors_name : "R",
                                       .scale = positive ? FTH_SCALE_LOG : FTH_SCALE_LINEAR});
}

fth_status pt_draw_errors(const pt_pictures *p, const char *path, uint64_t *bytes, fth_err *err)
{
    fth_figure *fig = NULL;
    fth_source epochs;
    FTH_TRY(fth_figure_create(&fig, p->mem,
                              &(fth_figure_options){.panel_width = 5.2, .panel_height = 3.6}, err));
    pt_add_errors(p, &epochs, fth_figure_panel(fig, 0));
    return pt_figure_finish(fig, path, bytes, err);
}

/* ---- patterns ---- */

fth_status pt_draw_patterns(fth_mem *mem, const void *patterns, fth_dtype dtype, int64_t side,
                            const int64_t *number, int64_t n, const char *path, uint64_t *bytes,
                            fth_err *err)
{
    enum { MOST = 16 };
    const int64_t shown = n < MOST ? n : MOST, across = shown < MOST_COLUMNS ? shown : MOST_COLUMNS;
    const char *base = patterns;
    pt_view view[MOST];
    fth_source source[MOST];
    fth_figure *fig = NULL;
    FTH_TRY(fth_figure_create(
        &fig, mem,
        &(fth_figure_options){
            .panels = shown, .columns = across, .panel_width = 3.4, .panel_height = 3.0},
        err));
    for (int64_t i = 0; i < shown; i++) {
        char title[64];
        view[i] = (pt_view){.data = base + i * side * side * fth_dtype_size(dtype),
                            .dtype = dtype,
                            .rows = side,
                            .cols = side,
                            .part = PT_VIEW_LOG};
        source[i] = pt_view_source(&view[i]);
        snprintf(title, sizeof title, "pattern %lld", (long long)number[i]);
        fth_panel *panel = fth_figure_panel(fig, i);
        fth_panel_set(panel,
                      &(fth_panel_options){.title = title, .colour_bar = "log10(amplitude + 1)"});
        fth_panel_image(panel, fth_grid_source(&source[i]), NULL);
    }
    return pt_figure_finish(fig, path, bytes, err);
}

/* ---- all of them ---- */

fth_status pt_figures_reconstruction(const pt_pictures *p, const char *folder, uint64_t *bytes,
                                     fth_err *err)
{
    char path[FTH_PATH];
    if (p->object) {
        FTH_TRY(fth_path_join(path, folder, PT_AMPLITUDE_PNG, err));
        FTH_TRY(pt_draw_object(p, false, path, bytes, err));
        FTH_TRY(fth_path_join(path, folder, PT_PHASE_PNG, err));
        FTH_TRY(pt_draw_object(p, true, path, bytes, err));
    }
    if (p->probe) {
        FTH_TRY(fth_path_join(path, folder, PT_PROBE_PNG, err));
        FTH_TRY(pt_draw_probe(p, path, bytes, err));
    }
    if (p->errors && p->n_errors > 0) {
        FTH_TRY(fth_path_join(path, folder, PT_ERRORS_PNG, err));
        FTH_TRY(pt_draw_errors(p, path, bytes, err));
    }
    if (p->x && p->y && p->n_patterns > 0 && p->probe) {
        FTH_TRY(fth_path_join(path, folder, PT_OVERLAP_PNG, err));
        FTH_TRY(pt_draw_overlap(p, path, bytes, err));
    }
    return FTH_OK;
}
