/* checkpoint.h - rows of an image rendered before a run was stopped, saved to resume from.
 *
 * One file holds the rows of the float image so far, their statistics, and the fingerprint of the
 * experiment. A row counts only once it is on the disk. Rows are independent, so a resumed image
 * has the bytes of an uninterrupted one.
 */
#ifndef BRAGG_CHECKPOINT_H
#define BRAGG_CHECKPOINT_H

#include "../experiment/experiment.h"

typedef struct br_checkpoint br_checkpoint;
/* Opens the file at `path` when it belongs to this experiment, else creates it; it is saved every
 * `every` rows. */
fth_status br_checkpoint_open(br_checkpoint **out, const br_experiment *e, const char *path,
                              int64_t every, fth_err *err);
/* Keeps the file. NULL is allowed. */
void br_checkpoint_close(br_checkpoint *c);
/* Removes the file. */
void br_checkpoint_remove(br_checkpoint *c);

/* The first row that is still to be rendered. */
int64_t br_checkpoint_rows(const br_checkpoint *c);
/* Where interpolation ends, if an earlier run found it; false: not yet. */
bool br_checkpoint_latch(const br_checkpoint *c, int64_t *latch);
fth_status br_checkpoint_set_latch(br_checkpoint *c, int64_t latch, fth_err *err);
/* Sinks for a render of all rows, which ignore the rows that are saved already: the image, and of
 * each row its solid angle and samples out of range. A run that ends early saves complete rows.
 */
typedef struct br_row_sinks {
    fth_sink image, omega, outside;
} br_row_sinks;
br_row_sinks br_checkpoint_sinks(br_checkpoint *c);
/* Once all rows are saved: the image, f32 [slow fast], to be closed; f64 and i64 [slow]. */
fth_status br_checkpoint_image(br_checkpoint *c, fth_source *out, fth_err *err);
fth_source br_checkpoint_omega(br_checkpoint *c);
fth_source br_checkpoint_outside(br_checkpoint *c);

#endif
