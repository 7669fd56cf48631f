/* spots.c - the image under its predicted spots: a check of lattice, beam and detector geometry. */
#include "../preview/rings.h"
#include "figures.h"
#include "predict.h"

#include <math.h>
#include <stdio.h>

br_figure_fn br_draw_spots;

enum { MOST = 3000, LABELS = 14 };

/* Labels of the strongest, skipping those too near to a labelled one. */
static void add_labels(fth_panel *p, const br_scene *s, const br_marks *spots)
{
    const double apart = 0.09 * (double)s->fast;
    int64_t labelled[LABELS];
    int n = 0;
    for (int64_t i = 0; i < spots->n && n < LABELS; i++) {
        const br_mark *a = &spots->spot[i];
        bool room = a->fast > 0.06 * (double)s->fast && a->fast < 0.94 * (double)s->fast &&
                    a->slow > 0.06 * (double)s->slow;
        for (int k = 0; room && k < n; k++) {
            const br_mark *b = &spots->spot[labelled[k]];
            room = fabs(a->fast - b->fast) > 2 * apart || fabs(a->slow - b->slow) > 0.5 * apart;
        }
        if (!room) continue;
        char text[64];
        snprintf(text, sizeof text, "%lld %lld %lld", (long long)a->hkl[0], (long long)a->hkl[1],
                 (long long)a->hkl[2]);
        fth_panel_text(p, a->fast, a->slow - 0.012 * (double)s->slow, text,
                       &(fth_note){.size = 7, .halo = true, .anchor = FTH_ANCHOR_ABOVE});
        labelled[n++] = i;
    }
}

static void add_spots(fth_panel *p, const br_marks *spots)
{
    const int64_t n = spots->n < MOST ? spots->n : MOST;
    const int64_t stride = (int64_t)(sizeof(br_mark) / sizeof(double));
    if (n == 0) return;
    fth_column x = fth_column_of(FTH_F64, &spots->spot[0].fast, n),
               y = fth_column_of(FTH_F64, &spots->spot[0].slow, n);
    x.stride = y.stride = stride;
    fth_panel_points(p, x, y,
                     &(fth_points){.marker = FTH_MARKER_RING,
                                   .area = n > 500 ? 16 : 60,
                                   .colour = fth_rgb(255, 140, 0)});
}

static fth_status draw(const br_drawing *d, const br_marks *spots, const br_rings *rings,
                       fth_figure *fig, const char *path, fth_err *err)
{
    const br_scene *s = &d->e->scene;
    char title[160];
    fth_panel *p = fth_figure_panel(fig, 0);
    snprintf(title, sizeof title, "%s%s%lld spots predicted%s", d->title ? d->title : "",
             d->title ? ": " : "", (long long)spots->n,
             spots->n > MOST ? ", the strongest 3000 shown" : "");
    fth_panel_set(p, &(fth_panel_options){.title = title,
                                          .aspect = FTH_ASPECT_EQUAL,
                                          .legend = FTH_LEGEND_NONE,
                                          .colour_bar = "photons per pixel",
                                          .background = fth_rgb(68, 1, 84)});
    br_panel_pixels(p, s, NULL);
    fth_panel_image(p, fth_grid_source(&d->image),
                    &(fth_image){.colours = br_photon_colours(d->max, d->rms, 5), .peaks = true});
    br_rings_draw(rings, p, s);
    add_spots(p, spots);
    add_labels(p, s, spots);
    return fth_figure_save(fig, path, err);
}

fth_status br_draw_spots(const br_drawing *d, const char *path, fth_err *err)
{
    const br_scene *s = &d->e->scene;
    const double ratio = fmin(fmax((double)s->slow / (double)s->fast, 0.35), 2);
    const fth_figure_options opt = {
        .width = 8.2, .height = 7 * ratio + 0.8, .dpi = br_drawing_dpi(d)};
    br_marks spots = {0};
    br_rings rings = {0};
    fth_figure *fig = NULL;
    fth_status status = br_marks_predict(&spots, d->e, err);
    if (status == FTH_OK) status = br_rings_make(&rings, d->e, err);
    if (status == FTH_OK) status = fth_figure_create(&fig, fth_context_mem(d->context), &opt, err);
    if (status == FTH_OK) status = draw(d, &spots, &rings, fig, path, err);
    fth_figure_destroy(fig);
    br_rings_clear(&rings);
    br_marks_clear(&spots);
    return status;
}
