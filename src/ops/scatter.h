/* scatter.h - what scatter_add and scatter are made of: for their loops and for kernels of devices.
 */
#ifndef FTH_OPS_SCATTER_H
#define FTH_OPS_SCATTER_H

#include "ops/ops.h"
#include "ops/scalar.h"

typedef struct fth__scatter {
    int v_to[FTH_MAX_AXES];     /* position in the result of each axis of v; -1: scattered */
    int index_to[FTH_MAX_AXES]; /* and of the index */
    int from[FTH_MAX_AXES];     /* positions of the scattered axes in v, as named */
    int at;                     /* position of `into` in the result */
} fth__scatter;

/* The attribute of both begins with fth__scatter_attr. */
void fth__scatter_get(const fth_node *node, fth__scatter *s);
/* Checks both operands; one output of this dtype. */
fth_status fth__scatter_infer(fth_node *node, fth_dtype dtype, fth_err *err);
void fth__scatter_relation(const fth_node *node, int in, int dim, fth_relation *out);
/* Names to the attribute; false: poison, or a mistake was recorded. */
bool fth__scatter_build(fth_val v, fth_site site, const char *what, const char *from, fth_val index,
                        const char *into, fth__scatter_attr *attr);

/* What fth_scatter fills rows with, as a number that the dtype has. */
fth__wide fth__scatter_fill(fth_dtype t, double fill);

/* n neighbours of v to their places; steps in bytes. */
typedef void fth__scatter_fn(char *to, int64_t to_step, const char *v, int64_t v_step, int64_t n);
/* Every row of v of this call, in order, to where it belongs in `to`, a tile with the axes of the
 * output whose elements have `element` bytes. */
fth_status fth__scatter_rows(const fth_call *call, const fth_tile *to, int64_t element,
                             fth__scatter_fn *put);

/* The walk under it, for loops that take many indices at once: the two innermost axes of v are left
 * to them. Steps in bytes; an axis that is not there has one element. */
typedef struct fth__scatter_axis {
    int64_t n, v_step, to_step, index_step;
} fth__scatter_axis;
typedef struct fth__scatter_lines {
    const fth_call *call;
    fth__scatter_axis outer, inner;
    int64_t limit, into_step; /* of the axis that the index chooses from */
} fth__scatter_lines;
typedef fth_status fth__scatter_lines_fn(const fth__scatter_lines *l, const char *v, char *to,
                                         const char *index, void *user);
fth_status fth__scatter_walk(const fth_call *call, const fth_tile *to, int64_t element,
                             fth__scatter_lines_fn *put, void *user);
/* The index at this address is beyond the axis. */
fth_status fth__scatter_misplaced(const fth__scatter_lines *l, const char *index);

#endif
