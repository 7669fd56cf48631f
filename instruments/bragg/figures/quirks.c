/* quirks.c - the effect of the reference's defects on this image: spec minus c, and how much of the
 * difference goes away when one of them is switched off.
 *
 * Each quirk is switched off by itself and everything is resolved and rendered again: quirks act on
 * flags, geometry and samples alike.
 */
#include "../experiment/resolve.h"
#include "figures.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

br_figure_fn br_draw_quirks;

typedef struct change {
    int quirk;
    double share; /* photons that change, of all photons of the image in c mode */
} change;

typedef struct quirks {
    const br_drawing *d;
    fth_tensor *spec, *c, *one; /* images; `one` becomes spec - c */
    double max, rms;            /* of the image in c mode */
    change change[BR_QUIRKS];   /* largest first */
    int n;
} quirks;

static fth_status render_with(const quirks *q, uint32_t mask, fth_tensor **out, br_drawing *numbers,
                              fth_err *err)
{
    fth_mem *mem = fth_context_mem(q->d->context);
    br_flags f = *q->d->flags;
    void *block = NULL;
    f.quirks = mask;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_META, sizeof(br_experiment), "experiment", &block, err));
    br_experiment *e = block;
    fth_status s = br_experiment_resolve(e, mem, &f, err);
    if (s == FTH_OK) {
        s = br_drawing_render(q->d->context, e, out, numbers, err);
        br_experiment_clear(e);
    }
    (void)fth_mem_release(mem, block, NULL);
    return s;
}

static int64_t pixels_of(const quirks *q)
{
    return fth_tensor_size(q->c, 0) * fth_tensor_size(q->c, 1);
}

/* Sum of |a - c| over sum of |c|. */
static double share_of(const quirks *q, fth_tensor *a)
{
    const float *x = fth_tensor_data(a), *c = fth_tensor_data(q->c);
    double off = 0, all = 0;
    for (int64_t i = 0; i < pixels_of(q); i++) {
        off += fabs((double)x[i] - (double)c[i]);
        all += fabs((double)c[i]);
    }
    return all > 0 ? off / all : 0;
}

static int by_share(const void *a, const void *b)
{
    const change *p = a, *q = b;
    if (p->share != q->share) return p->share < q->share ? 1 : -1;
    return p->quirk - q->quirk;
}

static fth_status find_changes(quirks *q, fth_err *err)
{
    for (int k = 0; k < BR_QUIRKS; k++) {
        fth_tensor *image = NULL;
        FTH_TRY(render_with(q, BR_QUIRKS_C & ~(1u << k), &image, NULL, err));
        const double share = share_of(q, image);
        fth_tensor_release(image);
        if (q->d->share) q->d->share[k] = share;
        if (share > 0) q->change[q->n++] = (change){k, share};
    }
    qsort(q->change, (size_t)q->n, sizeof *q->change, by_share);
    return FTH_OK;
}

static fth_status render_all(quirks *q, fth_err *err)
{
    const int64_t size[2] = {q->d->e->scene.slow, q->d->e->scene.fast};
    FTH_TRY(render_with(q, 0, &q->spec, NULL, err));
    br_drawing numbers = {0};
    FTH_TRY(render_with(q, BR_QUIRKS_C, &q->c, &numbers, err));
    q->max = numbers.max;
    q->rms = numbers.rms;
    FTH_TRY(fth_tensor_create(&q->one, fth_context_mem(q->d->context), "difference", FTH_F32, 2,
                              size, err));
    const float *spec = fth_tensor_data(q->spec), *c = fth_tensor_data(q->c);
    float *off = fth_tensor_data(q->one);
    for (int64_t i = 0; i < pixels_of(q); i++) off[i] = spec[i] - c[i];
    return find_changes(q, err);
}

static void add_image(fth_panel *p, const quirks *q, fth_tensor *image, const char *title,
                      const char *bar, fth_colours colours)
{
    const br_scene *s = &q->d->e->scene;
    fth_panel_set(
        p, &(fth_panel_options){.title = title, .aspect = FTH_ASPECT_EQUAL, .colour_bar = bar});
    br_panel_pixels(p, s, NULL);
    fth_panel_image(p, fth_grid_of(FTH_F32, fth_tensor_data(image), s->slow, s->fast),
                    &(fth_image){.colours = colours, .peaks = colours.map != FTH_MAP_BWR});
}

