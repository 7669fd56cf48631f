/* job/ledger.h - the history of one output directory, in SQLite; only the runner writes it.
 *
 * Every change of a state is one transaction that is on the disk when the call returns. A ledger
 * is opened for a moment and closed again: a run over a thousand directories holds no thousand
 * files open. WAL on local file systems, a rollback journal on others. SQLite stays behind
 * ledger.c.
 */
#ifndef FTH_JOB_LEDGER_H
#define FTH_JOB_LEDGER_H

#include "job/view.h"

/* Append a run to the ledger of `output_dir`, making .fathom and the ledger as needed. */
fth_status fth__ledger_begin(const fth_view *run, const char *output_dir, const char *attempt,
                             fth_err *err);
/* One transaction: the tasks' rows, a line in the history for each that changed its state, and the
 * files of those that completed. All tasks are of `output_dir`. */
typedef struct fth__ledger_change {
    int64_t task;   /* in `view` */
    fth_state from; /* as it was; equal to the new state: only the row is written */
    const char *note;
    bool files; /* write its files, too */
} fth__ledger_change;
fth_status fth__ledger_write(const fth_view *view, const char *output_dir,
                             const fth__ledger_change *change, int64_t n, fth_err *err);
fth_status fth__ledger_end(const fth_view *run, const char *output_dir, fth_err *err);
/* Add what the ledger knows to a view; nothing when there is no ledger. Never writes. */
fth_status fth__ledger_read(fth_view *view, const char *output_dir, fth_err *err);

/* ---- who has the directory ---- */

typedef struct fth__who {
    char host[64], boot[40]; /* name of the machine, and of its boot */
    int64_t pid;
    uint64_t start; /* ticks since boot when the process started: pids come again */
    char run[48];   /* token of the run */
    double since;   /* seconds since 1970 */
} fth__who;
fth_status fth__who_am_i(fth__who *out, fth_err *err);
/* Start ticks of a process; 0: there is none. */
uint64_t fth__process_start(int64_t pid);
/* On another host: true, for nobody can know. */
bool fth__who_lives(const fth__who *who);
/* FTH_E_LOCKED says who has it, where and since when. A dead holder's lock is taken over. */
fth_status fth__lock_take(const char *output_dir, const fth__who *me, fth_err *err);
void fth__lock_release(const char *output_dir, const fth__who *me);
/* False: nobody. */
bool fth__lock_read(const char *output_dir, fth__who *out);

/* ---- files beside the ledger ---- */

/* run_status.json of all tasks (spec of the file: docs/jobs.md); jobs of earlier runs that it
 * holds stay. Whole or not at all. */
fth_status fth__status_write(const fth_view *view, const char *path, fth_err *err);
/* Config paths of the failed and interrupted jobs in a run_status.json: calls `each`. */
fth_status
fth__status_read_failed(fth_mem *mem, const char *path,
                        fth_status (*each)(void *user, const char *config_path, fth_err *err),
                        void *user, fth_err *err);
/* live.json: progress of the running tasks of one directory; lost when it fails, never an error. */
void fth__live_write(const fth_view *view, const char *output_dir);
/* Fill in progress from live.json where the lock's holder lives. */
void fth__live_read(fth_view *view, const char *output_dir, int64_t first_task);

#endif
