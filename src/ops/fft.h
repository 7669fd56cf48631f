/* ops/fft.h - what the variants of fft share. */
#ifndef FTH_OPS_FFT_H
#define FTH_OPS_FFT_H

#include <fathom/op.h>

typedef struct fth__fft_attr {
    int32_t kind; /* fth_fft_kind */
    int32_t n;    /* axes: 1 or 2, slow one first */
    fth_axis_id axis[2], into[2];
} fth__fft_attr;

/* One transformed axis: its position (the same on both sides) and its two sizes. */
typedef struct fth__fft_axis {
    int dim;
    int64_t in, out;
    int64_t points; /* length of the transform */
} fth__fft_axis;
void fth__fft_axes(const fth_node *node, fth__fft_axis *axis);

#endif
