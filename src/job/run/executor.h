/* job/run/executor.h - where tasks run: processes of this machine, or jobs of a cluster.
 *
 * One table for each place. The loop of the runner settles tasks, then calls `start`, `poll` and, a
 * few times a second, `tick`; it ends when no task is open. A task is the executor's from the start
 * (FTH__PHASE_RUNS or _QUEUED) until it gives it a final state.
 */
#ifndef FTH_JOB_EXECUTOR_H
#define FTH_JOB_EXECUTOR_H

#include <fathom/job.h>

struct fth__job_runner;

typedef struct fth__executor {
    const char *name;
    /* Whether it can be used, before directories are locked. */
    fth_status (*check)(struct fth__job_runner *r, fth_err *err);
    /* Of a dry run: leave what would be submitted in `dir`; NULL: there is no such thing. */
    fth_status (*predict)(struct fth__job_runner *r, const char *dir, fth_err *err);
    /* Start what can be. */
    fth_status (*start)(struct fth__job_runner *r, fth_err *err);
    /* Whether tasks are under way or wait for the executor alone. */
    bool (*is_busy)(const struct fth__job_runner *r);
    /* Wait a moment; what has ended gets its state. */
    fth_status (*poll)(struct fth__job_runner *r, fth_err *err);
    /* Progress into the view, requests to cancel one task. */
    void (*tick)(struct fth__job_runner *r);
    /* Ask all tasks to end. */
    fth_status (*ask)(struct fth__job_runner *r, const char *why, fth_err *err);
    /* Kill those that were asked and did not end in time, or all `at_once`. */
    void (*kill)(struct fth__job_runner *r, bool at_once);
    /* Free what it has, also after an error; tasks of a cluster go on. */
    void (*end)(struct fth__job_runner *r);
} fth__executor;

extern const fth__executor fth__executor_local; /* runner.c */
extern const fth__executor fth__executor_slurm; /* job/slurm/executor.c */

#endif
