/* loess.h - local regression of one variable: quadratics, a share of the points at a time.
 *
 * As the loess of Cleveland and Grosse has it, which R and scikit-misc use: fits at the vertices of
 * a k-d tree of the points, cubics between them (model 2.7).
 */
#ifndef SPATIAL_LOESS_H
#define SPATIAL_LOESS_H

#include <fathom/memory.h>

/* Bytes that sp_loess takes while it runs. */
uint64_t sp_loess_bytes(int64_t n);
/* fitted[i] of points (x[i], y[i]), all of them finite; 0 < span <= 1. */
fth_status sp_loess(fth_mem *mem, int64_t n, const double *x, const double *y, double span,
                    double *fitted, fth_err *err);

#endif
