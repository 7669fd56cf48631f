/* change.c - publish a state change: to the ledger, then to run_status.json, then to observers.
 *
 * Simultaneous changes in one directory are one transaction and one export: a thousand cached jobs
 * cost one file. A directory without changes is not written.
 */
#include "job/run/runner.h"

#include "base/assert.h"
#include "base/clock.h"
#include "mem/heap.h"

void fth__runner_point(const fth__job_runner *r, const char *name)
{
    if (r->opt->point) r->opt->point(r->opt->user, name);
}

static bool is_final(fth_state state)
{
    return state != FTH_STATE_PENDING && state != FTH_STATE_RUNNING;
}

/* What has ended does not change any more; a task that failed may wait for another attempt. */
__attribute__((unused)) static bool may_become(fth_state from, fth_state to)
{
    if (from == FTH_STATE_PENDING) return to != FTH_STATE_PENDING && to != FTH_STATE_STALE;
    return from == FTH_STATE_RUNNING && (to == FTH_STATE_COMPLETED || to == FTH_STATE_FAILED ||
                                         to == FTH_STATE_INTERRUPTED || to == FTH_STATE_PENDING);
}

fth_status fth__runner_change(fth__job_runner *r, int64_t i, fth_state to, const char *note,
                              fth_err *err)
{
    FTH_ASSERT(i >= 0 && i < r->view->n_tasks);
    fth_task *task = &r->view->task[i];
    fth__job_node *node = &r->graph.node[i];
    FTH_ASSERT(may_become(task->state, to));
    FTH_ASSERT((to == FTH_STATE_RUNNING || task->state == FTH_STATE_RUNNING) ==
                   (node->phase == FTH__PHASE_RUNS) ||
               to == FTH_STATE_FAILED); /* a task whose process could not be started */
    const double now = r->view->now = fth__runner_now(r);
    FTH_TRY(fth__view_add_change(
        r->view, &(fth_change){.task = i, .at = now, .from = task->state, .to = to, .note = note},
        err));
    task->state = to;
    if (is_final(to)) {
        node->phase = FTH__PHASE_DONE;
        task->ended = now;
        FTH_ASSERT(r->open > 0);
        r->open--;
    }
    if (!node->dirty) r->graph.dir[node->dir].changed++;
    node->dirty = true;
    r->exported = false;
    if (!r->dry && r->opt->show) r->opt->show(r->opt->user, r->view, i);
    return FTH_OK;
}

void fth__runner_show_rows(fth__job_runner *r)
{
    for (int64_t i = 0; i < r->view->n_tasks; i++) {
        fth__job_node *node = &r->graph.node[i];
        fth__dir *dir = &r->graph.dir[node->dir];
        if (dir->begun || node->dirty) continue;
        node->dirty = true;
        dir->changed++;
        r->exported = false;
    }
}

/* ---- the ledgers ---- */

static fth_status add_change(fth__job_runner *r, int64_t *n, const fth__ledger_change *change,
                             fth_err *err)
{
    FTH_TRY(fth__grow(r->mem, &r->change, &r->cap_changes, *n + 1, err));
    r->change[(*n)++] = *change;
    return FTH_OK;
}

/* The changes of a task that the ledger does not have: all but the last are history. */
static fth_status collect_task(fth__job_runner *r, int64_t i, int64_t *n, fth_err *err)
{
    const fth__job_node *node = &r->graph.node[i];
    const fth_view *view = r->view;
    fth__ledger_change c = {.task = i, .from = node->written_state, .note = ""};
    const fth_change *last = NULL;
    for (int64_t k = r->graph.dir[node->dir].written_changes; k < view->n_changes; k++) {
        if (view->change[k].task != i) continue;
        if (last) {
            c.passed = true;
            FTH_TRY(add_change(r, n, &c, err));
            c.from = c.to;
        }
        last = &view->change[k];
        c.to = last->to;
        c.at = last->at;
        c.note = last->note;
    }
    c.passed = false;
    c.files = view->task[i].state == FTH_STATE_COMPLETED;
    return add_change(r, n, &c, err);
}

