/* device.h - what a run does beside its steps when the device has memory of its own.
 *
 * Steps are queued and return at once. Reads into the arena wait, on their lane, for everything
 * that was queued before them; writes likewise; the runner waits for files and copies as it does on
 * the CPU. Time is measured by marks before and after each burst of steps, or each step when there
 * is a timeline. Faults of kernels are read when all is done.
 */
#ifndef FTH_RUN_DEVICE_H
#define FTH_RUN_DEVICE_H

#include "run/run.h"

typedef struct fth__device_run fth__device_run;

/* Load what kernels need, and take blocks for parameters: before anything is measured. */
fth_status fth__device_prepare(fth_plan *p, fth_err *err);
/* Sets r->dev: that of an earlier run, or a new one. Parameters are on their way then. */
fth_status fth__device_begin(fth__runner *r);
/* The arena is there: no faults yet. */
fth_status fth__device_arena(fth__runner *r);
/* Steps and results that were queued are done, and nobody complained; `all`: copies of parameters
 * are done too. */
fth_status fth__device_settle(fth__runner *r, bool all);
/* Parameters that were assigned are newer on the device now. */
void fth__device_commit(fth__runner *r);
/* Wait for all lanes, after a run that failed. NULL dev is allowed. */
void fth__device_end(fth__runner *r);
void fth__device_drop(fth_plan *p, fth__device_run *d); /* NULL is allowed */

/* A mark of everything queued so far, for the next job; NULL: the device failed, and settling will
 * say why. */
fth_mark *fth__device_now(fth__runner *r);
/* Wait until what was queued before the last call of this is done. */
fth_status fth__device_keep_up(fth__runner *r);
/* Copies on the device itself, in order with the steps. */
fth_status fth__device_copy(fth__runner *r, void *to, const void *from, uint64_t bytes);
/* Fill the call's device fields. */
void fth__device_call(const fth__runner *r, const fth__unit *u, fth_call *call);
/* Before and after steps are queued; `span` (may be NULL) goes into the timeline with the time it
 * really took. */
fth_status fth__device_clock_start(fth__runner *r);
/* The start of a burst of steps; with a timeline each step has its own clock, and this is nothing.
 */
fth_status fth__device_burst(fth__runner *r);
/* The same of a recorded burst, and the burst itself: its clock starts on the device. */
fth_status fth__device_replay(fth__runner *r, fth_recording *recording);
fth_status fth__device_clock_stop(fth__runner *r, const fth_trace_span *span);
double fth__device_seconds(const fth__runner *r);

#endif
