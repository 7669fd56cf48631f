/* recover.c - take the output directories at the start of a run and clean up after crashed runners.
 *
 * The ledger of each is read once: the rows of this run's tasks show what a crashed runner left
 * running, and those of other tasks are kept for run_status.json.
 */
#include "job/run/runner.h"
#include "job/view/renew.h"

#include "base/assert.h"
#include "base/str.h"
#include "mem/heap.h"

#include <dirent.h>
#include <string.h>
#include <unistd.h>

/* The run fails when none of its directories can be used. */
static fth_status check_any(const fth__job_runner *r, fth_err *err)
{
    for (int64_t d = 0; d < r->graph.n_dirs; d++)
        if (!r->graph.dir[d].lost) return FTH_OK;
    if (r->graph.n_dirs == 0) return FTH_OK;
    if (err) *err = r->graph.dir[0].trouble;
    return r->graph.dir[0].trouble.status;
}

/* A killed process is gone at once unless it waits for a disk or a driver. */
enum { KILL_WAIT_S = 10 };

static void sweep_outside(const fth__job_runner *r);

/* Directories are locked in the order of their paths, so two runners cannot deadlock. */
fth_status fth__runner_take(fth__job_runner *r, fth_err *err)
{
    r->me.beats = true;
    const fth__watch_options watch = {
        .me = &r->me, .pause = r->opt->pause, .rest = r->opt->rest, .user = r->opt->user};
    FTH_TRY(fth__watch_start(&r->watch, r->mem, &watch, err));
    for (int64_t d = 0; d < r->graph.n_dirs; d++) {
        fth__dir *dir = &r->graph.dir[d];
        fth__who last;
        fth_err why = {0};
        const bool crashed = fth__lock_read(dir->path, &last);
        fth_status s = fth__ledger_check_path(dir->path, &why); /* before a folder is made */
        if (s == FTH_OK) s = fth__lock_take(dir->path, &r->me, &why);
        if (s == FTH_E_LOCKED || s == FTH_E_NOMEM) {
            if (err) *err = why;
            return s;
        }
        dir->locked = s == FTH_OK;
        dir->marked = s == FTH_OK && fth__lock_has_cluster(dir->path);
        if (dir->marked && r->executor != &fth__executor_slurm)
            return fth__lock_fail_cluster(dir->path, err);
        dir->crashed = crashed && dir->locked;
        if (s == FTH_OK)
            FTH_TRY(fth__watch_dir(r->watch, dir->path, err));
        else
            fth__dir_fail(r, d, &why, true);
    }
    FTH_TRY(check_any(r, err));
    sweep_outside(r);
    return FTH_OK;
}

/* Remove files of .fathom that are of no use to this run: old requests, locks never published. */
static void remove_requests(const char *dir)
{
    char path[FTH_PATH];
    if (!fth__fathom_path(path, dir, "")) return;
    DIR *folder = opendir(path);
    if (!folder) return;
    for (const struct dirent *e; (e = readdir(folder)) != NULL;) {
        const size_t n = strlen(e->d_name);
        const bool lock =
            strncmp(e->d_name, "lock.", 5) == 0 && n > 4 && strcmp(e->d_name + n - 4, ".tmp") == 0;
        if (lock || strncmp(e->d_name, "cancel.", 7) == 0) unlinkat(dirfd(folder), e->d_name, 0);
    }
    closedir(folder);
}

/* What the ledger says of one task of ours. */
static void remember(fth__job_runner *r, int64_t i, const fth_task *old, bool had_outputs,
                     bool *orphans)
{
    fth__job_node *node = &r->graph.node[i];
    node->old_state = node->written_state = old->state;
    node->old_ended = old->ended;
    /* It completed once; an attempt that did not has removed the record, and no more. */
    node->ours = had_outputs && strcmp(old->config_path, r->view->task[i].config_path) == 0;
    if (old->state != FTH_STATE_RUNNING) return;
    fth__str_copy(node->old_attempt, sizeof node->old_attempt, old->attempt);
    *orphans = true;
}

/* Whether the ledger lists files that a task left; its files are from `file` on. */
static bool has_outputs(const fth_view *rest, int64_t task, int64_t file)
{
    for (int64_t i = file; i < rest->n_files; i++)
        if (rest->file[i].task == task && rest->file[i].kind != FTH_FILE_INPUT) return true;
    return false;
}

/* The number of a task of this run; -1: it has none of that name. `from` is where the last one was:
 * both are in much the same order. */
static int64_t find_task(const fth__job_runner *r, int64_t d, const char *id, int64_t *from)
{
    for (int64_t n = 0; n < r->view->n_tasks; n++, ++*from) {
        if (*from >= r->view->n_tasks) *from = 0;
        if (r->graph.node[*from].dir == d && strcmp(r->view->task[*from].id, id) == 0) return *from;
    }
    return -1;
}

