/* matrices.h - the matrices of a call, one after the other, for threads that take one each.
 *
 * The host's walk over them is ops/matrix.h's; here it becomes a space (space.cuh) whose last array
 * is the number of the matrix in the whole value. A complaint about element i of a matrix stands at
 * number * rows + i, so the lowest place is the first matrix in the order of the CPU's loop.
 */
#ifndef FTH_CUDA_MATRICES_H
#define FTH_CUDA_MATRICES_H

#include "cuda/walk/space.cuh"

extern "C" {
#include "ops/matrix.h"
}

/* in[0], the outputs, and the number: elements. */
enum { FTH__MATRIX_IN, FTH__MATRIX_OUT, FTH__MATRIX_OUT_1, FTH__MATRIX_NUMBER, FTH__MATRIX_ARRAYS };
typedef fth__space<FTH__MATRIX_ARRAYS> fth__matrix_space;
typedef fth__places<FTH__MATRIX_ARRAYS> fth__matrix_places;
typedef struct fth__matrix_base {
    int64_t at[FTH__MATRIX_ARRAYS];
} fth__matrix_base;

static inline fth__matrix_base fth__matrix_base_of(const int64_t *base)
{
    fth__matrix_base b;
    for (int k = 0; k < FTH__MATRIX_ARRAYS; k++) b.at[k] = base[k];
    return b;
}

static inline bool fth__is_matrix_axis(const fth_node *node, int dim)
{
    const fth__matrix_attr *m = (const fth__matrix_attr *)node->attr;
    return node->in[0].axis[dim] == m->row || node->in[0].axis[dim] == m->col;
}

/* Where the matrices of an operation with a fth__matrix_attr lie. Outputs stand still along axes
 * they do not have. */
static inline fth__matrix_space fth__matrix_space_of(const fth_call *call)
{
    const fth_node *node = call->node;
    const fth_desc *d = &node->in[0];
    fth__matrix_space s;
    int64_t step[FTH_MAX_AXES], numbers = 1;
    for (int i = d->n_axes - 1; i >= 0; i--) {
        step[i] = numbers;
        if (!fth__is_matrix_axis(node, i)) numbers *= d->size[i];
    }
    for (int i = 0; i < d->n_axes; i++) {
        if (fth__is_matrix_axis(node, i)) continue;
        int64_t out[2] = {0, 0};
        for (int k = 0; k < node->n_out; k++) {
            const int at = fth_desc_find(&node->out[k], d->axis[i]);
            if (at >= 0) out[k] = call->out[k].stride[at];
        }
        s.add(call->in[0].extent[i], call->in[0].stride[i], out[0], out[1], step[i]);
        s.base[FTH__MATRIX_NUMBER] += call->in[0].origin[i] * step[i];
    }
    return s;
}

/* A call that stands at the matrix of this number, and the walk at it: for messages. */
static inline void fth__matrix_at(const fth_node *node, int64_t number, fth_err *err,
                                  fth_call *call, fth__batch *b)
{
    const fth__matrix_attr *m = (const fth__matrix_attr *)node->attr;
    *call = {};
    call->node = node;
    call->err = err;
    for (int i = node->in[0].n_axes - 1; i >= 0; i--) {
        call->in[0].extent[i] = 1;
        if (fth__is_matrix_axis(node, i)) continue;
        call->in[0].origin[i] = number % node->in[0].size[i];
        number /= node->in[0].size[i];
    }
    fth__batch_init(b, &node->in[0], &call->in[0], m->row, m->col);
}

#endif
