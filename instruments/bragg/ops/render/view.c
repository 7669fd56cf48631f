/* view.c - from scene and parameters to the view that the loops read. */
#include "view.h"

#include <string.h>

static BR_BOTH int64_t cells_of(const br_scene *s)
{
    return (s->phis + 1) * s->mosaics * 9;
}

/* Rotated cells, angles, beams, and the cells again as floats. */
BR_BOTH uint64_t br_view_bytes(const br_scene *s)
{
    const uint64_t cells = (uint64_t)cells_of(s);
    const uint64_t single = s->precision == BR_F32 ? (cells + 1) / 2 : 0;
    return (cells + (uint64_t)s->phis + single) * sizeof(double) +
           (uint64_t)s->sources * sizeof(br_beam);
}

BR_BOTH void br_view_spindle(const br_scene *s, double abc[3][3], double angle, double spun[3][3])
{
    for (int k = 0; k < 3; k++) {
        memcpy(spun[k], abc[k], sizeof spun[k]);
        if (angle != 0) br_rotate_axis(abc[k], s->spindle, angle, spun[k]);
    }
}

BR_BOTH void br_view_mosaic(const br_scene *s, double spun[3][3], const double *mosaic_rotation,
                            int64_t domain, double *out)
{
    if (!s->mosaic_given) {
        memcpy(out, spun, sizeof(double[3][3]));
        return;
    }
    const double *u = mosaic_rotation + 9 * domain;
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < 3; i++)
            out[3 * k + i] =
                u[3 * i] * spun[k][0] + u[3 * i + 1] * spun[k][1] + u[3 * i + 2] * spun[k][2];
}

static BR_BOTH void values(const br_dual *from, double *to)
{
    for (int i = 0; i < 3; i++) to[i] = from[i].v;
}

static BR_BOTH void unit_cross(const double *a, const double *b, double *out)
{
    const double c[3] = {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2],
                         a[0] * b[1] - a[1] * b[0]};
    br_unit(c, out);
}

BR_BOTH void br_view_beam(const br_view *v, int64_t j, br_beam *beam)
{
    const br_scene *s = v->scene;
    const double *source = v->source + j * BR_SRC_COLUMNS;
    const double in[3] = {-source[0], -source[1], -source[2]};
    memcpy(beam->to, source, sizeof beam->to);
    beam->lambda = source[BR_SRC_FIXED] + source[BR_SRC_PART] * v->lambda;
    beam->inv_lambda = 1 / beam->lambda;
    beam->weight = br_has(s, BR_QUIRK_EQUAL_WEIGHTS)
                       ? 1
                       : (double)s->sources * source[BR_SRC_WEIGHT] / s->weight_sum;
    unit_cross(s->polar, in, beam->across);
    unit_cross(in, beam->across, beam->along);
}

static BR_BOTH void place(br_view *v, const br_placed *f)
{
    const br_scene *s = v->scene;
    values(f->pix0, v->pix0);
    values(f->fdet, v->fdet);
    values(f->sdet, v->sdet);
    values(f->odet, v->odet);
    for (int k = 0; k < 3; k++) values(f->star[k], v->star[k]);
    v->close = f->close.v;
    v->distance = f->distance.v;
    v->fbeam = f->fbeam;
    v->sbeam = f->sbeam;
    v->lambda = f->lambda.v;
    v->scale = BR_THOMSON * f->fluence.v;
    v->water = 2.57 * 2.57 * BR_THOMSON * f->fluence.v * s->water * s->water * s->water * 1e6 *
               BR_AVOGADRO / 18.0;
    /* the axes that move a point on the beam along fast and slow */
    unit_cross(s->beam, v->fdet, v->arc_f);
    unit_cross(s->beam, v->sdet, v->arc_s);
}

BR_BOTH void br_view_begin(br_view *v, const br_scene *scene, const br_arrays *a, double abc[3][3],
                           double *angle)
{
    br_placed placed;
    br_place(scene, a->param, &placed);
    memset(v, 0, sizeof *v);
    v->scene = scene;
    v->table = a->table;
    v->latch = a->latch;
    v->source = a->source;
    v->lattice_sum = scene->cells[0] * scene->cells[1] * scene->cells[2];
    v->interpolate = scene->interpolate && scene->hkls > 0;
    v->latched = br_has(scene, BR_QUIRK_INTERP_LATCH);
    v->chain = -1;
    memcpy(v->table_step, a->table_step, sizeof v->table_step);
    place(v, &placed);
    if (scene->chain_start >= 0) v->chain = scene->chain_start / (scene->phis * scene->mosaics);
    for (int k = 0; k < 3; k++) values(placed.abc[k], abc[k]);
    br_spindle_angles(scene, placed.phi0.v, angle);
}

BR_BOTH void br_view_make(br_view *v, const br_scene *scene, const br_arrays *a, double *work)
{
    double abc[3][3];
    const int64_t cells = cells_of(scene);
    double *angle = work + cells;
    br_beam *beams = (br_beam *)(void *)(angle + scene->phis);
    br_view_begin(v, scene, a, abc, angle);
    v->cells = work;
    v->beams = beams;
    for (int64_t j = 0; j < scene->sources; j++) br_view_beam(v, j, &beams[j]);
    double *cell = work;
    for (int64_t i = 0; i <= scene->phis; i++) {
        double spun[3][3];
        br_view_spindle(scene, abc, i < scene->phis ? angle[i] : 0, spun);
        for (int64_t m = 0; m < scene->mosaics; m++, cell += 9)
            br_view_mosaic(scene, spun, a->mosaic_rotation, m, cell);
    }
    if (scene->precision != BR_F32) return;
    float *single = (float *)(void *)(beams + scene->sources);
    for (int64_t i = 0; i < cells; i++) single[i] = (float)work[i];
    v->cells_f32 = single;
}
