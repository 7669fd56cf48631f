/* loop.h - a plain loop on the workers of a context, for whoever may stop it. */
#ifndef FTH_RUN_LOOP_H
#define FTH_RUN_LOOP_H

#include <fathom/graph.h>

/* fth_context_loop with a question of its own; progress NULL: nobody is asked. */
fth_status fth__loop_run(fth_context *ctx, const char *name, int64_t n,
                         void (*fn)(void *arg, int64_t i, int worker), void *arg,
                         fth_progress_fn *progress, void *user, fth_err *err);

#endif
