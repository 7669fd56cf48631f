/* misfit.h - errors of numbers that only a run can find wrong, the same text on every device. */
#ifndef FTH_OPS_MISFIT_H
#define FTH_OPS_MISFIT_H

#include <fathom/op.h>

/* How much the place grows per step along each axis. */
static inline void fth__misfit_steps(const fth_desc *d, int64_t *step)
{
    for (int i = d->n_axes - 1; i >= 0; i--)
        step[i] = i == d->n_axes - 1 ? 1 : step[i + 1] * d->size[i + 1];
}
/* Where an element of a tile stands in the whole value: row-major over the axes of `d`; `index`
 * counts from the tile's first element. */
static inline uint64_t fth__misfit_place(const fth_desc *d, const fth_tile *t, const int64_t *index)
{
    uint64_t place = 0;
    for (int i = 0; i < d->n_axes; i++)
        place = place * (uint64_t)d->size[i] + (uint64_t)(t->origin[i] + index[i]);
    return place;
}

/* The element of operand 0 at this place does not fit the dtype of the result. */
fth_status fth__misfit_cast(const fth_node *node, uint64_t place, double value, fth_err *err);
/* The element of operand 0 at this place is not a rate. */
fth_status fth__misfit_rate(const fth_node *node, uint64_t place, double rate, fth_err *err);

#endif
