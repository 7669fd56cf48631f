/* normalise.h - the scale of patterns from the object that they were made of, where it is known. */
#ifndef PTYCHO_TRAIN_NORMALISE_H
#define PTYCHO_TRAIN_NORMALISE_H

#include "../net/model.h"
#include "dataset.h"

/* The energy that patterns are scaled to becomes the mean over the patterns that are used of
 * sum |P O_j|^2, with objectGuess of the scan and the probe that the model starts with: the
 * network's patches then have the scale of the object. FTH_E_FILE_KEY without an object. */
fth_status pt_normalise_by_object(pt_model *m, fth_context *ctx, pt_dataset *d, fth_err *err);

#endif
