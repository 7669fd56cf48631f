/* results.c - what the arms of a study came to: summary.csv, training_history.json, the figure. */
#include "../figures/pictures.h"
#include "../figures/view.h"
#include "../metrics/metrics.h"
#include "../recon/recon.h"
#include "../scan/scan.h"
#include "study.h"

#include <fathom/lines.h>

#include <math.h>
#include <string.h>

/* A member of a JSON file of an arm; false when the arm has not left it. */
static bool load(const pt_study *s, const pt_arm *arm, fth_mem *mem, const char *name,
                 fth_json **doc)
{
    char folder[FTH_PATH], path[FTH_PATH];
    fth_err ignored = {0};
    *doc = NULL;
    return fth_path_join(folder, s->dir, arm->name, &ignored) == FTH_OK &&
           fth_path_join(path, folder, name, &ignored) == FTH_OK && fth_path_exists(path) &&
           fth_json_load(doc, mem, path, &ignored) == FTH_OK;
}

/* ---- histories ---- */

static fth_status write_history(const pt_study *s, fth_mem *mem, fth_err *err)
{
    fth_json_writer w;
    char path[FTH_PATH];
    FTH_TRY(fth_path_join(path, s->dir, PT_STUDY_HISTORY, err));
    fth_json_begin(&w, mem, true);
    w.nan = FTH_JSON_NAN_NAME;
    fth_json_open(&w, NULL, '{');
    for (int i = 0; i < s->n_arms; i++) {
        fth_json *doc;
        if (load(s, &s->arm[i], mem, "training_history.json", &doc))
            fth_json_copy(&w, s->arm[i].name, fth_json_root(doc));
        else {
            fth_json_open(&w, s->arm[i].name, '{');
            fth_json_close(&w);
        }
        fth_json_destroy(doc);
    }
    fth_json_close(&w);
    return fth_json_save(&w, path, err);
}

/* The last number of a list; NaN when there is none. */
static double last_of(const fth_json_value *root, const char *name)
{
    const fth_json_value *list = fth_json_get(root, name);
    const int64_t n = fth_json_count(list);
    return n > 0 ? fth_json_get_real(fth_json_at(list, n - 1), NULL, (double)NAN) : (double)NAN;
}

/* ---- summary ---- */

typedef struct numbers {
    double metric[PT_METRICS][PT_PARTS], correlation, loss, val_loss;
} numbers;

static numbers numbers_of(const pt_study *s, const pt_arm *arm, fth_mem *mem)
{
    numbers v = {.correlation = (double)NAN};
    fth_json *doc;
    for (int m = 0; m < PT_METRICS; m++) v.metric[m][0] = v.metric[m][1] = (double)NAN;
    if (load(s, arm, mem, "metrics.json", &doc)) {
        v.correlation = fth_json_get_real(fth_json_root(doc), "complex_correlation", (double)NAN);
        for (int m = 0; m < PT_METRICS; m++) {
            const fth_json_value *pair =
                fth_json_get(fth_json_root(doc), pt_metric_name((pt_metric)m));
            for (int part = 0; part < PT_PARTS; part++)
                v.metric[m][part] = fth_json_get_real(fth_json_at(pair, part), NULL, (double)NAN);
        }
    }
    fth_json_destroy(doc);
    v.loss = v.val_loss = (double)NAN;
    if (load(s, arm, mem, "training_history.json", &doc)) {
        v.loss = last_of(fth_json_root(doc), "loss");
        v.val_loss = last_of(fth_json_root(doc), "val_loss");
    }
    fth_json_destroy(doc);
    return v;
}

static void add_number(fth_lines *t, double v)
{
    fth_lines_add(t, ",");
    if (!isnan(v)) fth_lines_real(t, v);
}

static fth_status write_summary(const pt_study *s, fth_mem *mem, fth_err *err)
{
    fth_lines t;
    char path[FTH_PATH];
    FTH_TRY(fth_path_join(path, s->dir, PT_STUDY_SUMMARY, err));
    fth_lines_begin(&t, mem);
    fth_lines_add(&t, "arm,mean_counts,nphotons,method,loss,val_loss,complex_correlation");
    for (int m = 0; m < PT_METRICS; m++)
        fth_lines_add(&t, ",%s_amplitude,%s_phase", pt_metric_name((pt_metric)m),
                      pt_metric_name((pt_metric)m));
    fth_lines_add(&t, "\n");
    for (int i = 0; i < s->n_arms; i++) {
        const pt_arm *arm = &s->arm[i];
        const numbers v = numbers_of(s, arm, mem);
        fth_lines_add(&t, "%s", arm->name);
        add_number(&t, arm->mean_counts);
        add_number(&t, arm->dose);
        fth_lines_add(&t, ",%s", arm->loss);
        add_number(&t, v.loss);
        add_number(&t, v.val_loss);
        add_number(&t, v.correlation);
        for (int m = 0; m < PT_METRICS; m++)
            for (int part = 0; part < PT_PARTS; part++) add_number(&t, v.metric[m][part]);
        fth_lines_add(&t, "\n");
    }
    return fth_lines_save(&t, path, err);
}

