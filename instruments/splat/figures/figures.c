/* figures.c - a figure for each thing; see figures.h. */
#include "figures.h"

#include "../eval/eval.h"
#include "../train/train.h"

#include <fathom/reader.h>

#include <math.h>
#include <string.h>

enum { LOSS, COUNT, MEMORY, VIEWS, SCALES, OPACITIES, PANELS, PLANNED = 1000 };

const fth_stage_file gs_figure_files[] = {{"loss.png", "loss", true},
                                          {"gaussians.png", "number of Gaussians", true},
                                          {"memory.png", "memory of an iteration", true},
                                          {"psnr.png", "PSNR of each view", true},
                                          {"scales.png", "sizes of Gaussians", true},
                                          {"opacities.png", "opacities of Gaussians", true},
                                          {0}};

static const struct {
    const char *title, *x, *y;
    fth_scale scale;
} panel[PANELS] = {
    [LOSS] = {"loss", "iteration", "loss", FTH_SCALE_LOG},
    [COUNT] = {"number of Gaussians", "iteration", "Gaussians", FTH_SCALE_LINEAR},
    [MEMORY] = {"memory of an iteration", "iteration", "MiB", FTH_SCALE_LINEAR},
    [VIEWS] = {"PSNR of each view", "view", "PSNR [dB]", FTH_SCALE_LINEAR},
    [SCALES] = {"largest size of each Gaussian", "log10 of the size", "Gaussians",
                FTH_SCALE_LINEAR},
    [OPACITIES] = {"opacity", "opacity", "Gaussians", FTH_SCALE_LINEAR},
};

/* Columns of numbers, held while the figures are drawn. */
typedef struct column {
    double *at;
    int64_t n;
} column;
typedef struct drawing {
    fth_mem *mem;
    column x[PANELS], y[PANELS], more; /* more: memory by the ledger */
} drawing;

static fth_status take(drawing *d, column *c, int64_t n, fth_err *err)
{
    void *block = NULL;
    FTH_TRY(fth_mem_take(d->mem, FTH_MEM_ANY, (uint64_t)(n > 0 ? n : 1) * sizeof(double),
                         "column of a figure", &block, err));
    *c = (column){block, n};
    memset(block, 0, (size_t)n * sizeof(double));
    return FTH_OK;
}

/* A column of a table by its name, each number times `by`. */
static fth_status read_column(drawing *d, const fth_csv *t, const char *name, double by, column *c,
                              fth_err *err)
{
    int64_t at = 0;
    while (at < t->width && strcmp(fth_csv_get(t, 0, at), name) != 0) at++;
    if (at == t->width)
        return FTH_FAIL(err, FTH_E_FILE_KEY, "%s: expected a column '%s'", t->path, name);
    FTH_TRY(take(d, c, t->rows - 1, err));
    for (int64_t i = 0; i < c->n; i++) {
        const char *text = fth_csv_get(t, i + 1, at);
        if (!fth_real_parse(text, &c->at[i]))
            return FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: row %lld: expected a number, found '%s'",
                            t->path, (long long)(i + 2), text);
        c->at[i] *= by;
    }
    return FTH_OK;
}

/* ---- what is drawn ---- */

static fth_status read_curves(drawing *d, const char *folder, fth_err *err)
{
    static const double mib = 1.0 / (1 << 20);
    static const struct {
        const char *file, *x, *y;
        int panel;
        double by;
    } tables[] = {{GS_LOSS_FILE, "iteration", "loss", LOSS, 1},
                  {GS_LOSS_FILE, "iteration", "num_gaussians", COUNT, 1},
                  {GS_MEMORY_FILE, "iteration", "planned_bytes", MEMORY, mib},
                  {"eval/" GS_VIEWS_FILE, "view", "psnr", VIEWS, 1}};
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        const int p = tables[i].panel;
        char path[FTH_PATH];
        fth_csv t;
        FTH_TRY(fth_path_join(path, folder, tables[i].file, err));
        if (!fth_path_exists(path)) { /* no iteration was run */
            FTH_TRY(take(d, &d->x[p], 0, err));
            FTH_TRY(take(d, &d->y[p], 0, err));
            continue;
        }
        FTH_TRY(fth_csv_read(&t, d->mem, path, err));
        fth_status s = read_column(d, &t, tables[i].x, 1, &d->x[p], err);
        if (s == FTH_OK) s = read_column(d, &t, tables[i].y, tables[i].by, &d->y[p], err);
        if (s == FTH_OK && p == MEMORY)
            s = read_column(d, &t, "ledger_bytes", tables[i].by, &d->more, err);
        fth_csv_free(&t);
        FTH_TRY(s);
    }
    return FTH_OK;
}

