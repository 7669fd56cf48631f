/* crew.h - a few threads that help one thread beside the workers of a context: these serve whoever
 * computes, while batches are made ahead.
 *
 *   sp_crew_run(crew, blocks, fill_block, &batch);      the caller works too, and waits
 */
#ifndef SPATIAL_CREW_H
#define SPATIAL_CREW_H

#include <fathom/fathom.h>

typedef struct sp_crew sp_crew;
/* So many threads, the caller's among them. Where the system has no more, those that there are. */
fth_status sp_crew_create(sp_crew **out, fth_mem *mem, int threads, fth_err *err);
void sp_crew_destroy(sp_crew *crew); /* NULL is allowed */
/* fn(arg, i) for i in [0, n), by one thread after the other at a time; NULL crew: by the caller. */
void sp_crew_run(sp_crew *crew, int64_t n, void (*fn)(void *arg, int64_t i), void *arg);

#endif
