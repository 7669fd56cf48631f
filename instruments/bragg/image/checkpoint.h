/* checkpoint.h - rows of an image that were rendered before a run was ended, kept to go on from.
 *
 * One file holds the float image as far as it is, what else its rows gave, and to which experiment
 * they belong. A row counts only once it is on the disk. Rows do not depend on each other, so the
 * image that was gone on with has the bytes of an undisturbed one.
 */
#ifndef BRAGG_CHECKPOINT_H
#define BRAGG_CHECKPOINT_H

#include "../experiment/experiment.h"

typedef struct br_checkpoint br_checkpoint;
/* Opens the file at `path` when it belongs to this experiment, else begins it anew; it is brought
 * up to date every `every` rows. */
fth_status br_checkpoint_open(br_checkpoint **out, const br_experiment *e, const char *path,
                              int64_t every, fth_err *err);
/* Keeps the file. NULL is allowed. */
void br_checkpoint_close(br_checkpoint *c);
/* The file is not needed any more. */
void br_checkpoint_remove(br_checkpoint *c);

/* The first row that is still to be rendered. */
int64_t br_checkpoint_rows(const br_checkpoint *c);
/* Where interpolation ends, if that was found before; false: not yet. */
bool br_checkpoint_latch(const br_checkpoint *c, int64_t *latch);
fth_status br_checkpoint_set_latch(br_checkpoint *c, int64_t latch, fth_err *err);
/* For a render of all rows that gives anything in those that are there already: the image, and of
 * each row its solid angle and samples out of range. A run that ends early saves what is complete.
 */
typedef struct br_row_sinks {
    fth_sink image, omega, outside;
} br_row_sinks;
br_row_sinks br_checkpoint_sinks(br_checkpoint *c);
/* Once all rows are there: the image, f32 [slow fast], to be closed; f64 and i64 [slow]. */
fth_status br_checkpoint_image(br_checkpoint *c, fth_source *out, fth_err *err);
fth_source br_checkpoint_omega(br_checkpoint *c);
fth_source br_checkpoint_outside(br_checkpoint *c);

#endif
