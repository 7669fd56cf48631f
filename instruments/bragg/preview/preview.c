/* preview.c - the picture of an image: slow downwards, fast to the right, as stored in the file.
 *
 * The figure pools pixels when there are more than fit, and shows the largest of a pool: a spot of
 * one pixel must stay visible.
 */
#include "preview.h"
#include "rings.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { INCHES = 7, DPI = 150 };

/* Limits of the colours. The direct beam and a few spots are far brighter than the rest: the upper
 * end is a multiple of the rms; the lower one is five decades below it, or 0. */
static fth_colours colours_of(const br_preview *p)
{
    fth_colours c = {.map = FTH_MAP_VIRIDIS, .low = p->low, .high = p->high};
    if (!p->linear) c.scale = FTH_SCALE_LOG;
    if (c.low != c.high) return c;
    const double max = p->max > 0 ? p->max : 1, times = p->linear ? 3 : 30;
    c.high = p->rms > 0 && times * p->rms < max ? times * p->rms : max;
    c.low = p->linear ? 0 : c.high * 1e-5;
    return c;
}

static void describe(const br_preview *p, const br_experiment *e, const fth_source *image,
                     const br_rings *r, fth_figure *fig)
{
    const br_scene *s = &e->scene;
    fth_panel *panel = fth_figure_panel(fig, 0);
    fth_panel_set(panel, &(fth_panel_options){.title = p->title,
                                              .aspect = FTH_ASPECT_EQUAL,
                                              .legend = FTH_LEGEND_NONE,
                                              .colour_bar = "photons per pixel",
                                              .background = fth_rgb(68, 1, 84)});
    const fth_axis_options fast = {.label = "fast (pixel)",
                                   .low = -0.5,
                                   .high = (double)s->fast - 0.5},
                           slow = {.label = "slow (pixel)",
                                   .low = -0.5,
                                   .high = (double)s->slow - 0.5,
                                   .direction = FTH_GROW_DOWN};
    fth_panel_axis(panel, FTH_AXIS_X, &fast);
    fth_panel_axis(panel, FTH_AXIS_Y, &slow);
    fth_panel_image(panel, fth_grid_source(image),
                    &(fth_image){.colours = colours_of(p), .peaks = true});
    br_rings_draw(r, panel, s);
}

/* Whether the figure fits beside what it draws. */
static fth_status check_room(fth_figure *fig, const br_preview *p, fth_mem *mem, fth_err *err)
{
    uint64_t bytes = 0;
    char what[FTH_PATH + 16];
    FTH_TRY(fth_figure_plan(fig, p->path, &bytes, err));
    snprintf(what, sizeof what, "drawing %s", p->path);
    const fth_status s = fth_mem_check_room(mem, bytes, what, err);
    if (s == FTH_E_NO_FIT) fth_err_hint(err, "allow more with --memory, or leave the preview out");
    return s;
}

/* Draws it, or with `check` only sees whether there is memory to. */
static fth_status make(const br_preview *p, const br_experiment *e, const fth_source *image,
                       bool check, fth_err *err)
{
    br_rings rings;
    fth_figure *fig = NULL;
    const double ratio = (double)e->scene.slow / (double)e->scene.fast;
    const double tall = ratio > 2 ? 2 : ratio < 0.35 ? 0.35 : ratio;
    fth_status s = br_rings_make(&rings, e, err);
    if (s == FTH_OK)
        s = fth_figure_create(&fig, e->mem,
                              &(fth_figure_options){.width = INCHES + 1.2,
                                                    .height = INCHES * tall + 0.6,
                                                    .dpi = p->dpi > 0 ? p->dpi : DPI},
                              err);
    if (s == FTH_OK) {
        describe(p, e, image, &rings, fig);
        s = check ? check_room(fig, p, e->mem, err) : fth_figure_save(fig, p->path, err);
    }
    fth_figure_destroy(fig);
    br_rings_clear(&rings);
    return s;
}

fth_status br_preview_draw(const br_preview *p, const br_experiment *e, const fth_source *image,
                           fth_err *err)
{
    return make(p, e, image, false, err);
}

fth_status br_preview_check(const br_preview *p, const br_experiment *e, fth_err *err)
{
    const int64_t size[2] = {e->scene.slow, e->scene.fast};
    const fth_source none = fth_source_planned(FTH_F32, 2, size);
    br_preview bounded = *p;
    bounded.low = 1; /* given limits need no pass over the image */
    bounded.high = 10;
    return make(&bounded, e, &none, true, err);
}
