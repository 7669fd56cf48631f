/* truth.h - the true object as patches about the middle of groups, for losses that compare with it.
 *
 * It comes from objectGuess of the scan, pixel (0, 0) at x = y = 0, and is as bright as the patches
 * that explain the patterns behind the normalised probe: other scales could not be learned.
 */
#ifndef PTYCHO_TRAIN_TRUTH_H
#define PTYCHO_TRAIN_TRUTH_H

#include "../net/model.h"
#include "dataset.h"

typedef struct pt_truth {
    fth_tensor *object; /* c128 [row col] of the file; NULL: nothing is compared */
    double scale;
} pt_truth;

/* The probe of the model is the one it starts with. FTH_E_FILE_KEY without a truth. */
fth_status pt_truth_open(pt_truth *t, pt_dataset *d, const pt_model *m, fth_err *err);
void pt_truth_close(pt_truth *t); /* an empty one is allowed */
/* Patches of groups [from, from + n) of `order`, c64 [group row col]. */
void pt_truth_patches(const pt_truth *t, const pt_dataset *d, const int64_t *order, int64_t from,
                      int64_t n, fth_c64 *out);

#endif
