/* sweep_f32_kernels.c - the loops of a sweep in single precision, with sums in double. */
#define FTH_VECTOR_REAL 32
#include "sweep_lanes.h"

const pt_sweep_loops FTH_ISA_NAME(pt_sweep_f32) = {sweep_scratch, sweep_run, cover_run};
