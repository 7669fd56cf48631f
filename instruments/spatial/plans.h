/* plans.h - what a stage would hold, before its data are there. */
#ifndef SPATIAL_PLANS_H
#define SPATIAL_PLANS_H

#include "spatial.h"

/* What is held while a plan runs: all there is now, the plan, and what libraries may take; with the
 * pages of 2 MiB that the kernel may use, as far as the budget goes. *scratch (may be NULL) becomes
 * at least what the plan spills. */
uint64_t sp_held_while(fth_mem *mem, const fth_plan *plan, uint64_t *scratch);
/* An input that has a shape and nothing else. */
fth_source sp_planned_source(fth_dtype dtype, int n_axes, const int64_t *size);

#endif
