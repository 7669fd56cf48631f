/* slope.h - factors of a sample with their derivatives by the fractional indices h, k, l.
 *
 * Rounding to the nearest reflection and the edge of TOPHAT have derivative zero, as has F where it
 * is looked up; an interpolated F has polynomial weights.
 */
#ifndef BRAGG_OPS_SLOPE_H
#define BRAGG_OPS_SLOPE_H

#include "../render/view.h"

/* The lattice factor, its slopes by h k l, and for GAUSS those by the six products of the
 * reciprocal axes a*a* b*b* c*c* a*b* a*c* b*c*. */
typedef struct br_lattice_slope {
    double v, d[3], metric[6];
} br_lattice_slope;
BR_BOTH BR_APART void br_lattice_at(const br_scene *scene, const double *metric, const double *hkl,
                                    br_lattice_slope *out);
BR_BOTH void br_metric(const br_placed *placed, double *metric);

/* Structure factor and its slopes: interpolated where requested and in range. */
typedef struct br_factor {
    double v, d[3];
} br_factor;
BR_BOTH BR_APART void br_factor_at(const br_view *view, const double *hkl, bool interpolate,
                                   br_factor *out);

/* Where F comes from: n = 1 or 64 places of the table with the weight of each and its slopes; 0: it
 * is default_F. */
typedef struct br_stencil {
    int n;
    int64_t at[64], entry[64]; /* offset in view->table; number in the order h k l */
    double weight[64], slope[64][3];
} br_stencil;
BR_BOTH BR_APART void br_stencil_at(const br_view *view, const double *hkl, bool interpolate,
                                    br_stencil *out);

#endif
