/* job/ledger/view.h - building a view: tasks, files and changes in growing arrays, texts in one
 * store. */
#ifndef FTH_JOB_VIEW_H
#define FTH_JOB_VIEW_H

#include <fathom/job.h>

fth_status fth__view_create(fth_view **out, fth_mem *mem, const char *root, fth_err *err);
/* A copy of `text` (NULL gives "") that lives as long as the view; equal texts that follow each
 * other share it. NULL: no memory, and the error says so. */
const char *fth__view_text(fth_view *view, const char *text, fth_err *err);
/* The same for a field that already has a text: keeps it when it is equal, so a task whose state
 * changes for days does not grow the store by more than what is new. */
fth_status fth__view_set(fth_view *view, const char **field, const char *text, fth_err *err);
/* A new row with its texts "" (and `value` NaN), which the caller fills; *out moves when more rows
 * come. */
fth_status fth__view_add_task(fth_view *view, fth_task **out, fth_err *err);
fth_status fth__view_add_file(fth_view *view, int64_t task, const fth_task_file *file,
                              fth_err *err);
fth_status fth__view_add_change(fth_view *view, const fth_change *change, fth_err *err);
/* Forget the files of a task. */
void fth__view_drop_files(fth_view *view, int64_t task);

/* "train.svgp"; of a shared stage "preprocess". Cut to `bytes`. */
void fth__task_id(char *id, size_t bytes, const fth_stage *stage, const char *model);

#endif
