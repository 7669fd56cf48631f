/* stol.h - amplitudes scattered without a lattice, as a table over sin(theta)/lambda.
 *
 * Between its rows F follows the cubic through the four rows around. Two guard rows at each end
 * hold the end values at infinity: the last cubics become parabolas, and outside F continues along
 * the line through the last two rows.
 */
#ifndef BRAGG_STOL_H
#define BRAGG_STOL_H

#include "../geometry/both.h"

#include <fathom/fathom.h>

enum { BR_STOL_GUARD = 2 };
/* Columns: sin(theta)/lambda in 1/m, F, and the largest of the first column so far. */
enum { BR_STOL_X, BR_STOL_F, BR_STOL_REACH, BR_STOL_COLUMNS };

typedef struct br_stol {
    fth_tensor
        *table;   /* f64 [stol_row stol_column]: sin(theta)/lambda in 1/m, F; guards included */
    int64_t rows; /* without the guards */
    double unit;  /* of the file: 1/m in one of its units */
} br_stol;

/* A file of two columns, x and F; x times `unit` is sin(theta)/lambda in 1/m; F is 0 where it is
 * missing. Strict reading sorts the rows, and of several with one x the last counts. Else they are
 * used in file order, as the reference does: around the first row that is followed by an x larger
 * than the one looked up, even if rows are out of order. */
fth_status br_stol_read(br_stol *out, fth_mem *mem, const char *path, double unit, bool strict,
                        fth_err *err);
/* n rows from 0, `step` apart (1/m), of F = 1. */
fth_status br_stol_make(br_stol *out, fth_mem *mem, int64_t n, double step, double unit,
                        fth_err *err);
void br_stol_clear(br_stol *s);
/* After rows were changed: guards and reach. */
void br_stol_finish(br_stol *s);

/* F at x, from `rows` + 4 rows; NaN stays NaN. */
BR_BOTH double br_stol_at(const double *table, int64_t rows, double x);
/* Row nearest to x, without the guards: 0 to rows - 1. */
BR_BOTH int64_t br_stol_nearest(const double *table, int64_t rows, double x);

#endif
