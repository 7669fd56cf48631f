/* join.h - joining running values of sums that several ranks made parts of (fth_join).
 *
 * Values are dense, so they are joined number by number. A part that begins away from the start of
 * its axis starts from what adding does not see: the first number of a reduction, or -0 where a
 * kernel adds to what is there (-0 + x is x, also for x = -0, which 0 + x is not).
 */
#ifndef FTH_OPS_JOIN_H
#define FTH_OPS_JOIN_H

#include "ops/scalar.h"

#include <fathom/op.h>
#include <fathom/ops.h>

/* Where the total of a reduction is, between its pieces. */
typedef struct fth__join_total {
    fth_red red;
    fth_dtype to; /* of the result */
    fth__kind kind;
    bool in_out;          /* in the output; else at the start of each element's state */
    uint64_t wide, state; /* bytes of a total and of an element's state */
} fth__join_total;
void fth__join_totals(const fth__join_total *t, const fth_partial *into, const fth_partial *from);
/* Totals that lie in the state become the output. */
void fth__join_totals_finish(const fth__join_total *t, const fth_partial *p);

/* Reals or complex numbers of `t`, `step` and `from_step` bytes apart: -0, and sums in place. */
void fth__join_clear(fth_dtype t, void *at, int64_t step, int64_t n);
void fth__join_add(fth_dtype t, void *into, const void *from, int64_t step, int64_t n);

#endif
