/* context.h - what every part of one process shares: memory, log, workers, device, timeline.
 *
 * The context is passed, never found: there are no globals. Fields are set once by
 * fth_context_create and only read afterwards; the timeline alone may be changed between runs.
 */
#ifndef FTH_GRAPH_CONTEXT_H
#define FTH_GRAPH_CONTEXT_H

#include "mem/object.h"

#include <fathom/backend.h>
#include <fathom/graph.h>

#include <pthread.h>

struct fth_context {
    fth__object object; /* where it was made and released; not one of its own memory's objects */
    fth_mem *mem;
    fth_log log;
    int threads;
    char device[32];
    char reason[128];       /* why that device */
    char scratch_dir[4096]; /* empty: never spill */
    char cache_dir[4096];   /* of compiled kernels; empty: none is kept */
    bool plain_products;    /* of a device: fathom/products.h */
    const fth_backend *backend;
    fth_device *gpu;               /* opened; NULL on the CPU */
    fth_mem *gpu_mem;              /* the ledger of its memory; NULL on the CPU */
    struct fth__stage *stage;      /* pinned memory that copies go through; made by the first run */
    struct fth__io *io;            /* threads for files that a run has left for the next; NULL */
    void *library;                 /* of the backend, from dlopen; NULL: linked in */
    struct fth__plan_cache *plans; /* decisions of earlier searches */
    struct fth__rates *rates;      /* of this machine: plan/rates.h */
    fth_team *team;                /* workers; made and joined with the context */
    fth_progress_fn *progress;     /* of runs that bring none */
    void *progress_user;
    fth_trace *trace;
    struct fth__watch *watch; /* of kernels one by one; NULL: not asked for, or not to be had */
    fth_front front;
    fth_ranks *ranks; /* the caller's; NULL: this process alone */
    bool ranks_strict;
    int plan_ranks;   /* plan for this many; 0: those there are */
    pthread_t thread; /* that made it, and may wait for other ranks */
    int running;      /* runs going on: only they wait for other ranks then */
};

/* Whether this is the place for a call that all ranks make: there are some, this is the thread that
 * made the context, and it is not inside a run or a loop, where each rank is at another place. */
static inline bool fth__context_may_meet(const fth_context *ctx)
{
    return ctx->ranks && ctx->running == 0 && pthread_equal(ctx->thread, pthread_self());
}

/* front.c: a limit on memory, as it is set: "memory_bytes = 123", "memory=123", "--memory 123". */
enum { FTH__LIMIT_TEXT = 64 };
const char *fth__limit_text(fth_front front, bool device, bool of_context, uint64_t bytes,
                            char text[FTH__LIMIT_TEXT]);

/* front.c: a number of workers that makes sense; 0 is the default. */
fth_status fth__threads_check(int threads, fth_err *err);

#endif
