/* draw.h - objects side by side on one footing: aligned phases above, scaled amplitudes below. */
#ifndef PTYCHO_EVALUATE_DRAW_H
#define PTYCHO_EVALUATE_DRAW_H

#include "../metrics/metrics.h"

typedef struct pt_shown {
    const char *name;
    const pt_image *image; /* of one size in all */
} pt_shown;
enum { PT_MOST_SHOWN = 8 };

/* n images in columns; colours from the 10th to the 90th percentile of the last one, the truth.
 * With `difference` a last column shows image 0 minus the last one. */
fth_status pt_draw_side_by_side(fth_mem *mem, const pt_shown *shown, int n, pt_align align,
                                bool difference, const char *path, uint64_t *bytes, fth_err *err);

#endif
