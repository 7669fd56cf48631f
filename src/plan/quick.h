/* quick.h - pieces for speed where everything at once fits. */
#ifndef FTH_PLAN_QUICK_H
#define FTH_PLAN_QUICK_H

#include "plan/plan.h"

typedef struct fth__quick {
    bool found; /* quicker than everything at once, which fits */
    bool tried; /* another schedule is in the plan now */
    fth_axis_id axis;
    int64_t *chunk; /* per loop; the caller's to free */
    int64_t n_chunk, cap_chunk;
    double first, later; /* predicted seconds of the first run, and of later ones */
    uint64_t bytes;      /* alive at once */
    double quickest;     /* first run of all that were tried */
} fth__quick;

/* Whether plans are made for speed at all: on the CPU, where nothing else says how to cut. */
bool fth__plan_may_quicken(const fth_plan *p);
/* With the plan of everything at once, laid out: is there a quicker one with less memory? */
fth_status fth__plan_quicken(fth_plan *p, fth__quick *q, fth_err *err);

#endif
