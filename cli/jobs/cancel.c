/* cancel.c - `fathom cancel`: ask the runner of a directory to end one of its tasks, or Slurm. */
#include "runs.h"

extern char **environ;

fth_status cli_run_cancel(const cli_call *call, fth_err *err)
{
    const char *dir = cli_get(call, "dir") ? cli_get(call, "dir") : ".";
    if (call->n_args != 1) {
        FTH_FAIL(err, FTH_E_COMMAND, "'fathom cancel' needs the name of one job");
        fth_err_hint(err, "'fathom status %s' lists them", dir);
        return FTH_E_COMMAND;
    }
    fth_mem_options opt;
    fth_mem_options_default(&opt);
    fth_mem *mem = NULL;
    fth_view *view = NULL;
    FTH_TRY(fth_mem_create(&mem, &opt, err));
    fth_status s = fth_view_read(&view, mem, dir, err);
    if (s == FTH_OK) {
        const fth_task *task = fth_view_find(view, call->arg[0], err);
        bool slurm = false;
        s = task ? fth_slurm_cancel(mem, (const char *const *)environ, task, &slurm, err)
                 : FTH_E_NO_JOB;
        if (s == FTH_OK && !slurm) s = fth_task_cancel(mem, task, err);
        if (s == FTH_OK && !cli_get(call, "quiet"))
            fprintf(call->out,
                    slurm ? "cancelled the job of Slurm of %s/%s\n"
                          : "asked the runner to stop %s/%s\n",
                    task->job, task->stage);
    }
    fth_view_destroy(view);
    fth_mem_destroy(mem, NULL);
    return s;
}