fth_status pt_study_print(const pt_study *s, fth_mem *mem, FILE *out, fth_err *err)
{
    (void)err;
    fprintf(out, "%-16s %14s %14s %12s %12s %11s %10s %10s\n", "arm", "mean counts", "nphotons",
            "loss", "val_loss", "correlation", "ssim amp", "frc50 amp");
    for (int i = 0; i < s->n_arms; i++) {
        const pt_arm *arm = &s->arm[i];
        const numbers v = numbers_of(s, arm, mem);
        fprintf(out, "%-16s %14.6g %14.6g %12.5g %12.5g %11.4f %10.4f %10.3f\n", arm->name,
                arm->mean_counts, arm->dose, v.loss, v.val_loss, v.correlation,
                v.metric[PT_METRIC_SSIM][0], v.metric[PT_METRIC_FRC50][0]);
    }
    return FTH_OK;
}

/* ---- the figure ---- */

enum { MOST_PANELS = PT_MOST_DOSES * (PT_MOST_LOSSES + 1), LARGEST = 128 };

typedef struct drawing {
    pt_view view[MOST_PANELS];
    fth_source source[MOST_PANELS];
    pt_image image[MOST_PANELS]; /* of arms */
    fth_tensor *pattern[PT_MOST_DOSES];
} drawing;

/* The first test pattern of a dose. */
static fth_status load_pattern(const pt_study *s, fth_context *ctx, const pt_arm *arm,
                               fth_tensor **out, fth_err *err)
{
    char folder[FTH_PATH], path[FTH_PATH], name[64];
    pt_scan scan;
    fth_source source;
    snprintf(name, sizeof name, "%s_test.npz", arm->dose_name);
    FTH_TRY(fth_path_join(folder, s->dir, PT_STUDY_DATA, err));
    FTH_TRY(fth_path_join(path, folder, name, err));
    if (!fth_path_exists(path)) return FTH_OK;
    const pt_scan_options opt = pt_scan_options_default();
    FTH_TRY(pt_scan_open(&scan, ctx, path, &opt, err));
    const int64_t size[2] = {scan.N, scan.N};
    fth_status status = pt_scan_view(&scan, PT_AMPLITUDE, FTH_F32, &source, err);
    if (status == FTH_OK)
        status =
            fth_tensor_create(out, fth_context_mem(ctx), "first pattern", FTH_F32, 2, size, err);
    if (status == FTH_OK)
        status = source.read(source.self, (int64_t[]){0, 0, 0}, (int64_t[]){1, scan.N, scan.N},
                             fth_tensor_data(*out), err);
    pt_scan_close(&scan);
    return status;
}

/* The middle of an arm's object; an arm without one stays empty. */
static void load_image(const pt_study *s, fth_mem *mem, const pt_arm *arm, pt_image *out)
{
    char folder[FTH_PATH], path[FTH_PATH];
    fth_err ignored = {0};
    pt_recon r = {0};
    if (fth_path_join(folder, s->dir, arm->name, &ignored) != FTH_OK ||
        fth_path_join(path, folder, "reconstruction.npz", &ignored) != FTH_OK ||
        !fth_path_exists(path) || pt_recon_open(&r, mem, path, &ignored) != FTH_OK)
        return;
    const int64_t rows = r.object.rows < LARGEST ? r.object.rows : LARGEST,
                  cols = r.object.cols < LARGEST ? r.object.cols : LARGEST;
    if (pt_image_crop(out, mem, &r.object, (r.object.rows - rows) / 2, (r.object.cols - cols) / 2,
                      rows, cols, &ignored) != FTH_OK)
        *out = (pt_image){0};
    pt_recon_close(&r);
}

