/* edit.h - changes of a whole model: fewer coefficients, a box cut out, another place. */
#ifndef SPLAT_MODEL_EDIT_H
#define SPLAT_MODEL_EDIT_H

#include "model.h"

/* Leave out coefficients above a degree, at most that of the model. */
void gs_model_lower(gs_model *m, int degree);
/* Keep rows whose mean lies in the box, its faces included. */
void gs_model_crop(gs_model *m, const double low[3], const double high[3]);

/* A rotation, a size and a shift: x -> size rotation x + shift. */
typedef struct gs_similarity {
    double rotation[3][3], size, shift[3];
} gs_similarity;
/* A matrix of 4 x 4 numbers: the document itself, or its member "matrix" or
 * "transform_matrix". FTH_E_FILE_FORMAT: it is no similarity, it mirrors or shears. */
fth_status gs_similarity_load(gs_similarity *t, fth_mem *mem, const char *path, fth_err *err);
/* Means, rotations, scales and spherical harmonics. */
void gs_model_transform(gs_model *m, gs_similarity *t);

#endif
