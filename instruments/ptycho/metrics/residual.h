/* residual.h - how well object and probe reproduce the measured patterns, without a truth.
 *
 * Patterns are predicted in batches through the forward model: patches at whole pixels, probe modes
 * shifted by the fraction, orthonormal transform, intensities of modes added.
 */
#ifndef PTYCHO_METRICS_RESIDUAL_H
#define PTYCHO_METRICS_RESIDUAL_H

#include "image.h"

typedef struct pt_explained {
    const pt_image *object;
    double origin_x, origin_y; /* of its pixel (0, 0) */
    fth_tensor *probe;         /* c64 [mode row col] */
    const double *x, *y;       /* of each pattern */
    int64_t xy_stride;
    fth_source counts;   /* f32 [scan row col], centred */
    const uint8_t *mask; /* [row col], 1 is good; NULL: all are */
} pt_explained;

typedef struct pt_residual {
    double r_factor;             /* sum |sqrt(model) - sqrt(counts)| / sum sqrt(counts) */
    double fourier_error;        /* sum (sqrt(model) - sqrt(counts))^2 / sum counts */
    double fourier_error_scaled; /* the same after the best common scale of the model */
    double scale;                /* that scale, of amplitudes */
    double deviance;             /* of Poisson, mean over pixels */
    int64_t patterns, outside;   /* outside: patches that leave the object were not counted */
} pt_residual;

fth_status pt_residual_compute(pt_residual *out, fth_context *ctx, const pt_explained *e,
                               fth_err *err);

#endif
