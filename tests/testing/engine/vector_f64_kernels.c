/* vector_f64_kernels.c - operations on vectors of doubles, for test_vector.c. */
#include "vector_loops.h"

#include <fathom/vector_wide.h>

#define FTH_VECTOR_REAL 64
#include "vector_loops.inc"

const t_vector_loops FTH_ISA_NAME(t_vector_f64) = {LOOPS,
                                                   .exp_of_negative = exp_of_negative,
                                                   .transpose = transpose,
                                                   .gather = gather,
                                                   .copy_some_f32 = copy_some_f32,
                                                   .load_f32 = load_f32,
                                                   .add_product = add_product};
