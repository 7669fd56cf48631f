/* loss.h - the distance of an image from its target: (1 - lambda) L1 + lambda (1 - SSIM), as an
 * operation with its gradient.
 *
 * SSIM has a window of 11 x 11 px (sigma 1.5) with zeros outside the image, and is averaged over
 * the pixels whose window lies inside; where a side has 10 px or fewer, over all. With a mask L1 is
 * the mean over pixels that it keeps, and SSIM over those of which it keeps the whole window: what
 * lies under the rest has no effect, whatever it is.
 */
#ifndef SPLAT_LOSS_LOSS_H
#define SPLAT_LOSS_LOSS_H

#include <fathom/isa.h>
#include <fathom/ops.h>

typedef struct gs_loss {
    double lambda; /* share of SSIM */
} gs_loss;
/* Inputs: image and target [i j c], f32 or f64, and where there is one a mask, u8 [i j]. Outputs:
 * loss, L1 and SSIM, f64 [], and the gradient of the loss by the image. Where a mask leaves nothing
 * to compare, L1 is 0 and SSIM 1. */
enum { GS_LOSS, GS_LOSS_L1, GS_LOSS_SSIM, GS_LOSS_GRADIENT, GS_LOSS_OUTPUTS };
extern const fth_op gs_loss_op;
fth_val gs_loss_(fth_graph *g, fth_site site, double lambda, fth_val image, fth_val target,
                 fth_val mask);
#define gs_loss_of(g, lambda, image, target)                                                       \
    gs_loss_((g), FTH_HERE, (lambda), (image), (target), (fth_val){0})
#define gs_loss_masked(g, lambda, image, target, mask)                                             \
    gs_loss_((g), FTH_HERE, (lambda), (image), (target), (mask))

/* The loops, once per precision and instruction set. */
typedef struct gs_loss_work {
    int64_t height, width;
    const void *image, *target;
    int64_t image_i, image_j, target_i, target_j;
    void *gradient; /* NULL: it is not wanted */
    int64_t gradient_i, gradient_j;
    const uint8_t *flags;          /* of pixels, [i j] of mask.h; NULL: there is no mask */
    double l1_pixels, ssim_pixels; /* that are averaged */
    double lambda, l1, ssim;       /* the last two are results */
    fth_team *team;
    int threads;
    void *scratch;
} gs_loss_work;
typedef struct gs_loss_loops {
    uint64_t (*scratch)(int64_t height, int64_t width, int threads);
    void (*run)(gs_loss_work *w);
} gs_loss_loops;
FTH_ISA_DECLARE(const gs_loss_loops, gs_loss_f32);
FTH_ISA_DECLARE(const gs_loss_loops, gs_loss_f64);

#endif
