/* job/slurm/slurm.h - tasks as jobs of Slurm; what the files of this executor share.
 *
 *   sets.c      what the user says        limits.c   what the site allows
 *   arrays.c    tasks into arrays (pure)  script.c   batch scripts and lists of tasks
 *   submit.c    resources, sbatch         follow.c   squeue, sacct, ends of tasks
 *   adopt.c     jobs of earlier runners   worker.c   one task, on its node
 *   executor.c  the table of executor.h   probe.c    whether nodes see the files
 *   cancel.c    jobs that nobody follows  folder.c   what a runner left
 *
 * A runner has a folder, .fathom/slurm.d/TOKEN of its first output directory, with a script and a
 * list of tasks for each array; workers leave start, live and end files there. Every output
 * directory with jobs has a file .fathom/slurm that names the folder, so that no other runner
 * starts the same tasks. Comments of jobs ("fathom:TOKEN:ARRAY") tell which list a job belongs to.
 * None of these files decides whether a task is done: records do.
 */
#ifndef FTH_JOB_SLURM_H
#define FTH_JOB_SLURM_H

#include "config/store.h"
#include "job/find/slurm.h"
#include "job/run/executor.h"
#include "job/run/runner.h"
#include "job/slurm/arrays.h"
#include "job/slurm/limits.h"

#include <fathom/json.h>

/* What configs and the command line say of some tasks, and the nodes that it means. */
typedef struct fth__slurm_set {
    fth__slurm_settings says;
    const fth_slurm_partition *partition; /* NULL: Slurm was not asked */
    int cpus;                             /* of a task */
} fth__slurm_set;

/* Tasks of one class differ in nothing that Slurm is told. */
typedef struct fth__slurm_class {
    int64_t set;
    const char *instrument, *stage;
    uint64_t memory_mib; /* --mem */
    int64_t minutes;
    int cpus, gpus;
    bool tested; /* sbatch --test-only took it */
} fth__slurm_class;

typedef enum fth__slurm_state {
    FTH__SLURM_UNKNOWN,
    FTH__SLURM_PENDING,
    FTH__SLURM_RUNNING,
    FTH__SLURM_COMPLETED,
    FTH__SLURM_FAILED,
    FTH__SLURM_CANCELLED,
    FTH__SLURM_TIMEOUT,
    FTH__SLURM_OUT_OF_MEMORY,
    FTH__SLURM_NODE_FAIL,
    FTH__SLURM_PREEMPTED,
    FTH__SLURM_BOOT_FAIL,
    FTH__SLURM_DEADLINE,
    FTH__SLURM_GONE, /* Slurm does not know the job any more */
    FTH__SLURM_STATES
} fth__slurm_state;

/* A task of the run, beside its node and its row. */
typedef struct fth__slurm_task {
    int64_t set, class;
    int64_t job, index; /* of `job` below; -1: not submitted */
    fth__slurm_state state;
    bool cancelled; /* at our request */
    bool ended;     /* its end file was read: `end_state` is what it says */
    fth_state end_state;
    int gone;           /* times that squeue did not list it */
    uint64_t memory;    /* that the stage may take */
    uint64_t asked_mib; /* --mem of its job */
} fth__slurm_task;

/* A folder of a runner: ours, or of one that is gone. */
typedef struct fth__slurm_folder {
    const char *path;
    char token[48];
    int64_t mtime_ns; /* of its folder `end` when it was last read */
} fth__slurm_folder;

typedef struct fth__slurm_job {
    int64_t folder, number; /* of the array in its folder */
    int64_t id;             /* Slurm's; 0: not known */
    double made;            /* its list, of an earlier runner */
    int64_t n_index;        /* tasks by index, -1: none */
    int64_t *task;
    bool listed; /* the last squeue had one of its elements */
} fth__slurm_job;

typedef struct fth__slurm {
    fth_mem *mem;
    fth__slurm_shell shell;
    fth_slurm_info info;
    fth__slurm_set *set;
    int64_t n_sets, cap_sets;
    fth__store store; /* of texts */
    fth__slurm_class *class;
    int64_t n_classes, cap_classes;
    fth__slurm_task *task; /* as many as tasks */
    fth__slurm_folder *folder;
    int64_t n_folders, cap_folders; /* [0] is ours */
    fth__slurm_job *job;
    int64_t n_jobs, cap_jobs;
    int64_t queued; /* tasks that Slurm has and that are not done */
    bool made;      /* our folder is on the disk */
    bool full;      /* sbatch refused more jobs for now */
    bool adopted;   /* jobs of earlier runners were looked for */
    double next_query, next_look, next_request, next_submit;
    double asked_at; /* to end all; 0: not */
    bool killed;
    int troubles; /* queries in a row that failed */
} fth__slurm;

/* ---- sets.c ---- */

