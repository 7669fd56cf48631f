/* sweep_f64_kernels.c - the loops of a sweep in double precision. */
#define FTH_VECTOR_REAL 64
#include "sweep_lanes.h"

const pt_sweep_loops FTH_ISA_NAME(pt_sweep_f64) = {sweep_scratch, sweep_run, cover_run};
