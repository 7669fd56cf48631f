/* fathom/job.h - find the jobs of configs, check them against each other, run them, report them.
 *
 * A job is (canonical output directory, model); its stages are the tasks that run. Configs are
 * expanded into jobs and refused when two of them would write to one place, before anything is
 * made. The runner starts each task as a process of its own, as far as predicted memory allows,
 * and writes every change into a ledger in the output directory. A view is what is known of all
 * tasks at a moment: the runner keeps one, and any other program can read one from the ledgers.
 * The live table, run_status.json, the report and the page of `fathom serve` are all made of it.
 *
 * In an output directory: logs/MODEL.log, and .fathom/ with ledger.sqlite (written only by the
 * runner), lock (who runs here), live.json (progress, a few times a second), cancel.TASK
 * (requests), and STAGE[.MODEL].json, the record that a stage leaves as its last act.
 *
 * Ownership: destroy what was created; texts belong to the object that hands them out.
 * Threads:   one thread per object.
 * Failure:   nothing is created before all configs are known to be right.
 */
#ifndef FATHOM_JOB_H
#define FATHOM_JOB_H

#include <fathom/instrument.h>

FTH_BEGIN_DECLS

/* ---- jobs of configs ---- */

typedef struct fth_jobs fth_jobs;

typedef struct fth_jobs_options {
    fth_mem *mem;
    const fth_instrument *const *instrument;
    int n_instruments;
    const char *const *path; /* files and folders with configs (-c) */
    int n_paths;
    const char *config_name; /* looked for in folders; NULL: "general.yaml" */
    const char *const *set;  /* "key=value", for every config */
    int n_sets;
    const char *const *over; /* "key=a,b": every config once for each value, or combination */
    int n_over;
    const char *stages; /* "all", or names between blanks */
    bool skip_general;  /* in folders, take every config that is not general */
    bool lenient;       /* unknown keys are notices */
    bool force;         /* files of variants are not read, whoever edited them: see generate */
    const char *cwd;    /* relative paths start here; NULL: at the current directory */
    const char *(*lookup)(void *user, const char *name); /* of ${NAME}; may be NULL */
    /* Every mistake and notice, beside its line in the log; may be NULL. */
    void (*mistake)(void *user, const fth_config_mistake *m);
    void *user;
    fth_log log; /* gets a line for every mistake and notice of the configs */
} fth_jobs_options;

/* Find, read, expand, check, compare. FTH_E_CONFIG when configs have mistakes (all of them were
 * logged); FTH_E_COLLISION when two jobs would write to one place (the error names both files).
 * Writes nothing. Instruments, the log, and the functions of `opt` with their user outlive the
 * jobs. */
FTH_API FTH_MUST_USE fth_status fth_jobs_find(fth_jobs **out, const fth_jobs_options *opt,
                                              fth_err *err);
FTH_API void fth_jobs_destroy(fth_jobs *jobs); /* NULL is allowed */

typedef struct fth_job {
    const char *name;     /* shortest that tells it from the others: "liver_healthy_svgp" */
    const char *dir_name; /* the same of its output directory, for shared stages: "liver_healthy" */
    const fth_instrument *instrument;
    const char *model;
    const char *output_dir;   /* canonical */
    const char *config_path;  /* canonical; of a variant the file that is generated */
    const char *general_path; /* the general config it is a variant of; NULL: none */
    const fth_config *config; /* checked */
    const char *const
        *set; /* "key=value" of `over`, output_dir among them, beside the given ones */
    int n_sets;
} fth_job;
FTH_API int64_t fth_jobs_count(const fth_jobs *jobs);
FTH_API const fth_job *fth_jobs_get(const fth_jobs *jobs, int64_t i); /* NULL beyond the last */
/* Stages that were asked for, of one job, in order: name number i, NULL beyond the last. */
FTH_API const fth_stage *fth_jobs_stage(const fth_jobs *jobs, const fth_job *job, int i);
/* Keep what one of the shell patterns fits: a job by its name or that of its directory, or a stage
 * as "job/stage". FTH_E_NO_JOB names the nearest jobs when a pattern fits nothing. Names stay those
 * among all jobs. Once, before a run. */
FTH_API FTH_MUST_USE fth_status fth_jobs_select(fth_jobs *jobs, const char *const *pattern, int n,
                                                fth_err *err);
