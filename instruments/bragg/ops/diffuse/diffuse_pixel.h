/* diffuse_pixel.h - scattering without a lattice into one pixel.
 *
 * Every subpixel of every layer sees every source: amplitude, polarisation, solid angle and capture
 * are computed for each. Included by the loops of the CPU and by those of a device.
 */
#ifndef BRAGG_OPS_DIFFUSE_PIXEL_H
#define BRAGG_OPS_DIFFUSE_PIXEL_H

#include "../../read/stol.h"
#include "../render/view.h"

enum { PARAM, SOURCE, STOL, MASK_OR_IMAGE, MASK_TOO };

typedef struct diffuse_attr {
    br_scene scene;
    double molecules;
    fth_axis_id slow, fast;
    int32_t amplitude, back;
} diffuse_attr;

typedef struct diffuse {
    br_view view;
    const double *stol;
    int64_t rows;
} diffuse;

static inline BR_BOTH double diffuse_dot(const double *a, const double *b)
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static inline BR_BOTH double diffuse_polarisation(const br_view *v, int64_t source, const double *d)
{
    const br_beam *b = &v->beams[source];
    const double c = -diffuse_dot(b->to, d), kahn = v->scene->kahn;
    if (v->scene->nopolar) return 1;
    const double psi = kahn != 0 ? -atan2(diffuse_dot(d, b->across), diffuse_dot(d, b->along)) : 0;
    return 0.5 * (1 + c * c - kahn * cos(2 * psi) * (1 - c * c));
}

static inline BR_BOTH double diffuse_solid_angle(const br_view *v, double R)
{
    const br_scene *s = v->scene;
    return s->point_pixel ? 1 / R / R : s->pixel * s->pixel / R / R * v->close / R;
}

static inline BR_BOTH double diffuse_capture(const br_view *v, const double *d, int64_t layer)
{
    const br_scene *s = v->scene;
    if (s->thickness == 0) return 1;
    const double path = s->layer_step * s->mu / diffuse_dot(d, v->odet);
    return exp(-(double)layer * path) - exp(-(double)(layer + 1) * path);
}

/* Sums over the samples of a pixel. */
typedef struct sums {
    double signal; /* sign(F) F^2 times all factors */
    double factor; /* the factors alone */
    double stol;   /* times the factors */
    double F;      /* the same */
} sums;

static inline BR_BOTH void add_sample(const diffuse *h, int64_t source, const double *d,
                                      double weight, sums *s)
{
    double q[3], stol;
    if (!br_scatter(&h->view, source, d, q, &stol)) return;
    const double *row = h->view.source + source * BR_SRC_COLUMNS;
    const double F = br_stol_at(h->stol, h->rows, stol);
    const double factor = diffuse_polarisation(&h->view, source, d) * weight * row[BR_SRC_WEIGHT];
    s->signal += (F < 0 ? -1 : 1) * F * F * factor;
    s->factor += factor;
    s->stol += stol * factor;
    s->F += F * factor;
}

static inline BR_BOTH sums diffuse_pixel(const diffuse *h, const br_row *row, int64_t i)
{
    const br_scene *s = h->view.scene;
    const int64_t over = s->oversample;
    sums t = {0, 0, 0, 0};
    for (int64_t layer = 0; layer < s->layers; layer++)
        for (int64_t k = 0; k < over * over; k++) {
            const int64_t sub[3] = {layer, k / over, k % over};
            double pos[3], d[3];
            br_position(&h->view, row, i, sub, pos);
            const double R = br_unit(pos, d);
            const double weight =
                diffuse_solid_angle(&h->view, R) * diffuse_capture(&h->view, d, layer);
            for (int64_t j = 0; j < s->sources; j++) add_sample(h, j, d, weight, &t);
        }
    return t;
}

/* Photons per unit of a sum. */
static inline BR_BOTH double scale_of(const diffuse *h, const diffuse_attr *a)
{
    const br_scene *s = &a->scene;
    return h->view.scale * a->molecules /
           ((double)s->sources * (double)s->oversample * (double)s->oversample);
}

#endif
