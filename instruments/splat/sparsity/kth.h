/* kth.h - the k-th smallest of n numbers, without sorting or moving them. */
#ifndef SPLAT_SPARSITY_KTH_H
#define SPLAT_SPARSITY_KTH_H

#include <stdint.h>

/* 1 <= k <= n; -0 is below 0, NaN beyond infinity by its sign. */
float gs_kth_smallest(const float *v, int64_t n, int64_t k);

#endif
