/* cancel.c - request the end of one task: a file that its runner polls for. */
#include "io/file.h"
#include "job/ledger/ledger.h"

#include <inttypes.h>

fth_status fth_task_cancel(fth_mem *mem, const fth_task *task, fth_err *err)
{
    fth__who holder;
    if (task->state != FTH_STATE_RUNNING && task->state != FTH_STATE_PENDING) {
        FTH_FAIL(err, FTH_E_NO_JOB, "%s/%s is %s: there is nothing to end", task->job, task->stage,
                 fth_state_name(task->state));
        return FTH_E_NO_JOB;
    }
    if (!fth__lock_read(task->output_dir, &holder) || !fth__who_lives(&holder)) {
        FTH_FAIL(err, FTH_E_NO_JOB, "%s: no runner works here, so %s/%s does not run",
                 task->output_dir, task->job, task->stage);
        fth_err_hint(err, "the next 'fathom run' finds out what became of it");
        return FTH_E_NO_JOB;
    }
    char name[300], path[FTH_PATH], text[64];
    snprintf(name, sizeof name, "cancel.%s", task->id);
    if (!fth__fathom_path(path, task->output_dir, name))
        return FTH_FAIL(err, FTH_E_FILE_WRITE, "%s: the path is too long", task->output_dir);
    const int n = snprintf(text, sizeof text, "%" PRId64 "\n", holder.pid);
    fth__writer w;
    FTH_TRY(fth__writer_open(&w, mem, path, err));
    fth_status s = fth__writer_write(&w, 0, (uint64_t)n, text, err);
    if (s == FTH_OK)
        s = fth__writer_commit(&w, NULL, err);
    else
        fth__writer_abandon(&w);
    return s;
}
