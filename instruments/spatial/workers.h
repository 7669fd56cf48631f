/* workers.h - a plain loop on the workers of a context. */
#ifndef SPATIAL_WORKERS_H
#define SPATIAL_WORKERS_H

#include <fathom/fathom.h>

/* fn(arg, i, worker) for i in [0, n), then back; worker < fth_context_threads(ctx). Which worker
 * takes which i is not fixed, so results must not depend on it. For work on the host that is no
 * graph of values: searching, sorting, Lloyd's iterations. `name` appears in timelines. */
fth_status sp_workers_run(fth_context *ctx, const char *name, int64_t n,
                          void (*fn)(void *arg, int64_t i, int worker), void *arg, fth_err *err);

#endif
