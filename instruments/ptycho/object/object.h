/* object.h - synthetic objects for simulations, as real images. */
#ifndef PTYCHO_OBJECT_H
#define PTYCHO_OBJECT_H

#include "../random/compat.h"

#include <fathom/fathom.h>

typedef enum pt_object_kind {
    PT_OBJECT_LINES,
    PT_OBJECT_GRF, /* a Gaussian random field */
    PT_OBJECT_POINTS,
    PT_OBJECT_DIAGONALS,
    PT_OBJECT_IMAGE, /* of a file */
    PT_OBJECT_KINDS
} pt_object_kind;

/* `lines` straight lines on an n x n image, each from a random pixel to another, f64 [n n]: 0 and
 * 1; and what PtychoPINN makes of it: G1 + 2 G5 + 5 G10 of Gaussian blurs. */
void pt_lines_draw(pt_compat *r, int64_t n, int64_t lines, double *out);
fth_status pt_lines(fth_context *ctx, pt_compat *r, int64_t n, int64_t lines, double *out,
                    fth_err *err);
/* Others of f64 [n n]; a field needs an even n. */
fth_status pt_points(fth_context *ctx, pt_compat *r, int64_t n, double *out, fth_err *err);
fth_status pt_diagonals(fth_context *ctx, pt_compat *r, int64_t n, double *out, fth_err *err);
fth_status pt_field(fth_context *ctx, pt_compat *r, int64_t n, double *out, fth_err *err);

/* The amplitude of the object of a simulation, f64 [n n]: lines are drawn on twice the side and cut
 * out of the middle, so that none ends at an edge. Not of kind IMAGE. */
fth_status pt_object_make(fth_context *ctx, pt_object_kind kind, int64_t n, int64_t lines,
                          uint32_t seed, double *out, fth_err *err);

#endif
