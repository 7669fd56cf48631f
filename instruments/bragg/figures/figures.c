/* figures.c - the list of figures, what they share, and the pictures of the image itself. */
#include "figures.h"
#include "../image/image.h"
#include "../preview/preview.h"

#include <math.h>
#include <string.h>

#define BR_FIGURE(id, name, title, fn) br_figure_fn br_draw_##fn;
#include "figures.def"
#undef BR_FIGURE

const br_figure_info br_figure_list[BR_FIGURES] = {
#define BR_FIGURE(id, name, title, fn) {name, title, br_draw_##fn},
#include "figures.def"
#undef BR_FIGURE
};

fth_status br_figure_draw(const br_drawing *d, br_figure which, const char *path, fth_err *err)
{
    FTH_TRY_CTX(br_figure_list[which].draw(d, path, err), err, "drawing %s",
                br_figure_list[which].title);
    return FTH_OK;
}

double br_drawing_dpi(const br_drawing *d)
{
    return d->dpi > 0 ? d->dpi : 110;
}

fth_colours br_photon_colours(double max, double rms, double decades)
{
    const double top = max > 0 ? max : 1, high = rms > 0 && 30 * rms < top ? 30 * rms : top;
    return (fth_colours){.map = FTH_MAP_VIRIDIS,
                         .scale = FTH_SCALE_LOG,
                         .low = high * pow(10, -decades),
                         .high = high};
}

void br_panel_pixels(fth_panel *p, const br_scene *s, const int64_t *roi)
{
    const int64_t all[4] = {0, s->fast - 1, 0, s->slow - 1}, *r = roi ? roi : all;
    fth_panel_axis(p, FTH_AXIS_X,
                   &(fth_axis_options){.label = "fast (pixel)",
                                       .low = (double)r[0] - 0.5,
                                       .high = (double)r[1] + 0.5});
    fth_panel_axis(p, FTH_AXIS_Y,
                   &(fth_axis_options){.label = "slow (pixel)",
                                       .low = (double)r[2] - 0.5,
                                       .high = (double)r[3] + 0.5,
                                       .direction = FTH_GROW_DOWN});
}

/* ---- the image ---- */

static fth_status render(br_passes *p, const br_experiment *e, fth_tensor *image,
                         br_statistics *stats, fth_err *err)
{
    const fth_sink sink = fth_tensor_sink(image);
    int64_t latch;
    (void)e;
    FTH_TRY(br_passes_latch(p, NULL, &latch, err));
    return br_passes_render(p, &sink, NULL, NULL, stats, err);
}

fth_status br_drawing_render(fth_context *ctx, const br_experiment *e, fth_tensor **out,
                             br_drawing *d, fth_err *err)
{
    const int64_t size[2] = {e->scene.slow, e->scene.fast};
    br_statistics stats = {0};
    br_passes *p = NULL;
    *out = NULL;
    FTH_TRY(fth_tensor_create(out, fth_context_mem(ctx), "image", FTH_F32, 2, size, err));
    fth_status s = br_passes_create(&p, ctx, e, (br_wanted){0}, err);
    if (s == FTH_OK) s = render(p, e, *out, &stats, err);
    br_passes_destroy(p);
    if (s != FTH_OK) {
        fth_tensor_release(*out);
        *out = NULL;
        return s;
    }
    if (d) {
        d->max = (double)stats.max;
        d->rms = stats.rms;
        d->max_fast = stats.max_fast;
        d->max_slow = stats.max_slow;
    }
    return FTH_OK;
}

static fth_status draw_image(const br_drawing *d, const char *path, bool linear, fth_err *err)
{
    const br_preview p = {.path = path,
                          .linear = linear,
                          .title = d->title,
                          .rms = d->rms,
                          .max = d->max,
                          .dpi = d->dpi};
    return br_preview_draw(&p, d->e, &d->image, err);
}

fth_status br_draw_image_log(const br_drawing *d, const char *path, fth_err *err)
{
    return draw_image(d, path, false, err);
}

fth_status br_draw_image_linear(const br_drawing *d, const char *path, fth_err *err)
{
    return draw_image(d, path, true, err);
}
