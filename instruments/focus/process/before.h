/* before.h - the state left by earlier runs: which settings, file and series made the existing
 * images.
 *
 * An image counts as done only if this run would produce the same. Different settings or another
 * raw file are errors; wells that map to another series since the plate's table was corrected are
 * redone.
 */
#ifndef FOCUS_PROCESS_BEFORE_H
#define FOCUS_PROCESS_BEFORE_H

#include "job.h"

typedef struct fo_before {
    bool differs;             /* existing images differ from what this run would produce */
    fth_err why;              /* then: what differs */
    int64_t series[FO_WELLS]; /* whose images are there, from 1; 0: none is known */
    bool has_moved[FO_WELLS]; /* the well shows another one now */
    bool any_moved;
} fo_before;

/* Adds to the notes of the job which wells have moved. */
fth_status fo_before_read(fo_before *b, fo_job *e, fth_err *err);
/* Removes images and maps of remapped wells, and temporary files of killed runs. */
fth_status fo_before_sweep(const fo_before *b, const fo_job *e, fth_err *err);
/* "wells": {"A01": 1, ...}: which series images are of. Wells without a position keep their entry,
 * in case they return. */
void fo_before_add_wells(fth_json_writer *w, const fo_before *b, const fo_job *e);

#endif