static void add_difference(fth_panel *p, const quirks *q)
{
    const float *off = fth_tensor_data(q->one);
    char title[240] = "spec \xe2\x88\x92 c: no difference";
    double most = 0;
    for (int64_t i = 0; i < pixels_of(q); i++) most = fmax(most, fabs((double)off[i]));
    if (q->n)
        snprintf(title, sizeof title, "spec \xe2\x88\x92 c, most of it by\n%s%s%s",
                 br_quirks[q->change[0].quirk].name, q->n > 1 ? ", " : "",
                 q->n > 1 ? br_quirks[q->change[1].quirk].name : "");
    const double high = most > 0 ? most : 1;
    add_image(p, q, q->one, title, "photons",
              (fth_colours){.map = FTH_MAP_BWR,
                            .scale = FTH_SCALE_SYMLOG,
                            .linear = 1e-3 * high,
                            .low = -high,
                            .high = high});
}

static void add_bars(fth_panel *p, const quirks *q, double *share, const char **name)
{
    fth_panel_set(
        p, &(fth_panel_options){.title = "photons that change when\none quirk is switched off"});
    for (int i = 0; i < q->n; i++) {
        share[i] = 100 * q->change[i].share;
        name[i] = br_quirks[q->change[i].quirk].name;
    }
    if (q->n == 0) {
        fth_panel_text(p, 0.5, 0.5, "none changes this image", &(fth_note){.size = 9});
        fth_panel_axis(p, FTH_AXIS_X, &(fth_axis_options){.low = 0, .high = 1, .no_ticks = true});
        fth_panel_axis(p, FTH_AXIS_Y, &(fth_axis_options){.low = 0, .high = 1, .no_ticks = true});
        return;
    }
    fth_panel_axis(p, FTH_AXIS_X, &(fth_axis_options){.label = "% of all photons"});
    fth_panel_bars(p, fth_column_of(FTH_F64, share, q->n),
                   &(fth_bars){.horizontal = true, .names = name});
}

static fth_status draw(const quirks *q, const char *path, fth_err *err)
{
    const br_scene *s = &q->d->e->scene;
    const double ratio = fmin(fmax((double)s->slow / (double)s->fast, 0.35), 2);
    const fth_figure_options opt = {.panels = 4,
                                    .columns = 2,
                                    .panel_width = 4.4,
                                    .panel_height = 3.4 * ratio + 0.8,
                                    .dpi = br_drawing_dpi(q->d)};
    double share[BR_QUIRKS];
    const char *name[BR_QUIRKS];
    fth_figure *fig = NULL;
    FTH_TRY(fth_figure_create(&fig, fth_context_mem(q->d->context), &opt, err));
    add_image(fth_figure_panel(fig, 0), q, q->spec, "spec: as intended", "photons",
              br_photon_colours(q->max, q->rms, 5));
    add_image(fth_figure_panel(fig, 1), q, q->c, "c: as the reference computes it", "photons",
              br_photon_colours(q->max, q->rms, 5));
    add_difference(fth_figure_panel(fig, 2), q);
    add_bars(fth_figure_panel(fig, 3), q, share, name);
    const fth_status status = fth_figure_save(fig, path, err);
    fth_figure_destroy(fig);
    return status;
}

fth_status br_draw_quirks(const br_drawing *d, const char *path, fth_err *err)
{
    quirks q = {.d = d};
    if (!d->flags) {
        FTH_FAIL(err, FTH_E_USAGE, "quirks can only be drawn where the flags are known");
        fth_err_hint(err, "draw it with 'fathom bragg draw'");
        return FTH_E_USAGE;
    }
    fth_status s = render_all(&q, err);
    if (s == FTH_OK) s = draw(&q, path, err);
    fth_tensor_release(q.spec);
    fth_tensor_release(q.c);
    fth_tensor_release(q.one);
    return s;
}
