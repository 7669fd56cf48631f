/* runs.h - shared by commands over many jobs: finding them, and the machine they run on. */
#ifndef FATHOM_CLI_RUNS_H
#define FATHOM_CLI_RUNS_H

#include "../cli.h"

enum { CLI_JOBS_LIST = 256 };

/* Flags of a command line that stand for jobs, as the library wants them. */
typedef struct cli_jobs {
    fth_mem *mem;
    fth_jobs *jobs;
    const char *path[CLI_JOBS_LIST]; /* of -c */
    const char *set[CLI_JOBS_LIST + 1];
    const char *over[CLI_JOBS_LIST];
    int n_paths, n_sets, n_over;
    char seed[40];
    char stages[512];
    char cwd[4096];
} cli_jobs;

/* Find the jobs of -c, --config-name, --set, --seed, --skip-general and --lenient; close it in any
 * case. Mistakes and notices of configs are written to standard error. */
fth_status cli_jobs_open(cli_jobs *j, const cli_call *call, const char *const *stages, int n_stages,
                         fth_err *err);
void cli_jobs_close(cli_jobs *j);

/* Where tasks may run. */
typedef struct cli_slots {
    fth_slot slot[17];
    int n;
    char line[300]; /* "device: cpu (auto: ...)": what was chosen, and why */
    bool gpu_only;  /* a GPU was asked for */
} cli_slots;
/* FTH_E_DEVICE when --device asks for what cannot be used. Reads no config. */
fth_status cli_slots_find(cli_slots *s, const cli_call *call, fth_err *err);
/* --memory as bytes; 0: not given. */
fth_status cli_memory(const cli_call *call, uint64_t *bytes, fth_err *err);
/* All values of a flag that may be given often; their number. */
int cli_get_all(const cli_call *call, const char *flag, const char *list[CLI_JOBS_LIST]);
/* A log that writes to standard error, up to --log or, without it, to `level`. */
fth_log cli_log(const cli_call *call, fth_log_level level);
/* A number that the parser has checked; 0: not given. */
int cli_count(const cli_call *call, const char *flag);

/* How a run ended. */
typedef struct cli_ending {
    fth_status status;
    const fth_runner_result *result;
    const char *summary; /* one line */
    const char *status_file;
} cli_ending;
/* Run the command of --notify, if it was given, and wait for it. */
void cli_notify(const cli_call *call, const cli_ending *ending);

fth_status cli_run_run(const cli_call *call, fth_err *err);
fth_status cli_run_task(const cli_call *call, fth_err *err);
fth_status cli_run_cancel(const cli_call *call, fth_err *err);

/* ---- what a person sees while jobs run ---- */

typedef struct cli_live {
    const cli_call *call;
    bool table, lines, json; /* one of them, or none */
    int height;              /* lines of the table on the screen now */
    double said_at;          /* when the last line about the whole run was written; 0: none */
    char *text;
    size_t bytes;
} cli_live;
void cli_live_open(cli_live *live, const cli_call *call);
/* The `show` of a runner. */
void cli_live_show(cli_live *live, const fth_view *view, int64_t task);
void cli_live_close(cli_live *live);

#endif
