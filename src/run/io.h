/* io.h - the threads that read ahead and write behind.
 *
 * The first serves sources and sinks that want one thread, in order. All of them share the jobs of
 * those that are concurrent, part by part and the earliest first, so that a file is read while
 * another is written.
 */
#ifndef FTH_RUN_IO_H
#define FTH_RUN_IO_H

#include "graph/context.h"
#include "graph/graph.h"

#include <fathom/array.h>
#include <fathom/backend.h>
#include <fathom/trace.h>

typedef struct fth__io fth__io;
struct fth__stage;

enum {
    FTH__IO_SLOTS = 64
}; /* jobs in flight: more than an iteration posts; whoever posts more waits */

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

/* `stage`: the data of jobs are on its device; NULL: they are the host's. `trace` may be NULL. At
 * most `threads` serve, the others when there is something for them to do. */
fth_status fth__io_create(fth__io **out, fth_mem *mem, struct fth__stage *stage, fth_trace *trace,
                          int threads, fth_err *err);
/* That of a context, for a run: with the threads that an earlier one has left, or new. */
fth_status fth__io_begin(fth__io **out, fth_context *ctx, struct fth__stage *stage, int threads,
                         fth_err *err);
/* Whoever waits, or waits for room, asks this now and then; false: it waits no longer, and the wait
 * is FTH_E_CANCELLED. */
void fth__io_ask(fth__io *io, bool (*go_on)(void *user), void *user);
/* Waits for the parts in hand and drops the rest; nothing may be queued or waited for afterwards.
 * NULL is allowed. */
void fth__io_stop(fth__io *io);
/* Leave it to the next run: all that was queued is done, or it was stopped. NULL is allowed. */
void fth__io_end(fth_context *ctx, fth__io *io);
void fth__io_destroy(fth__io *io);
/* Queue a job and return its ticket. */
int64_t fth__io_post(fth__io *io, const fth__io_job *job);
/* Wait until a ticket and all before it are done; of their errors, that of the earliest job, and in
 * it of the part that comes first in the data. */
fth_status fth__io_wait(fth__io *io, int64_t ticket, fth_err *err);
/* A source or sink failed with `s`: the error gets the name, the rectangle and the line. */
fth_status fth__io_blame(const fth__io_job *job, fth_status s, fth_err *err);

/* Seconds on the wall in which at least one thread served a job, was in a source, in a sink; and
 * the threads that there was something to do for. */
typedef struct fth__io_times {
    double busy, read, write;
    int threads;
} fth__io_times;
fth__io_times fth__io_get_times(fth__io *io);

/* Read or write a part of a job, on the clock: for whoever serves it. */
struct fth__piece;
fth_status fth__io_read(fth__io *io, const fth__io_job *job, const struct fth__piece *part,
                        void *dst, fth_err *err);
fth_status fth__io_write(fth__io *io, const fth__io_job *job, const struct fth__piece *part,
                         const void *src, fth_err *err);

#endif
