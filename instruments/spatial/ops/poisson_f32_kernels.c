/* poisson_f32_kernels.c - the loops of the likelihood in single precision. */
#define SP_SINGLE 1
#include "poisson_lanes.h"
