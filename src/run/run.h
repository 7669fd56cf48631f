/* run.h - a plan in motion: where the arena is, which iteration every loop is in, what went wrong.
 */
#ifndef FTH_RUN_RUN_H
#define FTH_RUN_RUN_H

#include "plan/plan.h"
#include "run/io.h"

#include <stdatomic.h>

/* How far the step that is going on is. Workers add the tiles they have done; the running thread,
 * which is the one that reports, looks. */
typedef struct fth__way {
    atomic_int_fast64_t done; /* parts of the step, out of FTH__WAY */
    double call;              /* the share of the step that the running thread's kernel call is, */
    const fth_team *team;     /* and who knows how far that call is; NULL: nobody */
} fth__way;
#define FTH__WAY ((int64_t)1 << 48)

typedef struct fth__runner {
    fth_plan *p;
    char *arena;
    char nothing[64]; /* stands for an arena of no bytes */
    const fth_sink *sinks;
    int64_t iteration[FTH__MAX_DEPTH]; /* chunk number of the loop around us, per depth */
    int64_t *begun; /* per loop: iterations since the run began; see fth__buf_parity */
    fth__io *io;
    struct fth__stage *stage; /* NULL: data are the host's */
    int scratch;              /* file descriptor; -1: none */
    fth_team *team;           /* the plan's workers, called off when the run is cancelled */
    fth_team *alone;          /* the same for kernels that get no workers, */
    fth_team *others; /* and for those of the workers, who only follow; NULL: they have none */
    struct fth__device_run *dev; /* NULL: steps are done when they return */
    struct fth__lanes *lanes;    /* of the steps that are being recorded; NULL: one lane */
    fth_lane lane;               /* that steps are queued on */
    fth_team *own_team;          /* workers made for this run; NULL: the context's */
    fth_run_options opt;
    bool cancelled;
    double asked;           /* when progress was reported last */
    int reported_loop;      /* the pass it is about; -1: none */
    int64_t reported_chunk; /* and the chunk */
    double queued;          /* on a device: work since the queue was waited for */
    double done, total;     /* predicted seconds: of the steps that are done, of all */
    double doing;           /* of the one that is going on; 0: none is, */
    fth__way way;           /* and how far it is */
    double fraction;        /* that was reported last */
    bool finished;          /* nothing is left that can be cancelled */
    double t_start, io_wait, kernels;
    uint64_t read_bytes, written_bytes;
    bool reported;  /* somebody wants to know how long kernels took */
    uint64_t grown; /* on the device, by taking the arena, as its driver counts */
    uint64_t used0, resident0, foreign0; /* before the run: ledger, process, the caller's pages */
    uint64_t cached0;                    /* of the ledger, before the run */
    bool growth_known;
    int track;
    /* Several ranks (ranks.h). */
    struct fth__comm *comm; /* NULL: this process alone */
    bool settled;           /* all ranks know that the run has failed */
    int pass;               /* loop of the pass that is shared; -1: none */
    int64_t step;           /* chunks of it that this rank has done */
    int turn;               /* of the two blocks that tiles of others pass through, */
    int64_t passing[2];     /* and their last tickets */
    void *sending[2];       /* and what they still carry to rank 0 */
    bool late;              /* tiles of a step are to be passed when all ranks have made theirs: */
    int64_t late_step;      /* chunks done before it, */
    int late_parity;        /* and the copy that its tiles are in */
    double pushed;          /* when messages were given a chance to move */
    fth_err *err;
} fth__runner;

/* Memory of a region of a buffer in the current iteration; `parity` picks the copy of one that is
 * double buffered. */
void fth__tile_of(const fth__runner *r, const fth__buf *b, const fth__range *region, int parity,
                  fth_tile *out);
/* A plan that is wrong is an error before memory is: the buffer holds what this iteration puts
 * there, and the region (NULL: not known) is part of that. */
fth_status fth__buf_check(const fth__runner *r, const fth__buf *b, const fth__range *region);
/* 0 or 1: the copy that the current iteration of its owner loop uses. */
int fth__buf_parity(const fth__runner *r, const fth__buf *b);

/* Name a job for the timeline, where there is one, after the value it carries. */
void fth__job_name(const fth__runner *r, const fth__buf *b, fth__io_job *job);

/* Queue a job about memory of the arena. */
int64_t fth__run_post(fth__runner *r, fth__io_job *job);

/* Queue what the current iteration owns of an output's buffer for its sinks, but those that another
 * rank writes; 0: nothing. */
int64_t fth__run_post_write(fth__runner *r, const fth__buf *b, int output, int parity);
/* That part of it. */
void fth__run_write_region(const fth__runner *r, const fth__buf *b, fth__range *region);

/* Output `out` of the plan is an assign: it has no sink. */
bool fth__plan_is_assign(const fth_plan *p, int out);

/* ---- report.c: before the run, and at its end while the arena is still there ---- */
void fth__report_begin(fth__runner *r);
void fth__report_end(fth__runner *r, fth_run_report *out);
/* Free on the device, as its driver counts, with what is cached for later; 0: it does not tell. */
uint64_t fth__report_free(const fth_plan *p);

/* ---- progress.c; for the running thread ---- */
/* Add up what is to be done. */
void fth__run_count(fth__runner *r);
/* How often what stands in a loop (-1: in none) is carried out. */
double fth__run_iterations(const fth_plan *p, int loop);
/* Seconds that one iteration of a step is predicted to take. */
double fth__run_step_seconds(const fth__runner *r, int64_t item);
/* A step begins, and is done. */
void fth__run_enter(fth__runner *r, int64_t item);
void fth__run_leave(fth__runner *r);
/* Report progress when it is due; false: the run is cancelled. */
bool fth__run_goes_on(fth__runner *r);
/* FTH_E_CANCELLED with its words, once fth__run_goes_on has said no; else FTH_OK. */
fth_status fth__run_cancelled(const fth__runner *r);
/* Report it now, after `chunks` of a pass, or between steps outside of passes (loop -1). */
fth_status fth__run_report(fth__runner *r, int loop, int64_t chunks);

fth_status fth__run_step(fth__runner *r, const fth__item *it);

/* ---- alias.c: FTH_E_ALIAS when outputs share a place with each other or with what is read ---- */
fth_status fth__run_check_places(fth_plan *p, const fth_sink *sinks, fth_err *err);

/* ---- cut.c: a kernel call in tiles short enough to be cancelled between them ---- */
typedef struct fth__tiles {
    const fth__unit *unit;
    fth__way *way;          /* NULL: nobody wants to know */
    fth_team *team;         /* who may call the step off */
    uint64_t scratch_bytes; /* there are for one call */
    _Atomic double pace;    /* seconds that a guessed second takes; 0: nothing is known */
} fth__tiles;
/* FTH_E_CANCELLED, without words, when the step was called off. `share`: of the step, that the call
 * is; `worker`: 0 is the running thread. */
fth_status fth__run_tiles(fth__tiles *t, const fth_call *call, double share, int worker);

#endif
