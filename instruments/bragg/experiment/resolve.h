/* resolve.h - the steps from flags to an experiment; each is one section of the model. */
#ifndef BRAGG_RESOLVE_H
#define BRAGG_RESOLVE_H

#include "../flags/flags.h"
#include "../read/read.h"
#include "experiment.h"

/* Whether structure factors and a cell or matrix are given. If not, the reference prints its
 * usage. */
bool br_flags_enough(const br_flags *f);

/* Read the small inputs, resolve everything, check everything; writes nothing. Errors follow model
 * 20. On failure nothing is held. */
fth_status br_experiment_resolve(br_experiment *out, fth_mem *mem, const br_flags *f, fth_err *err);

/* The dump file that a text list leaves behind (model 6.3), where e->out.dump_file is not "". */
fth_status br_experiment_dump(const br_experiment *e, fth_err *err);

/* ---- steps of it ---- */

/* A range sampled in n steps; negative: not given. */
typedef struct br_steps {
    double range, step;
    int64_t n;
} br_steps;
void br_resolve_spindle(br_steps *s);                     /* model 3.4 */
void br_resolve_range(br_steps *s);                       /* model 3.5: divergence, dispersion */
void br_resolve_layers(br_steps *s, bool span_to_end);    /* model 3.6 */
void br_resolve_mosaic(double *spread, int64_t *domains); /* model 3.7 */

/* Header values for settings that were not given: first of the mask, then of the image. */
fth_status br_resolve_headers(br_flags *f, br_image_header *mask, fth_mem *mem, fth_err *err);

/* Sizes, ROI, convention, beam centre, pivot (model 3.1, 3.3, 4.1, 4.2) into scene and parameters.
 */
fth_status br_resolve_detector(br_experiment *e, const br_flags *f, fth_err *err);
/* The pivot of the detector (model 4.2). */
br_pivot br_pivot_of(const br_flags *f);
/* The axes of a convention before rotations; CUSTOM: those of the flags. */
void br_convention_axes(br_scene *scene, const br_flags *f);

#endif
