/* mask.h - which pixels of an image count: those that a mask keeps, and of SSIM those whose whole
 * window it keeps. */
#ifndef SPLAT_LOSS_MASK_H
#define SPLAT_LOSS_MASK_H

#include <fathom/op.h>

enum {
    GS_MASK_HALF = 5,   /* half the window of SSIM, px */
    GS_MASK_LEAST = 128 /* a pixel of a mask is kept from here on */
};
enum { GS_KEPT = 1, GS_AVERAGED = 2 }; /* flags of a pixel */

/* Pixels at each side of an image that SSIM leaves out. */
static inline int64_t gs_mask_border(int64_t height, int64_t width)
{
    return height > 2 * GS_MASK_HALF && width > 2 * GS_MASK_HALF ? GS_MASK_HALF : 0;
}

typedef struct gs_mask {
    const uint8_t *mask;
    int64_t mask_i, mask_j; /* strides */
    int64_t height, width, border;
    uint8_t *flags;         /* [i j] */
    int64_t kept, averaged; /* pixels, results */
    void *scratch;          /* gs_mask_scratch bytes */
} gs_mask;
uint64_t gs_mask_scratch(int64_t height, int64_t width);
void gs_mask_run(gs_mask *m, fth_team *team);

#endif
