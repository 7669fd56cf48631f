/* match.h - matching factors of two models. */
#ifndef SPATIAL_MATCH_H
#define SPATIAL_MATCH_H

#include "../spatial.h"

/* Pairs of rows and columns of `cost`, f64 [rows][cols]: column[i] is that of row i, -1 where there
 * are fewer columns. Non-finite costs are matched last. */

/* The smallest entry, its row and column struck, and so on; ties: lower row, then lower column. */
void sp_match_greedy(int64_t *column, const double *cost, int64_t rows, int64_t cols);
/* The least sum (Hungarian method), O(n^3). */
fth_status sp_match_best(int64_t *column, fth_mem *mem, const double *cost, int64_t rows,
                         int64_t cols, fth_err *err);

#endif
