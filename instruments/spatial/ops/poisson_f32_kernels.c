/* poisson_f32_kernels.c - the loops of the likelihood in single precision. */
#define SP_SINGLE 1
#include "poisson_lanes.h"

const sp_poisson_loops FTH_ISA_NAME(sp_poisson_f32) = {LANES, turn, cells, genes};
