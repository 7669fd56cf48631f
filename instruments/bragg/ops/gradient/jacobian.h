/* jacobian.h - derivatives of pixels by the numbers of the placed scene. */
#ifndef BRAGG_OPS_JACOBIAN_H
#define BRAGG_OPS_JACOBIAN_H

#include "../render/op.h"
#include "adjoint.h"
#include "slope.h"

/* A view with what derivatives need beside it. */
typedef struct br_lab {
    br_view view;
    const double *rotations; /* [phi + 1, mosaic, 9]: rotations that made view.cells, by rows */
    double metric[6], fluence;
    br_slopes slopes;
} br_lab;
/* Bytes of scratch, and the lab in the scratch of a call; returns the rest of the scratch. */
uint64_t br_lab_bytes(const br_scene *scene);
void *br_lab_make(const fth_call *call, br_lab **lab);
/* Fills the rest of the lab beside lab->view, in `work` of br_lab_numbers doubles. */
int64_t br_lab_numbers(const br_scene *scene);
void br_lab_fill(br_lab *lab, const double *param, const double *mosaic_rotation, double *work);

/* Pixels are computed in blocks, so that scratch does not grow with the row. */
enum { BR_BLOCK = 64 };

/* Loops of one instruction set, over at most BR_BLOCK pixels of a row. */
/* Sums of the normal matrix, each spread over lanes that are added at the end: rows of the lower
 * triangle, and behind each row the sum of the gradient. */
enum {
    BR_NORMAL_LANES = 8,
    BR_NORMAL = (BR_PARAMS * (BR_PARAMS + 1) / 2 + BR_PARAMS) * BR_NORMAL_LANES
};
typedef struct br_jacobian_loops {
    /* Values, and adjoint[number * step + pixel]: their derivatives by each number of adjoint.h.
     * Pixels that are not rendered are 0. */
    void (*pixels)(const br_lab *lab, br_row *row, double *adjoint, int64_t step);
    /* slope[param * step + pixel], from these; step is BR_BLOCK, and elements after pixel n up to a
     * full vector are read and written too. */
    void (*apply)(const br_slopes *s, const double *adjoint, int64_t step, int64_t n,
                  double *slope);
    /* Adds a block of weighted slopes to sum[BR_NORMAL]. */
    void (*normal)(const double *slope, const double *weight, const double *error, double *sum);
} br_jacobian_loops;
extern const br_jacobian_loops br_jacobian_plain;
FTH_ISA_DECLARE(const br_jacobian_loops, br_jacobian);
/* The loops of instruction set 1 (base), 3 or 4, as br_loops_at. */
const br_jacobian_loops *br_jacobian_at(int level);
/* The loops of this processor for the scene; the plain ones where no others support it. */
const br_jacobian_loops *br_jacobian_for(const br_lab *lab);

/* Adds the contribution of a cotangent of a subpixel's position to adjoint[BR_ADJOINTS]. */
BR_BOTH BR_APART void br_push_place(const br_view *v, int64_t slow, int64_t fast,
                                    const int64_t sub[3], const double *bar, double *adjoint);

#endif
