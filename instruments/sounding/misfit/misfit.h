/* misfit.h - an operation: what a sounding that lies r beside the surface costs the fit.
 *
 *     f(r) = r^2 where |r| <= d, else d (2 |r| - d)
 *
 * so that a fish pulls no harder than a sounding that is off by d. A graph of min, max and abs
 * could say it too; as an operation it shows what one is: this record, a kernel beside it, a
 * gradient. */
#ifndef SOUNDING_MISFIT_H
#define SOUNDING_MISFIT_H

#include <fathom/fathom.h>

typedef struct so_misfit {
    float limit; /* d; infinite: squares */
} so_misfit;
extern const fth_op so_misfit_op;

#ifdef __CUDACC__
#define SO_BOTH static inline __host__ __device__
#else
#define SO_BOTH static inline
#endif

/* One truth for processor and GPU. */
SO_BOTH float so_misfit_of(float r, float d)
{
    const float size = r < 0 ? -r : r;
    return size > d ? d * (2 * size - d) : r * r;
}

#endif
