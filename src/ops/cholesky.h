/* ops/cholesky.h - what the variants of cholesky share. */
#ifndef FTH_OPS_CHOLESKY_H
#define FTH_OPS_CHOLESKY_H

#include "ops/matrix.h"

/* FTH_E_NUMERIC for the current matrix of the walk. */
fth_status fth__cholesky_fail(const fth_call *call, const fth__batch *b, int64_t order);

#endif
