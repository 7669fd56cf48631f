/* run.h - a plan in motion: where the arena is, which turn every loop is in, what went wrong. */
#ifndef FTH_RUN_RUN_H
#define FTH_RUN_RUN_H

#include "plan/plan.h"
#include "run/io.h"

typedef struct fth__runner {
    fth_plan *p;
    char *arena;
    char nothing[64]; /* stands for an arena of no bytes */
    const fth_sink *sinks;
    int64_t turn[FTH__MAX_DEPTH]; /* chunk number of the loop around us, per depth */
    int64_t *spins; /* per loop: turns begun since the run began; parity picks the copy */
    fth__io *io;
    int scratch;                 /* file descriptor; -1: none */
    fth_team *team;              /* NULL: one thread */
    struct fth__device_run *dev; /* NULL: steps are done when they return */
    fth_team *own_team;          /* made for this run; NULL: the context's */
    fth_run_options opt;
    double done, total; /* planned work */
    double t_start, io_wait;
    uint64_t read_bytes, written_bytes;
    uint64_t free0;                      /* on the device, while the arena was taken */
    uint64_t used0, resident0, foreign0; /* before the run: ledger, process, the caller's pages */
    bool growth_known;
    int track;
    fth_err *err;
} fth__runner;

/* Memory of a region of a buffer in the current turn; `spin` picks the copy of a doubled buffer. */
void fth__tile_of(const fth__runner *r, const fth__buf *b, const fth__range *region, int64_t spin,
                  fth_tile *out);
/* A plan that is wrong is an error before memory is: the buffer holds what this turn puts there,
 * and the region (NULL: not known) is part of that. */
fth_status fth__buf_check(const fth__runner *r, const fth__buf *b, const fth__range *region);
/* The turn numbering and copy of the loop a buffer belongs to. */
int64_t fth__spin_of(const fth__runner *r, const fth__buf *b);

/* Name a job for the timeline, where there is one, after the value it carries. */
void fth__job_name(const fth__runner *r, const fth__buf *b, fth__io_job *job);

/* Queue a job about memory of the arena. */
int64_t fth__run_post(fth__runner *r, fth__io_job *job);

/* Output `out` of the plan is an assign: it has no sink. */
bool fth__plan_is_assign(const fth_plan *p, int out);

/* ---- report.c: before the run, and at its end while the arena is still there ---- */
void fth__report_begin(fth__runner *r);
void fth__report_end(fth__runner *r, fth_run_report *out);
/* On a device, when the arena was given back: what it really took is what came free. */
void fth__report_released(const fth__runner *r, fth_run_report *out);

fth_status fth__run_step(fth__runner *r, const fth__item *it);

#endif
