/* derivatives.c - derivatives of the image by each parameter, around its strongest pixel.
 *
 * All derivatives of a large image would be nineteen images; only a window of them is kept, row by
 * row.
 */
#include "figures.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

br_figure_fn br_draw_derivatives;

enum { WINDOW = 96, PANELS = BR_PARAMS + 1 };

typedef struct window {
    int64_t roi[4]; /* fast, fast, slow, slow */
    int64_t wide, high;
    fth_tensor *slope, *image; /* f64 [slow fast param], f64 [slow fast] of the window */
} window;

/* Up to `most` pixels around `middle`, inside the region. */
static void cut(int64_t first, int64_t last, int64_t middle, int64_t *from, int64_t *to)
{
    *from = middle - WINDOW / 2;
    if (*from > last - WINDOW + 1) *from = last - WINDOW + 1;
    if (*from < first) *from = first;
    *to = *from + WINDOW - 1 < last ? *from + WINDOW - 1 : last;
}

/* The scene with the window as its region: nothing else is rendered. */
static br_scene window_scene(window *w, const br_drawing *d)
{
    br_scene s = d->e->scene;
    cut(s.roi[0], s.roi[1], d->max_fast, &w->roi[0], &w->roi[1]);
    cut(s.roi[2], s.roi[3], d->max_slow, &w->roi[2], &w->roi[3]);
    memcpy(s.roi, w->roi, sizeof s.roi);
    w->wide = w->roi[1] - w->roi[0] + 1;
    w->high = w->roi[3] - w->roi[2] + 1;
    return s;
}

static fth_val cut_out(fth_val v, const window *w)
{
    return fth_slice(fth_slice(v, "slow", w->roi[2], "high"), "fast", w->roi[0], "wide");
}

static fth_status differentiate(window *w, const br_drawing *d, const br_scene *s, fth_err *err)
{
    fth_graph *g = fth_graph_create(d->context);
    br_inputs in = br_experiment_inputs(g, d->e);
    in.latch = fth_const_i64(g, FTH_I64, INT64_MAX);
    fth_axis(g, "high", w->high);
    fth_axis(g, "wide", w->wide);
    const fth_val slope = br_jacobian(s, &in);
    const fth_val out[2] = {cut_out(slope, w), cut_out(fth_out(slope, 1), w)};
    const fth_sink sinks[2] = {fth_tensor_sink(w->slope), fth_tensor_sink(w->image)};
    const fth_limits limits = {.sinks = sinks};
    fth_plan *p = fth_plan_make(g, out, 2, &limits, err);
    const fth_status status = p ? fth_run(p, sinks, NULL, NULL, err) : err->status;
    fth_plan_destroy(p);
    fth_graph_destroy(g);
    return status;
}

/* Per typed unit of the parameter. */
static void set_units(const window *w)
{
    double *v = fth_tensor_data(w->slope);
    for (int64_t i = 0; i < w->wide * w->high; i++)
        for (int k = 0; k < BR_PARAMS; k++) v[i * BR_PARAMS + k] *= br_params[k].scale;
}

/* One number of each pixel of the window. */
static fth_grid grid_of(const window *w, const double *data, int64_t each)
{
    fth_grid g = fth_grid_of(FTH_F64, data, w->high, w->wide);
    g.column_stride = each;
    g.row_stride = each * w->wide;
    return g;
}

static double reach(const window *w, int param)
{
    const double *v = fth_tensor_data(w->slope);
    double most = 0;
    for (int64_t i = 0; i < w->wide * w->high; i++)
        most = fmax(most, fabs(v[i * BR_PARAMS + param]));
    return most;
}

static void add_panel(fth_panel *p, const br_drawing *d, const window *w, int param,
                      const char *title, fth_grid grid, fth_colours colours)
{
    fth_panel_set(p, &(fth_panel_options){.title = title,
                                          .aspect = FTH_ASPECT_EQUAL,
                                          .colour_bar = param < 0 ? "photons" : ""});
    br_panel_pixels(p, &d->e->scene, w->roi);
    fth_panel_image(p, grid,
                    &(fth_image){.colours = colours,
                                 .left = (double)w->roi[0] - 0.5,
                                 .right = (double)w->roi[1] + 0.5,
                                 .top = (double)w->roi[2] - 0.5,
                                 .bottom = (double)w->roi[3] + 0.5});
}

static fth_status draw(const br_drawing *d, const window *w, fth_figure *fig, const char *path,
                       fth_err *err)
{
    add_panel(fth_figure_panel(fig, 0), d, w, -1, "image", grid_of(w, fth_tensor_data(w->image), 1),
              br_photon_colours(d->max, 0, 4));
    for (int i = 0; i < BR_PARAMS; i++) {
        const double most = reach(w, i);
        char title[160];
        snprintf(title, sizeof title, "by %s: %s\nphotons per %s", br_params[i].name,
                 br_params[i].doc,
                 strcmp(br_params[i].unit, "A") == 0 ? "\xc3\x85" : br_params[i].unit);
        /* both signs over three decades; all zeros is plain white */
        const double high = most > 0 ? most : 1;
        add_panel(fth_figure_panel(fig, i + 1), d, w, i, title,
                  grid_of(w, (const double *)fth_tensor_data(w->slope) + i, BR_PARAMS),
                  (fth_colours){.map = FTH_MAP_BWR,
                                .scale = FTH_SCALE_SYMLOG,
                                .linear = 1e-3 * high,
                                .low = -high,
                                .high = high});
    }
    return fth_figure_save(fig, path, err);
}

fth_status br_draw_derivatives(const br_drawing *d, const char *path, fth_err *err)
{
    fth_mem *mem = fth_context_mem(d->context);
    const fth_figure_options opt = {.panels = PANELS,
                                    .columns = 5,
                                    .panel_width = 3.1,
                                    .panel_height = 2.9,
                                    .font_size = 7,
                                    .dpi = br_drawing_dpi(d)};
    window w = {0};
    fth_figure *fig = NULL;
    const br_scene s = window_scene(&w, d);
    const int64_t size[3] = {w.high, w.wide, BR_PARAMS};
    fth_status status = fth_tensor_create(&w.slope, mem, "slopes", FTH_F64, 3, size, err);
    if (status == FTH_OK)
        status = fth_tensor_create(&w.image, mem, "window", FTH_F64, 2, size, err);
    if (status == FTH_OK) status = differentiate(&w, d, &s, err);
    if (status == FTH_OK) set_units(&w);
    if (status == FTH_OK) status = fth_figure_create(&fig, mem, &opt, err);
    if (status == FTH_OK) status = draw(d, &w, fig, path, err);
    fth_figure_destroy(fig);
    fth_tensor_release(w.slope);
    fth_tensor_release(w.image);
    return status;
}
