/* grid_f64_kernels.c - the loops of loops.h in double precision. */
#include <math.h>
typedef double real;
#define FMA(a, b, c) fma((a), (b), (c))
#include "grid_lanes.h"

extern const gs_grid_loops FTH_ISA_NAME(gs_grid_f64);
const gs_grid_loops FTH_ISA_NAME(gs_grid_f64) = {slice_scratch, slice_run, back_run, slope_run};
