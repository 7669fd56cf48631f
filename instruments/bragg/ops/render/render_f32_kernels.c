/* render_f32_kernels.c - the loops of a render in single precision, with sums in double. */
#define FTH_VECTOR_REAL 32
#include "render_lanes.h"

const br_loops FTH_ISA_NAME(br_loops_f32) = {render, latch};
