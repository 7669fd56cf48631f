/* segment.h - loops that find the extremes of rows of entries that lie one behind the other.
 *
 * Compiled once per instruction set. f16 and bf16 have none, nor have complex numbers.
 */
#ifndef FTH_CPU_SEGMENT_H
#define FTH_CPU_SEGMENT_H

#include <fathom/array.h>
#include <fathom/isa.h>

/* Row r owns entries row_ptr[r] to row_ptr[r + 1]; `entry` is the first of row 0. Where a row has
 * none, where[r] becomes -1, otherwise the place in the row of its first extreme or first NaN. */
typedef void fth__segments_fn(int64_t rows, const int64_t *row_ptr, const void *entry,
                              int64_t *where);

/* Indexed by `largest`. */
typedef struct fth__segment_loops {
    fth__segments_fn *of[2][FTH_DTYPE_COUNT];
} fth__segment_loops;
FTH_ISA_DECLARE(const fth__segment_loops, fth__segment_loops);

#endif
