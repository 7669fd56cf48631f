/* scan.h - what kernels of devices share with the loop of scan. */
#ifndef FTH_OPS_SCAN_H
#define FTH_OPS_SCAN_H

#include "ops/ops.h"
#include "ops/scalar.h"

/* The number that changes nothing: 0, 1, the highest, the lowest. */
fth__wide fth__scan_none(fth_red red, fth_dtype t);

#endif
