/* tape.h - steps of a plan that is run again and again, recorded once and replayed at once.
 *
 * The second run of a plan records what its steps queue, outside loops; later runs replay it as
 * long as the arena and the parameters lie where they lay. What cannot be recorded is queued step
 * by step.
 */
#ifndef FTH_RUN_TAPE_H
#define FTH_RUN_TAPE_H

#include "run/device.h"

typedef fth_status fth__queue_fn(fth__runner *r, int64_t from, int64_t to);

/* Queue items from..to-1, all steps outside loops, by replaying or by calling `queue`; begins their
 * burst just before. */
fth_status fth__tape_run(fth__runner *r, int64_t from, int64_t to, fth__queue_fn *queue);

#endif
