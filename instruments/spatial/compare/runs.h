/* runs.h - trainings of one config, each with some keys set, as jobs of one folder: how sweep and
 * consensus train. The runner packs them by their planned memory, resumes and caches them. */
#ifndef SPATIAL_RUNS_H
#define SPATIAL_RUNS_H

#include "../data/data.h"

typedef struct sp_runs {
    fth_context *ctx;
    fth_mem *mem;
    fth_answer *answer;
    const char *config;  /* that all are made of */
    const char *command; /* for the ledger */
    const char *stages;
    char dir[FTH_PATH]; /* their output directory, with DIR/MODEL.yaml of each */
    int jobs;           /* at a time; 0: as many as there are threads */
    bool devices;       /* the device of the context may be used */
    uint64_t most;      /* planned for a stage, the largest */
} sp_runs;

/* Keys of one run; texts are "KEY=VALUE". */
enum { SP_RUN_KEYS = 16 };
typedef struct sp_run_keys {
    int n;
    char text[SP_RUN_KEYS][FTH_PATH + 128];
} sp_run_keys;
fth_status sp_run_set(sp_run_keys *k, const char *key, const char *value, fth_err *err);
/* What every run of a model has: instrument, names and folder. */
fth_status sp_run_begin(sp_run_keys *k, const sp_runs *r, const char *model, fth_err *err);

/* Reads the config, prints its mistakes, and refuses what cannot be made into runs: a general one,
 * or one whose paths start at its folder. `what` is a noun: "a sweep". */
fth_status sp_runs_check(const sp_runs *r, fth_config *cfg, const char *what, fth_err *err);
/* The folder: `to`, or the config's output directory with `ending` behind it. */
fth_status sp_runs_folder(sp_runs *r, const fth_config *cfg, const char *to, const char *ending,
                          fth_err *err);
/* Writes DIR/MODEL.yaml; `note` is its first line. */
fth_status sp_runs_write(const sp_runs *r, const char *model, const sp_run_keys *k,
                         const char *note, fth_err *err);
/* Runs the configs of these models. FTH_E_JOB_FAILED when one failed and the others are done. */
fth_status sp_runs_go(const sp_runs *r, const char *const *model, int64_t n, fth_err *err);
/* Sizes of the data of a run, for plans. */
fth_status sp_runs_sizes(const sp_runs *r, const sp_run_keys *k, sp_sizes *out, fth_err *err);
/* Plans the stages of one run into the answer; those that all share only if `shared`. */
fth_status sp_runs_plan(sp_runs *r, const sp_run_keys *k, bool shared, fth_err *err);

#endif
