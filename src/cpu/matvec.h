/* cpu/matvec.h - a matrix times a vector, in an order of our own. */
#ifndef FTH_CPU_MATVEC_H
#define FTH_CPU_MATVEC_H

#include "cpu/blas.h"

/* y = a x + beta y with beta 0 or 1, a m by k and x dense; elements of y are `step` apart. dtypes
 * f32 f64 c64 c128. */
void fth__cpu_matvec(fth_dtype t, int64_t m, int64_t k, fth__matrix a, const void *x, double beta,
                     void *y, int64_t step);

#endif
