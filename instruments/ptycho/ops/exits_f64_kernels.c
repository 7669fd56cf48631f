/* exits_f64_kernels.c - the loops of exit waves in double precision. */
#define FTH_VECTOR_REAL 64
#include "exits_lanes.h"

const pt_exits_loops FTH_ISA_NAME(pt_exits_f64) = {exits_scratch, exits_run, overlap_run};
