/* view.c - from scene and parameters to what the loops read. */
#include "view.h"

#include <string.h>

uint64_t br_view_bytes(const br_scene *s)
{
    const uint64_t cells = (uint64_t)(s->phis + 1) * (uint64_t)s->mosaics * 9;
    return (cells + (uint64_t)s->phis) * sizeof(double);
}

static void turn_cell(const br_view *v, const double abc[3][3], double angle, const double *turn,
                      double *out)
{
    const br_scene *s = v->scene;
    double spun[3][3];
    for (int k = 0; k < 3; k++) {
        memcpy(spun[k], abc[k], sizeof spun[k]);
        if (angle != 0) br_rotate_axis(abc[k], s->spindle, angle, spun[k]);
    }
    for (int64_t m = 0; m < s->mosaics; m++, out += 9) {
        if (!s->mosaic_given) {
            memcpy(out, spun, sizeof spun);
            continue;
        }
        const double *u = turn + 9 * m;
        for (int k = 0; k < 3; k++)
            for (int i = 0; i < 3; i++)
                out[3 * k + i] =
                    u[3 * i] * spun[k][0] + u[3 * i + 1] * spun[k][1] + u[3 * i + 2] * spun[k][2];
    }
}

static void values(const br_dual *from, double *to)
{
    for (int i = 0; i < 3; i++) to[i] = from[i].v;
}

/* The axis that moves a point on the beam along `to`. */
static void arc_axis(const double *beam, const double *to, double *axis)
{
    const double c[3] = {beam[1] * to[2] - beam[2] * to[1], beam[2] * to[0] - beam[0] * to[2],
                         beam[0] * to[1] - beam[1] * to[0]};
    br_unit(c, axis);
}

static void place(br_view *v, const br_frame *f)
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
    arc_axis(s->beam, v->fdet, v->arc_f);
    arc_axis(s->beam, v->sdet, v->arc_s);
}

void br_view_make(br_view *v, const br_scene *scene, const br_arrays *a, double *work)
{
    br_frame frame;
    br_place(scene, a->param, &frame);
    *v = (br_view){.scene = scene,
                   .table = a->table,
                   .latch = a->latch,
                   .source = a->source,
                   .cells = work,
                   .lattice_sum = scene->cells[0] * scene->cells[1] * scene->cells[2],
                   .interpolate = scene->interpolate && scene->hkls > 0,
                   .latched = br_has(scene, BR_QUIRK_INTERP_LATCH),
                   .chain = -1};
    memcpy(v->table_step, a->table_step, sizeof v->table_step);
    place(v, &frame);
    if (scene->chain_start >= 0) v->chain = scene->chain_start / (scene->phis * scene->mosaics);
    double abc[3][3];
    for (int k = 0; k < 3; k++) values(frame.abc[k], abc[k]);
    const int64_t row = scene->mosaics * 9;
    double *angle = work + (scene->phis + 1) * row;
    br_spindle_angles(scene, frame.phi0.v, angle);
    for (int64_t i = 0; i < scene->phis; i++)
        turn_cell(v, (const double(*)[3])abc, angle[i], a->turn, work + i * row);
    turn_cell(v, (const double(*)[3])abc, 0, a->turn, work + scene->phis * row);
}
