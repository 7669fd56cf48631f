/* page.c - a reconstruction on one page. See pictures.h. */
#include "pictures.h"

#include "view.h"

#include <stdio.h>

enum { AMPLITUDE, PHASE, OVERLAP, PROBE, PROBE_PHASE, ERRORS, PANELS };

typedef struct page {
    pt_view view[PANELS];
    fth_source source[PANELS], epochs;
    float *overlap;
} page;

static fth_status add_object(const pt_pictures *p, page *g, fth_panel *panel, int which,
                             fth_err *err)
{
    const bool phase = which == PHASE;
    double low = p->phase_low, high = p->phase_high;
    char label[32];
    g->view[which] = (pt_view){.data = p->object,
                               .dtype = p->object_dtype,
                               .rows = p->rows,
                               .cols = p->cols,
                               .part = phase ? PT_VIEW_PHASE : PT_VIEW_AMPLITUDE};
    g->source[which] = pt_view_source(&g->view[which]);
    if (!phase || low == high)
        FTH_TRY(pt_view_limits(&g->view[which], p->mem, 0.5, 99.5, &low, &high, err));
    const double bar = pt_scale_bar(p->cols, p->pixel_m, label, sizeof label);
    fth_panel_set(panel, &(fth_panel_options){.title = phase ? "phase" : "amplitude",
                                              .colour_bar = phase ? "rad" : "",
                                              .scale_bar = bar,
                                              .scale_label = bar > 0 ? label : NULL});
    fth_panel_image(panel, fth_grid_source(&g->source[which]),
                    &(fth_image){.colours = {.map = phase ? FTH_MAP_VIRIDIS : FTH_MAP_GRAY,
                                             .low = low,
                                             .high = high,
                                             .below = true,
                                             .above = true}});
    return FTH_OK;
}

static void add_probe(const pt_pictures *p, page *g, fth_panel *panel, int which)
{
    const bool phase = which == PROBE_PHASE;
    const double pi = 3.14159265358979323846;
    g->view[which] = (pt_view){.data = p->probe,
                               .dtype = p->probe_dtype,
                               .rows = p->side,
                               .cols = p->side,
                               .part = phase ? PT_VIEW_PHASE : PT_VIEW_AMPLITUDE};
    g->source[which] = pt_view_source(&g->view[which]);
    fth_colours colours = {.map = phase ? FTH_MAP_TWILIGHT : FTH_MAP_VIRIDIS};
    if (phase) {
        colours.low = -pi;
        colours.high = pi;
    }
    fth_panel_set(panel, &(fth_panel_options){.title = phase ? "probe, phase" : "probe, amplitude",
                                              .colour_bar = phase ? "rad" : ""});
    fth_panel_image(panel, fth_grid_source(&g->source[which]), &(fth_image){.colours = colours});
}

static void add_overlap(const pt_pictures *p, const page *g, fth_panel *panel)
{
    fth_grid grid = fth_grid_of(FTH_F32, g->overlap, p->rows, p->cols);
    grid.row_stride = p->cols + 1;
    grid.column_stride = 1;
    fth_panel_set(panel, &(fth_panel_options){.title = "overlap", .colour_bar = "patterns"});
    fth_panel_image(panel, grid, NULL);
}

static fth_status fill(const pt_pictures *p, page *g, fth_figure *fig, fth_err *err)
{
    if (p->object)
        for (int which = AMPLITUDE; which <= PHASE; which++)
            FTH_TRY(add_object(p, g, fth_figure_panel(fig, which), which, err));
    if (p->probe)
        for (int which = PROBE; which <= PROBE_PHASE; which++)
            add_probe(p, g, fth_figure_panel(fig, which), which);
    if (g->overlap) add_overlap(p, g, fth_figure_panel(fig, OVERLAP));
    if (p->errors && p->n_errors > 0) pt_add_errors(p, &g->epochs, fth_figure_panel(fig, ERRORS));
    return FTH_OK;
}

fth_status pt_draw_page(const pt_pictures *p, const char *title, const char *path, uint64_t *bytes,
                        fth_err *err)
{
    page g = {0};
    void *block = NULL;
    fth_figure *fig = NULL;
    const uint64_t map = (uint64_t)(p->rows * (p->cols + 1)) * sizeof(float);
    if (p->x && p->y && p->n_patterns > 0 && p->probe) {
        FTH_TRY(fth_mem_take(p->mem, FTH_MEM_ANY, map, "overlap", &block, err));
        g.overlap = block;
        pt_overlap_fill(p, g.overlap);
    }
    fth_status s = fth_figure_create(
        &fig, p->mem,
        &(fth_figure_options){
            .panels = PANELS, .columns = 3, .panel_width = 4, .panel_height = 3.5, .title = title},
        err);
    if (s == FTH_OK) {
        s = fill(p, &g, fig, err);
        if (s == FTH_OK)
            s = pt_figure_finish(fig, path, bytes, err);
        else
            fth_figure_destroy(fig);
    }
    if (bytes && block) *bytes += map;
    (void)fth_mem_release(p->mem, block, NULL);
    return s;
}
