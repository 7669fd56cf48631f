/* ops/solve.h - what a triangular solve is made of, worked out from shapes alone. */
#ifndef FTH_OPS_SOLVE_H
#define FTH_OPS_SOLVE_H

#include "ops/matrix.h"

typedef struct fth__solve_attr {
    fth__matrix_attr matrix;
    int32_t transposed;
    int32_t zero;
} fth__solve_attr;

typedef struct fth__solve_shape {
    int row, col; /* positions of the matrix in a */
    int x;        /* position of the solved axis in b and in the result */
    int n;        /* position of the axis of right-hand sides; -1: one only */
    bool lower, adjoint;
    int64_t size;   /* of the matrix */
    int64_t tile_n; /* right-hand sides per call, anchored at multiples of it */
} fth__solve_shape;
void fth__solve_shape_get(const fth_node *node, fth__solve_shape *s);
/* A walk over everything but x and n: arrays 0 a, 1 b, 2 out. */
void fth__solve_loop(const fth_call *call, const fth__solve_shape *s, fth__loop *l, int *dim);
/* FTH_E_NUMERIC for a zero on the diagonal of the matrix at this place of b. */
fth_status fth__solve_fail(const fth_node *node, const int64_t *at, int64_t element, fth_err *err);
/* FTH_E_NUMERIC when the diagonal of the matrix at `a` has a zero. */
fth_status fth__solve_check(const fth_call *call, const fth__solve_shape *s, const void *a,
                            const fth__loop *l, const int *dim);

#endif
