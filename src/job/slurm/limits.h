/* job/slurm/limits.h - what the site allows: versions, sizes of arrays, partitions with their
 * nodes. */
#ifndef FTH_JOB_SLURM_LIMITS_H
#define FTH_JOB_SLURM_LIMITS_H

#include "job/slurm/commands.h"

#include <fathom/job.h>

/* From `scontrol show config`. */
fth_status fth__slurm_parse_config(char *text, fth_slurm_info *out, fth_err *err);
/* Lines of `sinfo -h -e -o "%P|%a|%l|%m|%c|%G|%D"`: a row for each partition, the largest of its
 * nodes counts. */
void fth__slurm_parse_partitions(char *text, fth_slurm_info *out);
/* Least of the numbers in lines of sacctmgr; 0: no limit. */
int64_t fth__slurm_parse_submit(char *text);
/* Ask for all of it. FTH_E_EXECUTOR: no Slurm here, or its controller does not answer. */
fth_status fth__slurm_ask_limits(fth__slurm_shell *shell, fth_slurm_info *out, fth_err *err);
/* The partition of that name, "": the default; NULL: `err` lists those there are. */
const fth_slurm_partition *fth__slurm_find_partition(const fth_slurm_info *info, const char *name,
                                                     fth_err *err);

#endif
