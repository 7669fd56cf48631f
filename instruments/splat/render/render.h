/* render.h - `fathom splat render`: images of a model, and gradients of a loss. */
#ifndef SPLAT_RENDER_RENDER_H
#define SPLAT_RENDER_RENDER_H

#include "frame.h"

#include <fathom/instrument.h>

extern const fth_verb gs_verb_render;

/* An image of numbers as 8 bits, rounded. */
fth_status gs_image_save(fth_mem *mem, const char *path, const float *image, int64_t width,
                         int64_t height, const char *format, fth_err *err);

#endif
