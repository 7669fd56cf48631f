/* render_plain.c - the render as in model 9: pixel by pixel, sample by sample.
 *
 * The sine of the lattice is taken of a reduced argument: the distance to the nearest reflection,
 * which is exact, so no large multiple of pi is rounded (model 16). Everything else is in the order
 * of the reference program.
 */
#include "view.h"

#include <math.h>

static BR_BOTH double dot(const double *a, const double *b)
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

BR_BOTH double br_unit(const double *v, double *unit)
{
    const double r = sqrt(dot(v, v));
    for (int i = 0; i < 3; i++) unit[i] = r != 0 ? v[i] / r : 0;
    return r;
}

static BR_BOTH void bend(const br_view *v, double fd, double sd, double *p)
{
    const br_scene *s = v->scene;
    double beam[3], once[3];
    for (int i = 0; i < 3; i++) beam[i] = v->distance * s->beam[i];
    if (br_has(s, BR_QUIRK_CURVED_LABYZ)) {
        const double y = p[1] / v->distance, z = p[2] / v->distance;
        br_rotate_axis(beam, v->sdet, y, once);
        br_rotate_axis(once, v->fdet, z, p);
    } else {
        br_rotate_axis(beam, v->arc_s, (sd - v->sbeam) / v->distance, once);
        br_rotate_axis(once, v->arc_f, (fd - v->fbeam) / v->distance, p);
    }
}

BR_BOTH void br_position(const br_view *v, const br_row *r, int64_t i, const int64_t sub[3],
                         double *p)
{
    const br_scene *s = v->scene;
    const double edge = s->pixel / (double)s->oversample;
    const double fd = edge * (double)((r->fast + i) * s->oversample + sub[2]) + edge / 2.0;
    const double sd = edge * (double)(r->slow * s->oversample + sub[1]) + edge / 2.0;
    const double od = (double)sub[0] * s->layer_step;
    for (int k = 0; k < 3; k++)
        p[k] = fd * v->fdet[k] + sd * v->sdet[k] + od * v->odet[k] + v->pix0[k];
    if (s->curved) bend(v, fd, sd, p);
}

BR_BOTH bool br_scatter(const br_view *v, int64_t source, const double *d, double *q, double *stol)
{
    const br_beam *beam = &v->beams[source]; /* incident = -direction to it */
    for (int k = 0; k < 3; k++) q[k] = (d[k] + beam->to[k]) / beam->lambda;
    *stol = 0.5 * sqrt(dot(q, q));
    return !(v->scene->dmin > 0 && *stol > 0 && v->scene->dmin > 0.5 / *stol);
}

BR_BOTH double br_capture(const br_view *v, int64_t layer, const double *d)
{
    const double path = v->scene->layer_step * v->scene->mu / dot(d, v->odet);
    return exp(-(double)layer * path) - exp(-(double)(layer + 1) * path);
}

BR_BOTH double br_polarisation(const br_view *v, int64_t source, const double *d)
{
    const br_beam *beam = &v->beams[source];
    const double c2 = -dot(beam->to, d), kahn = v->scene->kahn;
    const double psi = kahn != 0 ? -atan2(dot(d, beam->across), dot(d, beam->along)) : 0;
    return 0.5 * (1.0 + c2 * c2 - kahn * cos(2 * psi) * (1.0 - c2 * c2));
}

/* sin(pi N h) / sin(pi h) up to its sign, which is not needed: h and h0 differ by an integer. */
static BR_BOTH double grating(double delta, double n)
{
    if (delta == 0) return n;
    const double turns = n * delta;
    return sin(M_PI * (turns - rint(turns))) / sin(M_PI * delta);
}

static BR_BOTH double sinc3(double x)
{
    return x == 0 ? 1.0 : 3.0 * (sin(x) / x - cos(x)) / (x * x);
}

