/* adjoint.h - the intermediate numbers a pixel depends on, and their derivatives by the parameters.
 *
 * Parameters reach a pixel only through the numbers of the placed scene that are listed here. A
 * pixel is differentiated by these; br_slopes has their derivatives by the 19 parameters, so the
 * rest is one small product per pixel however many samples it has. The spindle needs no number of
 * its own: with x' = R(phi) x and u the axis, dx'/dphi = R (u x x), so phi acts on the cell as a
 * rotation about u.
 */
#ifndef BRAGG_OPS_ADJOINT_H
#define BRAGG_OPS_ADJOINT_H

#include "../render/view.h"

enum {
    BR_AD_CELL = 0,   /* a b c, 9 numbers */
    BR_AD_METRIC = 9, /* products of a* b* c*: see br_lattice_slope */
    BR_AD_PIX0 = 15,  /* 3 */
    BR_AD_FDET = 18,  /* 3 */
    BR_AD_SDET = 21,  /* 3 */
    BR_AD_ODET = 24,  /* 3 */
    BR_AD_CLOSE = 27,
    BR_AD_DISTANCE = 28,
    BR_AD_LAMBDA = 29,
    BR_AD_FLUENCE = 30,
    BR_ADJOINTS = 31
};

/* d(number of the placed scene) / d(parameter), only nonzero entries that the scene uses, by
 * parameters. */
typedef struct br_slope {
    int number, param;
    double value;
} br_slope;
typedef struct br_slopes {
    int n;
    br_slope slope[(int)BR_ADJOINTS * (int)BR_PARAMS];
} br_slopes;
/* The same with all zeros. */
BR_BOTH void br_slopes_matrix(const br_scene *scene, const br_placed *placed,
                              double m[BR_ADJOINTS][BR_SLOPES]);
BR_BOTH void br_slopes_make(const br_scene *scene, const br_placed *placed, br_slopes *out);

#endif
