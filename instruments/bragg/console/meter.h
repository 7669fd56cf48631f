/* meter.h - how far a render is, as lines of the console. */
#ifndef BRAGG_METER_H
#define BRAGG_METER_H

#include "../experiment/experiment.h"
#include "printout.h"

typedef struct br_meter {
    FILE *out;
    int64_t total, rendered, next; /* pixels: counted for percents, expected, reported so far */
    bool on;                       /* percents are printed */
    const br_latch_note *note;     /* text printed before pixel number note_at */
    int64_t note_at;
} br_meter;
/* `percents` is what -progress asks for. */
fth_status br_meter_start(br_meter *m, FILE *out, const br_experiment *e, bool percents,
                          const br_latch_note *note, fth_err *err);
void br_meter_tell(br_meter *m, double fraction);

#endif
