/* job/view/stale.h - completed tasks whose inputs have changed. */
#ifndef FTH_JOB_STALE_H
#define FTH_JOB_STALE_H

#include "job/ledger/view.h"

/* Completed tasks of `output_dir` whose inputs have changed become stale, and so do tasks that
 * depend on them, or on one with changed inputs that did not complete. Their files are those from
 * `first_file` to `end_file`. */
fth_status fth__view_mark_stale(fth_view *view, const char *output_dir, int64_t first_file,
                                int64_t end_file, fth_err *err);

#endif
