/* grid_f32_kernels.c - the loops of loops.h in single precision. */
#include <math.h>
typedef float real;
#define FMA(a, b, c) fmaf((a), (b), (c))
#include "grid_lanes.h"

extern const gs_grid_loops FTH_ISA_NAME(gs_grid_f32);
const gs_grid_loops FTH_ISA_NAME(gs_grid_f32) = {slice_scratch, slice_run, back_run, slope_run};
