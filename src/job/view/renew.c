/* renew.c - see renew.h.
 *
 * Only runners write ledgers, so a ledger does not know of stages that were run by hand, nor of
 * jobs of Slurm that no runner follows; their records do. A record is read only where it was
 * written after the task ended, or after it was queued.
 */
#include "job/view/renew.h"
#include "job/lock/lock.h"
#include "job/stage/files.h"
#include "job/stage/record.h"

#include <limits.h>
#include <math.h>
#include <string.h>

static bool is_newer(const char *dir, const fth_task *task, double than)
{
    char path[PATH_MAX];
    uint64_t bytes = 0;
    int64_t mtime_ns = 0;
    return fth__record_path(path, sizeof path, dir, task->id) &&
           fth__file_look(path, &bytes, &mtime_ns) && (double)mtime_ns * 1e-9 > than;
}

/* Whether jobs of Slurm may have ended that nobody has read. */
static bool has_no_runner(const char *dir)
{
    fth__who who;
    return !fth__lock_read(dir, &who) || !fth__who_lives(&who);
}

static fth_status take(fth_view *view, int64_t i, const fth__job_record *record, fth_err *err)
{
    FTH_TRY(fth__record_to_view(record, view, i, err));
    fth_task *task = &view->task[i];
    const bool by_slurm = task->state != FTH_STATE_COMPLETED;
    task->state = FTH_STATE_COMPLETED;
    task->ended = record->ended;
    task->cached = false;
    task->value = (double)NAN; /* the last report of the earlier attempt; records have none */
    return fth__view_set(view, &task->reason, by_slurm ? "" : "run by hand", err);
}

fth_status fth__view_renew(fth_view *view, const char *output_dir, int64_t first, fth_err *err)
{
    fth_status s = FTH_OK;
    const bool alone = has_no_runner(output_dir);
    for (int64_t i = first; s == FTH_OK && i < view->n_tasks; i++) {
        const fth_task *task = &view->task[i];
        fth__job_record *record = NULL;
        const bool open = alone && task->queued > 0 &&
                          (task->state == FTH_STATE_PENDING || task->state == FTH_STATE_RUNNING);
        const double than = open ? task->queued : task->ended;
        if (!open && task->state != FTH_STATE_COMPLETED) continue;
        if (!is_newer(output_dir, task, than)) continue;
        const fth_status got = fth__record_read(&record, view->mem, output_dir, task->id, NULL);
        if (got == FTH_E_NOMEM)
            s = FTH_FAIL(err, got, "no memory for the record of %s", task->id);
        else if (got == FTH_OK && record && record->ended > than &&
                 (open ? strncmp(record->attempt, "slurm.", 6) == 0 : !record->attempt[0]))
            s = take(view, i, record, err);
        fth__record_destroy(record);
    }
    return s;
}
