/* testing/bragg/bragg_scene.h - scenes of the bragg instrument made by hand: each convention with
 * the numbers of the golden cases. */
#ifndef FATHOM_TESTING_BRAGG_SCENE_H
#define FATHOM_TESTING_BRAGG_SCENE_H

#include "instruments/bragg/geometry/scene.h"
#include "testing/test.h"

static inline void t_set3(double *v, double x, double y, double z)
{
    v[0] = x;
    v[1] = y;
    v[2] = z;
}

/* 64 x 64 pixels of 0.4 mm at 61.3 mm; cell 40 45 50, misset 10 20 30 degrees, 1 A. */
static inline void t_scene(br_scene *s, double *p, br_convention c)
{
    memset(s, 0, sizeof *s);
    s->fast = s->slow = 64;
    s->roi[1] = s->roi[3] = 63;
    s->pixel = 0.0004;
    s->detsize[0] = s->detsize[1] = 64 * s->pixel;
    s->layers = s->oversample = s->phis = s->sources = s->mosaics = 1;
    s->steps = s->weight_sum = 1;
    s->cells[0] = s->cells[1] = s->cells[2] = 4;
    s->fudge = 1;
    s->chain_start = -1;
    s->quirks = BR_QUIRKS_C;
    s->convention = (int32_t)c;
    s->pivot = c == BR_XDS || c == BR_DIALS ? BR_PIVOT_SAMPLE : BR_PIVOT_BEAM;
    s->cell_given = s->misset_given = 1;
    const bool along_x = c == BR_MOSFLM || c == BR_DENZO || c == BR_CUSTOM;
    t_set3(s->beam, along_x, 0, !along_x);
    t_set3(s->fdet, !along_x, 0, along_x);
    t_set3(s->sdet, 0, c == BR_XDS || c == BR_DIALS ? 1 : -1, 0);
    t_set3(s->odet, along_x, 0, !along_x);
    t_set3(s->polar, !along_x && c != BR_DIALS, c == BR_DIALS, along_x);
    t_set3(s->spindle, !along_x && c != BR_DIALS, c == BR_DIALS, along_x);
    if (c == BR_ADXV)
        t_set3(s->twotheta_axis, -1, 0, 0);
    else if (c == BR_XDS)
        t_set3(s->twotheta_axis, 1, 0, 0);
    else if (c == BR_DIALS || c == BR_CUSTOM)
        t_set3(s->twotheta_axis, 0, 1, 0);
    else
        t_set3(s->twotheta_axis, 0, 0, -1);
    const double *b = s->beam, *q = s->polar;
    for (int i = 0; i < 3; i++) {
        const int j = (i + 1) % 3, k = (i + 2) % 3;
        s->vertical[i] = b[j] * q[k] - b[k] * q[j];
    }
    memset(p, 0, BR_PARAMS * sizeof *p);
    p[BR_A] = 40;
    p[BR_B] = 45;
    p[BR_C] = 50;
    for (int i = 0; i < 3; i++) {
        p[BR_AL + i] = br_radians(90);
        p[BR_MX + i] = br_radians(10 * (i + 1));
    }
    p[BR_LAM] = 1.0 / 1e10;
    p[BR_DIST] = 61.3 / 1000;
    p[BR_XB] = 12.3 / 1000;
    p[BR_YB] = 13.4 / 1000;
    p[BR_FLU] = BR_FLUENCE;
}

static inline void t_unit(double *v)
{
    const double m = sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
    for (int i = 0; i < 3; i++) v[i] /= m;
}

#endif
