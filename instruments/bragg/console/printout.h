/* printout.h - intermediate values of pixels, as the reference prints them. */
#ifndef BRAGG_PRINTOUT_H
#define BRAGG_PRINTOUT_H

#include "../experiment/experiment.h"

/* The warning at the sample where interpolation ends, and its pixel; "" and -1 when latch is
 * INT64_MAX: it does not end. */
typedef struct br_latch_note {
    char text[300];
    int64_t pixel; /* slow * size of fast + fast */
} br_latch_note;
/* Memory that each of the two below takes. */
uint64_t br_printout_bytes(const br_experiment *e);
fth_status br_latch_note_make(br_latch_note *note, const br_experiment *e, int64_t latch,
                              fth_err *err);
/* The pixels of -printout in serial order, with the note in its place. */
fth_status br_print_pixels(FILE *out, const br_experiment *e, int64_t latch,
                           const br_latch_note *note, fth_err *err);
/* How many pixels before pixel `end` are rendered: inside the ROI and not masked. */
fth_status br_count_rendered(const br_experiment *e, int64_t end, int64_t *n, fth_err *err);

#endif
