/* lanes.h - steps of a recording on several lanes of a device.
 *
 * A short kernel leaves most of a large card idle, and a plan has steps that need nothing of each
 * other: both gradients of a layer, two halves of a network. Two steps are ordered when one writes
 * bytes that the other reads or writes, as the arena and the parameters lie; all others may be at
 * work at the same time. Kernels are the same and so are their bits.
 */
#ifndef FTH_RUN_LANES_H
#define FTH_RUN_LANES_H

#include "run/device.h"

typedef struct fth__lanes fth__lanes;

/* Lanes of items from..to-1, all steps outside loops. NULL: one lane does, or there is no memory.
 */
fth__lanes *fth__lanes_make(const fth__runner *r, int64_t from, int64_t to);
/* Its marks are of use as long as the recording is. NULL is allowed. */
void fth__lanes_drop(const fth_plan *p, fth__lanes *l);

/* Around queueing item i: r->lane becomes its lane, which waits for what the step needs. Both do
 * nothing without r->lanes. After the last item all is ordered on COMPUTE again. */
fth_status fth__lanes_before(fth__runner *r, int64_t i);
fth_status fth__lanes_after(fth__runner *r, int64_t i);

#endif
