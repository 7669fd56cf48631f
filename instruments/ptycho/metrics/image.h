/* image.h - a complex image in memory: an object, a probe mode, a reconstruction. */
#ifndef PTYCHO_METRICS_IMAGE_H
#define PTYCHO_METRICS_IMAGE_H

#include <fathom/fathom.h>

typedef struct pt_image {
    fth_tensor *tensor; /* c64 [row col] */
    fth_c64 *at;        /* its values, row after row */
    int64_t rows, cols;
} pt_image;

/* Room for an image, its values not set. */
fth_status pt_image_make(pt_image *out, fth_mem *mem, const char *label, int64_t rows, int64_t cols,
                         fth_err *err);
void pt_image_free(pt_image *image); /* clears it; an empty one is allowed */
/* A copy of the rectangle [row, row + rows) x [col, col + cols), which lies inside. */
fth_status pt_image_crop(pt_image *out, fth_mem *mem, const pt_image *from, int64_t row,
                         int64_t col, int64_t rows, int64_t cols, fth_err *err);
/* A plane of a source of any real or complex dtype: its last two axes at `plane` of those before.
 * `what` names it in errors. */
fth_status pt_image_load(pt_image *out, fth_mem *mem, const fth_source *from, int64_t plane,
                         const char *what, fth_err *err);

#endif
