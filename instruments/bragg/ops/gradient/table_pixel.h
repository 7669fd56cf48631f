/* table_pixel.h - the contribution of one pixel to the gradient of the table, for the CPU and for
 * devices.
 *
 * Each sample adds 2 F lattice^2 and its factors to the entries that its F came from. Where factors
 * multiply the running sum, a sample is multiplied by those of all later samples; samples are
 * therefore visited from last to first. Before it is included BR_TABLE_ADD(sum, entry, value) says
 * how an entry is added to.
 */
#include "slope.h"

typedef struct traced {
    const br_view *v;
    const br_row *row;
    int64_t i;      /* in the row */
    void *sum;      /* table of the block: for BR_TABLE_ADD */
    int64_t group;  /* index of (pixel, layer, subs, subf, source) */
    double later;   /* product of the factors that multiply the sum after this sample */
    double capture; /* of the layer, where all subpixels share it */
} traced;

/* A subpixel of a layer: direction and distance. */
typedef struct place {
    double d[3], r;
} place;

static inline BR_BOTH place place_at(const traced *px, int64_t at)
{
    const int64_t o = px->v->scene->oversample;
    const int64_t sub[3] = {at / (o * o), at / o % o, at % o};
    double pos[3];
    place p;
    br_position(px->v, px->row, px->i, sub, pos);
    p.r = br_unit(pos, p.d);
    return p;
}

static inline BR_BOTH double solid_angle(const br_view *v, double r)
{
    const br_scene *s = v->scene;
    return s->point_pixel ? 1 / r / r : s->pixel * s->pixel / r / r * v->close / r;
}

static inline BR_BOTH double layer_capture(const traced *px, int64_t layer)
{
    const br_scene *s = px->v->scene;
    if (s->thickness == 0) return 1;
    const place p = place_at(px, layer * s->oversample * s->oversample);
    return br_capture(px->v, layer, p.d);
}

/* Of the first source that dmin does not cut. */
static inline BR_BOTH double first_polarisation(const traced *px)
{
    const br_view *v = px->v;
    const br_scene *s = v->scene;
    double q[3], stol;
    if (s->nopolar) return 1;
    for (int64_t at = 0; at < s->layers * s->oversample * s->oversample; at++) {
        const place p = place_at(px, at);
        for (int64_t j = 0; j < s->sources; j++)
            if (br_scatter(v, j, p.d, q, &stol)) return br_polarisation(v, j, p.d);
    }
    return 0;
}

/* Factors of the pixel's whole sum. */
static inline BR_BOTH double ending(const traced *px)
{
    const br_view *v = px->v;
    const br_scene *s = v->scene;
    double k = v->scale / s->steps;
    if (!s->oversample_thick && br_has(s, BR_QUIRK_LAST_LAYER))
        k *= layer_capture(px, s->layers - 1);
    if (!s->oversample_polar) k *= first_polarisation(px);
    if (!s->oversample_omega) k *= solid_angle(v, place_at(px, 0).r);
    return k;
}

static inline BR_BOTH void sample(traced *px, const double *cell, int64_t n, const double *q,
                                  double weight, double factor)
{
    const br_view *v = px->v;
    const br_scene *s = v->scene;
    double hkl[3], delta[3], f = 0;
    br_stencil from;
    for (int k = 0; k < 3; k++) {
        hkl[k] = cell[3 * k] * q[0] + cell[3 * k + 1] * q[1] + cell[3 * k + 2] * q[2];
        delta[k] = hkl[k] - ceil(hkl[k] - 0.5);
    }
    const double lattice = br_lattice(v, delta);
    if (br_dead(s, lattice)) return;
    if (br_has(s, BR_QUIRK_RUNNING_SUM)) px->later *= factor;
    br_stencil_at(v, hkl, v->interpolate && (!v->latched || n < v->latch), &from);
    for (int i = 0; i < from.n; i++) f += from.weight[i] * v->table[from.at[i]];
    const double slope = 2 * f * lattice * lattice * weight * px->later;
    for (int i = 0; i < from.n; i++) BR_TABLE_ADD(px->sum, from.entry[i], slope * from.weight[i]);
}

static inline BR_BOTH void one_source(traced *px, const place *p, int64_t layer, int64_t j,
                                      double weight)
{
    const br_view *v = px->v;
    const br_scene *s = v->scene;
    const int64_t each = s->phis * s->mosaics;
    double q[3], stol, factor = 1;
    if (!br_scatter(v, j, p->d, q, &stol)) return;
    if (s->oversample_thick) factor *= br_capture(v, layer, p->d);
    if (s->oversample_polar) factor *= br_polarisation(v, j, p->d);
    if (s->oversample_omega) factor *= solid_angle(v, p->r);
    if (!s->oversample_thick && !br_has(s, BR_QUIRK_LAST_LAYER)) weight *= px->capture;
    if (!br_has(s, BR_QUIRK_RUNNING_SUM)) weight *= factor;
    weight *= v->beams[j].weight;
    for (int64_t i = each - 1; i >= 0; i--) {
        const int64_t row = px->group == v->chain && i < s->mosaics ? each + i : i;
        sample(px, v->cells + 9 * row, px->group * each + i, q, weight, factor);
    }
}

static inline BR_BOTH void one_pixel(traced *px, double bar)
{
    const br_scene *s = px->v->scene;
    const int64_t each = s->oversample * s->oversample;
    const int64_t index = px->row->slow * s->fast + px->row->fast + px->i;
    const double weight = bar * ending(px);
    px->later = 1;
    px->group = (index + 1) * s->layers * each * s->sources;
    for (int64_t at = s->layers * each - 1; at >= 0; at--) {
        const place p = place_at(px, at);
        if ((at + 1) % each == 0) px->capture = layer_capture(px, at / each);
        for (int64_t j = s->sources - 1; j >= 0; j--) {
            px->group--;
            one_source(px, &p, at / each, j, weight);
        }
    }
}
