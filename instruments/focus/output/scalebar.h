/* scalebar.h - a bar of a known length with its label, drawn into the lower right corner of a grey
 * image: white with a black outline of one pixel, 1.5 % of the image high. */
#ifndef FOCUS_OUTPUT_SCALEBAR_H
#define FOCUS_OUTPUT_SCALEBAR_H

#include <fathom/array.h>

typedef struct fo_scalebar {
    double um; /* 0: no bar */
    double um_per_px;
} fo_scalebar;

/* FTH_E_COMMAND: the size of a pixel is not known, or bar and label do not fit. */
fth_status fo_scalebar_check(const fo_scalebar *bar, int64_t rows, int64_t columns, fth_err *err);
/* Pixels are u8, u16 or f32; white is 255 or 65535. */
void fo_scalebar_draw(const fo_scalebar *bar, fth_dtype dtype, int64_t rows, int64_t columns,
                      void *pixels);

#endif
