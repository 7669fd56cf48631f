/* job/stage/rival.h - results that another config made: may this job replace them? */
#ifndef FTH_JOB_RIVAL_H
#define FTH_JOB_RIVAL_H

#include "job/stage/record.h"

typedef enum fth__claim {
    FTH__CLAIM_NONE,  /* this config made them, or one that asks for the same */
    FTH__CLAIM_GONE,  /* the config that made them is not there any more */
    FTH__CLAIM_MOVED, /* it is, and leads to another output directory today */
    FTH__CLAIM_THEIRS /* it is, and asks here for other results than this job */
} fth__claim;

/* The config that may still need the results of a record. `differences` lists what this job would
 * change; "": nothing. */
fth_status fth__record_claim(const fth__job_record *record, const fth_job *job,
                             const fth_stage *stage, fth__claim *out, char *differences,
                             size_t bytes, fth_err *err);
/* FTH_E_COLLISION with both files and the differences. */
fth_status fth__record_refuse(const fth__job_record *record, const fth_job *job,
                              const char *task_id, const char *differences, fth_err *err);
/* The same for a stage that would build on them. */
fth_status fth__record_refuse_use(const fth__job_record *record, const fth_job *job,
                                  const char *stage, const char *task_id, const char *differences,
                                  fth_err *err);
/* The notice about results that no config claims and that will be replaced: of GONE and MOVED. */
void fth__record_say_replaced(const fth__job_record *record, fth__claim claim, const char *task_id,
                              const char *differences, char *text, size_t bytes);

#endif
