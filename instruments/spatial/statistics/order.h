/* order.h - argsort, and the false discovery rate of many tests. */
#ifndef SPATIAL_ORDER_H
#define SPATIAL_ORDER_H

#include <stdbool.h>
#include <stdint.h>

/* Indices of v, largest first or smallest first; ties by index, NaN last. */
void sp_order(int64_t *order, const double *v, int64_t n, bool descending);
/* p-values after Benjamini and Hochberg; NaN stays NaN and is not counted. `room` is for n. */
void sp_benjamini_hochberg(double *q, const double *p, int64_t n, int64_t *room);

#endif