BR_BOTH double br_lattice(const br_view *v, const double *delta)
{
    const br_scene *s = v->scene;
    const double *n = s->cells;
    if (s->shape == BR_SQUARE) {
        double f = 1;
        for (int k = 0; k < 3; k++)
            if (n[k] > 1) f *= grating(delta[k], n[k]);
        return f;
    }
    if (s->shape == BR_ROUND) {
        double r2 = 0;
        for (int k = 0; k < 3; k++) r2 += delta[k] * delta[k] * n[k] * n[k];
        return v->lattice_sum * 0.723601254558268 * sinc3(M_PI * sqrt(r2 * s->fudge));
    }
    double at[3];
    for (int i = 0; i < 3; i++)
        at[i] = delta[0] * v->star[0][i] + delta[1] * v->star[1][i] + delta[2] * v->star[2][i];
    const double rs = dot(at, at) * v->lattice_sum * v->lattice_sum;
    if (s->shape == BR_GAUSS) return v->lattice_sum * exp(-(rs / 0.63 * s->fudge));
    return rs * s->fudge < 0.3969 ? v->lattice_sum : 0;
}

/* ---- structure factors ---- */

static BR_BOTH bool in_range(const br_scene *s, const double *hkl)
{
    const int64_t lo[3] = {s->h_min, s->k_min, s->l_min}, hi[3] = {s->h_max, s->k_max, s->l_max};
    bool in = true; /* NaN is out of range */
    for (int k = 0; k < 3; k++)
        in = in && hkl[k] - (double)lo[k] + 3 <= (double)(hi[k] - lo[k] + 1) &&
             hkl[k] - 2 >= (double)lo[k];
    return in;
}

static BR_BOTH double nearest(const br_view *v, const double *hkl0)
{
    const br_scene *s = v->scene;
    const int64_t lo[3] = {s->h_min, s->k_min, s->l_min}, hi[3] = {s->h_max, s->k_max, s->l_max};
    const double *at = v->table;
    if (s->hkls <= 0) return s->default_F;
    for (int k = 0; k < 3; k++) {
        if (!(hkl0[k] >= (double)lo[k] && hkl0[k] <= (double)hi[k])) return s->default_F;
        at += ((int64_t)hkl0[k] - lo[k]) * v->table_step[k];
    }
    return *at;
}

static BR_BOTH void weights(double t, double *w)
{
    w[0] = -t * (t - 1) * (t - 2) / 6;
    w[1] = (t + 1) * (t - 1) * (t - 2) / 2;
    w[2] = -(t + 1) * t * (t - 2) / 2;
    w[3] = (t + 1) * t * (t - 1) / 6;
}

static BR_BOTH double tricubic(const br_view *v, const double *hkl)
{
    const int64_t lo[3] = {v->scene->h_min, v->scene->k_min, v->scene->l_min};
    const double *at = v->table;
    double w[3][4], f = 0;
    for (int k = 0; k < 3; k++) {
        const double whole = floor(hkl[k]);
        weights(hkl[k] - whole, w[k]);
        at += ((int64_t)whole - 1 - lo[k]) * v->table_step[k];
    }
    for (int h = 0; h < 4; h++) {
        double plane = 0;
        for (int k = 0; k < 4; k++) {
            double line = 0;
            for (int l = 0; l < 4; l++)
                line += w[2][l] *
                        at[h * v->table_step[0] + k * v->table_step[1] + l * v->table_step[2]];
            plane += w[1][k] * line;
        }
        f += w[0][h] * plane;
    }
    return f;
}

/* ---- one pixel ---- */

typedef struct pixel {
    const br_view *v;
    br_row *row;
    int64_t i, sub[3]; /* layer, subs, subf */
    int64_t group;     /* index of (pixel, layer, subs, subf, source) */
    double d[3], q[3], weight, capture_sum;
    br_pixel *p;
} pixel;

static BR_BOTH void indices(pixel *x, const double *cell, double *delta)
{
    br_pixel *p = x->p;
    for (int k = 0; k < 3; k++) {
        p->hkl[k] = dot(cell + 3 * k, x->q);
        p->hkl0[k] = ceil(p->hkl[k] - 0.5);
        delta[k] = p->hkl[k] - p->hkl0[k];
    }
    for (int k = 0; k < 9; k++) p->cell[k] = cell[k];
}

