/* ray_f64_kernels.c - the loops of loops.h in double precision, for lenses that bend straight
 * lines. */
#define GS_RAYS 1
#define FTH_VECTOR_REAL 64
#include <fathom/vector.h>

#define FMA(a, b, c) fma((a), (b), (c))
#define EXP exp
#define LOG log
#define SQRT sqrt
#define FLOOR floor
#define CEIL ceil
#define SIN sin
#define COS cos
#define ATAN2 atan2
#include "blend_lanes.h"
#include "project_lanes.h"

extern const gs_loops FTH_ISA_NAME(gs_ray_loops_f64);
const gs_loops FTH_ISA_NAME(gs_ray_loops_f64) = {project_run, project_back_run, lists_bytes,
                                                 blend_run, blend_back_run};
