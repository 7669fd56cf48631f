/* stack.h - what the operations on stacks [stack z y x] share: their axes, and where a row lies. */
#ifndef FOCUS_OPS_STACK_H
#define FOCUS_OPS_STACK_H

#include <fathom/op.h>

enum { FO_STACK, FO_Z, FO_Y, FO_X, FO_STACK_AXES }; /* axes of a stack, in their order */

/* Refuses what is no stack of u8, u16 or f32 with four axes; `mask` >= 0: that input is u8 of the
 * first two of them. */
fth_status fo_stack_check(const fth_node *node, int mask, fth_err *err);
/* Whether input `in` has these axes of input 0, in this order, and this dtype; says so if not. */
fth_status fo_stack_need(const fth_node *node, int in, fth_dtype dtype, int n, const int *axes,
                         const char *what, fth_err *err);
/* [stack y x] of this dtype, for infer. */
fth_desc fo_stack_image(const fth_desc *stack, fth_dtype dtype);
/* Address of element (s, z, y, 0): s and z count from the tile's first, y is of the image. */
static inline const char *fo_stack_row(const fth_tile *t, int64_t element, int64_t s, int64_t z,
                                       int64_t y)
{
    return (const char *)t->data + (s * t->stride[FO_STACK] + z * t->stride[FO_Z] +
                                    (y - t->origin[FO_Y]) * t->stride[FO_Y]) *
                                       element;
}
/* Whether plane z of stack s, both counted from the tile's first, takes part: mask [stack z] u8. */
static inline bool fo_stack_has(const fth_tile *mask, int64_t s, int64_t z)
{
    return ((const uint8_t *)mask->data)[s * mask->stride[0] + z * mask->stride[1]] != 0;
}

#endif
