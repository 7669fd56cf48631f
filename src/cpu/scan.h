/* scan.h - loops of running sums, for lines that lie dense.
 *
 * Compiled once per instruction set. Integers join in any order; reals keep the blocks of
 * ops/scan.c, so all sets and layouts give its bits. Other dtypes have no loops.
 */
#ifndef FTH_CPU_SCAN_H
#define FTH_CPU_SCAN_H

#include <fathom/array.h>
#include <fathom/isa.h>

/* n neighbours from global index `at` of an axis of such blocks; *sum, a double or an i64, is what
 * came before them, and then what comes before the next. */
typedef void fth__scan_along_fn(int64_t n, int64_t block, int64_t at, const void *x, void *out,
                                void *sum);
/* The same of `cols` columns, at most FTH__SCAN_LANES, of neighbours in n rows; steps in bytes. */
typedef void fth__scan_across_fn(int64_t n, int64_t block, int64_t at, int64_t cols,
                                 int64_t row_step, int64_t out_step, const void *x, void *out,
                                 void *sum);
enum { FTH__SCAN_LANES = 256 }; /* their sums lie in the first cache */

typedef struct fth__scan_loops {
    fth__scan_along_fn *along[FTH_DTYPE_COUNT];
    fth__scan_across_fn *across[FTH_DTYPE_COUNT];
} fth__scan_loops;
FTH_ISA_DECLARE(const fth__scan_loops, fth__scan_loops);

#endif