/* The settings of all tasks; tasks that are told the same share a set. */
fth_status fth__slurm_read_sets(fth__job_runner *r, fth__slurm *s, fth_err *err);
/* Their partitions, as Slurm knows them. */
fth_status fth__slurm_find_nodes(fth__slurm *s, fth_err *err);
/* Nodes of a set take the place of this machine in the plans. */
fth_status fth__slurm_size_nodes(fth__job_runner *r, fth__slurm_set *set, fth_err *err);
/* GPUs of a task. */
int fth__slurm_count_gpus(const fth__job_runner *r, const fth__slurm *s, int64_t i);

/* ---- script.c ---- */

/* NAME of a folder; FTH_PATH bytes. */
fth_status fth__slurm_path(char *path, const fth__slurm_folder *folder, const char *kind,
                           int64_t array, int64_t index, const char *ending, fth_err *err);
/* The batch script of an array; the caller frees it with fth__heap_free. */
fth_status fth__slurm_script(const fth__job_runner *r, const fth__slurm *s,
                             const fth__slurm_array *array, const char *indices,
                             const fth__slurm_folder *folder, char **out, fth_err *err);
/* Write script and list of an array: `index` has the tasks by index, -1 for none. */
fth_status fth__slurm_write_array(const fth__job_runner *r, const fth__slurm *s,
                                  const fth__slurm_array *array, const int64_t *task,
                                  int64_t n_index, const fth__slurm_folder *folder, fth_err *err);
/* Write the row of a task as JSON, and read it back: what the ledger has of it. */
void fth__slurm_put_task(fth_json_writer *w, const fth_task *task);
fth_status fth__slurm_take_task(fth_view *view, fth_task *task, const fth_json_value *v,
                                fth_err *err);

/* ---- submit.c ---- */

/* Classes of all tasks that are not done and not submitted: their plans. A task that never fits
 * has failed. */
fth_status fth__slurm_plan(fth__job_runner *r, fth__slurm *s, fth_err *err);
/* Arrays of what is not submitted, and sbatch for as many as the site takes now. */
fth_status fth__slurm_submit(fth__job_runner *r, fth__slurm *s, fth_err *err);
/* The same into `dir`, without sbatch. */
fth_status fth__slurm_write_scripts(fth__job_runner *r, fth__slurm *s, const char *dir,
                                    fth_err *err);
/* A job that Slurm has: number of its row. */
fth_status fth__slurm_add_job(fth__slurm *s, int64_t folder, int64_t number, int64_t id,
                              int64_t n_index, int64_t *out, fth_err *err);
/* Task i is element `index` of a job. */
void fth__slurm_tie(fth__job_runner *r, fth__slurm *s, int64_t i, int64_t job, int64_t index);

/* ---- follow.c ---- */

fth__slurm_state fth__slurm_parse_state(const char *name);
/* Calls `each` for every line of squeue (id, index, state, reason, comment). */
typedef void fth__slurm_line_fn(void *user, int64_t id, int64_t index, fth__slurm_state state,
                                const char *reason, const char *comment);
void fth__slurm_parse_queue(char *text, fth__slurm_line_fn *each, void *user);
fth_status fth__slurm_ask_queue(fth__slurm *s, fth__slurm_line_fn *each, void *user, fth_err *err);
/* End files, then squeue and sacct when it is their time. */
fth_status fth__slurm_follow(fth__job_runner *r, fth__slurm *s, fth_err *err);
/* Adopted tasks that have ended get their states, so that nothing is submitted behind them. */
fth_status fth__slurm_end_adopted(fth__job_runner *r, fth__slurm *s, fth_err *err);
void fth__slurm_show(fth__job_runner *r, fth__slurm *s);

/* ---- folder.c ---- */

/* The folder that .fathom/slurm of a directory names. */
fth_status fth__slurm_read_mark(fth__slurm *s, const char *dir, fth__slurm_folder *out,
                                fth_err *err);
/* Each list of a folder that can be read: number of its array, path, and root. */
typedef fth_status fth__slurm_list_fn(void *user, int64_t number, const char *path,
                                      const fth_json_value *root, fth_err *err);
fth_status fth__slurm_each_list(const fth__slurm *s, const fth__slurm_folder *folder,
                                fth__slurm_list_fn *each, void *user, fth_err *err);
/* Slurm's numbers of the arrays that are known to be submitted. */
fth_status fth__slurm_each_id(const fth__slurm *s, const fth__slurm_folder *folder,
                              void (*each)(void *user, int64_t number, int64_t id), void *user,
                              fth_err *err);

/* ---- adopt.c ---- */

/* Jobs of earlier runners in these directories, tied to tasks of this run. FTH_E_LOCKED when one
 * that still lives belongs to no task of this run. */
fth_status fth__slurm_adopt(fth__job_runner *r, fth__slurm *s, fth_err *err);
/* Write .fathom/slurm of a directory, and remove it. */
fth_status fth__slurm_mark(const fth__slurm *s, const char *dir, fth_err *err);

/* ---- probe.c ---- */

/* FTH_E_EXECUTOR when a node does not see the output directories or the program. */
fth_status fth__slurm_probe(const fth__job_runner *r, fth__slurm *s,
                            const fth__slurm_settings *says, fth_err *err);

#endif
