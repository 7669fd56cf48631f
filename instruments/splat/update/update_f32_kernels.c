/* update_f32_kernels.c - the loop of loops.h in single precision. */
#define FTH_VECTOR_REAL 32
#include <fathom/vector.h>

#include "../raster/scalars.h"

#include "update_lanes.h"

extern gs_update_loop *const FTH_ISA_NAME(gs_update_f32);
gs_update_loop *const FTH_ISA_NAME(gs_update_f32) = update_run;
