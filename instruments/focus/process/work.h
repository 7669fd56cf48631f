/* work.h - a plate is fused: what is to do, doing it, and the tables and the record of it.
 *
 *   fo_work w = {.ctx = ctx, .cfg = cfg};
 *   FTH_TRY(fo_work_open(&w, err));            everything that can be wrong is looked at
 *   s = fo_work_run(&w, err);
 *   fo_work_close(&w);
 */
#ifndef FOCUS_PROCESS_WORK_H
#define FOCUS_PROCESS_WORK_H

#include "../run/pipeline.h"
#include "job.h"

typedef struct fo_work {
    fth_context *ctx;
    const fth_config *cfg;
    const fth_stage_call *stage;  /* NULL: a command */
    bool overwrite, force_config; /* make all images again; keep those of other settings */
    /* Of its own: */
    fth_mem *mem;
    fo_job e;
    fo_results results;
    fo_pipeline pipeline;
} fo_work;

fth_status fo_work_open(fo_work *w, fth_err *err);
void fo_work_close(fo_work *w);
/* FTH_E_JOB_FAILED: some stacks failed; the others are there, with tables and record. */
fth_status fo_work_run(fo_work *w, fth_err *err);

#endif