/* The first transaction of a directory writes all of its tasks, so that readers of the ledger see
 * those that have not started. */
static fth_status collect(fth__job_runner *r, int64_t d, int64_t *n, fth_err *err)
{
    const fth__dir *dir = &r->graph.dir[d];
    *n = 0;
    for (int64_t i = 0; i < r->view->n_tasks; i++) {
        const fth__job_node *node = &r->graph.node[i];
        if (node->dir != d || (dir->begun && !node->dirty)) continue;
        FTH_TRY(collect_task(r, i, n, err));
    }
    return FTH_OK;
}

static void mark_written(fth__job_runner *r, int64_t d)
{
    for (int64_t i = 0; i < r->view->n_tasks; i++) {
        fth__job_node *node = &r->graph.node[i];
        if (node->dir != d) continue;
        node->written_state = r->view->task[i].state;
        node->dirty = false;
    }
    r->graph.dir[d].changed = 0;
    r->graph.dir[d].written_changes = r->view->n_changes;
}

static fth_status write_ledger(fth__job_runner *r, int64_t d, fth_err *err)
{
    fth__dir *dir = &r->graph.dir[d];
    int64_t n;
    FTH_ASSERT(dir->locked); /* nobody else writes this ledger */
    FTH_TRY(collect(r, d, &n, err));
    FTH_ASSERT(n >= dir->changed && n > 0);
    fth__runner_point(r, "before_ledger");
    const fth__ledger_batch batch = {.attempt = dir->begun ? NULL : r->me.run,
                                     .change = r->change,
                                     .n = n,
                                     .end = r->view->ended > 0};
    FTH_TRY(fth__ledger_save(r->view, dir->path, &batch, err));
    fth__runner_point(r, "after_ledger");
    dir->begun = true;
    dir->ended = batch.end;
    mark_written(r, d);
    return FTH_OK;
}

/* All tasks are cached, and the ledger lists them as completed: there is nothing to write. */
static bool is_written(const fth__job_runner *r, int64_t d)
{
    if (r->graph.dir[d].begun) return false;
    for (int64_t i = 0; i < r->view->n_tasks; i++) {
        const fth__job_node *node = &r->graph.node[i];
        if (node->dir != d) continue;
        const fth_task *task = &r->view->task[i];
        if (!task->cached || task->state != FTH_STATE_COMPLETED ||
            node->written_state != FTH_STATE_COMPLETED)
            return false;
    }
    return true;
}

/* ---- the export ---- */

static void export_status(fth__job_runner *r)
{
    fth_err err = {0};
    fth__runner_point(r, "during_export");
    fth_status s = FTH_OK;
    if (!r->status) s = fth__status_open(&r->status, r->mem, r->status_path, &err);
    if (s == FTH_OK) s = fth__status_save(r->status, r->view, r->rest, &err);
    r->export_lost = s != FTH_OK;
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

/* Changes that cannot be written now are retried: one failing ledger does not affect the others. */
static fth_status write_or_retry(fth__job_runner *r, int64_t d, fth_err *err)
{
    const fth__dir *dir = &r->graph.dir[d];
    fth_err why = {0};
    if (!dir->locked) return FTH_OK; /* nothing there is ours */
    if (dir->trouble.status != FTH_OK && fth__clock_seconds() < dir->next_try) return FTH_OK;
    const fth_status s = write_ledger(r, d, &why);
    if (s == FTH_E_NOMEM) return FTH_FAIL(err, s, "%s", why.text);
    if (s == FTH_OK)
        fth__dir_heal(r, d);
    else
        fth__dir_fail(r, d, &why, false);
    return FTH_OK;
}

fth_status fth__runner_flush(fth__job_runner *r, fth_err *err)
{
    if (r->dry || (r->exported && r->troubled == 0)) return FTH_OK;
    for (int64_t d = 0; d < r->graph.n_dirs; d++) {
        if (!r->graph.dir[d].changed) continue;
        if (is_written(r, d))
            mark_written(r, d);
        else
            FTH_TRY(write_or_retry(r, d, err));
    }
    if (!r->exported) export_status(r);
    return FTH_OK;
}