static fth_status read_model(drawing *d, const char *path, fth_err *err)
{
    gs_model m;
    FTH_TRY(gs_model_load(&m, d->mem, path, GS_FORMAT_PLY, err));
    fth_status s = take(d, &d->y[SCALES], m.n, err);
    if (s == FTH_OK) s = take(d, &d->y[OPACITIES], m.n, err);
    for (int64_t i = 0; i < m.n && s == FTH_OK; i++) {
        const float *v = m.at[GS_SCALING] + 3 * i;
        const float most = fmaxf(v[0], fmaxf(v[1], v[2]));
        d->y[SCALES].at[i] = (double)most / 2.302585092994046;
        d->y[OPACITIES].at[i] = 1 / (1 + exp(-(double)m.at[GS_OPACITY][i]));
    }
    gs_model_free(&m);
    return s;
}

static fth_column drawn(const column *c)
{
    return fth_column_of(FTH_F64, c->at, c->n);
}

static fth_status make_figure(void *user, int i, fth_figure **out, fth_err *err)
{
    const drawing *d = user;
    FTH_TRY(fth_figure_create(out, d->mem,
                              &(fth_figure_options){.panel_width = 5.2, .panel_height = 3.4}, err));
    fth_panel *p = fth_figure_panel(*out, 0);
    fth_panel_set(p, &(fth_panel_options){.title = panel[i].title});
    fth_panel_axis(p, FTH_AXIS_X, &(fth_axis_options){.label = panel[i].x});
    fth_panel_axis(p, FTH_AXIS_Y,
                   &(fth_axis_options){
                       .label = panel[i].y, .scale = panel[i].scale, .direction = FTH_GROW_UP});
    if (d->y[i].n == 0)
        fth_panel_text(p, 0.5, 0.5, "nothing was measured", NULL);
    else if (i == SCALES || i == OPACITIES)
        fth_panel_histogram(p, drawn(&d->y[i]), NULL);
    else if (i == VIEWS)
        fth_panel_points(p, drawn(&d->x[i]), drawn(&d->y[i]), &(fth_points){.area = 25});
    else
        fth_panel_line(p, drawn(&d->x[i]), drawn(&d->y[i]),
                       &(fth_line){.label = i == MEMORY ? "planned" : NULL});
    if (i == MEMORY && d->more.n > 0)
        fth_panel_line(p, drawn(&d->x[i]), drawn(&d->more),
                       &(fth_line){.dash = FTH_DASH_DASHED, .label = "ledger"});
    return FTH_OK;
}

/* ---- the stage ---- */

static void clear(drawing *d)
{
    for (int i = 0; i < PANELS; i++) {
        if (d->x[i].at) (void)fth_mem_release(d->mem, d->x[i].at, NULL);
        if (d->y[i].at) (void)fth_mem_release(d->mem, d->y[i].at, NULL);
    }
    if (d->more.at) (void)fth_mem_release(d->mem, d->more.at, NULL);
}

fth_status gs_figures_stage_plan(const fth_stage_call *call, fth_stage_plan *out, FILE *show,
                                 fth_err *err)
{
    drawing d = {.mem = fth_context_mem(call->context)};
    fth_status s = FTH_OK;
    for (int i = 0; i < PANELS && s == FTH_OK; i++) {
        s = take(&d, &d.x[i], PLANNED, err);
        if (s == FTH_OK) s = take(&d, &d.y[i], PLANNED, err);
    }
    out->bound = true; /* how many Gaussians there will be is not known */
    if (s == FTH_OK) s = fth_stage_draw(call, out, show, gs_figure_files, make_figure, &d, err);
    clear(&d);
    return s;
}

fth_status gs_figures_stage_run(const fth_stage_call *call, fth_err *err)
{
    drawing d = {.mem = fth_context_mem(call->context)};
    char path[FTH_PATH];
    fth_status s = gs_last_model(call->config, call->model_dir, path, err);
    if (s == FTH_OK) s = read_curves(&d, call->model_dir, err);
    if (s == FTH_OK) s = read_model(&d, path, err);
    if (s == FTH_OK) s = fth_stage_draw(call, NULL, NULL, gs_figure_files, make_figure, &d, err);
    clear(&d);
    return s;
}
