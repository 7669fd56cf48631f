/* poisson_f64_kernels.c - the loops of the likelihood in double precision. */
#define SP_SINGLE 0
#include "poisson_lanes.h"
