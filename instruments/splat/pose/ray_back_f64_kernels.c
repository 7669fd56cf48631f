/* ray_back_f64_kernels.c - the loop of back.h in double precision, for lenses that bend straight
 * lines. */
#define GS_RAYS 1
#define FTH_VECTOR_REAL 64
#include <fathom/vector.h>

#include "../raster/scalars.h"

#include "back_block.h"

extern gs_pose_loop *const FTH_ISA_NAME(gs_ray_pose_f64);
gs_pose_loop *const FTH_ISA_NAME(gs_ray_pose_f64) = back_block;