static void add_panel(drawing *d, fth_figure *fig, int at, const char *title, const void *data,
                      fth_dtype dtype, int64_t rows, int64_t cols, bool pattern)
{
    fth_panel *p = fth_figure_panel(fig, at);
    if (!data) {
        fth_panel_set(p, &(fth_panel_options){.title = title, .bare = true});
        fth_panel_axis(p, FTH_AXIS_X, &(fth_axis_options){.low = 0, .high = 1, .no_ticks = true});
        fth_panel_axis(p, FTH_AXIS_Y, &(fth_axis_options){.low = 0, .high = 1, .no_ticks = true});
        fth_panel_text(p, 0.5, 0.5, "No Data", &(fth_note){.size = 18});
        return;
    }
    d->view[at] = (pt_view){.data = data,
                            .dtype = dtype,
                            .rows = rows,
                            .cols = cols,
                            .part = pattern ? PT_VIEW_LOG : PT_VIEW_AMPLITUDE};
    d->source[at] = pt_view_source(&d->view[at]);
    fth_panel_set(
        p, &(fth_panel_options){.title = title,
                                .colour_bar = pattern ? "log10(amplitude + 1)" : "amplitude"});
    fth_panel_image(p, fth_grid_source(&d->source[at]),
                    &(fth_image){.colours.map = pattern ? FTH_MAP_VIRIDIS : FTH_MAP_GRAY});
}

static void add_row(const pt_study *s, drawing *d, fth_figure *fig, int dose)
{
    const int columns = s->n_losses + 1;
    const pt_arm *first = &s->arm[dose * s->n_losses];
    char title[120];
    fth_tensor *t = d->pattern[dose];
    snprintf(title, sizeof title, "%s dose (%.0e photons)\nfirst test pattern", first->dose_name,
             first->dose);
    add_panel(d, fig, dose * columns, title, t ? fth_tensor_data(t) : NULL, FTH_F32,
              t ? fth_tensor_size(t, 0) : 0, t ? fth_tensor_size(t, 1) : 0, true);
    for (int l = 0; l < s->n_losses; l++) {
        /* MAE before NLL, as the published figure has them */
        const int arm = dose * s->n_losses + s->n_losses - 1 - l;
        const pt_image *image = &d->image[arm];
        char upper[20];
        snprintf(upper, sizeof upper, "%s", s->arm[arm].loss);
        for (char *c = upper; *c; c++)
            if (*c >= 'a' && *c <= 'z') *c = (char)(*c - 'a' + 'A');
        snprintf(title, sizeof title, "%s dose, %s\namplitude", first->dose_name, upper);
        add_panel(d, fig, dose * columns + 1 + l, title, image->at, FTH_C64, image->rows,
                  image->cols, false);
    }
}

static fth_status draw(const pt_study *s, fth_context *ctx, drawing *d, fth_err *err)
{
    fth_mem *mem = fth_context_mem(ctx);
    fth_figure *fig = NULL;
    char path[FTH_PATH];
    FTH_TRY(fth_path_join(path, s->dir, PT_STUDY_FIGURE, err));
    for (int k = 0; k < s->n_doses; k++)
        FTH_TRY(load_pattern(s, ctx, &s->arm[k * s->n_losses], &d->pattern[k], err));
    for (int i = 0; i < s->n_arms; i++) load_image(s, mem, &s->arm[i], &d->image[i]);
    const int columns = s->n_losses + 1;
    FTH_TRY(fth_figure_create(&fig, mem,
                              &(fth_figure_options){.panels = s->n_doses * columns,
                                                    .columns = columns,
                                                    .width = 5.0 * columns,
                                                    .height = 5.0 * s->n_doses,
                                                    .dpi = 300,
                                                    .font_size = 11,
                                                    .title = "Dose response"},
                              err));
    for (int k = 0; k < s->n_doses; k++) add_row(s, d, fig, k);
    return pt_figure_finish(fig, path, NULL, err);
}

fth_status pt_study_write(const pt_study *s, fth_context *ctx, fth_err *err)
{
    fth_mem *mem = fth_context_mem(ctx);
    void *block = NULL;
    FTH_TRY(write_history(s, mem, err));
    FTH_TRY(write_summary(s, mem, err));
    FTH_TRY(fth_mem_take(mem, FTH_MEM_META, sizeof(drawing), "figure of a study", &block, err));
    drawing *d = memset(block, 0, sizeof(drawing));
    const fth_status status = draw(s, ctx, d, err);
    for (int i = 0; i < s->n_arms; i++) pt_image_free(&d->image[i]);
    for (int k = 0; k < s->n_doses; k++) (void)fth_tensor_release(d->pattern[k]);
    (void)fth_mem_release(mem, block, NULL);
    return status;
}