/* Keep the jobs whose config_path is one of these. */
FTH_API FTH_MUST_USE fth_status fth_jobs_keep(fth_jobs *jobs, const char *const *config_path,
                                              int64_t n, fth_err *err);
/* Write the files of variants beside their general configs. A file that was edited since it was
 * generated is kept and used as it is, unless `force`; one that would then be another job is an
 * error. `n` counts the files written; may be NULL. */
FTH_API FTH_MUST_USE fth_status fth_jobs_generate(fth_jobs *jobs, bool force, int64_t *n,
                                                  fth_err *err);

/* ---- tasks and views ---- */

typedef enum fth_state {
    FTH_STATE_PENDING,
    FTH_STATE_BLOCKED, /* an earlier stage was not asked for and has no results */
    FTH_STATE_RUNNING,
    FTH_STATE_COMPLETED,
    FTH_STATE_FAILED,
    FTH_STATE_SKIPPED, /* an earlier stage failed */
    FTH_STATE_INTERRUPTED,
    FTH_STATE_STALE, /* completed, but its inputs changed since; only in views that were read */
    FTH_STATE_COUNT
} fth_state;
FTH_API const char *fth_state_name(fth_state state); /* "completed" */

/* One stage of one job. Texts are never NULL; numbers are 0 where nothing is known. */
typedef struct fth_task {
    const char *job; /* name of the job; of a shared stage, of its directory */
    const char *id;  /* unique in its directory: "train.svgp", "preprocess" */
    const char *instrument, *model, *stage, *doing;
    const char *output_dir, *config_path, *log_path;
    fth_state state;
    bool cached;         /* completed in an earlier run, and nothing changed */
    const char *reason;  /* why it runs again, is blocked or skipped, or what went wrong */
    const char *error;   /* of a failed one: the error as the stage printed it, several lines */
    const char *command; /* line that does the same by hand */
    int exit_code, signal, threads;
    int64_t pid;
    const char *device;
    double queued, started, ended; /* seconds since 1970; 0: not yet */
    double seconds;                /* that it ran so far */
    double planned_seconds, remaining_s;
    int64_t done, total;
    const char *what;
    const char *figure;                           /* name of the key figure */
    double value;                                 /* of it; NaN: none yet */
    uint64_t planned_bytes, device_planned_bytes; /* predicted peaks */
    uint64_t now_bytes;    /* grown by now; all that is resident while it begins */
    uint64_t peak_bytes;   /* growth of the process, measured */
    uint64_t ledger_bytes; /* peak of the engine's ledger */
    uint64_t read_bytes, written_bytes;
    double io_seconds, compute_seconds, device_seconds;
    const char *bound_by;      /* what it spent its time with: "storage 91 %, compute 9 %" */
    uint64_t log_from, log_to; /* bytes of its section in log_path */
    uint64_t config_hash, input_hash;
    const char *attempt; /* of the process: unique */
} fth_task;

typedef struct fth_task_file {
    int64_t task; /* number in the view */
    fth_file_kind kind;
    const char *path, *title; /* canonical */
    uint64_t bytes, hash;
    int64_t mtime_ns;
    bool ends; /* of an input over 1 GiB: `hash` is only of its first and its last MiB */
} fth_task_file;

typedef struct fth_change {
    int64_t task;
    double at; /* seconds since 1970 */
    fth_state from, to;
    const char *note;
} fth_change;

typedef struct fth_view {
    fth_mem *mem;
    const char *root;           /* directory it was read from, or the runner's */
    double started, ended, now; /* of the last run; seconds since 1970 */
    const char *host, *command, *version;
    const char *note;   /* what could not be read, a line for each; "" */
    int64_t runner_pid; /* 0: nobody runs there now */
    uint64_t budget_bytes;
    fth_task *task;
    int64_t n_tasks;
    fth_task_file *file;
    int64_t n_files;
    fth_change *change; /* in the order of time */
    int64_t n_changes;
    void *store; /* of the texts */
} fth_view;

/* Read the ledgers in `dir` and the folders below it, and live.json where a runner lives. Folders
 * and ledgers that cannot be read are skipped, and named in view->note; when there is nothing
 * else, that is the error. No ledger at all is a view without tasks. */
