/* jacobian_plain.c - derivatives of one pixel, the obvious loop over its samples.
 *
 * Every factor is a number with slopes by the numbers of the placed scene (adjoint.h). A factor
 * that depends on where the pixel is passes a cotangent of the direction to `push_direction`, which
 * propagates it to the vectors of the detector.
 */
#include "jacobian.h"

#include <string.h>

typedef struct number {
    double v, d[BR_ADJOINTS];
} number;

static BR_BOTH double dot(const double *a, const double *b)
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static BR_BOTH void cross(const double *a, const double *b, double *out)
{
    for (int i = 0; i < 3; i++)
        out[i] = a[(i + 1) % 3] * b[(i + 2) % 3] - a[(i + 2) % 3] * b[(i + 1) % 3];
}

static BR_BOTH void scale(number *x, double k)
{
    x->v *= k;
    for (int i = 0; i < BR_ADJOINTS; i++) x->d[i] *= k;
}

static BR_BOTH void times(number *x, const number *y)
{
    for (int i = 0; i < BR_ADJOINTS; i++) x->d[i] = x->d[i] * y->v + x->v * y->d[i];
    x->v *= y->v;
}

static BR_BOTH void plus(number *x, const number *y)
{
    x->v += y->v;
    for (int i = 0; i < BR_ADJOINTS; i++) x->d[i] += y->d[i];
}

/* ---- from a position in the laboratory back to the detector ---- */

/* Where a subpixel of a layer is. */
typedef struct spot {
    double fd, sd, od;       /* on the sensor */
    double flat[3], once[3]; /* before bending the sensor, and between its two rotations */
    double at[3], r, d[3];
} spot;

/* The two rotations that take a point on the beam to a point of a curved sensor. */
typedef struct bow {
    const double *axis[2];
    double angle[2];
} bow;

static BR_BOTH bow bow_at(const br_view *v, const spot *p)
{
    if (br_has(v->scene, BR_QUIRK_CURVED_LABYZ))
        return (bow){{v->sdet, v->fdet}, {p->flat[1] / v->distance, p->flat[2] / v->distance}};
    return (bow){{v->arc_s, v->arc_f},
                 {(p->sd - v->sbeam) / v->distance, (p->fd - v->fbeam) / v->distance}};
}

static BR_BOTH BR_APART void spot_at(const br_view *v, int64_t slow, int64_t fast,
                                     const int64_t sub[3], spot *p)
{
    const br_scene *s = v->scene;
    const double edge = s->pixel / (double)s->oversample;
    p->fd = edge * (double)(fast * s->oversample + sub[2]) + edge / 2;
    p->sd = edge * (double)(slow * s->oversample + sub[1]) + edge / 2;
    p->od = (double)sub[0] * s->layer_step;
    for (int i = 0; i < 3; i++)
        p->at[i] = p->flat[i] =
            p->fd * v->fdet[i] + p->sd * v->sdet[i] + p->od * v->odet[i] + v->pix0[i];
    if (s->curved) {
        const bow b = bow_at(v, p);
        const double beam[3] = {v->distance * s->beam[0], v->distance * s->beam[1],
                                v->distance * s->beam[2]};
        br_rotate_axis(beam, b.axis[0], b.angle[0], p->once);
        br_rotate_axis(p->once, b.axis[1], b.angle[1], p->at);
    }
    p->r = br_unit(p->at, p->d);
}

/* Cotangents of r = rotation of v about u by t, for that of r. */
static BR_BOTH void turn_back(const double *v, const double *u, double t, const double *bar,
                              double *v_bar, double *u_bar, double *t_bar)
{
    const double c = cos(t), s = sin(t), uv = dot(u, v), ub = dot(u, bar);
    double uxv[3], uxb[3], vxb[3];
    cross(u, v, uxv);
    cross(u, bar, uxb);
    cross(v, bar, vxb);
    *t_bar = 0;
    for (int i = 0; i < 3; i++) {
        v_bar[i] = u[i] * ub * (1 - c) + bar[i] * c - uxb[i] * s;
        u_bar[i] = (1 - c) * (uv * bar[i] + ub * v[i]) + s * vxb[i];
        *t_bar += bar[i] * (s * (u[i] * uv - v[i]) + c * uxv[i]);
    }
}

/* An arc of the sensor about the beam: its axis is the unit vector of beam x side, its angle
 * (place - side . (distance beam - pix0)) / distance. `side` is the number of FDET or SDET. */
