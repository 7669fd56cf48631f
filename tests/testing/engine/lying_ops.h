/* testing/engine/lying_ops.h - operations of which each breaks one promise of fathom/op.h.
 *
 * `lie_list` has a row per lie: the operation that tells it, and what fth_op_check has to say. The
 * first rows keep their promises.
 */
#ifndef FATHOM_TESTING_LYING_OPS_H
#define FATHOM_TESTING_LYING_OPS_H

#include <fathom/ops.h>

typedef struct lie_row {
    const char *name, *axes; /* of the input v, of y=5 x=37 t=4 */
    const fth_op *op;
    int lie;
    const char *text; /* in the message; NULL: nothing is wrong */
} lie_row;
extern const lie_row lie_list[];
extern const int lie_count;

/* The value of a row. */
fth_val lie_make(fth_graph *g, const lie_row *row);

#endif
