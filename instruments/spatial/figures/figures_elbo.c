/* figures_elbo.c - the objective while it was trained. */
#include "figures.h"

#include <math.h>

/* Extended by a tenth of its size, for either sign. */
static double beyond(double v, bool up)
{
    return v + (up ? 0.1 : -0.1) * fabs(v);
}

static void add_curve(fth_panel *p, fth_column x, fth_column y, fth_column_range range, double last)
{
    char text[64];
    const double low = beyond(range.low, false), high = beyond(range.high, true);
    const bool known = isfinite(low) && isfinite(high) && low < high;
    fth_panel_set(p, &(fth_panel_options){.title = "Objective while training"});
    fth_panel_axis(
        p, FTH_AXIS_X,
        &(fth_axis_options){
            .label = "iteration", .scale = FTH_SCALE_LOG, .low = 1, .high = fmax(2, (double)y.n)});
    fth_panel_axis(p, FTH_AXIS_Y,
                   &(fth_axis_options){.label = "ELBO",
                                       .scale = FTH_SCALE_SYMLOG,
                                       .low = known ? low : 0,
                                       .high = known ? high : 0});
    fth_panel_line(p, x, y, &(fth_line){.colour = fth_rgb(31, 119, 180)});
    snprintf(text, sizeof text, "final %.6g", last);
    fth_panel_reference(p, FTH_AXIS_Y, last, &(fth_line){.dash = FTH_DASH_DASHED, .label = text});
}

/* Iterations from 1, then their objectives. */
fth_status sp_draw_elbo(sp_drawing *d, fth_panel *p, double **curve, uint64_t *bytes, fth_err *err)
{
    fth_source file = {.n_axes = 1, .dtype = FTH_F64, .size = {d->iterations}};
    double *v = NULL;
    if (!d->planning) FTH_TRY(sp_draw_open(d, SP_ELBO_NPY, &file, err));
    const int64_t n = file.size[0];
    fth_column_range range;
    fth_status s = FTH_OK;
    if (file.n_axes != 1 || file.dtype != FTH_F64 || n < 1)
        s = FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s/" SP_ELBO_NPY ": f64 [iteration] was expected",
                     d->call->model_dir);
    *bytes = 2 * (uint64_t)n * sizeof *v;
    if (s == FTH_OK) s = sp_draw_take(d, *bytes, &v, err);
    *curve = v;
    if (s == FTH_OK && !d->planning) s = file.read(file.self, (int64_t[]){0}, &n, v + n, err);
    for (int64_t i = 0; s == FTH_OK && i < n; i++) v[i] = (double)(i + 1);
    if (s == FTH_OK) {
        const fth_column y = fth_column_of(FTH_F64, v + n, n);
        s = fth_column_get_range(&y, 1, &range, err);
        if (s == FTH_OK) add_curve(p, fth_column_of(FTH_F64, v, n), y, range, v[2 * n - 1]);
    }
    if (!d->planning) fth_source_close(&file);
    return s;
}

fth_status sp_figure_elbo(sp_drawing *d, fth_err *err)
{
    fth_figure *fig = NULL;
    double *curve = NULL;
    uint64_t bytes = 0;
    FTH_TRY(
        sp_draw_figure(d, (fth_figure_options){.panels = 1, .width = 6, .height = 4}, &fig, err));
    fth_status s = sp_draw_elbo(d, fth_figure_panel(fig, 0), &curve, &bytes, err);
    if (s == FTH_OK)
        s = sp_draw_save(d, fig, "elbo_curve.png", "objective while training", err);
    else
        fth_figure_destroy(fig);
    sp_draw_give(d, curve, bytes);
    return s;
}
