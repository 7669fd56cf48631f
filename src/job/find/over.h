/* job/find/over.h - jobs that differ in the values of some keys: see over.c. */
#ifndef FTH_JOB_OVER_H
#define FTH_JOB_OVER_H

#include "job/find/jobs.h"

/* Read the --over of the options. FTH_E_COMMAND says what is wrong with one. */
fth_status fth__jobs_read_over(fth_jobs *jobs, fth_err *err);
/* Each file that was found, once for each combination. */
fth_status fth__jobs_repeat(fth_jobs *jobs, fth_err *err);
/* Add the values of the combination `over.now` to a config, without its output directory. */
fth_status fth__jobs_add_over(fth_jobs *jobs, fth_config *cfg, fth_err *err);
/* The same as texts for --set, with an output directory beside `dir`. */
fth_status fth__jobs_over_sets(fth_jobs *jobs, const char *dir, const char *const **set, int *n,
                               fth_err *err);

#endif
