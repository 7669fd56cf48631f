/* stack.c - shapes of stacks. */
#include "stack.h"

fth_status fo_stack_need(const fth_node *node, int in, fth_dtype dtype, int n, const int *axes,
                         const char *what, fth_err *err)
{
    const fth_desc *d = &node->in[in];
    bool fits = d->dtype == dtype && d->n_axes == n;
    for (int i = 0; fits && i < n; i++) fits = d->axis[i] == node->in[0].axis[axes[i]];
    if (fits) return FTH_OK;
    char text[256];
    return FTH_FAIL(err, FTH_E_AXIS_MISMATCH, "%s: %s is wanted, not %s", node->op->name, what,
                    fth_in_format(node, in, text, sizeof text));
}

fth_status fo_stack_check(const fth_node *node, int mask, fth_err *err)
{
    const fth_desc *d = &node->in[0];
    char text[256];
    if (d->n_axes != FO_STACK_AXES ||
        (d->dtype != FTH_U8 && d->dtype != FTH_U16 && d->dtype != FTH_F32))
        return FTH_FAIL(err, FTH_E_DTYPE_OP,
                        "%s: stacks [stack z y x] of u8, u16 or f32 are wanted, not %s",
                        node->op->name, fth_in_format(node, 0, text, sizeof text));
    if (mask < 0) return FTH_OK;
    return fo_stack_need(node, mask, FTH_U8, 2, (const int[]){FO_STACK, FO_Z},
                         "a mask u8 [stack z]", err);
}

fth_desc fo_stack_image(const fth_desc *stack, fth_dtype dtype)
{
    fth_desc d = *stack;
    d.dtype = dtype;
    fth_desc_drop(&d, FO_Z);
    return d;
}