static BR_BOTH void push_arc(const br_view *v, int side, const double *vector,
                             const double *axis_bar, double angle_bar, number *out)
{
    const double *b = v->scene->beam, offset_bar = -angle_bar / v->distance;
    double w[3], u[3], w_bar[3], side_bar[3];
    cross(b, vector, w);
    const double n = br_unit(w, u), along = dot(u, axis_bar);
    for (int i = 0; i < 3; i++) w_bar[i] = n > 0 ? (axis_bar[i] - u[i] * along) / n : 0;
    cross(w_bar, b, side_bar);
    for (int i = 0; i < 3; i++) {
        out->d[side + i] += side_bar[i] + offset_bar * (v->distance * b[i] - v->pix0[i]);
        out->d[BR_AD_PIX0 + i] -= offset_bar * vector[i];
    }
    out->d[BR_AD_DISTANCE] += offset_bar * dot(vector, b);
}

/* The curved sensor: returns the cotangent of the flat position, adds the rest to `out`. */
static BR_BOTH BR_APART void unbend(const br_view *v, const spot *p, const double *bar,
                                    double *flat, number *out)
{
    const double *b = v->scene->beam;
    const double beam[3] = {v->distance * b[0], v->distance * b[1], v->distance * b[2]};
    const bow w = bow_at(v, p);
    double once[3], start[3], s_bar[3], f_bar[3], angle[2];
    turn_back(p->once, w.axis[1], w.angle[1], bar, once, f_bar, &angle[1]);
    turn_back(beam, w.axis[0], w.angle[0], once, start, s_bar, &angle[0]);
    out->d[BR_AD_DISTANCE] +=
        dot(start, b) - (angle[0] * w.angle[0] + angle[1] * w.angle[1]) / v->distance;
    memset(flat, 0, 3 * sizeof *flat);
    if (br_has(v->scene, BR_QUIRK_CURVED_LABYZ)) {
        flat[1] = angle[0] / v->distance;
        flat[2] = angle[1] / v->distance;
        for (int i = 0; i < 3; i++) {
            out->d[BR_AD_SDET + i] += s_bar[i];
            out->d[BR_AD_FDET + i] += f_bar[i];
        }
    } else {
        push_arc(v, BR_AD_SDET, v->sdet, s_bar, angle[0], out);
        push_arc(v, BR_AD_FDET, v->fdet, f_bar, angle[1], out);
    }
}

static BR_BOTH void push_place(const br_view *v, const spot *p, const double *bar, number *out)
{
    double flat[3];
    if (v->scene->curved)
        unbend(v, p, bar, flat, out);
    else
        memcpy(flat, bar, sizeof flat);
    for (int i = 0; i < 3; i++) {
        out->d[BR_AD_PIX0 + i] += flat[i];
        out->d[BR_AD_FDET + i] += flat[i] * p->fd;
        out->d[BR_AD_SDET + i] += flat[i] * p->sd;
        out->d[BR_AD_ODET + i] += flat[i] * p->od;
    }
}

BR_BOTH BR_APART void br_push_place(const br_view *v, int64_t slow, int64_t fast,
                                    const int64_t sub[3], const double *bar, double *adjoint)
{
    number out = {0};
    spot p;
    spot_at(v, slow, fast, sub, &p);
    push_place(v, &p, bar, &out);
    for (int i = 0; i < BR_ADJOINTS; i++) adjoint[i] += out.d[i];
}

/* d = P / |P| */
static BR_BOTH BR_APART void push_direction(const br_view *v, const spot *p, const double *bar,
                                            number *out)
{
    const double along = dot(p->d, bar);
    double place[3];
    for (int i = 0; i < 3; i++) place[i] = (bar[i] - p->d[i] * along) / p->r;
    push_place(v, p, place, out);
}

/* ---- factors ---- */

static BR_BOTH BR_APART void solid_angle(const br_view *v, const spot *p, number *out)
{
    const br_scene *s = v->scene;
    const double r = p->r, close = v->close;
    double bar[3];
    memset(out, 0, sizeof *out);
    out->v = s->point_pixel ? 1 / (r * r) : s->pixel * s->pixel / r / r * close / r;
    const double slope = (s->point_pixel ? -2 : -3) * out->v / r;
    for (int i = 0; i < 3; i++) bar[i] = slope * p->d[i];
    push_place(v, p, bar, out);
    if (!s->point_pixel) out->d[BR_AD_CLOSE] = s->pixel * s->pixel / (r * r * r);
}

static BR_BOTH BR_APART void captured(const br_view *v, const spot *p, int64_t layer, number *out)
{
    const br_scene *s = v->scene;
    const double rho = dot(p->d, v->odet), depth = s->layer_step * s->mu;
    const double near = (double)layer * depth, far = (double)(layer + 1) * depth;
    const double in = exp(-near / rho), left = exp(-far / rho);
    const double slope = (near * in - far * left) / (rho * rho);
    double bar[3];
    memset(out, 0, sizeof *out);
    out->v = in - left;
    for (int i = 0; i < 3; i++) {
        bar[i] = slope * v->odet[i];
        out->d[BR_AD_ODET + i] = slope * p->d[i];
    }
    push_direction(v, p, bar, out);
}

