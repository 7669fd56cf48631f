/* job/ledger/ledger.h - the history of one output directory, in SQLite; only the runner writes it.
 *
 * Every state change is one transaction, durable when the call returns. A ledger
 * is opened for a moment and closed again: a run over a thousand directories holds no thousand
 * files open. WAL on local file systems, a rollback journal on others. SQLite stays behind
 * ledger.c.
 */
#ifndef FTH_JOB_LEDGER_H
#define FTH_JOB_LEDGER_H

#include "job/ledger/view.h"
#include "job/lock/lock.h"

#include <fathom/files.h>

typedef struct fth__ledger_change {
    int64_t task;   /* in `view` */
    fth_state from; /* as it was; equal to the new state: only the row is written */
    const char *note;
    bool files; /* write its files, too */
    /* A state that it only passed through before its row could be written: a line in the history.
     */
    bool passed;
    fth_state to;
    double at;
} fth__ledger_change;
/* One transaction: with `attempt` a new run, whose token it is, making .fathom and the ledger as
 * needed; the tasks' rows, a line in the history for each that changed its state, and the files of
 * those that completed; with `end` the end of the run. All tasks are of `output_dir`. */
typedef struct fth__ledger_batch {
    const char *attempt; /* NULL: the last run goes on */
    const fth__ledger_change *change;
    int64_t n;
    bool end; /* at view->ended */
} fth__ledger_batch;
fth_status fth__ledger_save(const fth_view *view, const char *output_dir,
                            const fth__ledger_batch *batch, fth_err *err);
/* The same in parts. */
fth_status fth__ledger_begin(const fth_view *run, const char *output_dir, const char *attempt,
                             fth_err *err);
fth_status fth__ledger_write(const fth_view *view, const char *output_dir,
                             const fth__ledger_change *change, int64_t n, fth_err *err);
fth_status fth__ledger_end(const fth_view *run, const char *output_dir, fth_err *err);
/* FTH_E_LEDGER when the path of the ledger would be too long for SQLite; accesses no file. */
fth_status fth__ledger_check_path(const char *output_dir, fth_err *err);
/* Add the rows of the ledger to a view; none when there is no ledger. Never writes. */
fth_status fth__ledger_read(fth_view *view, const char *output_dir, fth_err *err);

/* ---- files beside the ledger ---- */

/* run_status.json of all tasks (spec of the file: docs/jobs.md); jobs of earlier runs that it
 * holds stay. Whole or not at all. */
fth_status fth__status_write(const fth_view *view, const char *path, fth_err *err);
/* The same, many times: the file is read again only when another process wrote it. */
typedef struct fth__status_file fth__status_file;
/* FTH_E_FILE_WRITE when the existing file is another program's: JSON without jobs. */
fth_status fth__status_check(fth_mem *mem, const char *path, fth_err *err);
fth_status fth__status_open(fth__status_file **out, fth_mem *mem, const char *path, fth_err *err);
/* `rest` has the tasks of the same directories that only earlier runs had; may be NULL. */
fth_status fth__status_save(fth__status_file *file, const fth_view *view, const fth_view *rest,
                            fth_err *err);
void fth__status_close(fth__status_file *file); /* NULL is allowed */
/* How many jobs of a view it counts in each state, so that others count alike. */
fth_status fth__status_count(const fth_view *view, int64_t n[FTH_STATE_COUNT], fth_err *err);
/* Config paths of the failed and interrupted jobs in a run_status.json, of a run that was killed
 * also of those it had not done: calls `each`, stops when that fails. FTH_E_FILE_OPEN when there
 * is no such file. */
fth_status
fth__status_read_failed(fth_mem *mem, const char *path,
                        fth_status (*each)(void *user, const char *config_path, fth_err *err),
                        void *user, fth_err *err);
/* live.json: progress of the running tasks of one directory; lost when it fails, never an error. */
void fth__live_write(const fth_view *view, const char *output_dir);
/* Fill in progress from live.json where the lock's holder lives. */
void fth__live_read(fth_view *view, const char *output_dir, int64_t first_task);

#endif
