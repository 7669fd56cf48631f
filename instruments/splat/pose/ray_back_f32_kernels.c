/* ray_back_f32_kernels.c - the loop of back.h in single precision, for lenses that bend straight
 * lines. */
#define GS_RAYS 1
#define FTH_VECTOR_REAL 32
#include <fathom/vector.h>

#include "../raster/scalars.h"

#include "back_block.h"

extern gs_pose_loop *const FTH_ISA_NAME(gs_ray_pose_f32);
gs_pose_loop *const FTH_ISA_NAME(gs_ray_pose_f32) = back_block;
