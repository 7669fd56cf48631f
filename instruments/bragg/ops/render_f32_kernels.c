/* render_f32_kernels.c - the loops of a render in single precision, with sums in double. */
#define BR_SINGLE 1
#define PRECISION f32
#include "render_lanes.h"
