/* scatter.h - what a scatter_add is made of: for its loop and for kernels of devices. */
#ifndef FTH_OPS_SCATTER_H
#define FTH_OPS_SCATTER_H

#include <fathom/op.h>

typedef struct fth__scatter {
    int v_to[FTH_MAX_AXES];     /* position in the result of each axis of v; -1: scattered */
    int index_to[FTH_MAX_AXES]; /* and of the index */
    int from[FTH_MAX_AXES];     /* positions of the scattered axes in v, as named */
    int at;                     /* position of `into` in the result */
} fth__scatter;

void fth__scatter_get(const fth_node *node, fth__scatter *s);

#endif
