/* table_gradient.c - the gradient of a loss by every structure factor, for cotangents of the image.
 *
 * Each sample adds 2 F lattice^2 and its factors to the entries that its F came from. Where factors
 * multiply the running sum, a sample is multiplied by those of all later ones; samples are
 * therefore visited from the last to the first.
 */
#include "blocks.h"
#include "slope.h"

#include <string.h>

static fth_status infer(fth_node *node, fth_err *err)
{
    FTH_TRY(br_bar_check(node, err));
    node->n_out = 1;
    node->out[0] = node->in[BR_IN_TABLE];
    return FTH_OK;
}

/* The table of a block, dense: one for each worker. */
static int64_t entries(const fth_call *call)
{
    const fth_tile *t = &call->out[0];
    return t->extent[0] * t->extent[1] * t->extent[2];
}

static uint64_t scratch(const fth_call *call)
{
    const br_scene *s = &((const br_op_attr *)call->node->attr)->scene;
    return br_view_bytes(s) + (uint64_t)entries(call) * sizeof(double) * (uint64_t)call->threads;
}

static double flops(const fth_call *call)
{
    return 160.0 * br_bar_samples(call);
}

/* ---- one pixel ---- */

typedef struct pixel {
    const br_view *v;
    const br_row *row;
    int64_t i;      /* in the row */
    double *sum;    /* table of the block */
    int64_t group;  /* index of (pixel, layer, subs, subf, source) */
    double later;   /* product of what multiplies the sum after the sample in hand */
    double capture; /* of the layer, where it is taken once for all subpixels */
} pixel;

/* A subpixel of a layer: direction and distance. */
typedef struct place {
    double d[3], r;
} place;

static place place_at(const pixel *px, int64_t at)
{
    const int64_t o = px->v->scene->oversample;
    const int64_t sub[3] = {at / (o * o), at / o % o, at % o};
    double pos[3];
    place p;
    br_position(px->v, px->row, px->i, sub, pos);
    p.r = br_unit(pos, p.d);
    return p;
}

static double solid_angle(const br_view *v, double r)
{
    const br_scene *s = v->scene;
    return s->point_pixel ? 1 / r / r : s->pixel * s->pixel / r / r * v->close / r;
}

static double layer_capture(const pixel *px, int64_t layer)
{
    const br_scene *s = px->v->scene;
    if (s->thickness == 0) return 1;
    const place p = place_at(px, layer * s->oversample * s->oversample);
    return br_capture(px->v, layer, p.d);
}

/* Of the first source that dmin leaves. */
static double first_polarisation(const pixel *px)
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

/* What the sum of the pixel is multiplied by at its end. */
static double ending(const pixel *px)
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

static void sample(pixel *px, const double *cell, int64_t n, const double *q, double weight,
                   double factor)
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
    for (int i = 0; i < from.n; i++) px->sum[from.entry[i]] += slope * from.weight[i];
}

static void one_source(pixel *px, const place *p, int64_t layer, int64_t j, double weight)
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

static void one_pixel(pixel *px, double bar)
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

/* ---- blocks of rows ---- */

typedef struct work {
    const fth_tile *out;
    br_view view;
    int64_t entries;
} work;

static void start(void *user, double *part)
{
    const work *w = user;
    memset(part, 0, (size_t)w->entries * sizeof *part);
}

static void one_row(void *user, const br_row *row, const br_bars *bars, double *part)
{
    const work *w = user;
    pixel px = {.v = &w->view, .sum = part, .row = row};
    for (px.i = 0; px.i < row->n; px.i++)
        if (br_rendered(&w->view, row, px.i)) one_pixel(&px, bars->data[0][px.i * bars->step[0]]);
}

/* out += part, or out = 0 where there is none */
static void add(void *user, const double *part)
{
    const fth_tile *out = ((const work *)user)->out;
    for (int64_t h = 0; h < out->extent[0]; h++)
        for (int64_t k = 0; k < out->extent[1]; k++) {
            double *to = (double *)out->data + h * out->stride[0] + k * out->stride[1];
            const double *from = part ? part + (h * out->extent[1] + k) * out->extent[2] : NULL;
            for (int64_t l = 0; l < out->extent[2]; l++) to[l] = from ? to[l] + from[l] : 0;
        }
}

static fth_status run(const fth_call *call)
{
    work w = {.out = &call->out[0], .entries = entries(call)};
    double *parts = br_op_view(call, &w.view);
    if (call->first) add(&w, NULL);
    br_blocks_run(&(br_blocks){.call = call,
                               .part = parts,
                               .size = w.entries,
                               .user = &w,
                               .start = start,
                               .row = one_row,
                               .add = add});
    return FTH_OK;
}

static const fth_op table_gradient = {
    .name = "bragg_table_gradient",
    .brief = "gradient by the structure factors, for cotangents of a diffraction image",
    .flags = FTH_OP_TEAM,
    .infer = infer,
    .relation = br_bar_relation,
    .grid = br_bar_grid,
    .scratch = scratch,
    .flops = flops,
    .run = run,
};

fth_val br_table_gradient_(fth_site site, const br_scene *scene, const br_inputs *in, fth_val bar)
{
    return br_op_add_with(site, &table_gradient, scene, in, FTH_F64, 1, &bar);
}
