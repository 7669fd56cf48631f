/* stale.c - find completed tasks whose inputs have changed.
 *
 * Derived whenever a view is read, from the inputs listed in the ledger and the files on disk. Only
 * metadata is compared; a file is read when its time changed, its size did not, and no task of the
 * directory recorded its hash.
 */
#include "job/view/stale.h"
#include "base/assert.h"
#include "base/str.h"
#include "job/ledger/ledger.h"
#include "job/stage/files.h"
#include "job/stage/record.h"
#include "mem/heap.h"

#include <string.h>

enum { REASON = 400 };
static const uint64_t read_up_to = (uint64_t)1 << 30; /* as records: files.c hashes these whole */

typedef struct look {
    fth_view *view;
    int64_t first, end; /* files of the directory */
    const char *dir;
    bool *moved; /* of each task: its inputs have changed; NULL: of none */
} look;

static const char *short_name(const char *dir, const char *path)
{
    const size_t n = strlen(dir);
    if (strncmp(path, dir, n) == 0 && path[n] == '/') return path + n + 1;
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* What tasks of the directory recorded of a file that they wrote; NULL: nothing. */
static const fth_task_file *find_maker(const look *l, const char *path)
{
    const fth_task_file *file = l->view->file;
    for (int64_t i = l->first; i < l->end; i++)
        if (file[i].kind != FTH_FILE_INPUT && strcmp(file[i].path, path) == 0) return &file[i];
    return NULL;
}

/* A missing file counts as unchanged: results stay valid when their sources were archived. */
static bool has_changed(const look *l, const fth_task_file *f)
{
    fth_task_file now = {0};
    if (!fth__file_look(f->path, &now.bytes, &now.mtime_ns)) return false;
    if (now.bytes != f->bytes) return true;
    if (now.mtime_ns == f->mtime_ns) return false;
    const fth_task_file *made = find_maker(l, f->path);
    if (made && made->bytes == now.bytes && made->mtime_ns == now.mtime_ns)
        return made->hash != f->hash;
    if (now.bytes > read_up_to) return true; /* its time is part of what it is known by */
    return fth__file_hash(l->view->mem, f->path, true, &now, NULL) == FTH_OK && now.hash != f->hash;
}

/* Whether the stage was run by hand since: then its record is newer than the ledger. */
static bool was_renewed(const look *l, const fth_task *task)
{
    fth__job_record *r = NULL;
    bool fresh = false;
    if (fth__record_read(&r, l->view->mem, l->dir, task->id, NULL) != FTH_OK || !r) return false;
    if (strcmp(r->attempt, task->attempt) != 0) {
        fresh = true;
        for (int64_t i = 0; i < r->n_files && fresh; i++)
            fresh = r->file[i].kind != FTH_FILE_INPUT || !has_changed(l, &r->file[i]);
    }
    fth__record_destroy(r);
    return fresh;
}

/* Also a task that did not complete: it still has the results of an earlier attempt. */
static bool has_results(fth_state state)
{
    return state == FTH_STATE_COMPLETED || state == FTH_STATE_FAILED ||
           state == FTH_STATE_SKIPPED || state == FTH_STATE_BLOCKED ||
           state == FTH_STATE_INTERRUPTED;
}

static fth_status mark(look *l, fth_task *task, const char *reason, fth_err *err)
{
    if (!l->moved) {
        void *block = NULL;
        FTH_TRY(fth__heap_take(l->view->mem, l->view->n_tasks, sizeof *l->moved, &block, err));
        l->moved = memset(block, 0, (size_t)l->view->n_tasks * sizeof *l->moved);
    }
    FTH_ASSERT(task >= l->view->task && task < l->view->task + l->view->n_tasks);
    l->moved[task - l->view->task] = true;
    if (task->state != FTH_STATE_COMPLETED) return FTH_OK; /* already not done */
    task->state = FTH_STATE_STALE;
    return fth__view_set(l->view, &task->reason, reason, err);
}

/* Whether a file is an input of a task that has results and is not marked yet. */
static bool may_move(const look *l, const fth_task_file *f)
{
    return f->kind == FTH_FILE_INPUT && has_results(l->view->task[f->task].state) &&
           !(l->moved && l->moved[f->task]);
}

static fth_status look_at_inputs(look *l, fth_err *err)
{
    for (int64_t i = l->first; i < l->end; i++) {
        const fth_task_file *f = &l->view->file[i];
        fth_task *task = &l->view->task[f->task];
        if (!may_move(l, f) || !has_changed(l, f) || was_renewed(l, task)) continue;
        char reason[REASON];
        snprintf(reason, sizeof reason, "input %.300s changed", short_name(l->dir, f->path));
        FTH_TRY(mark(l, task, reason, err));
    }
    return FTH_OK;
}

/* Tasks that read outputs of a marked task are marked as well. */
static fth_status spread(look *l, bool *more, fth_err *err)
{
    *more = false;
    FTH_ASSERT(l->moved);
    for (int64_t i = l->first; i < l->end; i++) {
        const fth_task_file *f = &l->view->file[i];
        fth_task *task = &l->view->task[f->task];
        if (!may_move(l, f)) continue;
        const fth_task_file *made = find_maker(l, f->path);
        if (!made || !l->moved[made->task] || was_renewed(l, task)) continue;
        char reason[REASON];
        snprintf(reason, sizeof reason, "depends on '%.100s', which is stale",
                 l->view->task[made->task].id);
        FTH_TRY(mark(l, task, reason, err));
        *more = true;
    }
    return FTH_OK;
}

fth_status fth__view_mark_stale(fth_view *view, const char *output_dir, int64_t first_file,
                                int64_t end_file, fth_err *err)
{
    FTH_ASSERT(first_file >= 0 && first_file <= end_file && end_file <= view->n_files);
    look l = {view, first_file, end_file, output_dir, NULL};
    fth_status s = look_at_inputs(&l, err);
    for (bool more = l.moved != NULL; s == FTH_OK && more;) s = spread(&l, &more, err);
    fth__heap_free(view->mem, l.moved);
    return s;
}
