/* before.h - what earlier runs left: which settings, file and series made the images that are
 * there.
 *
 * An image is taken as done only if this run would make the same. Settings or a raw file that
 * differ are refused; wells that show another series since the plate's table was corrected are made
 * again.
 */
#ifndef FOCUS_PROCESS_BEFORE_H
#define FOCUS_PROCESS_BEFORE_H

#include "job.h"

typedef struct fo_before {
    bool differs;             /* images are there that this run would make otherwise */
    fth_err why;              /* then: what differs */
    int64_t series[FO_WELLS]; /* whose images are there, from 1; 0: none is known */
    bool has_moved[FO_WELLS]; /* the well shows another one now */
    bool any_moved;
} fo_before;

/* Adds to the notes of the job which wells have moved. */
fth_status fo_before_read(fo_before *b, fo_job *e, fth_err *err);
/* Images and maps of wells that have moved, which are of another well, and what a run that was
 * killed left half-written. */
fth_status fo_before_sweep(const fo_before *b, const fo_job *e, fth_err *err);
/* "wells": {"A01": 1, ...}: which series images are of. Wells that no position shows any more keep
 * what they had, for the case that they come back. */
void fo_before_add_wells(fth_json_writer *w, const fo_before *b, const fo_job *e);

#endif
