/* project.h - a trained model on cells it has not seen (spec 11.11). */
#ifndef SPATIAL_PROJECT_H
#define SPATIAL_PROJECT_H

#include "prior.h"

typedef struct sp_project {
    fth_context *ctx;
    sp_model *model;
    const sp_data *data;
    fth_sink factors, scales; /* f32 [cell factor] */
} sp_project;

/* pnmf knows nothing of places: the factors of each cell follow from its counts, W being as it is.
 * By the variational fit of training, or by least squares, which has no scales. */
fth_status sp_project_counts(sp_project *p, bool least_squares, fth_err *err);

#endif
