/* predict.h - predicted spots: reflections near the Ewald sphere, and their positions on the
 * detector. */
#ifndef BRAGG_PREDICT_H
#define BRAGG_PREDICT_H

#include "../experiment/experiment.h"

typedef struct br_mark {
    int64_t hkl[3];
    double fast, slow; /* pixels; the centre of the first is (0, 0) */
    double excitation; /* distance from the sphere at its nearest, 1/Angstrom */
    double strength;   /* F^2, falling off with the excitation */
} br_mark;

typedef struct br_marks {
    fth_mem *mem;
    br_mark *spot; /* strongest first */
    int64_t n;
} br_marks;

/* Spots inside the rendered region of a flat detector, for the wavelength and direction of the
 * beam, over all steps of the spindle. A reflection counts when its distance to the sphere is
 * within its width from crystal size, mosaic spread, dispersion and divergence. None for a curved
 * detector. */
fth_status br_marks_predict(br_marks *out, const br_experiment *e, fth_err *err);
void br_marks_clear(br_marks *s);

#endif
