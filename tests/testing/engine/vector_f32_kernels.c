/* vector_f32_kernels.c - operations on vectors of floats, for test_vector.c. */
#include "vector_loops.h"

#include <fathom/vector_wide.h>

#define FTH_VECTOR_REAL 32
#include "vector_loops.inc"

const t_vector_loops FTH_ISA_NAME(t_vector_f32) = {LOOPS};
