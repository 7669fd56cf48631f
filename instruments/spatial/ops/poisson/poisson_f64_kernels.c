/* poisson_f64_kernels.c - the loops of the likelihood in double precision. */
#define FTH_VECTOR_REAL 64
#include "poisson_lanes.h"

const sp_poisson_loops FTH_ISA_NAME(sp_poisson_f64) = {LANES, turn, cells, genes};
