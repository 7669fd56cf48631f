/* poisson_f32_kernels.c - the loops of the likelihood in single precision. */
#define FTH_VECTOR_REAL 32
#include "poisson_lanes.h"

const sp_poisson_loops FTH_ISA_NAME(sp_poisson_f32) = {LANES, turn, cells, genes};