/* `source` is the direction to it, opposite to the beam. */
static BR_BOTH BR_APART void polarisation(const br_view *v, const spot *p, const double *source,
                                          number *out)
{
    const double in[3] = {-source[BR_SRC_X], -source[BR_SRC_Y], -source[BR_SRC_Z]};
    const double *d = p->d, kahn = v->scene->kahn, c2 = dot(in, d);
    double b[3], e[3], bar[3], cos2psi = 1, x_slope = 0, y_slope = 0;
    memset(out, 0, sizeof *out);
    cross(v->scene->polar, in, b);
    br_unit(b, b);
    cross(in, b, e);
    br_unit(e, e);
    if (kahn != 0) {
        const double x = dot(d, e), y = dot(d, b), r2 = x * x + y * y;
        cos2psi = cos(2 * atan2(y, x));
        x_slope = r2 > 0 ? 4 * x * y * y / (r2 * r2) : 0;
        y_slope = r2 > 0 ? -4 * y * x * x / (r2 * r2) : 0;
    }
    out->v = 0.5 * (1 + c2 * c2 - kahn * cos2psi * (1 - c2 * c2));
    for (int i = 0; i < 3; i++)
        bar[i] = c2 * (1 + kahn * cos2psi) * in[i] -
                 0.5 * kahn * (1 - c2 * c2) * (x_slope * e[i] + y_slope * b[i]);
    push_direction(v, p, bar, out);
}

/* ---- samples ---- */

typedef struct sloped {
    const br_lab *lab;
    const br_view *v;
    spot place;
    number sum, polar, omega, captured, all_captured;
    int64_t group; /* index of (pixel, layer, subs, subf, source) */
} sloped;

/* One sample: F^2 * lattice^2. false: it is skipped. */
static BR_BOTH BR_APART bool sample(const sloped *px, int64_t row, int64_t n, const double *q,
                                    const double *source, number *out)
{
    const br_view *v = px->v;
    const br_scene *s = v->scene;
    const double *cell = v->cells + row * 9, *rotation = px->lab->rotations + row * 9;
    const double lambda = source[BR_SRC_FIXED] + source[BR_SRC_PART] * v->lambda;
    double hkl[3], bar[3] = {0}, along[3];
    br_lattice_slope lattice;
    br_factor f;
    for (int x = 0; x < 3; x++) hkl[x] = dot(cell + 3 * x, q);
    br_lattice_at(s, px->lab->metric, hkl, &lattice);
    if (br_dead(s, lattice.v)) return false;
    br_factor_at(v, hkl, v->interpolate && (!v->latched || n < v->latch), &f);
    const double ff = f.v * f.v, ll = lattice.v * lattice.v;
    memset(out, 0, sizeof *out);
    out->v = ff * ll;
    for (int i = 0; i < 3; i++)
        along[i] = rotation[i] * q[0] + rotation[3 + i] * q[1] + rotation[6 + i] * q[2];
    for (int x = 0; x < 3; x++) {
        const double g = 2 * f.v * f.d[x] * ll + ff * 2 * lattice.v * lattice.d[x];
        for (int i = 0; i < 3; i++) {
            out->d[BR_AD_CELL + 3 * x + i] = g * along[i];
            bar[i] += g * cell[3 * x + i] / lambda;
        }
    }
    for (int i = 0; i < 6; i++) out->d[BR_AD_METRIC + i] = ff * 2 * lattice.v * lattice.metric[i];
    out->d[BR_AD_LAMBDA] = -dot(q, bar) * source[BR_SRC_PART];
    push_direction(v, &px->place, bar, out);
    return true;
}

/* How a term enters the sum (model 9.6). */
static BR_BOTH void add(sloped *px, number *term, double weight)
{
    const br_scene *s = px->v->scene;
    const bool running = br_has(s, BR_QUIRK_RUNNING_SUM);
    scale(term, weight);
    if (s->oversample_thick ? !running : !br_has(s, BR_QUIRK_LAST_LAYER))
        times(term, &px->captured);
    if (s->oversample_polar && !running) times(term, &px->polar);
    if (s->oversample_omega && !running) times(term, &px->omega);
    plus(&px->sum, term);
    if (s->oversample_thick && running) times(&px->sum, &px->captured);
    if (s->oversample_polar && running) times(&px->sum, &px->polar);
    if (s->oversample_omega && running) times(&px->sum, &px->omega);
}

static BR_BOTH void one(number *x)
{
    memset(x, 0, sizeof *x);
    x->v = 1;
}

