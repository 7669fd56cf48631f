/* gather.h - what a gather is made of: for its loop and for kernels of devices. */
#ifndef FTH_OPS_GATHER_H
#define FTH_OPS_GATHER_H

#include <fathom/op.h>

typedef struct fth__gather {
    int dim;                       /* the indexed axis in v */
    int n_own;                     /* axes of the index that are new */
    int index_to[FTH_MAX_AXES];    /* position in the result of each axis of the index */
    fth_axis_id own[FTH_MAX_AXES]; /* the new ones */
} fth__gather;

void fth__gather_get(const fth_node *node, fth__gather *s);
/* Position in the result of an axis of v that is not the indexed one. */
int fth__gather_to(const fth__gather *s, int dim);

/* Bytes from one element to the next along each axis of the result, in v and in the index. */
typedef struct fth__gather_steps {
    int64_t out[FTH_MAX_AXES], v[FTH_MAX_AXES], index[FTH_MAX_AXES];
    char *v_at, *index_at; /* of the result's first element; v at index 0 of the indexed axis */
    int64_t axis;          /* along the indexed axis of v */
} fth__gather_steps;

void fth__gather_steps_get(const fth_call *call, const fth__gather *s, fth__gather_steps *w);

#endif
