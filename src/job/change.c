/* change.c - a change of a state goes to the ledger, then to run_status.json, then to who looks on.
 *
 * Changes of one moment that belong to one directory are one transaction, and one export tells of
 * all of them: a thousand cached jobs cost one file. A directory where nothing changes is not
 * written to at all.
 */
#include "job/runner.h"

#include "mem/heap.h"

void fth__runner_point(const fth__runner *r, const char *name)
{
    if (r->opt->point) r->opt->point(r->opt->user, name);
}

static bool is_final(fth_state state)
{
    return state != FTH_STATE_PENDING && state != FTH_STATE_RUNNING;
}

fth_status fth__runner_change(fth__runner *r, int64_t i, fth_state to, const char *note,
                              fth_err *err)
{
    fth_task *task = &r->view->task[i];
    fth__node *node = &r->graph.node[i];
    const double now = r->view->now = fth__runner_now(r);
    FTH_TRY(fth__view_add_change(
        r->view, &(fth_change){.task = i, .at = now, .from = task->state, .to = to, .note = note},
        err));
    task->state = to;
    if (is_final(to)) {
        node->phase = FTH__PHASE_DONE;
        task->ended = now;
        r->open--;
    }
    if (!node->untold) r->graph.dir[node->dir].changed++;
    node->untold = true;
    r->exported = false;
    if (!r->dry && r->opt->show) r->opt->show(r->opt->user, r->view, i);
    return FTH_OK;
}

/* ---- the ledgers ---- */

/* The note of the last change of a task. */
static const char *last_note(const fth_view *view, int64_t task)
{
    for (int64_t i = view->n_changes; i-- > 0;)
        if (view->change[i].task == task) return view->change[i].note;
    return "";
}

/* In the first transaction of a directory all of its tasks are written, so that who looks into the
 * ledger sees what is still to come. */
static fth_status collect(fth__runner *r, int64_t d, int64_t *n, fth_err *err)
{
    const fth__dir *dir = &r->graph.dir[d];
    *n = 0;
    for (int64_t i = 0; i < r->view->n_tasks; i++) {
        fth__node *node = &r->graph.node[i];
        if (node->dir != d || (dir->begun && !node->untold)) continue;
        const fth_task *task = &r->view->task[i];
        FTH_TRY(fth__grow(r->mem, &r->change, &r->cap_changes, *n + 1, err));
        r->change[(*n)++] = (fth__ledger_change){.task = i,
                                                 .from = node->told,
                                                 .note = node->untold ? last_note(r->view, i) : "",
                                                 .files = task->state == FTH_STATE_COMPLETED};
    }
    return FTH_OK;
}

static void mark_told(fth__runner *r, int64_t d)
{
    for (int64_t i = 0; i < r->view->n_tasks; i++) {
        fth__node *node = &r->graph.node[i];
        if (node->dir != d) continue;
        node->told = r->view->task[i].state;
        node->untold = false;
    }
    r->graph.dir[d].changed = 0;
}

static fth_status tell(fth__runner *r, int64_t d, fth_err *err)
{
    fth__dir *dir = &r->graph.dir[d];
    int64_t n;
    FTH_TRY(collect(r, d, &n, err));
    fth__runner_point(r, "before_ledger");
    if (!dir->begun) FTH_TRY(fth__ledger_begin(r->view, dir->path, r->me.run, err));
    FTH_TRY(fth__ledger_write(r->view, dir->path, r->change, n, err));
    fth__runner_point(r, "after_ledger");
    dir->begun = true;
    mark_told(r, d);
    return FTH_OK;
}

/* Cached, and the ledger has it so already: nothing is new here. */
static bool is_old_news(const fth__runner *r, int64_t d)
{
    if (r->graph.dir[d].begun) return false;
    for (int64_t i = 0; i < r->view->n_tasks; i++) {
        const fth__node *node = &r->graph.node[i];
        if (node->dir != d) continue;
        const fth_task *task = &r->view->task[i];
        if (!task->cached || task->state != FTH_STATE_COMPLETED ||
            node->told != FTH_STATE_COMPLETED)
            return false;
    }
    return true;
}

/* ---- the export ---- */

static void export_status(fth__runner *r)
{
    fth_err err = {0};
    fth__runner_point(r, "during_export");
    fth_status s = FTH_OK;
    if (!r->status) s = fth__status_open(&r->status, r->mem, r->status_path, &err);
    if (s == FTH_OK) s = fth__status_save(r->status, r->view, &err);
    if (s == FTH_OK) {
        fth__runner_point(r, "after_export");
    } else if (!r->export_failed) {
        /* The ledger has it all; the file is a copy for other programs. */
        r->export_failed = true;
        fth_log_line(&r->opt->log, FTH_LOG_WARN, "%s cannot be written: %s", r->status_path,
                     err.text);
    }
    r->exported = true;
}

fth_status fth__runner_flush(fth__runner *r, fth_err *err)
{
    if (r->dry || r->exported) return FTH_OK;
    for (int64_t d = 0; d < r->graph.n_dirs; d++) {
        if (!r->graph.dir[d].changed) continue;
        if (is_old_news(r, d))
            mark_told(r, d);
        else
            FTH_TRY(tell(r, d, err));
    }
    export_status(r);
    return FTH_OK;
}
