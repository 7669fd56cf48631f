/* render_f64_kernels.c - the loops of a render in double precision. */
#define BR_SINGLE 0
#define PRECISION f64
#include "render_lanes.h"
