/* jacobian.h - derivatives of pixels by the numbers of the frame. */
#ifndef BRAGG_OPS_JACOBIAN_H
#define BRAGG_OPS_JACOBIAN_H

#include "adjoint.h"
#include "op.h"
#include "slope.h"

/* A view with what derivatives need beside it. */
typedef struct br_lab {
    br_view view;
    const double *turns; /* [phi + 1, mosaic, 9]: rotations that made view.cells, by rows */
    double metric[6], fluence;
    br_slopes slopes;
} br_lab;
/* Bytes of scratch, and the lab in the scratch of a call; returns what is left of it. */
uint64_t br_lab_bytes(const br_scene *scene);
void *br_lab_make(const fth_call *call, br_lab **lab);

/* Values of a piece of a row, and adjoint[number * step + pixel]: their slopes by each number of
 * adjoint.h. What is not rendered is 0. */
typedef void br_jacobian_fn(const br_lab *lab, br_row *row, double *adjoint, int64_t step);
br_jacobian_fn br_jacobian_plain;

#endif
