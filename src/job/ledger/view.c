/* view.c - a view: rows in growing arrays, texts in one arena that is freed with it. */
#include "job/ledger/view.h"

#include "base/assert.h"
#include "config/store.h"
#include "mem/heap.h"

#include <math.h>
#include <string.h>

typedef struct view_store {
    fth__store texts;
    const char *last; /* the newest text: rows often repeat it */
    int64_t cap_tasks, cap_files, cap_changes;
} view_store;

static const char *const state_names[FTH_STATE_COUNT] = {
    [FTH_STATE_PENDING] = "pending",         [FTH_STATE_BLOCKED] = "blocked",
    [FTH_STATE_RUNNING] = "running",         [FTH_STATE_COMPLETED] = "completed",
    [FTH_STATE_FAILED] = "failed",           [FTH_STATE_SKIPPED] = "skipped",
    [FTH_STATE_INTERRUPTED] = "interrupted", [FTH_STATE_STALE] = "stale",
};

const char *fth_state_name(fth_state state)
{
    return (unsigned)state < FTH_STATE_COUNT ? state_names[state] : "unknown";
}

void fth__task_id(char *id, size_t bytes, const fth_stage *stage, const char *model)
{
    if (stage->shared)
        snprintf(id, bytes, "%s", stage->name);
    else
        snprintf(id, bytes, "%s.%s", stage->name, model);
}

fth_status fth__view_create(fth_view **out, fth_mem *mem, const char *root, fth_err *err)
{
    *out = NULL;
    fth_view *view = fth__heap_alloc(mem, sizeof *view);
    view_store *store = view ? fth__heap_alloc(mem, sizeof *store) : NULL;
    if (!store) {
        fth__heap_free(mem, view);
        return FTH_FAIL(err, FTH_E_NOMEM, "no memory for the list of jobs");
    }
    store->texts = (fth__store){.mem = mem, .block = 16384}; /* some hundred bytes for each task */
    view->mem = mem;
    view->store = store;
    view->host = view->command = view->version = view->note = "";
    view->root = fth__view_text(view, root, err);
    if (!view->root) {
        fth_view_destroy(view);
        return FTH_E_NOMEM;
    }
    *out = view;
    return FTH_OK;
}

void fth_view_destroy(fth_view *view)
{
    if (!view) return;
    view_store *store = view->store;
    fth__store_clear(&store->texts);
    fth__heap_free(view->mem, view->task);
    fth__heap_free(view->mem, view->file);
    fth__heap_free(view->mem, view->change);
    fth__heap_free(view->mem, store);
    fth__heap_free(view->mem, view);
}

const char *fth__view_text(fth_view *view, const char *text, fth_err *err)
{
    view_store *store = view->store;
    if (!text || !*text) return "";
    if (store->last && strcmp(store->last, text) == 0) return store->last;
    const char *copy = fth__store_text(&store->texts, text, strlen(text));
    if (!copy) {
        FTH_FAIL(err, FTH_E_NOMEM, "no memory for the texts of the list of jobs");
        return NULL;
    }
    return store->last = copy;
}

fth_status fth__view_set(fth_view *view, const char **field, const char *text, fth_err *err)
{
    if (*field && strcmp(*field, text ? text : "") == 0) return FTH_OK;
    const char *copy = fth__view_text(view, text, err);
    if (!copy) return FTH_E_NOMEM;
    *field = copy;
    return FTH_OK;
}

fth_status fth__view_add_task(fth_view *view, fth_task **out, fth_err *err)
{
    view_store *store = view->store;
    FTH_TRY(fth__grow(view->mem, &view->task, &store->cap_tasks, view->n_tasks + 1, err));
    fth_task *task = &view->task[view->n_tasks++];
    *task = (fth_task){.job = "",
                       .id = "",
                       .instrument = "",
                       .model = "",
                       .stage = "",
                       .doing = "",
                       .output_dir = "",
                       .config_path = "",
                       .log_path = "",
                       .reason = "",
                       .error = "",
                       .command = "",
                       .device = "",
                       .what = "",
                       .figure = "",
                       .value = (double)NAN,
                       .bound_by = "",
                       .attempt = ""};
    *out = task;
    return FTH_OK;
}

fth_status fth__view_add_file(fth_view *view, int64_t task, const fth_task_file *file, fth_err *err)
{
    view_store *store = view->store;
    fth_task_file copy = *file;
    FTH_ASSERT(task >= 0 && task < view->n_tasks);
    copy.task = task;
    copy.path = fth__view_text(view, file->path, err);
    copy.title = copy.path ? fth__view_text(view, file->title, err) : NULL;
    if (!copy.title) return FTH_E_NOMEM;
    FTH_TRY(fth__grow(view->mem, &view->file, &store->cap_files, view->n_files + 1, err));
    view->file[view->n_files++] = copy;
    return FTH_OK;
}

fth_status fth__view_add_change(fth_view *view, const fth_change *change, fth_err *err)
{
    view_store *store = view->store;
    fth_change copy = *change;
    FTH_ASSERT(change->task >= 0 && change->task < view->n_tasks);
    copy.note = fth__view_text(view, change->note, err);
    if (!copy.note) return FTH_E_NOMEM;
    FTH_TRY(fth__grow(view->mem, &view->change, &store->cap_changes, view->n_changes + 1, err));
    view->change[view->n_changes++] = copy;
    return FTH_OK;
}

void fth__view_drop_files(fth_view *view, int64_t task)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < view->n_files; i++)
        if (view->file[i].task != task) view->file[kept++] = view->file[i];
    view->n_files = kept;
}
