/* radial.c - mean and largest pixel over rings of equal resolution, on any detector. */
#include "../ops/render/view.h"
#include "figures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

br_figure_fn br_draw_radial;

enum { BINS = 200 };

/* 1/d at the centre of a pixel, 1/Angstrom. */
static double inverse_d(const br_view *v, int64_t slow, int64_t fast)
{
    const br_row row = {.slow = slow, .fast = fast, .n = 1};
    const double *beam = v->scene->beam;
    double p[3], d[3];
    br_position(v, &row, 0, (int64_t[3]){0, 0, 0}, p);
    br_unit(p, d);
    const double c = d[0] * beam[0] + d[1] * beam[1] + d[2] * beam[2];
    return 2 * sqrt(c < 1 ? (1 - c) / 2 : 0) / (v->lambda * 1e10);
}

static double largest(const br_view *v)
{
    const br_scene *s = v->scene;
    double most = 0;
    for (int k = 0; k < 4; k++)
        most = fmax(most, inverse_d(v, k & 1 ? s->slow - 1 : 0, k & 2 ? s->fast - 1 : 0));
    return most;
}

static fth_status add_rows(br_radial *r, const br_view *v, const fth_source *image, float *row,
                           fth_err *err)
{
    const br_scene *s = v->scene;
    const double step = (largest(v) + 1e-12) / (double)r->bins;
    for (int64_t b = 0; b < r->bins; b++) {
        r->s[b] = step * ((double)b + 0.5);
        r->mean[b] = r->count[b] = 0;
        r->most[b] = -HUGE_VAL;
    }
    for (int64_t y = s->roi[2]; y <= s->roi[3]; y++) {
        FTH_TRY(image->read(image->self, (int64_t[2]){y, 0}, (int64_t[2]){1, s->fast}, row, err));
        for (int64_t x = s->roi[0]; x <= s->roi[1]; x++) {
            const int64_t b = (int64_t)(inverse_d(v, y, x) / step);
            if (b < 0 || b >= r->bins) continue;
            r->mean[b] += (double)row[x];
            r->count[b] += 1;
            r->most[b] = fmax(r->most[b], (double)row[x]);
        }
    }
    for (int64_t b = 0; b < r->bins; b++) r->mean[b] /= r->count[b]; /* NaN: a ring without any */
    return FTH_OK;
}

/* Centres of pixels; the cell is not used. */
static br_scene plain_scene(const br_experiment *e)
{
    br_scene s = e->scene;
    s.oversample = s.phis = s.mosaics = s.layers = 1;
    s.mosaic_given = 0;
    return s;
}

fth_status br_radial_make(br_radial *out, const br_experiment *e, const fth_source *image,
                          int64_t bins, fth_err *err)
{
    const br_scene scene = plain_scene(e);
    const uint64_t numbers = 4 * (uint64_t)bins * sizeof(double),
                   row = ((uint64_t)scene.fast * sizeof(float) + 63) / 64 * 64;
    void *block = NULL, *work = NULL;
    br_view v;
    *out = (br_radial){.mem = e->mem, .bins = bins};
    FTH_TRY(fth_mem_take(e->mem, FTH_MEM_ANY, numbers, "radial average", &block, err));
    out->s = block;
    out->mean = out->s + bins;
    out->most = out->mean + bins;
    out->count = out->most + bins;
    FTH_TRY(fth_mem_take(e->mem, FTH_MEM_ANY, row + br_view_bytes(&scene), "row", &work, err));
    br_view_make(&v, &scene, &(br_arrays){.param = e->param, .source = fth_tensor_data(e->source)},
                 (double *)(void *)((char *)work + row));
    const fth_status s = add_rows(out, &v, image, work, err);
    (void)fth_mem_release(e->mem, work, NULL);
    return s;
}

void br_radial_clear(br_radial *r)
{
    if (r->mem) (void)fth_mem_release(r->mem, r->s, NULL);
    *r = (br_radial){0};
}

static fth_status draw(const br_drawing *d, const br_radial *r, fth_figure *fig, const char *path,
                       fth_err *err)
{
    fth_panel *p = fth_figure_panel(fig, 0);
    const fth_column x = fth_column_of(FTH_F64, r->s, r->bins);
    const double high = d->max > 0 ? 2 * d->max : 1;
    double low = high;
    for (int64_t b = 0; b < r->bins; b++)
        if (r->mean[b] > 0) low = fmin(low, r->mean[b]);
    fth_panel_set(p, &(fth_panel_options){.title = d->title ? d->title : "radial average"});
    fth_panel_axis(p, FTH_AXIS_X, &(fth_axis_options){.label = "1/d (1/\xc3\x85)"});
    fth_panel_axis(p, FTH_AXIS_Y,
                   &(fth_axis_options){.label = "photons per pixel",
                                       .scale = FTH_SCALE_LOG,
                                       .low = fmax(low / 2, high * 1e-12),
                                       .high = high});
    fth_panel_line(p, x, fth_column_of(FTH_F64, r->most, r->bins),
                   &(fth_line){.label = "largest of the ring", .width = 1, .alpha = 0.7});
    fth_panel_line(p, x, fth_column_of(FTH_F64, r->mean, r->bins), &(fth_line){.label = "mean"});
    return fth_figure_save(fig, path, err);
}

fth_status br_draw_radial(const br_drawing *d, const char *path, fth_err *err)
{
    const fth_figure_options opt = {.panel_width = 6, .panel_height = 4, .dpi = br_drawing_dpi(d)};
    br_radial r = {0};
    fth_figure *fig = NULL;
    fth_status s = br_radial_make(&r, d->e, &d->image, BINS, err);
    if (s == FTH_OK) s = fth_figure_create(&fig, fth_context_mem(d->context), &opt, err);
    if (s == FTH_OK) s = draw(d, &r, fig, path, err);
    fth_figure_destroy(fig);
    br_radial_clear(&r);
    return s;
}
