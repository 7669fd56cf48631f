/* back_f64_kernels.c - the loop of back.h in double precision. */
#define FTH_VECTOR_REAL 64
#include <fathom/vector.h>

#include "../raster/scalars.h"

#include "back_block.h"

extern gs_pose_loop *const FTH_ISA_NAME(gs_pose_f64);
gs_pose_loop *const FTH_ISA_NAME(gs_pose_f64) = back_block;
