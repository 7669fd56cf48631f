/* bound.h - what a run took, and what bounded it: the last lines of every run. */
#ifndef FOCUS_RUN_BOUND_H
#define FOCUS_RUN_BOUND_H

#include "pipeline.h"

/* "bound: storage 91 %, ...", after the three numbers of memory. */
void fo_bound_print(const fo_pipeline *p, FILE *out);
/* device, device_reason, bound, planned_bytes, peak_bytes. */
void fo_bound_add(const fo_pipeline *p, fth_json_writer *w);

#endif
