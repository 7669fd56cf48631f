/* testing/engine/engine_program.h - whole programs in which one request or one write fails.
 *
 * `train` builds a graph with gradients, plans it under a tight budget, runs it twice with an
 * optimiser and writes rows to an NPY file. `spill` sorts under a budget so small that values wait
 * in the scratch folder. Both free all they hold whatever fails, and say what they saw.
 */
#ifndef FATHOM_TESTING_ENGINE_PROGRAM_H
#define FATHOM_TESTING_ENGINE_PROGRAM_H

#include "testing/test.h"

#include <fathom/fathom.h>

typedef struct ep_faults {
    int64_t alloc, write; /* the n-th fails; 0: none */
} ep_faults;

typedef struct ep_seen {
    int64_t allocs, writes; /* counted while it ran */
    int runs;               /* came to their end */
    bool moved;             /* the parameter has changed */
    fth_status leak;        /* of the context's end */
} ep_seen;

typedef fth_status ep_program(ep_faults at, const char *path, ep_seen *seen, fth_err *err);
ep_program ep_train, ep_spill;

/* Fail each request of a program in turn, or each write. Every time the status must say so, nothing
 * be held, and the file and the parameter be those of the last run that came to its end. Returns
 * how many ended the program. */
int64_t ep_fail_requests(ep_program *program);
int64_t ep_fail_writes(ep_program *program);

#endif
