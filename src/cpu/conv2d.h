/* cpu/conv2d.h - a convolution, or its way back to the image, as the CPU's variants see it. */
#ifndef FTH_CPU_CONV2D_H
#define FTH_CPU_CONV2D_H

#include "ops/conv2d.h"

/* Where window element k of output place (row, x) lies in the array that is read. */
typedef struct fth__conv_source {
    fth__conv_view v;      /* image, or result when going back */
    int64_t height, width; /* whole sizes */
    int64_t ky, kx;        /* sizes of the window */
    int64_t stride, dilation, pad_y, pad_x;
    bool back; /* place = (here + pad - k*dilation) / stride, where that is a whole number */
    fth_dtype t;
    int64_t size;
} fth__conv_source;

/* One call, or up to 1024 output channels of it. */
typedef struct fth__conv_job {
    fth__conv_source from;
    fth__conv_view w; /* as a matrix: m_role by (depth_role, ky, kx) */
    int m_role, depth_role;
    fth__conv_view to; /* batch, m, y, x */
    int64_t rows;      /* per product */
    int64_t depth;     /* whole */
    bool cols;         /* the output's channels are innermost */
    bool tiled;        /* tiles of the result may be computed together (Winograd) */
} fth__conv_job;

/* Tiles of `rows` rows by oneDNN: one plan for all of them. The tiles start at row y of the
 * output's tile and follow each other. scratch: 0 when oneDNN does not take this shape; run then
 * does nothing and says so in *done. */
uint64_t fth__conv_onednn_scratch(const fth__conv_job *j, int64_t rows);
fth_status fth__conv_onednn_run(const fth__conv_job *j, int64_t rows, int64_t y, int64_t tiles,
                                void *scratch, bool *done, fth_err *err);

#endif
