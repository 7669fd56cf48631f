/* ops/fft.h - what the variants of fft share. */
#ifndef FTH_OPS_FFT_H
#define FTH_OPS_FFT_H

#include <fathom/op.h>

enum { FTH__FFT_AXES = 3 }; /* at most */

typedef struct fth__fft_attr {
    int32_t kind; /* fth_fft_kind */
    int32_t n;    /* axes, slow ones first */
    fth_axis_id axis[FTH__FFT_AXES], into[FTH__FFT_AXES];
} fth__fft_attr;

/* One transformed axis: its position (the same on both sides) and its two sizes. */
typedef struct fth__fft_axis {
    int dim;
    int64_t in, out;
    int64_t points; /* length of the transform */
} fth__fft_axis;
void fth__fft_axes(const fth_node *node, fth__fft_axis *axis);

#endif
