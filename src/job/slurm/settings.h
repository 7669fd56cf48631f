/* job/slurm/settings.h - what the user says about Slurm: pairs KEY=VALUE of `--slurm` and of
 * `slurm:`.
 *
 * time, cpus, gpus, modules, prologue and probe are read here; every other key is an option of
 * sbatch and is handed on as it is. Options that Fathom itself sets are refused.
 */
#ifndef FTH_JOB_SLURM_SETTINGS_H
#define FTH_JOB_SLURM_SETTINGS_H

#include <fathom/config.h>

typedef struct fth__slurm_settings {
    int64_t minutes; /* of every task; 0: from the prediction */
    int cpus, gpus;  /* of one task; cpus 0: not said */
    bool no_probe;
    char partition[128]; /* ""; the cluster's default */
    char options[2048];  /* lines "#SBATCH --key=value" */
    char prologue[4096]; /* lines of shell */
} fth__slurm_settings;

/* Add a pair; a later one of the same key wins. FTH_E_COMMAND, FTH_E_CONFIG. */
fth_status fth__slurm_set(fth__slurm_settings *s, const char *pair, fth_err *err);

#endif
