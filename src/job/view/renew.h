/* job/view/renew.h - completed tasks that were run by hand since. */
#ifndef FTH_JOB_RENEW_H
#define FTH_JOB_RENEW_H

#include "job/ledger/view.h"

/* Tasks of `output_dir` from number `first` on that completed, and of which a stage that was run by
 * hand left a newer record than the ledger knows: they get its times, sizes and files. Damaged
 * records change nothing. */
fth_status fth__view_renew(fth_view *view, const char *output_dir, int64_t first, fth_err *err);

#endif
