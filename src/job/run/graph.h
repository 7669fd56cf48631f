/* job/run/graph.h - the tasks of jobs and what each waits for.
 *
 * A task is a stage of a job; a shared stage is one task for all jobs of its directory. Task i of
 * the graph is row i of the view. A task comes after all that it waits for, so one walk from the
 * first to the last settles everything.
 */
#ifndef FTH_JOB_GRAPH_H
#define FTH_JOB_GRAPH_H

#include "job/ledger/view.h"
#include "job/run/pack.h"

/* Stages of an instrument, as bits of fth__job_node.missing; those of them that models share. */
enum { FTH__GRAPH_SHARED = 8, FTH__GRAPH_STAGES = 32 };

typedef struct fth__dir {
    const char *path;
    bool locked;
    bool begun;     /* its ledger has a row of this run, one of each of its tasks, */
    bool ended;     /* and the end of the run */
    bool crashed;   /* the last runner here left its lock behind */
    bool marked;    /* jobs of Slurm were submitted for it */
    bool under_way; /* and some are not done */
    int64_t running;
    int64_t changed;         /* tasks whose change is not in the ledger yet */
    int64_t written_changes; /* changes of the view that the ledger has: the first so many */
    /* A directory or ledger that cannot be written: nothing is started there while it lasts. */
    fth_err trouble;            /* FTH_OK: none */
    double since, next_try;     /* of the trouble, on the clock that only moves forward */
    bool lost;                  /* it lasted too long: the tasks that are left fail */
    int64_t rest_from, rest_to; /* its earlier tasks in runner->rest */
    int n_shared;
    int64_t shared[FTH__GRAPH_SHARED]; /* tasks of shared stages */
} fth__dir;

typedef enum fth__phase {
    FTH__PHASE_WAITS, /* for earlier tasks */
    FTH__PHASE_READY,
    FTH__PHASE_QUEUED, /* an executor has it, and it does not run yet */
    FTH__PHASE_RUNS,
    FTH__PHASE_DONE
} fth__phase;

typedef struct fth__job_node {
    const fth_job *job;
    const fth_stage *stage;
    int number; /* of the stage in its instrument */
    int64_t dir;
    int n_before; /* tasks that it waits for */
    int64_t before[FTH__GRAPH_STAGES];
    unsigned missing; /* bit k: stage k is needed and was not asked for */
    fth__phase phase;
    bool planned; /* `need` is filled in */
    fth__pack_task need;
    int failures;            /* attempts of this run that failed and were followed by another */
    bool ours;               /* the existing results were made by this config */
    fth_state old_state;     /* in the ledger, when the run began */
    double old_ended;        /* the same */
    fth_state written_state; /* in the ledger now */
    bool dirty;              /* the view is ahead of the ledger */
    char old_attempt[48];    /* of one that a crashed runner left running */
} fth__job_node;

typedef struct fth__graph {
    fth_mem *mem;
    fth__dir *dir; /* by path */
    int64_t n_dirs, cap_dirs;
    fth__job_node *node; /* as many as tasks */
    int64_t cap_nodes;
} fth__graph;

/* Add the tasks of all jobs to an empty view. */
fth_status fth__graph_make(fth__graph *graph, fth_mem *mem, const fth_jobs *jobs, fth_view *view,
                           fth_err *err);
void fth__graph_clear(fth__graph *graph);
/* Stage number k of the instrument of a node. */
const fth_stage *fth__graph_stage(const fth__job_node *node, int k);
/* Whether a stage lists a flag among its own. */
bool fth__stage_has_flag(const fth_stage *stage, const char *name);
/* Whether a name is one of those between blanks in `list`; NULL is empty. */
bool fth__has_word(const char *list, const char *name);

#endif
