/* job/stage/stage.h - one stage that runs in this process, between its driver and its reports. */
#ifndef FTH_JOB_STAGE_H
#define FTH_JOB_STAGE_H

#include "job/stage/files.h"
#include "job/stage/record.h"

#include <limits.h>
#include <pthread.h>

enum { FTH__STAGE_NAME = 32 };

/* What `link` of a call points to. Everything below `lock` may be reached by several threads. */
typedef struct fth__stage_link {
    const fth_stage_options *opt;
    fth_stage_call call;
    char id[256], model_dir[PATH_MAX];
    fth_file_list list;         /* files of the stage, and the outputs of those before it */
    fth__record_before *before; /* of the stages before it */
    int64_t n_before;
    double started; /* seconds since 1970 */
    bool fresh;     /* partial results that are there are of another algorithm */
    bool any_gpu;   /* the config asks for some GPU: it gets what auto finds */
    double clock0;  /* the same moment on the clock that only moves forward */
    uint64_t resident0;
    fth_stage_result result;

    pthread_mutex_t lock;
    double sent_at; /* when the last line of progress went out */
    bool waiting;   /* `last` was not sent */
    fth_stage_progress last;
    char what[FTH__STAGE_NAME], name[FTH_STAGE_NUMBERS][FTH__STAGE_NAME];
    int64_t runs;
    fth_run_report most; /* the largest numbers of all runs; sums of times and bytes */
    uint64_t process_peak;
    fth_claim *claim; /* of the output directory, where no runner has it */
} fth__stage_link;

void fth__stage_point(const fth__stage_link *link, const char *name);
/* Append to drill.start_log, if the config has one. */
fth_status fth__stage_log_start(const fth_stage_call *call, fth_err *err);
/* Lines of JSON for opt->progress. */
void fth__stage_send_last(fth__stage_link *link); /* progress that was held back */
void fth__stage_send_plan(fth__stage_link *link);
void fth__stage_send_end(fth__stage_link *link, fth_status status);
/* Fill in the measured part of the result. */
void fth__stage_measure(fth__stage_link *link);
/* What the device did, and the numbers of memory, through opt->say. */
void fth__stage_say_end(fth__stage_link *link);
/* The device that the config of a job insists on; NULL: any. *any_gpu: it asks for some GPU. */
const char *fth__job_device(const fth_job *job, bool *any_gpu);
/* The budget that the config of a job gives; 0: none. A percentage is of one of so many shares of
 * what is free. */
uint64_t fth__job_memory(const fth_job *job, int shares);

#endif
