/* stale.c - completed tasks whose inputs are not any more what they were.
 *
 * Nothing is kept about it: it is worked out whenever a view is read, from what the ledger says of
 * the inputs and what the disk says now. Files are only looked at; one is read when its time
 * changed, its size did not, and no task of the directory says what is in it.
 */
#include "base/str.h"
#include "job/files.h"
#include "job/ledger.h"
#include "job/record.h"

#include <string.h>

enum { REASON = 400 };
static const uint64_t read_up_to = (uint64_t)1 << 30;

typedef struct look {
    fth_view *view;
    const fth_view *also;
    int64_t first, end; /* files of the directory */
    const char *dir;
} look;

static const char *short_name(const char *dir, const char *path)
{
    const size_t n = strlen(dir);
    if (strncmp(path, dir, n) == 0 && path[n] == '/') return path + n + 1;
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static const fth_task_file *find_output(const fth_task_file *file, int64_t n, const char *path)
{
    for (int64_t i = 0; i < n; i++)
        if (file[i].kind != FTH_FILE_INPUT && strcmp(file[i].path, path) == 0) return &file[i];
    return NULL;
}

/* What tasks of the directory say about a file that they left; NULL: none did. */
static const fth_task_file *find_maker(const look *l, const char *path)
{
    return find_output(l->view->file + l->first, l->end - l->first, path);
}

/* A file that is gone is not another one: results stand when their sources were put away. */
static bool has_changed(const look *l, const fth_task_file *f)
{
    fth_task_file now = {0};
    if (!fth__file_look(f->path, &now.bytes, &now.mtime_ns)) return false;
    if (now.bytes != f->bytes) return true;
    if (now.mtime_ns == f->mtime_ns) return false;
    const fth_task_file *made =
        l->also ? find_output(l->also->file, l->also->n_files, f->path) : NULL;
    if (!made) made = find_maker(l, f->path);
    if (made && made->bytes == now.bytes && made->mtime_ns == now.mtime_ns)
        return made->hash != f->hash;
    if (now.bytes > read_up_to) return true; /* its time is part of what it is known by */
    return fth__file_hash(l->view->mem, f->path, true, &now, NULL) == FTH_OK && now.hash != f->hash;
}

/* A stage that was run by hand since has left a record that the ledger does not know. */
static bool was_renewed(const look *l, const fth_task *task)
{
    fth__record *r = NULL;
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

static fth_status mark(const look *l, fth_task *task, const char *reason, fth_err *err)
{
    task->state = FTH_STATE_STALE;
    return fth__view_set(l->view, &task->reason, reason, err);
}

/* Tasks that read what a stale one left stand on it as well. */
static fth_status spread(const look *l, bool *more, fth_err *err)
{
    *more = false;
    for (int64_t i = l->first; i < l->end; i++) {
        const fth_task_file *f = &l->view->file[i];
        fth_task *task = &l->view->task[f->task];
        if (f->kind != FTH_FILE_INPUT || task->state != FTH_STATE_COMPLETED) continue;
        const fth_task_file *made = find_maker(l, f->path);
        if (!made || l->view->task[made->task].state != FTH_STATE_STALE) continue;
        char reason[REASON];
        snprintf(reason, sizeof reason, "stands on '%.100s', which is stale",
                 l->view->task[made->task].id);
        if (was_renewed(l, task)) continue;
        FTH_TRY(mark(l, task, reason, err));
        *more = true;
    }
    return FTH_OK;
}

fth_status fth__view_mark_stale(fth_view *view, const fth_view *also, const char *output_dir,
                                int64_t first_file, int64_t end_file, fth_err *err)
{
    const look l = {view, also, first_file, end_file, output_dir};
    bool any = false;
    for (int64_t i = first_file; i < end_file; i++) {
        const fth_task_file *f = &view->file[i];
        fth_task *task = &view->task[f->task];
        if (f->kind != FTH_FILE_INPUT || task->state != FTH_STATE_COMPLETED) continue;
        if (!has_changed(&l, f) || was_renewed(&l, task)) continue;
        char reason[REASON];
        snprintf(reason, sizeof reason, "input %.300s changed", short_name(output_dir, f->path));
        FTH_TRY(mark(&l, task, reason, err));
        any = true;
    }
    for (bool more = any; more;) FTH_TRY(spread(&l, &more, err));
    return FTH_OK;
}