static BR_BOTH void one_source(sloped *px, int64_t j)
{
    const br_view *v = px->v;
    const br_scene *s = v->scene;
    const double *source = v->source + j * BR_SRC_COLUMNS;
    const int64_t each = s->phis * s->mosaics;
    double q[3], stol;
    number term;
    if (!br_scatter(v, j, px->place.d, q, &stol)) return;
    if (px->polar.v == 0 || s->oversample_polar) polarisation(v, &px->place, source, &px->polar);
    for (int64_t i = 0; i < each; i++) {
        const bool start = px->group == v->chain && i < s->mosaics;
        if (sample(px, start ? each + i : i, px->group * each + i, q, source, &term))
            add(px, &term, v->beams[j].weight);
    }
}

static BR_BOTH void subpixel(sloped *px, int64_t layer)
{
    const br_view *v = px->v;
    const br_scene *s = v->scene;
    if (px->omega.v == 0 || s->oversample_omega) solid_angle(v, &px->place, &px->omega);
    if (px->captured.v == 0 || s->oversample_thick) captured(v, &px->place, layer, &px->captured);
    for (int64_t j = 0; j < s->sources; j++, px->group++) one_source(px, j);
}

static BR_BOTH void finish(sloped *px)
{
    const br_scene *s = px->v->scene;
    number k = {.v = px->v->scale / s->steps};
    k.d[BR_AD_FLUENCE] = BR_THOMSON / s->steps;
    times(&px->sum, &k);
    if (!s->oversample_thick && br_has(s, BR_QUIRK_LAST_LAYER)) times(&px->sum, &px->captured);
    if (!s->oversample_polar) times(&px->sum, &px->polar);
    if (!s->oversample_omega) times(&px->sum, &px->omega);
    if (s->water == 0 || br_has(s, BR_QUIRK_WATER_SCALE)) return;
    number water = {.v = px->v->water}; /* added once, after the Bragg scattering */
    water.d[BR_AD_FLUENCE] = px->v->water / px->lab->fluence;
    times(&water, &px->polar);
    times(&water, &px->omega);
    times(&water, &px->all_captured);
    plus(&px->sum, &water);
}

static BR_BOTH void render(sloped *px, int64_t slow, int64_t fast)
{
    const br_view *v = px->v;
    const br_scene *s = v->scene;
    const int64_t o = s->oversample;
    px->group = (slow * s->fast + fast) * s->layers * o * o * s->sources;
    if (br_has(s, BR_QUIRK_WATER_SCALE) && s->water != 0) {
        px->sum.v = v->water;
        px->sum.d[BR_AD_FLUENCE] = v->water / px->lab->fluence;
    }
    if (s->nopolar) one(&px->polar);
    for (int64_t layer = 0; layer < s->layers; layer++) {
        memset(&px->captured, 0, sizeof px->captured);
        if (s->thickness == 0) one(&px->captured);
        for (int64_t at = 0; at < o * o; at++) {
            const int64_t sub[3] = {layer, at / o, at % o};
            spot_at(v, slow, fast, sub, &px->place);
            subpixel(px, layer);
        }
        plus(&px->all_captured, &px->captured);
    }
    finish(px);
}

static BR_BOTH void pixels(const br_lab *lab, br_row *row, double *adjoint, int64_t step)
{
    for (int64_t i = 0; i < row->n; i++) {
        sloped px = {.lab = lab, .v = &lab->view};
        if (br_rendered(&lab->view, row, i)) render(&px, row->slow, row->fast + i);
        row->value[i] = px.sum.v;
        for (int k = 0; k < BR_ADJOINTS; k++) adjoint[k * step + i] = px.sum.d[k];
    }
}

static BR_BOTH void apply(const br_slopes *s, const double *adjoint, int64_t step, int64_t n,
                          double *slope)
{
    memset(slope, 0, sizeof *slope * (size_t)(BR_PARAMS * step));
    for (int i = 0; i < s->n; i++)
        for (int64_t x = 0; x < n; x++)
            slope[s->slope[i].param * step + x] +=
                adjoint[s->slope[i].number * step + x] * s->slope[i].value;
}

static BR_BOTH void normal(const double *slope, const double *weight, const double *error,
                           double *sum)
{
    for (int p = 0; p < BR_PARAMS; p++) {
        const double *a = slope + p * BR_BLOCK;
        for (int q = 0; q <= p; q++, sum += BR_NORMAL_LANES)
            for (int i = 0; i < BR_BLOCK; i++)
                sum[i % BR_NORMAL_LANES] += weight[i] * a[i] * slope[q * BR_BLOCK + i];
        for (int i = 0; i < BR_BLOCK; i++) sum[i % BR_NORMAL_LANES] += weight[i] * a[i] * error[i];
        sum += BR_NORMAL_LANES;
    }
}

#ifndef BR_ON_DEVICE
const br_jacobian_loops br_jacobian_plain = {pixels, apply, normal};
#endif
