/* misfit.h - an operation: what a sounding that lies r beside the surface costs the fit,
 *
 *     f(r) = r^2 where |r| <= d, else d (2 |r| - d)
 *
 * so that a fish pulls no harder than a sounding that is off by d. A graph of min, max and abs
 * could say it too; as an operation it shows what one is: a record, a kernel beside it, a gradient.
 */
#ifndef SOUNDING_MISFIT_H
#define SOUNDING_MISFIT_H

#include <fathom/fathom.h>

typedef struct so_misfit {
    float limit; /* d; infinite: squares */
} so_misfit;
extern const fth_op so_misfit_op;

/* For both kernels, of variables. */
#define SO_MISFIT(r, d) (fabsf(r) > (d) ? (d) * (2 * fabsf(r) - (d)) : (r) * (r))

#endif
