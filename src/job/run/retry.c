/* retry.c - start failed tasks again, as often as was asked for.
 *
 * Only where another attempt can end in another way. A mistake in the config, a plan that does not
 * fit and a computation without an answer come again, and are known by the exit code of the stage.
 * A task that was asked to end, by a user or by its time limit, did not fail.
 */
#include "job/run/runner.h"

#include <string.h>

/* Exit codes of errors.def that the same command gives again: a mistake, no fit, no answer. */
static bool comes_again(int exit_code)
{
    static const int codes[] = {2, 4, 7};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (codes[i] == exit_code) return true;
    return false;
}

bool fth__runner_may_retry(const fth__job_runner *r, int64_t i)
{
    const fth_task *task = &r->view->task[i];
    return r->stop == 0 && r->graph.node[i].failures < r->opt->retries &&
           (task->signal || !comes_again(task->exit_code));
}

void fth__runner_count_attempts(const fth__job_runner *r, int64_t i, char *reason, size_t bytes)
{
    const fth_task *task = &r->view->task[i];
    const int failures = r->graph.node[i].failures;
    const size_t n = strlen(reason);
    if (r->opt->retries <= 0 || n >= bytes) return;
    if (!task->signal && comes_again(task->exit_code))
        snprintf(reason + n, bytes - n, " (not started again: exit code %d would come again)",
                 task->exit_code);
    else if (failures > 0)
        snprintf(reason + n, bytes - n, " (attempt %d of %d)", failures + 1, r->opt->retries + 1);
}

fth_status fth__runner_retry(fth__job_runner *r, int64_t i, const char *why, fth_err *err)
{
    fth_task *task = &r->view->task[i];
    const int failed = ++r->graph.node[i].failures;
    char reason[600];
    r->retries++;
    snprintf(reason, sizeof reason, "attempt %d of %d, since attempt %d failed: %s", failed + 1,
             r->opt->retries + 1, failed, why);
    fth_log_line(&r->opt->log, FTH_LOG_WARN, "%s/%s: %s", task->job, task->stage, reason);
    FTH_TRY(fth__view_set(r->view, &task->reason, reason, err));
    return fth__runner_change(r, i, FTH_STATE_PENDING, reason, err);
}
