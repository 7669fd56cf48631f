/* job/run/runner.h - what the files of the runner share.
 *
 *   runner.c   the run: locks, the loop, the end
 *   replace.c  results of other configs are not replaced
 *   settle.c   the next state of a task: cached, blocked, skipped, ready
 *   process.c  tasks as processes: command line, log, progress, what the end of one means
 *   change.c   every state change: ledger first, then run_status.json, then observers
 *   limit.c    tasks that run too long
 *   retry.c    failed tasks that are started again
 *   recover.c  directories at the start of a run: locks, history, leftovers of crashed runners
 *   executor.h where tasks run: here, or as jobs of Slurm (job/slurm)
 *   trouble.c  directories and ledgers that cannot be written: retry, give up, report
 *
 * The view is the truth of the run; the ledgers follow it by one transaction for each change, and
 * the records of the stages decide what is done when both are gone.
 */
#ifndef FTH_JOB_RUNNER_H
#define FTH_JOB_RUNNER_H

#include "job/ledger/ledger.h"
#include "job/lock/watch.h"
#include "job/run/executor.h"
#include "job/run/graph.h"
#include "job/run/log.h"
#include "job/run/progress.h"
#include "job/run/spawn.h"
#include "job/stage/record.h"

/* A task that runs. */
typedef struct fth__process {
    int64_t task;
    fth__child child;
    int64_t pid; /* also when it was reaped */
    fth__reservation held;
    fth__log *log;
    double started; /* on the clock of the watch */
    double kill_at; /* the same; of a task that was asked to end; 0: it was not */
    bool killed, read_once;
    const char *why_ended; /* of a task that was asked to end */
    double limit_s;        /* seconds that it may run; 0: any */
    char over_time[80];    /* why_ended, when they are over */
    fth__progress progress;
    fth__progress_lines text, events; /* of its two pipes */
    char what[160];                   /* of one that was started again: with its attempt */
    char bar[512];                    /* the last line of a bar, written when the text ends */
} fth__process;

typedef struct fth__job_runner {
    const fth_runner_options *opt;
    fth_mem *mem;
    fth_view *view;
    fth_view *rest; /* tasks of the directories that only earlier runs had */
    fth__graph graph;
    fth__pack pack;
    fth__who me;
    fth__job_watch *watch; /* NULL: nothing is run */
    double clock0;         /* when the run began, on the monotonic clock */
    fth__process **process;
    int64_t n_processes, cap_processes;
    int64_t open; /* tasks that are not done */
    int64_t attempts, retries;
    bool dry;                     /* nothing is written */
    bool exported, export_failed; /* failed: once, and reported */
    bool export_lost;             /* the last one failed */
    bool alone; /* one task on a node: no directory is locked, progress is not published */
    int stop;
    const char *stop_why; /* NULL: the run was stopped */
    bool any_device;      /* GPUs are the executor's business */
    const fth__executor *executor;
    struct fth__slurm *slurm; /* of that executor */
    int64_t troubled;         /* directories in trouble */
    char status_path[4096];
    fth__status_file *status;   /* made by the first export */
    fth__ledger_change *change; /* room for a transaction */
    int64_t cap_changes;
    fth__pack_task *ready; /* room for the choice of the next */
    int64_t *ready_task;
    int64_t cap_ready, cap_ready_task;
} fth__job_runner;

void fth__runner_point(const fth__job_runner *r, const char *name);
/* The time of day: that at the start of the run plus what the monotonic clock says has passed, so
 * that setting the clock of the machine makes no duration wrong or negative. */
double fth__runner_now(const fth__job_runner *r);
/* Jobs that have something to do: how many may want memory and threads at a time. */
int64_t fth__runner_jobs(const fth__job_runner *r);

/* ---- runner.c ---- */

fth_status fth__runner_begin(fth__job_runner *r, const fth_jobs *jobs,
                             const fth_runner_options *opt, fth_err *err);
fth_status fth__runner_loop(fth__job_runner *r, fth_err *err);
/* Free it all; also after a begin that failed. */
void fth__runner_clear(fth__job_runner *r);
/* Plan a task; *planned false: it never fits, and has failed. */
fth_status fth__runner_plan_or_fail(fth__job_runner *r, int64_t i, bool *planned, fth_err *err);
/* Whether a request to cancel the task was made; the request is removed. */
bool fth__runner_was_cancelled(const fth_task *task);