static BR_BOTH void structure(pixel *x, int64_t n)
{
    const br_view *v = x->v;
    br_pixel *p = x->p;
    const bool in = v->interpolate && in_range(v->scene, p->hkl);
    if (v->interpolate && !in && (!v->latched || n == v->latch)) x->row->outside++;
    if (in && (!v->latched || n < v->latch))
        p->F_cell = tricubic(v, p->hkl);
    else
        p->F_cell = nearest(v, p->hkl0);
}

static BR_BOTH void sample(pixel *x, const double *cell, int64_t n)
{
    const br_scene *s = x->v->scene;
    br_pixel *p = x->p;
    double delta[3];
    indices(x, cell, delta);
    p->F_latt = br_lattice(x->v, delta);
    if (br_dead(s, p->F_latt)) return;
    structure(x, n);
    double term = p->F_cell * p->F_cell * p->F_latt * p->F_latt * x->weight;
    const bool running = br_has(s, BR_QUIRK_RUNNING_SUM);
    if (s->oversample_thick ? !running : !br_has(s, BR_QUIRK_LAST_LAYER)) term *= p->capture;
    if (s->oversample_polar && !running) term *= p->polar;
    if (s->oversample_omega && !running) term *= p->omega;
    p->sum += term;
    if (s->oversample_thick && running) p->sum *= p->capture;
    if (s->oversample_polar && running) p->sum *= p->polar;
    if (s->oversample_omega && running) p->sum *= p->omega;
}

static BR_BOTH void one_source(pixel *x, int64_t source)
{
    const br_view *v = x->v;
    const br_scene *s = v->scene;
    br_pixel *p = x->p;
    if (!br_scatter(v, source, x->d, x->q, &p->stol)) return;
    if (p->polar == 0 || s->oversample_polar) p->polar = br_polarisation(v, source, x->d);
    x->weight = v->beams[source].weight;
    for (int64_t phi = 0; phi < s->phis; phi++) {
        const int64_t turned = phi == 0 && x->group == v->chain ? s->phis : phi;
        const double *cell = v->cells + turned * s->mosaics * 9;
        for (int64_t m = 0; m < s->mosaics; m++, cell += 9)
            sample(x, cell, (x->group * s->phis + phi) * s->mosaics + m);
    }
}

static BR_BOTH void subpixel(pixel *x)
{
    const br_view *v = x->v;
    const br_scene *s = v->scene;
    br_pixel *p = x->p;
    br_position(v, x->row, x->i, x->sub, p->pos);
    const double r = br_unit(p->pos, x->d);
    if (p->omega == 0 || s->oversample_omega)
        p->omega = s->point_pixel ? 1.0 / r / r : s->pixel * s->pixel / r / r * v->close / r;
    x->row->omega[x->i] += p->omega;
    if (p->capture == 0 || s->oversample_thick) p->capture = br_capture(v, x->sub[0], x->d);
    for (int64_t j = 0; j < s->sources; j++, x->group++) one_source(x, j);
}

static BR_BOTH double finish(const pixel *x)
{
    const br_scene *s = x->v->scene;
    const br_pixel *p = x->p;
    double value = x->v->scale * p->sum / s->steps;
    if (!s->oversample_thick && br_has(s, BR_QUIRK_LAST_LAYER)) value *= p->capture;
    if (!s->oversample_polar) value *= p->polar;
    if (!s->oversample_omega) value *= p->omega;
    if (s->water != 0 && !br_has(s, BR_QUIRK_WATER_SCALE))
        value += x->v->water * p->polar * p->omega * x->capture_sum;
    return value;
}

