/* compare.h - the loss of an image against a photograph with what is known about its pixels: a mask
 * that leaves some out, and alpha, through which the background shines. */
#ifndef SPLAT_LOSS_COMPARE_H
#define SPLAT_LOSS_COMPARE_H

#include <fathom/ops.h>

typedef struct gs_compare {
    double lambda;       /* share of SSIM */
    double lambda_alpha; /* of the mean difference of alpha */
    fth_val target;      /* [i j c] */
    fth_val mask, alpha; /* u8 [i j]; cleared where there are none */
    fth_val ground;      /* [c], with alpha */
} gs_compare;
/* `image` has alpha as its output 1, and `shown` are its colours; `photo` gets gs_loss_op, whose
 * outputs are the parts of the loss. */
fth_val gs_compare_of(fth_graph *g, const gs_compare *with, fth_val image, fth_val shown,
                      fth_val *photo);

#endif
