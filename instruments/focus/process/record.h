/* record.h - run.json: what made the images that are there, and what it took. */
#ifndef FOCUS_PROCESS_RECORD_H
#define FOCUS_PROCESS_RECORD_H

#include "work.h"

/* FTH_E_CONFIG lists every setting that differs from those of the record in the run folder; no
 * record is no difference. */
fth_status fo_record_compare(const fo_job *e, fth_err *err);
/* Write it, as far as the work is. */
fth_status fo_record_save(const fo_work *w, fth_err *err);

#endif