FTH_API FTH_MUST_USE fth_status fth_view_read(fth_view **out, fth_mem *mem, const char *dir,
                                              fth_err *err);
FTH_API void fth_view_destroy(fth_view *view); /* NULL is allowed */
/* The task that a person means: "liver_svgp" (its running or last stage), "liver_svgp/train" or
 * the end of a name that fits only one. NULL: `err` lists the nearest. */
FTH_API const fth_task *fth_view_find(const fth_view *view, const char *name, fth_err *err);

typedef struct fth_table_options {
    int width, height; /* of the terminal; 0: no limit */
    bool colour;
} fth_table_options;
/* The table as lines of text, like snprintf: running first, then pending, then done; what does
 * not fit is counted in the last line. */
FTH_API size_t fth_table_format(const fth_view *view, const fth_table_options *opt, char *text,
                                size_t bytes);
/* One line about the whole run while somebody runs it: "42 % done, 5 of 12 tasks, 3:25 elapsed,
 * about 4:40 left". Time left is from predicted and measured seconds, and is left out where nothing
 * can be predicted yet. "" when nothing runs. The table has it as its second line. */
FTH_API size_t fth_run_format(const fth_view *view, char *text, size_t bytes);
/* One line about one task, for output that is no terminal. */
FTH_API size_t fth_task_format(const fth_task *task, char *text, size_t bytes);
/* All of a view as JSON: `status --json`, and the data of the page. */
FTH_API FTH_MUST_USE fth_status fth_view_print_json(const fth_view *view, FILE *file, fth_err *err);

/* ---- running ---- */

/* Where tasks may run: "cpu", then the usable GPUs. */
typedef struct fth_slot {
    char device[16];
    uint64_t free_bytes; /* memory of the device; of the host for "cpu" */
} fth_slot;

typedef struct fth_runner_options {
    fth_mem *mem;
    const char *program;    /* path of the fathom program that runs the stages */
    const char *command;    /* of the runner, for the ledger */
    const char *const *set; /* passed on to every stage */
    int n_sets;
    bool lenient;                   /* passed on */
    const char *const *environment; /* of the stages: "NAME=value", then NULL; NULL: none */
    const fth_slot *slot;           /* slot[0] is the CPU */
    int n_slots;
    uint64_t memory_bytes; /* for all tasks together; 0: 90 % of what is free */
    int threads;           /* for all tasks together; 0: one per core that may be used */
    int jobs;              /* most tasks at a time; 0: as many as there are threads */
    int jobs_per_device;   /* GPU; 0: as many as fit */
    bool gpu_only;
    bool device_given; /* with --device: what configs say about devices does not count */
    const char *scratch, *trace, *seed; /* passed on; NULL: not given */
    bool trace_kernels, plain_products; /* the same */
    bool force;                         /* nothing is cached; results of other configs go */
    const char *rerun;                  /* names of stages that are not cached; NULL: none */
    bool verify;                        /* inputs are read whole, whatever their size and time */
    double ledger_wait_s;               /* for a ledger that cannot be written; 0: 10 */
    const char *const *time_limit; /* "30m" of every stage, "train=2h" of one; of a config the */
    int n_time_limits;             /* key time_limit says it where these do not */
    int retries; /* of a task that failed in a way that can change: not for exit codes 2, 4 and 7 */
    const char *status_path; /* run_status.json; NULL: in the output directory */
    double grace_s;          /* between SIGTERM and SIGKILL; 0: 10 */
    uint64_t log_bytes;      /* most of one section of a log; 0: 256 MiB */
    /* After every change of a state (`task` >= 0) and four times a second (-1); may be NULL. */
    void (*show)(void *user, const fth_view *view, int64_t task);
    /* Polled continuously; 1: stop after saving a resumable state; 2: kill. May be NULL. */
    int (*stop)(void *user);
    /* Asked ten times a second, by a thread of the runner's: whether to pause. Then the stages are
     * stopped, `rest` is called, and they go on when it returns. Both may be NULL. */
    bool (*pause)(void *user);
    void (*rest)(void *user);
    /* Tests: reached the named point; may be NULL. The names are in docs/faults.md. */
    void (*point)(void *user, const char *name);
    void *user;
    fth_log log;
    const char *executor;     /* where tasks run: "local" or "slurm"; NULL: "local" */
    const char *const *slurm; /* "KEY=VALUE" for Slurm (docs/cluster.md) */
    int n_slurm;
    bool detach; /* Slurm: submit and return; the next run of the same jobs follows them */
    const char
        *scripts_dir; /* Slurm: fth_runner_predict leaves scripts and lists there; NULL: not */
} fth_runner_options;

