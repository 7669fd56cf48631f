/* pairs.h - loops of reductions whose running value is a pair of doubles, for lines that lie dense:
 * variance (mean, sum of squares) and logsumexp (largest, sum).
 *
 * Compiled once per instruction set. Every sum is taken in the order of the operation, of several
 * lines or blocks at once, so all sets and layouts give its bits. Other dtypes have no loops.
 */
#ifndef FTH_CPU_PAIRS_H
#define FTH_CPU_PAIRS_H

#include <fathom/array.h>
#include <fathom/isa.h>

enum { FTH__PAIR_COLS = 128 }; /* their pairs lie in the first cache beside a row of each */
typedef struct fth__pairs {
    double first[FTH__PAIR_COLS], second[FTH__PAIR_COLS];
} fth__pairs;

/* Pairs of n elements each of `cols` columns, from one block of the grid, of `block` elements; in
 * `down` columns are neighbours and their elements `step` apart, in `along` the other way round. */
typedef void fth__pairs_fn(int64_t block, int64_t n, int64_t cols, int64_t step, const void *x,
                           fth__pairs *to);
typedef struct fth__pair_loops {
    fth__pairs_fn *down[FTH_DTYPE_COUNT], *along[FTH_DTYPE_COUNT];
    int64_t lines; /* from so many on `along` is quicker than the loop of the operation */
    /* columns with n elements so far are joined by m more */
    void (*join)(int64_t cols, double n, double m, const fth__pairs *more, fth__pairs *to);
    /* the results, of n elements each, in `first` */
    void (*finish)(int64_t cols, double n, fth__pairs *to);
} fth__pair_loops;
FTH_ISA_DECLARE(const fth__pair_loops, fth__variance_loops);
FTH_ISA_DECLARE(const fth__pair_loops, fth__logsumexp_loops);

#endif
