/* halves.h - the resolution of real data: ring correlation of two reconstructions, each of one half
 * of the patterns.
 *
 * The second is registered to the first: its phase ramp is removed, it is shifted to a hundredth of
 * a pixel, its phase is matched; all twice. Edges are tapered, then the complex images are
 * correlated.
 */
#ifndef PTYCHO_METRICS_HALVES_H
#define PTYCHO_METRICS_HALVES_H

#include "register.h"

typedef struct pt_halves {
    fth_mem *mem;
    double *frc, *half_bit, *one_bit; /* by ring: correlation and thresholds */
    int64_t rings, side;
    double cut50, cut1over7, cut_half_bit; /* rings */
    pt_shift shift;                        /* of both rounds together */
    double ramp_y, ramp_x;                 /* that was removed, rad per pixel */
} pt_halves;

fth_status pt_halves_compute(pt_halves *out, fth_context *ctx, const pt_image *first,
                             const pt_image *second, fth_err *err);
void pt_halves_clear(pt_halves *h); /* an empty one is allowed */
/* The finest period that is resolved, in pixels: side / cutoff; NaN for a cutoff of 0. */
double pt_resolution(int64_t side, double cutoff);

#endif
