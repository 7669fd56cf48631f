/* walk.h - tiles of stacks, planes and bands as kernels go through them: an address for each row.
 *
 * A value's axes are named by a string, one letter for each, in order: s stack, z plane, b band,
 * p part (real, imaginary), y, x. "szyx" is a stack. Indices are those of the whole value; an axis
 * that the value has not got takes any index. Plain bytes: kernels of a GPU take it by value.
 */
#ifndef FOCUS_OPS_WALK_H
#define FOCUS_OPS_WALK_H

#include "border.h"

#include <fathom/op.h>

typedef enum fo_dim { FO_S, FO_Z, FO_B, FO_P, FO_Y, FO_X, FO_DIMS } fo_dim;

typedef struct fo_walk {
    char *data;
    fth_dtype dtype;
    int64_t step[FO_DIMS]; /* bytes */
    int64_t lo[FO_DIMS], n[FO_DIMS];
} fo_walk;

static inline fo_dim fo_dim_of(char letter)
{
    return letter == 's'   ? FO_S
           : letter == 'z' ? FO_Z
           : letter == 'b' ? FO_B
           : letter == 'p' ? FO_P
           : letter == 'y' ? FO_Y
                           : FO_X;
}

/* `size` is that of an element, or of the state of one. */
static inline fo_walk fo_walk_sized(const fth_desc *d, const fth_tile *t, const char *axes,
                                    int64_t size)
{
    fo_walk w;
    w.data = (char *)t->data;
    w.dtype = d->dtype;
    for (int i = 0; i < FO_DIMS; i++) w.step[i] = w.lo[i] = 0, w.n[i] = 1;
    for (int i = 0; i < d->n_axes; i++) {
        const fo_dim at = fo_dim_of(axes[i]);
        w.step[at] = t->stride[i] * size;
        w.lo[at] = t->origin[i];
        w.n[at] = t->extent[i];
    }
    return w;
}

static inline fo_walk fo_walk_of(const fth_desc *d, const fth_tile *t, const char *axes)
{
    return fo_walk_sized(d, t, axes, fth_dtype_size(d->dtype));
}

/* Column 0 of a row. */
FO_BOTH char *fo_walk_row(const fo_walk *w, int64_t s, int64_t z, int64_t b, int64_t p, int64_t y)
{
    return w->data + (s - w->lo[FO_S]) * w->step[FO_S] + (z - w->lo[FO_Z]) * w->step[FO_Z] +
           (b - w->lo[FO_B]) * w->step[FO_B] + (p - w->lo[FO_P]) * w->step[FO_P] +
           (y - w->lo[FO_Y]) * w->step[FO_Y] - w->lo[FO_X] * w->step[FO_X];
}

#endif
