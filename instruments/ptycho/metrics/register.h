/* register.h - the shift between two images, to a fraction of a pixel, and an image shifted by it.
 *
 * Phase correlation: the peak of the inverse transform of the normalised cross spectrum, to a whole
 * pixel first, then on a grid `upsample` times finer around it.
 */
#ifndef PTYCHO_METRICS_REGISTER_H
#define PTYCHO_METRICS_REGISTER_H

#include "image.h"

typedef struct pt_shift {
    double y, x; /* what to move the second image by, so that it lies on the first */
} pt_shift;

typedef enum pt_register_by { PT_BY_AMPLITUDE, PT_BY_FIELD } pt_register_by;

/* Both images have one size. upsample 1: whole pixels. */
fth_status pt_register(fth_context *ctx, const pt_image *first, const pt_image *second,
                       pt_register_by by, int upsample, pt_shift *out, fth_err *err);
/* Shift by the Fourier theorem: periodic, exact for what is band-limited. `out` is a new image. */
fth_status pt_shift_apply(fth_context *ctx, const pt_image *image, pt_shift by, pt_image *out,
                          fth_err *err);

#endif
