/* cpu/fft/plan.h - how many points are transformed: radices, roots of unity, order of the result.
 *
 * A plan depends on the number of points alone, so there is one algorithm for each. Tables are made
 * in double precision, lie in memory of the caller, and take little more time than writing them:
 * roots are looked up in a circle of which an eighth is computed.
 */
#ifndef FTH_CPU_FFT_PLAN_H
#define FTH_CPU_FFT_PLAN_H

#include "cpu/fft/lanes.h"

/* Whether passes of radices up to FTH__FFT_RADIX are enough. */
bool fth__fft_is_smooth(int64_t n);
/* The radices of n points, in the order of the passes; returns how many. `n` is smooth. */
int fth__fft_radices(int64_t n, int32_t radix[FTH__FFT_PASSES]);

/* Bytes of the tables of a plan, `size` being that of a real number, and the plan: memory is
 * aligned to 64. */
uint64_t fth__fft_plan_bytes(int64_t n, int64_t size);
void fth__fft_plan_make(fth__fft_plan *plan, int64_t n, int64_t size, void *memory);

/* exp(-2 pi i k / n) for any k >= 0. */
void fth__fft_root(int64_t k, int64_t n, double *re, double *im);

#endif
