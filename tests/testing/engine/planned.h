/* testing/engine/planned.h - values as a user's program has them: planned, and run on one thread.
 */
#ifndef FATHOM_TESTING_PLANNED_H
#define FATHOM_TESTING_PLANNED_H

#include "testing/test.h"

#include <fathom/fathom.h>

/* A context of one thread, for graphs; ended by t_planned_close. */
fth_context *t_planned_open(void);
void t_planned_close(fth_context *ctx);
/* A graph in such a context of its own, with these axes: "row=2 col=3". Freed with its context and
 * the numbers of t_noise. */
fth_graph *t_planned_graph(const char *axes);
void t_planned_graph_free(fth_graph *g);
/* v of a graph of ctx, dense, without a limit of memory. */
void t_planned(fth_context *ctx, fth_graph *g, fth_val v, void *out);

#endif