static BR_BOTH void render(const br_view *v, br_row *row, int64_t i, br_pixel *p)
{
    const br_scene *s = v->scene;
    const int64_t O = s->oversample, pix = row->slow * s->fast + row->fast + i;
    pixel x = {.v = v, .row = row, .i = i, .group = pix * s->layers * O * O * s->sources, .p = p};
    p->fast = row->fast + i;
    p->slow = row->slow;
    p->polar = s->nopolar ? 1 : 0;
    p->omega = 0;
    p->sum = s->water != 0 && br_has(s, BR_QUIRK_WATER_SCALE) ? v->water : 0;
    for (x.sub[0] = 0; x.sub[0] < s->layers; x.sub[0]++) {
        p->capture = s->thickness == 0 ? 1 : 0;
        for (x.sub[1] = 0; x.sub[1] < O; x.sub[1]++)
            for (x.sub[2] = 0; x.sub[2] < O; x.sub[2]++) subpixel(&x);
        x.capture_sum += p->capture;
    }
    p->value = finish(&x);
    row->value[i] = p->value;
}

BR_BOTH void br_render_watched(const br_view *v, br_row *row, br_watch *watch)
{
    br_pixel p = watch ? watch->state : (br_pixel){0};
    row->outside = 0;
    for (int64_t i = 0; i < row->n; i++) {
        row->value[i] = row->omega[i] = 0;
        if (!br_rendered(v, row, i)) continue;
        render(v, row, i, &p);
        if (watch) watch->pixel(watch->user, &p);
    }
    if (watch) watch->state = p;
}

BR_BOTH void br_render_plain(const br_view *v, br_row *row)
{
    br_render_watched(v, row, NULL);
}

/* ---- the first sample out of range ---- */

/* Sample number in [0, phis * mosaics) of the group; -1: none. */
static BR_BOTH int64_t first_outside(pixel *x)
{
    const br_scene *s = x->v->scene;
    for (int64_t phi = 0, n = 0; phi < s->phis; phi++) {
        const int64_t turned = phi == 0 && x->group == x->v->chain ? s->phis : phi;
        const double *cell = x->v->cells + turned * s->mosaics * 9;
        for (int64_t m = 0; m < s->mosaics; m++, n++, cell += 9) {
            double delta[3];
            indices(x, cell, delta);
            if (in_range(s, x->p->hkl)) continue;
            if (!br_dead(s, br_lattice(x->v, delta))) return n;
        }
    }
    return -1;
}

static BR_BOTH int64_t latch_of_pixel(const br_view *v, const br_row *row, int64_t i)
{
    const br_scene *s = v->scene;
    const int64_t O = s->oversample, pix = row->slow * s->fast + row->fast + i;
    br_pixel p = {0};
    pixel x = {.v = v, .i = i, .group = pix * s->layers * O * O * s->sources, .p = &p};
    for (int64_t at = 0; at < s->layers * O * O; at++) {
        const int64_t sub[3] = {at / (O * O), at / O % O, at % O};
        br_position(v, row, i, sub, p.pos);
        br_unit(p.pos, x.d);
        for (int64_t j = 0; j < s->sources; j++, x.group++) {
            if (!br_scatter(v, j, x.d, x.q, &p.stol)) continue;
            const int64_t n = first_outside(&x);
            if (n >= 0) return x.group * s->phis * s->mosaics + n;
        }
    }
    return INT64_MAX;
}

/* No index can leave the table: |h| <= |a| |q| and |q| <= 2 / lambda. */
BR_BOTH bool br_always_inside(const br_view *v)
{
    const br_scene *s = v->scene;
    const int64_t lo[3] = {s->h_min, s->k_min, s->l_min}, hi[3] = {s->h_max, s->k_max, s->l_max};
    double q = 0;
    for (int64_t j = 0; j < s->sources; j++) {
        const double most = 2.0001 / v->beams[j].lambda;
        if (!(most > 0)) return false;
        if (most > q) q = most;
    }
    bool inside = true;
    for (int k = 0; k < 3; k++) {
        const double *a = v->cells + 3 * k;
        const double h = q * sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2]);
        inside = inside && h <= (double)(hi[k] - 2) && -h >= (double)(lo[k] + 2);
    }
    return inside;
}

BR_BOTH int64_t br_latch_plain(const br_view *v, const br_row *row)
{
    for (int64_t i = 0; i < row->n; i++) {
        const int64_t n = br_rendered(v, row, i) ? latch_of_pixel(v, row, i) : INT64_MAX;
        if (n != INT64_MAX) return n;
    }
    return INT64_MAX;
}
