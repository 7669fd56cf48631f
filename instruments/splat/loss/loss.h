/* loss.h - how far an image is from its target: (1 - lambda) L1 + lambda (1 - SSIM), as an
 * operation with its gradient.
 *
 * SSIM has a window of 11 x 11 px (sigma 1.5) with zeros outside the image, and is averaged over
 * the pixels whose window lies inside; where a side has 10 px or fewer, over all.
 */
#ifndef SPLAT_LOSS_LOSS_H
#define SPLAT_LOSS_LOSS_H

#include <fathom/isa.h>
#include <fathom/ops.h>

typedef struct gs_loss {
    double lambda; /* share of SSIM */
} gs_loss;
/* Inputs: image and target [i j c], f32 or f64. Outputs: loss, L1 and SSIM, f64 [], and the
 * gradient of the loss by the image. */
enum { GS_LOSS, GS_LOSS_L1, GS_LOSS_SSIM, GS_LOSS_GRADIENT, GS_LOSS_OUTPUTS };
extern const fth_op gs_loss_op;
fth_val gs_loss_(fth_graph *g, fth_site site, double lambda, fth_val image, fth_val target);
#define gs_loss_of(g, lambda, image, target) gs_loss_((g), FTH_HERE, (lambda), (image), (target))

/* The loops, once per precision and instruction set. */
typedef struct gs_loss_work {
    int64_t height, width;
    const void *image, *target;
    int64_t image_i, image_j, target_i, target_j;
    void *gradient; /* NULL: it is not wanted */
    int64_t gradient_i, gradient_j;
    double lambda, l1, ssim; /* the last two are results */
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