/* ---- recover.c ---- */

/* Lock all directories and clean up after crashed runners. FTH_E_LOCKED when one is in use;
 * one that cannot be written is in trouble, and only when all are is that an error. */
fth_status fth__runner_take(fth__job_runner *r, fth_err *err);
fth_status fth__runner_recover(fth__job_runner *r, fth_err *err);

/* ---- trouble.c ---- */

/* A directory or its ledger failed. */
void fth__dir_fail(fth__job_runner *r, int64_t d, const fth_err *why, bool lost);
void fth__dir_heal(fth__job_runner *r, int64_t d);
/* Seconds that a ledger is waited for. */
double fth__runner_patience(const fth__job_runner *r);
/* Where it lasted too long, the tasks that are not done fail. */
fth_status fth__runner_fail_lost(fth__job_runner *r, fth_err *err);
/* Whether changes wait for a ledger that may still be written. */
bool fth__runner_waits(const fth__job_runner *r);
/* Changes that no ledger has, a line for each directory; the error of the first, FTH_OK: none. */
fth_status fth__runner_list_dropped(const fth__job_runner *r, char *text, size_t bytes,
                                    fth_err *err);

/* ---- replace.c ---- */

/* FTH_E_COLLISION when a task would replace what another config made; not under --force. */
fth_status fth__runner_check_results(const fth__job_runner *r, fth_err *err);

/* ---- settle.c ---- */

/* Walk over all tasks once: those that can be decided are. */
fth_status fth__runner_settle(fth__job_runner *r, fth_err *err);
/* Whether a task before it is done and did not complete: `bad` is that one. */
bool fth__runner_is_skipped(const fth__job_runner *r, int64_t i, int64_t *bad);
/* Predicted peaks of a ready task. FTH_E_NO_FIT: it never fits. */
fth_status fth__runner_plan(fth__job_runner *r, int64_t task, fth_err *err);

/* ---- process.c ---- */

/* Start a task with what was reserved for it. A task that cannot be started has failed, which is
 * no error here. */
fth_status fth__runner_start(fth__job_runner *r, int64_t task, fth__reservation *held,
                             fth_err *err);
/* Read what there is of its pipes. */
void fth__process_read(fth__job_runner *r, fth__process *p);
/* Whether it has ended; then its pid is given back. */
bool fth__process_reap(fth__job_runner *r, fth__process *p);
/* After its end was seen: log, record, state; `p` is gone. */
fth_status fth__process_end(fth__job_runner *r, fth__process *p, fth_err *err);
/* Ask it to end; after the grace it is killed. */
void fth__process_ask(fth__job_runner *r, fth__process *p, const char *why);
/* Kill it and free what it holds, without a change of state: after an error. */
void fth__process_drop(fth__job_runner *r, fth__process *p);
/* Progress and memory into the view. */
void fth__process_show(fth__job_runner *r, fth__process *p);

/* ---- limit.c ---- */

/* How long a task that starts may run. */
void fth__process_limit(const fth__job_runner *r, fth__process *p);
/* Ask those to end that ran for longer. */
void fth__runner_check_limits(fth__job_runner *r);

/* ---- retry.c ---- */

/* Whether a task that has just failed is started again. */
bool fth__runner_may_retry(const fth__job_runner *r, int64_t task);
/* Into the queue again; `why` it failed. Its process is still there. */
fth_status fth__runner_retry(fth__job_runner *r, int64_t task, const char *why, fth_err *err);
/* Behind the reason of one that is not: which attempt it was, or why there is no other. */
void fth__runner_count_attempts(const fth__job_runner *r, int64_t task, char *reason, size_t bytes);

/* ---- change.c ---- */

/* A new state, with a note for the history; fth__runner_flush writes it to the ledger. */
fth_status fth__runner_change(fth__job_runner *r, int64_t task, fth_state to, const char *note,
                              fth_err *err);
/* Rows of tasks that the ledgers do not have yet, although nothing changed: for those who ask. */
void fth__runner_show_rows(fth__job_runner *r);
/* Transactions, then the export. */
fth_status fth__runner_flush(fth__job_runner *r, fth_err *err);

#endif
