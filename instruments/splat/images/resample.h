/* resample.h - an image on another grid of pixels, each channel by itself. */
#ifndef SPLAT_IMAGES_RESAMPLE_H
#define SPLAT_IMAGES_RESAMPLE_H

#include "target.h"

typedef struct gs_grid {
    int64_t width, height;
    int channels;
    fth_dtype dtype;
} gs_grid;

/* `to` has the channels and dtype of `from`; the box averages what an output pixel covers, and is
 * the nearest pixel's value where it covers less than one. */
fth_status gs_resample_image(fth_mem *mem, const gs_grid *from, const void *src, const gs_grid *to,
                             void *dst, gs_resample how, fth_err *err);

#endif