/* Keep the tasks from `first` on that are not in `drop`, and their files; the history is not needed
 * again. */
static void compact(fth_view *rest, int64_t first, int64_t file, const bool *drop)
{
    int64_t kept = first, files = file;
    for (int64_t i = file; i < rest->n_files; i++) {
        fth_task_file f = rest->file[i];
        FTH_ASSERT(f.task >= first && f.task < rest->n_tasks);
        if (drop[f.task - first]) continue;
        for (int64_t k = f.task; k-- > first;) f.task -= drop[k - first];
        rest->file[files++] = f;
    }
    for (int64_t i = first; i < rest->n_tasks; i++)
        if (!drop[i - first]) rest->task[kept++] = rest->task[i];
    rest->n_tasks = kept;
    rest->n_files = files;
    rest->n_changes = 0;
}

/* What the ledger says about tasks of this run is remembered; rows of others stay in `rest`. */
static fth_status read_rest(fth__job_runner *r, int64_t d, int64_t first, int64_t file,
                            bool *orphans, fth_err *err)
{
    fth_view *rest = r->rest;
    void *block = NULL;
    int64_t from = 0;
    FTH_TRY(fth__heap_take(r->mem, rest->n_tasks - first + 1, sizeof(bool), &block, err));
    bool *drop = block;
    for (int64_t k = first; k < rest->n_tasks; k++) {
        const int64_t i = find_task(r, d, rest->task[k].id, &from);
        drop[k - first] = i >= 0;
        if (i >= 0) remember(r, i, &rest->task[k], has_outputs(rest, k, file), orphans);
        if (rest->task[k].state == FTH_STATE_RUNNING) rest->task[k].state = FTH_STATE_INTERRUPTED;
    }
    compact(rest, first, file, drop);
    fth__heap_free(r->mem, block);
    return FTH_OK;
}

/* Read the history of a directory, and kill processes that a crashed runner left there, whether
 * their task is requested now or not. */
static fth_status recover(fth__job_runner *r, int64_t d, fth_err *err)
{
    fth__dir *dir = &r->graph.dir[d];
    const int64_t first = r->rest->n_tasks, file = r->rest->n_files;
    bool orphans = dir->crashed;
    FTH_ASSERT(dir->locked);
    dir->rest_from = dir->rest_to = first;
    FTH_TRY(fth__ledger_read(r->rest, dir->path, err));
    for (int64_t k = first; k < r->rest->n_tasks; k++) {
        const fth_task *task = &r->rest->task[k];
        if (task->state == FTH_STATE_RUNNING &&
            !fth__attempt_kill(task->pid, task->attempt, KILL_WAIT_S))
            return FTH_FAIL(err, FTH_E_LOCKED,
                            "%s: process %lld of an earlier run works on %s and cannot be ended",
                            dir->path, (long long)task->pid, task->id);
    }
    FTH_TRY(read_rest(r, d, first, file, &orphans, err));
    dir->rest_to = r->rest->n_tasks;
    FTH_TRY(fth__view_renew(r->rest, dir->path, first, err));
    remove_requests(dir->path);
    /* a temporary file of a process on another node looks like that of a dead one */
    if (orphans && !dir->marked) fth__leftover_sweep(dir->path, 0);
    return FTH_OK;
}

fth_status fth__runner_recover(fth__job_runner *r, fth_err *err)
{
    for (int64_t d = 0; d < r->graph.n_dirs; d++) {
        fth_err why = {0};
        if (r->graph.dir[d].lost) continue;
        const fth_status s = recover(r, d, &why);
        if (s == FTH_E_NOMEM) return FTH_FAIL(err, s, "%s", why.text);
        if (s != FTH_OK) fth__dir_fail(r, d, &why, true);
    }
    return check_any(r, err);
}

/* Temporary files of a crashed runner outside of the output directories: of run_status.json and of
 * generated configs. */
static void sweep_outside(const fth__job_runner *r)
{
    bool crashed = false;
    const char *last = "";
    for (int64_t d = 0; d < r->graph.n_dirs; d++) crashed = crashed || r->graph.dir[d].crashed;
    if (!crashed) return;
    fth__leftover_sweep_beside(r->status_path);
    for (int64_t i = 0; i < r->view->n_tasks; i++) {
        const fth__job_node *node = &r->graph.node[i];
        const char *general = node->job->general_path;
        if (!r->graph.dir[node->dir].crashed || !general || strcmp(general, last) == 0) continue;
        fth__leftover_sweep_beside(general);
        last = general;
    }
}
