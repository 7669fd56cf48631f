/* keep.h - arena and marks of a run on a device, from one run of a plan to the next.
 *
 * A step of training takes a few milliseconds. Blocks of a gigabyte and hundreds of marks, made and
 * given back each time, take as long, and recordings are of no use once the arena lies elsewhere.
 */
#ifndef FTH_RUN_KEEP_H
#define FTH_RUN_KEEP_H

#include "run/run.h"

/* Bytes that an earlier run has left. */
uint64_t fth__keep_bytes(const fth_plan *p);
/* r->arena and r->dev become what an earlier run has left. */
void fth__keep_take(fth__runner *r);
/* An arena for this run, and where it is kept, what the device's driver says that it took. */
fth_status fth__keep_arena(fth__runner *r);
/* At the end of a run: leave both for the next one, or give them back. */
void fth__keep_leave(fth__runner *r, fth_status s);

#endif
