/* record.h - run.json: what made the images that are there, and what it took. */
#ifndef FOCUS_PROCESS_RECORD_H
#define FOCUS_PROCESS_RECORD_H

#include "../run/pipeline.h"
#include "job.h"

/* FTH_E_CONFIG lists every setting that differs from those of the record in the run folder; no
 * record is no difference. */
fth_status fo_record_compare(const fo_job *e, fth_err *err);
/* Write it. `pipeline` may be NULL: nothing was fused. */
fth_status fo_record_save(const fo_job *e, const fo_results *results, const fo_pipeline *pipeline,
                          fth_context *ctx, fth_err *err);

#endif
