/* job/run/pack.h - which task starts next, where, with how much memory and how many threads.
 *
 * A pure function of the resources and the running tasks: it uses no processes, files or clock, so
 * tests can simulate any set of GPUs. The runner asks for one choice at a time, takes it, and asks
 * again until there is none.
 *
 * Order: earlier stages first, so that devices are fed while analyses wait; then the order of the
 * jobs. A task that does not fit now lets smaller ones pass, but only FTH__PACK_PATIENCE times:
 * after that nothing is started which would use what it waits for, so it gets its turn.
 * Threads: what is left is shared among the jobs that can use them.
 */
#ifndef FTH_JOB_PACK_H
#define FTH_JOB_PACK_H

#include <fathom/job.h>

/* SLOTS: the host and 16 GPUs, as many as one machine has. PATIENCE: a large task waits for eight
 * smaller ones at most; any bound lets it run, and a small one leaves the machine idle sooner. */
enum { FTH__PACK_SLOTS = 17, FTH__PACK_PATIENCE = 8 };
/* Left free on a GPU beside each task: its context, some hundred MiB, and fragmentation. */
#define FTH__PACK_MARGIN ((uint64_t)1 << 30)

typedef struct fth__pack_slot {
    uint64_t total_bytes; /* that tasks may take in all */
    uint64_t taken_bytes; /* by the reservations below  */
    int running;
} fth__pack_slot;

typedef struct fth__pack {
    fth__pack_slot slot[FTH__PACK_SLOTS]; /* [0] is the host, the others are GPUs */
    int n_slots;
    int jobs, threads;   /* most at a time */
    int jobs_per_device; /* 0: as many as fit */
    bool gpu_only;
    int running, threads_taken;
    int fallen_back; /* tasks that could use a GPU and run on the host */
} fth__pack;

/* Predicted peaks of a task. One whose plan is not known has the share of a job as its peak. */
typedef struct fth__pack_task {
    int64_t number;      /* of the task, for the caller                                   */
    int stage;           /* place of its stage among those of the instrument              */
    int passed;          /* times that others were started before it: the caller counts   */
    uint64_t cpu_bytes;  /* on the host, when it runs there                               */
    bool device;         /* can use a GPU; then the next two count                        */
    uint64_t host_bytes; /* on the host, when it runs on a GPU                            */
    uint64_t gpu_bytes;
} fth__pack_task;

/* What a running task holds. Zero is none; given back in one place, fth__pack_release. */
typedef struct fth__reservation {
    bool held;
    int slot; /* 0: the host */
    int threads;
    bool fell_back;
    uint64_t host_bytes, gpu_bytes; /* with the margin */
} fth__reservation;

/* `memory` is for all tasks together; `slot[0]` says what is free when it is 0. */
void fth__pack_init(fth__pack *pack, const fth_runner_options *opt, int threads);
/* Host bytes that a job can count on while all `jobs` others run as well. */
uint64_t fth__pack_share(const fth__pack *pack, int64_t jobs);
/* Whether the task fits when nothing else runs. False: `err` says what it needs and what there is.
 */
bool fth__pack_fits(const fth__pack *pack, const fth__pack_task *task, fth_err *err);
/* The order in which tasks start where all of them fit. */
bool fth__pack_before(const fth__pack_task *a, const fth__pack_task *b);
/* The next task to start, as a number of `ready`, or -1. `waiting` is how many jobs could use
 * threads now or soon, `ready` among them. Tasks that never fit must not be here. */
int64_t fth__pack_next(const fth__pack *pack, const fth__pack_task *ready, int64_t n,
                       int64_t waiting, fth__reservation *out);
void fth__pack_take(fth__pack *pack, const fth__reservation *r);
/* Does nothing on one that is not held. */
void fth__pack_release(fth__pack *pack, fth__reservation *r);

#endif
