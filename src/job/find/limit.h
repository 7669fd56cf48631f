/* job/find/limit.h - how long a stage may run, from the command line and from its config. */
#ifndef FTH_JOB_LIMIT_H
#define FTH_JOB_LIMIT_H

#include "job/find/jobs.h"

#define FTH__LIMIT_KEY "time_limit"

typedef struct fth__time_limit {
    const char *stage; /* n_stage bytes; 0: of every stage */
    size_t n_stage;
    const char *text; /* "30m" */
    double seconds;   /* 0: none */
} fth__time_limit;

/* "train=1h30m", "30m"; false: it is none. */
bool fth__limit_parse(const char *text, fth__time_limit *out);
/* The limit of a stage of a job; `given` are those of the command line. */
fth__time_limit fth__limit_find(const fth_job *job, const char *stage, const char *const *given,
                                int n);
/* FTH_E_COMMAND when one of the command line is no limit, or names no stage. */
fth_status fth__limits_check(const fth_jobs *jobs, const char *const *given, int n, fth_err *err);
/* Report and count mistakes of a checked config; then *good is false. */
fth_status fth__limits_check_config(fth_jobs *jobs, const fth_config *cfg,
                                    const fth_instrument *instrument, bool *good, fth_err *err);

#endif
