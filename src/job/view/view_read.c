/* view_read.c - read all ledgers below a folder into a view.
 *
 * Folders with a ledger are found first, then read in the order of their names. A place that cannot
 * be read is noted and skipped.
 */
#include "job/view/renew.h"
#include "job/view/stale.h"
#include "job/view/walk.h"

#include <stdlib.h>
#include <string.h>

/* Tasks that a killed runner left as running are interrupted. */
static fth_status settle(fth_view *view, const char *dir, int64_t first, fth_err *err)
{
    fth__who who;
    const bool lives = fth__lock_read(dir, &who) && fth__who_lives(&who);
    if (lives) {
        if (view->runner_pid == 0) view->runner_pid = who.pid;
        fth__live_read(view, dir, first);
    }
    const bool cluster = !lives && fth__lock_has_cluster(dir);
    for (int64_t i = first; i < view->n_tasks; i++) {
        fth_task *t = &view->task[i];
        if (t->state != FTH_STATE_RUNNING && !(cluster && t->state == FTH_STATE_PENDING)) continue;
        if (lives) { /* by the clock of its runner, once it has published one */
            if (t->seconds <= 0 && t->started > 0 && view->now > t->started)
                t->seconds = view->now - t->started;
            continue;
        }
        if (cluster) {
            FTH_TRY(fth__view_set(view, &t->reason,
                                  "with Slurm: squeue shows it, the same 'fathom run' follows it",
                                  err));
            continue;
        }
        t->state = FTH_STATE_INTERRUPTED;
        FTH_TRY(fth__view_set(view, &t->reason,
                              "the runner is gone without having ended the run: was it killed?",
                              err));
    }
    return FTH_OK;
}

/* Changes come ledger by ledger; their place breaks ties, since qsort would not. */
static int by_time(const void *a, const void *b)
{
    const fth_change *x = a, *y = b;
    if (x->at != y->at) return x->at < y->at ? -1 : 1;
    return x->task != y->task ? (x->task < y->task ? -1 : 1) : (int)x->to - (int)y->to;
}

static fth_status read_all(fth__job_walk *w, fth_view *view, fth_err *err)
{
    fth_err first = {0};
    int64_t good = 0;
    for (int64_t i = 0; i < w->n_dirs; i++) {
        fth_err why = {0};
        const int64_t at = view->n_tasks, file = view->n_files;
        const fth_status got = fth__ledger_read(view, w->dir[i], &why);
        if (got == FTH_E_NOMEM) return FTH_FAIL(err, got, "%s", why.text);
        if (got != FTH_OK) {
            fth__walk_note(w, why.text);
            if (first.status == FTH_OK) first = why;
            continue;
        }
        good++;
        FTH_TRY(settle(view, w->dir[i], at, err));
        FTH_TRY(fth__view_renew(view, w->dir[i], at, err));
        FTH_TRY(fth__view_mark_stale(view, w->dir[i], file, view->n_files, err));
    }
    if (good == 0 && first.status != FTH_OK) {
        if (err) *err = first;
        return first.status;
    }
    if (w->n_dirs > 1 && view->n_changes > 1)
        qsort(view->change, (size_t)view->n_changes, sizeof *view->change, by_time);
    return fth__view_set(view, &view->note, w->note_text, err);
}

fth_status fth_view_read(fth_view **out, fth_mem *mem, const char *dir, fth_err *err)
{
    *out = NULL;
    if (!mem || !dir) return FTH_FAIL(err, FTH_E_USAGE, "a view needs memory and a folder");
    fth__job_walk *w = NULL;
    fth_view *view = NULL;
    fth_status s = fth__walk_create(&w, mem, dir, "ledger.sqlite", err);
    if (s == FTH_OK) s = fth__view_create(&view, mem, w->path, err);
    if (s == FTH_OK) {
        view->now = fth__wall_seconds();
        s = read_all(w, view, err);
    }
    if (s == FTH_OK)
        *out = view;
    else
        fth_view_destroy(view);
    fth__walk_destroy(w);
    return s;
}
