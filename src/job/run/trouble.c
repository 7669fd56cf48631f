/* trouble.c - a directory or ledger that cannot be written affects only its own tasks.
 *
 * A full disk, a ledger locked by another program, a file system that became read-only: changes are
 * queued and retried, and nothing starts in the directory meanwhile. After too long its remaining
 * tasks fail; other directories continue. Changes that no ledger has at the end are reported.
 */
#include "job/run/runner.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/str.h"

#include <string.h>

enum { NAMED = 3 };                /* tasks that a message names */
static const double again_s = 0.5; /* between two attempts: each may wait 0.1 s for SQLite's lock */

void fth__dir_fail(fth__job_runner *r, int64_t d, const fth_err *why, bool lost)
{
    fth__dir *dir = &r->graph.dir[d];
    FTH_ASSERT(why->status != FTH_OK);
    const double now = fth__clock_seconds();
    if (dir->trouble.status == FTH_OK) {
        dir->since = now;
        r->troubled++;
        fth_log_line(&r->opt->log, FTH_LOG_WARN, "%s: %s", why->text,
                     lost ? "its tasks fail" : "nothing is started there until it can be");
    }
    dir->trouble = *why;
    dir->next_try = now + again_s;
    dir->lost = dir->lost || lost;
}

void fth__dir_heal(fth__job_runner *r, int64_t d)
{
    fth__dir *dir = &r->graph.dir[d];
    if (dir->trouble.status == FTH_OK || dir->lost) return;
    fth_err_clear(&dir->trouble);
    FTH_ASSERT(r->troubled > 0);
    r->troubled--;
}

double fth__runner_patience(const fth__job_runner *r)
{
    /* 10 s: a backup or a person with the ledger open is done by then; a full disk is not */
    return r->opt->ledger_wait_s > 0 ? r->opt->ledger_wait_s : 10;
}

/* Give up where it lasted too long. */
static void lose(fth__job_runner *r)
{
    const double wait = fth__runner_patience(r);
    for (int64_t d = 0; d < r->graph.n_dirs; d++) {
        fth__dir *dir = &r->graph.dir[d];
        if (dir->trouble.status != FTH_OK && fth__clock_seconds() - dir->since > wait)
            dir->lost = true;
    }
}

fth_status fth__runner_fail_lost(fth__job_runner *r, fth_err *err)
{
    lose(r);
    for (int64_t i = 0; i < r->view->n_tasks; i++) {
        const fth__job_node *node = &r->graph.node[i];
        const fth__dir *dir = &r->graph.dir[node->dir];
        if (!dir->lost || (node->phase != FTH__PHASE_WAITS && node->phase != FTH__PHASE_READY))
            continue;
        char text[4096];
        fth_task *task = &r->view->task[i];
        fth_err_format(&dir->trouble, text, sizeof text);
        FTH_TRY(fth__view_set(r->view, &task->error, text, err));
        FTH_TRY(fth__view_set(r->view, &task->reason, dir->trouble.text, err));
        FTH_TRY(fth__runner_change(r, i, FTH_STATE_FAILED, dir->trouble.text, err));
    }
    return FTH_OK;
}

bool fth__runner_waits(const fth__job_runner *r)
{
    for (int64_t d = 0; d < r->graph.n_dirs; d++) {
        const fth__dir *dir = &r->graph.dir[d];
        if (dir->trouble.status != FTH_OK && !dir->lost) return true;
    }
    return false;
}

static void list_unwritten(const fth__job_runner *r, int64_t d, fth__text *t)
{
    int n = 0;
    for (int64_t i = 0; i < r->view->n_tasks; i++) {
        const fth_task *task = &r->view->task[i];
        if (r->graph.node[i].dir != d || !r->graph.node[i].dirty) continue;
        if (n++ < NAMED)
            fth__text_add(t, "%s%s/%s %s", n > 1 ? ", " : "", task->job, task->stage,
                          fth_state_name(task->state));
    }
    if (n > NAMED) fth__text_add(t, " and %d more", n - NAMED);
    if (n == 0) fth__text_add(t, "that the run ended");
}

fth_status fth__runner_list_dropped(const fth__job_runner *r, char *text, size_t bytes,
                                    fth_err *err)
{
    fth__text t;
    fth__text_init(&t, text, bytes);
    fth_status first = FTH_OK;
    for (int64_t d = 0; d < r->graph.n_dirs; d++) {
        const fth__dir *dir = &r->graph.dir[d];
        if (dir->trouble.status == FTH_OK || (!dir->changed && dir->ended)) continue;
        fth__text_add(&t, "%snot in the ledger of %s: ", t.used ? "\n" : "", dir->path);
        list_unwritten(r, d, &t);
        fth__text_add(&t, " (%s)", dir->trouble.text);
        if (first == FTH_OK && err) *err = dir->trouble;
        if (first == FTH_OK) first = dir->trouble.status;
    }
    fth__text_mark_cut(&t);
    return first;
}
