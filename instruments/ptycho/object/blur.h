/* blur.h - the Gaussian blur of SciPy: cut at 4 sigma, images mirrored at their edges. */
#ifndef PTYCHO_OBJECT_BLUR_H
#define PTYCHO_OBJECT_BLUR_H

#include <fathom/fathom.h>

/* gaussian_filter(image, sigma) of f64 [rows cols], in place; 0 leaves it. Takes one image and a
 * few lines of memory. The same bits for any number of threads. */
fth_status pt_blur(fth_context *ctx, double *image, int64_t rows, int64_t cols, double sigma,
                   fth_err *err);

#endif
