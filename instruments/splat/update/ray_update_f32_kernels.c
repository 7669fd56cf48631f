/* ray_update_f32_kernels.c - the loop of loops.h in single precision, for lenses that bend straight
 * lines. */
#define GS_RAYS 1
#define FTH_VECTOR_REAL 32
#include <fathom/vector.h>

#define FMA(a, b, c) fmaf((a), (b), (c))
#define EXP expf
#define LOG logf
#define SQRT sqrtf
#define FLOOR floorf
#define CEIL ceilf
#define SIN sinf
#define COS cosf
#define ATAN2 atan2f
#include "update_lanes.h"

extern gs_update_loop *const FTH_ISA_NAME(gs_ray_update_f32);
gs_update_loop *const FTH_ISA_NAME(gs_ray_update_f32) = update_run;
