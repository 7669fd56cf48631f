/* momentum.h - momentum of lsqml over epochs.
 *
 * The change of object and probe in an epoch is correlated with the changes of the epochs before.
 * While they agree, a fraction of the accumulated change is added again; the less they agree, the
 * more friction there is. When they disagree, or the error grows, the momentum is halved.
 */
#ifndef PT_SOLVE_MOMENTUM_H
#define PT_SOLVE_MOMENTUM_H

#include "solver.h"

enum { PT_MOMENTUM_DEPTH = 3 }; /* changes that are kept: two of the object, three of the probe */

struct pt_momentum {
    fth_tensor *start[2]; /* object and probe when the epoch began */
    fth_tensor *speed[2];
    fth_tensor *past[2][PT_MOMENTUM_DEPTH]; /* changes of length 1, the latest first */
    int64_t known[2];                       /* of these */
};

fth_status pt_momentum_create(pt_solver *s, fth_err *err);
void pt_momentum_destroy(pt_solver *s);
void pt_momentum_begin(pt_solver *s); /* an epoch begins */
void pt_momentum_end(pt_solver *s);   /* its error stands in the history */

#endif
