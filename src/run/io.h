/* io.h - the thread that reads ahead and writes behind. */
#ifndef FTH_RUN_IO_H
#define FTH_RUN_IO_H

#include "graph/graph.h"

#include <fathom/array.h>
#include <fathom/backend.h>
#include <fathom/trace.h>

typedef struct fth__io fth__io;
struct fth__stage;

enum { FTH__IO_SLOTS = 64 }; /* jobs in flight */

typedef struct fth__io_job {
    const fth_source *source; /* read from here, or */
    const fth_sink *sink;     /* write to there */
    int64_t lo[FTH_MAX_AXES], n[FTH_MAX_AXES];
    void *data;
    fth_mark *after;      /* data on a device: not before what is queued up to here is done */
    char name[FTH__NAME]; /* of the value, for the timeline and for errors; "": the kind */
    /* What an error says beside that; zero: nothing. */
    const fth_graph *graph;
    const fth_desc *desc;
    fth_site site;
} fth__io_job;

/* `stage`: the data of jobs are on its device; NULL: they are the host's. `trace` may be NULL. */
fth_status fth__io_create(fth__io **out, fth_mem *mem, struct fth__stage *stage, fth_trace *trace,
                          fth_err *err);
/* Whoever waits, or waits for room, asks this now and then; false: it waits no longer, and the wait
 * is FTH_E_CANCELLED. */
void fth__io_ask(fth__io *io, bool (*go_on)(void *user), void *user);
/* Waits for the job in hand and drops the rest; nothing may be queued or waited for afterwards.
 * NULL is allowed. */
void fth__io_stop(fth__io *io);
void fth__io_destroy(fth__io *io);
/* Queue a job and return its ticket. Jobs run in order. */
int64_t fth__io_post(fth__io *io, const fth__io_job *job);
/* Wait until a ticket (and all before it) is done; the first error of any of them. */
fth_status fth__io_wait(fth__io *io, int64_t ticket, fth_err *err);
/* A source or sink failed with `s`: the error gets the name, the rectangle and the line. */
fth_status fth__io_blame(const fth__io_job *job, fth_status s, fth_err *err);
/* Seconds the thread was busy. */
double fth__io_busy(const fth__io *io);

#endif
