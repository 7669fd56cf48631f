/* nearest.h - the nearest of some places in the plane, exactly, in f64; ties go to the lower
 * number. A tree of places halved at the median of the longer side, as an array of numbers. */
#ifndef PTYCHO_GROUP_NEAREST_H
#define PTYCHO_GROUP_NEAREST_H

#include <fathom/fathom.h>

typedef struct pt_places {
    fth_mem *mem;
    const double *x, *y;
    int64_t n;
    int32_t *order; /* numbers of the places, leaves of the tree side by side */
} pt_places;
uint64_t pt_places_bytes(int64_t n);
fth_status pt_places_create(pt_places *p, fth_mem *mem, const double *x, const double *y, int64_t n,
                            fth_err *err);
void pt_places_clear(pt_places *p); /* a cleared one is allowed */
/* The k nearest to place number `at`, nearest first, itself among them; k <= n. `d2` is room for k
 * squared distances. Any number of threads may ask at once. */
void pt_places_nearest(const pt_places *p, int64_t at, int64_t k, int32_t *out, double *d2);

#endif
