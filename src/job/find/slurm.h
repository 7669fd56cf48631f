/* job/find/slurm.h - what the user says about jobs of Slurm: `slurm:` of a config, and --slurm.
 *
 * One table, FTH_SLURM_KEYS, has the keys of both. A key of the command line takes the place of the
 * config's. Further options of sbatch are handed on as they are: from a config those of
 * `slurm.options`, from the command line every other key. Options that Fathom sets are refused.
 */
#ifndef FTH_JOB_FIND_SLURM_H
#define FTH_JOB_FIND_SLURM_H

#include "job/find/jobs.h"

typedef struct fth__slurm_settings {
    int64_t minutes; /* of every task; 0: from the prediction */
    int cpus;        /* of one task; 0: not said */
    bool no_probe;
    char gpus[256];      /* words: "1" of every stage, "train=2" of one */
    char partition[128]; /* "": the cluster's default */
    char options[2048];  /* lines "#SBATCH --key=value" */
    char prologue[4096]; /* lines of shell */
} fth__slurm_settings;

/* Those of a job: its config's, then the pairs KEY=VALUE of the command line. FTH_E_COMMAND. */
fth_status fth__slurm_read(fth__slurm_settings *out, const fth_job *job, const char *const *pair,
                           int n, fth_err *err);
/* Report and count mistakes of a checked config; then *good is false. */
fth_status fth__slurm_check_config(fth_jobs *jobs, const fth_config *cfg,
                                   const fth_instrument *instrument, bool *good, fth_err *err);
bool fth__slurm_is_same(const fth__slurm_settings *a, const fth__slurm_settings *b);
/* GPUs of a task of that stage. */
int fth__slurm_gpus(const fth__slurm_settings *s, const char *stage);
/* Minutes of "90", "90:00", "1:30:00", "2-00:00:00"; 0 of "UNLIMITED"; -1: it is none of these. */
int64_t fth__slurm_minutes(const char *text);

#endif
