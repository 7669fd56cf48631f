/* extreme.h - loops that find the largest or smallest element, and where it is.
 *
 * Compiled once per instruction set; what max, min, argmax and argmin of values in memory are made
 * of. f16 and bf16 have none, nor have complex numbers.
 */
#ifndef FTH_CPU_EXTREME_H
#define FTH_CPU_EXTREME_H

#include "cpu/vec.h"

/* The extreme of n > 0 neighbours as a wide number. False: it is a zero, and which of the two
 * zeros depends on the order of joining. */
typedef bool fth__extreme_fn(int64_t n, const void *v, void *wide);
/* Position of the first extreme of n > 0 neighbours, or of the first NaN; its value as a wide
 * number. */
typedef int64_t fth__where_fn(int64_t n, const void *v, void *wide);
/* The same of `lanes` columns of n > 0 rows, at most FTH__WHERE_LANES. */
typedef void fth__wheres_fn(int64_t n, int64_t lanes, int64_t row_step, const void *v, void *wide,
                            int64_t *where);
enum { FTH__WHERE_LANES = 256 };
/* acc[c], an element, with elements 0.. of column c, in order. */
typedef void fth__extremes_fn(int64_t rows, int64_t cols, int64_t row_step, const void *v,
                              void *acc);

/* Indexed by `largest`. */
typedef struct fth__extreme_loops {
    fth__extreme_fn *row[2][FTH_DTYPE_COUNT];
    fth__extremes_fn *column[2][FTH_DTYPE_COUNT];
    fth__where_fn *where[2][FTH_DTYPE_COUNT];
    fth__wheres_fn *wheres[2][FTH_DTYPE_COUNT];
} fth__extreme_loops;
FTH_ISA_DECLARE(const fth__extreme_loops, fth__extreme_loops);

#endif
