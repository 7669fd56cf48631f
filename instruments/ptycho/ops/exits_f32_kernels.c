/* exits_f32_kernels.c - the loops of exit waves in single precision, with sums in double. */
#define FTH_VECTOR_REAL 32
#include "exits_lanes.h"

const pt_exits_loops FTH_ISA_NAME(pt_exits_f32) = {exits_scratch, exits_run, overlap_run};
