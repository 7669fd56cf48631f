/* map.h - stacks through a table, and stacks that are known to be finite. */
#ifndef FOCUS_OPS_MAP_H
#define FOCUS_OPS_MAP_H

#include "stack.h"

/* table[v] for each value v of u8 or u16 stacks; table [level] u8, u16 or f32 has an element for
 * every value of the dtype. */
fth_val fo_map_(fth_site site, fth_val stacks, fth_val table);
/* The stacks themselves, f32; a NaN or infinity in a plane that exists is an error that names the
 * plane. */
/* What such an error says of "NaN" or "an infinity": plane, stack, row, column. */
#define FO_NOT_FINITE                                                                              \
    "%s (plane %lld) of stack %lld, at row %lld, column %lld; every value must be a finite number"
fth_val fo_finite_(fth_site site, fth_val stacks, fth_val present);

#endif
