/* render_f64_kernels.c - the loops of a render in double precision. */
#define FTH_VECTOR_REAL 64
#include "render_lanes.h"

const br_loops FTH_ISA_NAME(br_loops_f64) = {render, latch};