typedef struct fth_runner_result {
    int64_t completed, cached, failed, skipped, blocked, interrupted;
    int64_t retries;   /* attempts after one that failed */
    int64_t submitted; /* left with Slurm (detach) */
    double seconds;
    bool status_lost;   /* run_status.json could not be written in the end */
    char devices[400];  /* a line for each device that ran something: how long, and bound by what */
    char dropped[1000]; /* a line for each ledger that does not know all that was done; mostly "" */
} fth_runner_result;

/* Predict every task: state, reasons, planned bytes and seconds, without writing anything. The
 * view is the caller's. */
FTH_API FTH_MUST_USE fth_status fth_runner_predict(const fth_jobs *jobs,
                                                   const fth_runner_options *opt, fth_view **out,
                                                   fth_err *err);
/* Run everything that is not cached. FTH_E_JOB_FAILED when a task failed, FTH_E_CANCELLED when it
 * was stopped, FTH_E_LOCKED when another runner has one of the directories, FTH_E_COLLISION when
 * results that another config made would be replaced. A directory or ledger that cannot be written
 * fails the tasks of that directory alone; where there is no other, that is the error. */
FTH_API FTH_MUST_USE fth_status fth_runner_run(fth_jobs *jobs, const fth_runner_options *opt,
                                               fth_runner_result *result, fth_err *err);
/* One task of a list that the Slurm executor wrote, in this process on a node: `task` of
 * `manifest`. Decides as the runner does whether it is cached or blocked, runs its stage as a child
 * with log and progress, and leaves its end beside the list for the runner. Of `opt` memory,
 * program, slots, environment, stop, point, user and log count; `find` gives instruments and
 * lookup. The status is that of the task, FTH_E_JOB_FAILED or FTH_E_CANCELLED; `job` is Slurm's
 * number of the job, `signal` answers with the last signal of Slurm: SIGUSR1 is the warning before
 * the time limit. */
typedef struct fth_work_options {
    const char *manifest;
    int64_t task;
    const char *job, *node;
    int (*signal)(void *user); /* 0: none; may be NULL */
} fth_work_options;
FTH_API FTH_MUST_USE fth_status fth_runner_work(const fth_work_options *work,
                                                const fth_jobs_options *find,
                                                const fth_runner_options *opt, fth_err *err);

enum { FTH_SLURM_PARTITIONS = 32 };
typedef struct fth_slurm_partition {
    char name[64];
    bool is_default, up;
    int64_t max_minutes;   /* 0: no limit */
    uint64_t memory_bytes; /* of its largest node */
    int64_t cpus, gpus;    /* the same */
    int64_t nodes;
} fth_slurm_partition;
typedef struct fth_slurm_info {
    char version[32], cluster[64];
    bool accounting;       /* sacct answers */
    int64_t max_array;     /* MaxArraySize */
    int64_t max_submit;    /* jobs of this user at a time; 0: no limit known */
    int64_t min_job_age_s; /* how long squeue knows an ended job */
    fth_slurm_partition partition[FTH_SLURM_PARTITIONS];
    int n_partitions;
} fth_slurm_info;
/* What Slurm offers here. FTH_E_EXECUTOR: there is none, or its controller does not answer.
 * `environment` as in fth_runner_options. */
FTH_API FTH_MUST_USE fth_status fth_slurm_ask(fth_mem *mem, const char *const *environment,
                                              fth_slurm_info *out, fth_err *err);

/* Where run_status.json of these jobs is, when nothing else is said: in the deepest folder that
 * holds all their output directories. */
FTH_API FTH_MUST_USE fth_status fth_jobs_status_path(const fth_jobs *jobs, char *path, size_t bytes,
                                                     fth_err *err);
/* Config paths of the jobs that failed or were interrupted, from a run_status.json; stops at the
 * first `each` that fails. FTH_E_FILE_OPEN when there is no such file. */
