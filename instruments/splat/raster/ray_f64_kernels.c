/* ray_f64_kernels.c - the loops of loops.h in double precision, for lenses that bend straight
 * lines. */
#define GS_RAYS 1
#define FTH_VECTOR_REAL 64
#include <fathom/vector.h>

#include "scalars.h"

#include "blend_lanes.h"
#include "project_lanes.h"

extern const gs_loops FTH_ISA_NAME(gs_ray_loops_f64);
const gs_loops FTH_ISA_NAME(gs_ray_loops_f64) = {project_run, project_back_run, lists_bytes,
                                                 blend_run, blend_back_run};
