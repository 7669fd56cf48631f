/* fft_f64_kernels.c - the loops of cpu/fft/lanes.h in double precision. */
#include "cpu/fft/lanes.h"

#define FTH_VECTOR_REAL 64
#include <fathom/vector.h>

#include "cpu/fft/lanes_loops.h"

const fth__fft_loops FTH_ISA_NAME(fth__fft_f64) = FFT_LOOPS;
