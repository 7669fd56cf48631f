/* keep.h - what a run on a device leaves for the next run of its plan.
 *
 * Marks always: making them takes longer than short runs do. The arena of a plan made with `keep`;
 * other arenas go back to the ledger, which has them again for the next run unless there was need
 * for the room. Recordings are of no use once the arena lies elsewhere.
 */
#ifndef FTH_RUN_KEEP_H
#define FTH_RUN_KEEP_H

#include "run/run.h"

/* Bytes that an earlier run holds. */
uint64_t fth__keep_bytes(const fth_plan *p);
/* r->arena and r->dev become what an earlier run has left. */
void fth__keep_take(fth__runner *r);
/* An arena for this run, and what the device's driver says that it took. */
fth_status fth__keep_arena(fth__runner *r);
/* At the end of a run. */
void fth__keep_leave(fth__runner *r, fth_status s);

#endif