FTH_API FTH_MUST_USE fth_status fth_jobs_failed(fth_mem *mem, const char *path,
                                                fth_status (*each)(void *user,
                                                                   const char *config_path,
                                                                   fth_err *err),
                                                void *user, fth_err *err);
/* End a task that is a job of Slurm and that no runner follows: scancel it, wait until it has
 * ended, and write the ledger. *was_ours false: it is none, and nothing was done. `environment` as
 * in fth_runner_options. FTH_E_NO_JOB when Slurm does not have it any more. */
FTH_API FTH_MUST_USE fth_status fth_slurm_cancel(fth_mem *mem, const char *const *environment,
                                                 const fth_task *task, bool *was_ours,
                                                 fth_err *err);
/* Ask the runner of a task's directory to end it. */
FTH_API FTH_MUST_USE fth_status fth_task_cancel(fth_mem *mem, const fth_task *task, fth_err *err);
/* What interrupted runs left in `dir` and below: temporary files, dead locks, requests; with
 * `all`, also what the ledger lists as outputs, the logs and the ledger. Calls `each` for every
 * file, and removes it unless `dry`; `kept` for what lies in the place of an output and is not what
 * the stage left, which stays. Both may be NULL. FTH_E_LOCKED while a runner lives there, before
 * anything is removed. A directory that cannot be cleaned does not keep the others from it; its
 * error is returned in the end. */
FTH_API FTH_MUST_USE fth_status fth_jobs_clean(fth_mem *mem, const char *dir, bool all, bool dry,
                                               void (*each)(void *user, const char *path,
                                                            uint64_t bytes),
                                               void (*kept)(void *user, const char *path),
                                               void *user, fth_err *err);

/* ---- one stage, in this process ---- */

typedef struct fth_stage_options {
    const fth_job *job;
    const fth_stage *stage;
    fth_options engine;       /* device, budget, threads, scratch, trace, log */
    const char *const *flags; /* given on the command line, "resume" or "replay=FILE", then NULL */
    const char *attempt;      /* given by the runner; NULL: started by hand */
    bool verify;              /* inputs over 1 GiB are hashed whole, too */
    /* Progress, at most ten times a second, as one line of JSON without its end; may be NULL. */
    void (*progress)(void *user, const char *json);
    bool (*stop)(void *user); /* may be NULL */
    void (*say)(void *user, const char *line);
    void (*point)(void *user, const char *name); /* tests, as above */
    void *user;
} fth_stage_options;

typedef struct fth_stage_result {
    fth_stage_plan plan;
    uint64_t ledger_bytes, growth_bytes, read_bytes, written_bytes;
    uint64_t held_bytes; /* most that was held of the budget, by the engine and beside it */
    double seconds, io_seconds, compute_seconds, device_seconds;
    char device[16], bound_by[80];
} fth_stage_result;
/* What a stage measured when it last came to its end, from its record; `model` is "" of a shared
 * stage. False: it has left none. */
FTH_API bool fth_stage_last(fth_mem *mem, const char *output_dir, const char *stage,
                            const char *model, fth_stage_result *out);
/* Plan only; with `show` the plans of the engine are printed there. */
FTH_API FTH_MUST_USE fth_status fth_stage_predict(const fth_stage_options *opt, FILE *show,
                                                  fth_stage_result *out, fth_err *err);
/* Check that the inputs are there, plan, run, and leave the record. */
FTH_API FTH_MUST_USE fth_status fth_stage_execute(const fth_stage_options *opt,
                                                  fth_stage_result *out, fth_err *err);

/* ---- the report ---- */

typedef struct fth_report_options {
    const char *path;      /* of the page: links are relative to its folder; NULL: to view->root */
    bool embed;            /* all figures inside the page */
    uint64_t inline_bytes; /* of thumbnails inside the page; 0: 20 MB */
    bool live;             /* the page asks for new data by itself (serve) */
} fth_report_options;
/* One HTML page that needs no network. */
FTH_API FTH_MUST_USE fth_status fth_report_print(const fth_view *view,
                                                 const fth_report_options *opt, FILE *file,
                                                 fth_err *err);
/* The same into opt->path, whole or not at all. */
FTH_API FTH_MUST_USE fth_status fth_report_save(const fth_view *view, const fth_report_options *opt,
                                                fth_err *err);

FTH_END_DECLS
#endif /* FATHOM_JOB_H */
