/* window.h - what window and fold, each the transpose of the other, share. */
#ifndef FTH_OPS_WINDOW_H
#define FTH_OPS_WINDOW_H

#include "ops/ops.h"

typedef struct fth__window_attr {
    int64_t lo; /* elements before the middle; size of tap - 1 - lo come after it */
    fth_axis_id axis, tap;
    int32_t border, zero; /* fth_border; WRAP is made of other operations */
} fth__window_attr;

/* With any border but WRAP. */
fth_val fth__window(fth_site site, fth_val v, const char *axis, int64_t lo, const char *tap,
                    fth_border border);
/* Sum of g [.. axis .. tap] along the diagonals: what window spread out is added up again. */
fth_val fth__fold(fth_site site, fth_val g, const fth__window_attr *attr);

#endif
