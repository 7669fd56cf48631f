/* job/ledger.h - the history of one output directory, in SQLite; only the runner writes it.
 *
 * Every state change is one transaction, durable when the call returns. A ledger
 * is opened for a moment and closed again: a run over a thousand directories holds no thousand
 * files open. WAL on local file systems, a rollback journal on others. SQLite stays behind
 * ledger.c.
 */
#ifndef FTH_JOB_LEDGER_H
#define FTH_JOB_LEDGER_H

#include "job/view.h"

#include <fathom/files.h>

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
    /* A state that it only passed through before its row could be written: a line in the history.
     */
    bool passed;
    fth_state to;
    double at;
} fth__ledger_change;
fth_status fth__ledger_write(const fth_view *view, const char *output_dir,
                             const fth__ledger_change *change, int64_t n, fth_err *err);
fth_status fth__ledger_end(const fth_view *run, const char *output_dir, fth_err *err);
/* FTH_E_LEDGER when there is no room for a ledger in a path that long; looks at nothing. */
fth_status fth__ledger_check_path(const char *output_dir, fth_err *err);
/* Add what the ledger knows to a view; nothing when there is no ledger. Never writes. */
fth_status fth__ledger_read(fth_view *view, const char *output_dir, fth_err *err);

/* Completed tasks of `output_dir` whose inputs are others by now become stale, and so does what
 * stands on them, or on a task that did not complete since. Their files are those from `first_file`
 * to `end_file`. */
fth_status fth__view_mark_stale(fth_view *view, const char *output_dir, int64_t first_file,
                                int64_t end_file, fth_err *err);

/* ---- who has the directory ---- */

typedef struct fth__who {
    char host[64], boot[40]; /* name of the machine, and of its boot */
    int64_t pid;
    uint64_t start; /* ticks since boot when the process started: pids come again */
    uint64_t space; /* of pids: containers on one machine may each have their own */
    char run[48];   /* token of the run */
    double since;   /* seconds since 1970 */
    bool beats;     /* gives a sign of life (fth__lock_beat) more often than FTH__DEAD_S */
    double age;     /* of a lock that was read: seconds since the last one */
} fth__who;
enum { FTH__DEAD_S = 60 };
/* `run` becomes a new token, `since` now. */
fth_status fth__who_am_i(fth__who *out, fth_err *err);
/* Start ticks of a process; 0: there is none, or it has ended and only waits for its parent. */
uint64_t fth__process_start(int64_t pid);
/* By its pid where that can be looked up. On another host, in another space of pids, or in another
 * boot of a machine with this name (which may be another machine) the last sign of life decides;
 * where none is given, a holder on another host or in another space lives, for nobody can know. */
bool fth__who_lives(const fth__who *who);
/* As lines of "key value", and back; false when it is none. */
size_t fth__who_format(const fth__who *who, char *text, size_t bytes);
bool fth__who_parse(const char *text, fth__who *out);
/* FTH_E_LOCKED says who has it, where and since when. A dead holder's lock is taken over. Makes
 * output_dir and .fathom as needed; leaves no file open. */
fth_status fth__lock_take(const char *output_dir, const fth__who *me, fth_err *err);
/* A sign of life: the time of the lock. False: somebody else has it. */
bool fth__lock_beat(const char *output_dir, const fth__who *me);
/* Does nothing when it is not, or no longer, ours. */
void fth__lock_release(const char *output_dir, const fth__who *me);
/* Who took it last, dead or alive; false: nobody. */
bool fth__lock_read(const char *output_dir, fth__who *out);
/* FTH_E_LOCKED when somebody alive has it; changes nothing. */
fth_status fth__lock_check(const char *output_dir, fth_err *err);
/* Removes the lock of a dead holder; FTH_E_LOCKED when he lives. */
fth_status fth__lock_clear(const char *output_dir, fth_err *err);

/* ---- the folder of it all ---- */

/* output_dir/.fathom/name, FTH_PATH bytes; false when it does not fit. */
bool fth__fathom_path(char *path, const char *output_dir, const char *name);
/* Make output_dir/.fathom with all folders above it. FTH_E_FILE_WRITE. */
fth_status fth__fathom_make(const char *output_dir, fth_err *err);

/* ---- files beside the ledger ---- */

/* run_status.json of all tasks (spec of the file: docs/jobs.md); jobs of earlier runs that it
 * holds stay. Whole or not at all. */
fth_status fth__status_write(const fth_view *view, const char *path, fth_err *err);
/* The same, many times: what earlier runs left is read only when somebody else wrote the file. */
typedef struct fth__status_file fth__status_file;
/* FTH_E_FILE_WRITE when the file that is there is another program's: JSON without jobs. */
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
