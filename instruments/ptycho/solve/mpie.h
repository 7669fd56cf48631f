/* mpie.h - momentum of mPIE, added to object and probe every few updates.
 *
 *   v <- eta v + (O - O_saved);  O <- O + eta v;  O_saved <- O
 *
 * and the same of the probe. Both run as plans of the engine: on a device nothing is read back.
 */
#ifndef PT_SOLVE_MPIE_H
#define PT_SOLVE_MPIE_H

#include "solver.h"

struct pt_mpie {
    fth_tensor *saved[2]; /* object and probe when momentum was last added */
    fth_tensor *speed[2];
    fth_graph *graph[2];
    fth_plan *plan[2]; /* one addition; saved <- now - saved */
};

fth_status pt_mpie_create(pt_solver *s, fth_err *err);
void pt_mpie_destroy(pt_solver *s);
void pt_mpie_begin(pt_solver *s); /* before the first epoch: at rest */
/* Updates, of which this epoch has done `done`, until momentum is added. */
int64_t pt_mpie_left(const pt_solver *s, int64_t done);
fth_status pt_mpie_add(pt_solver *s, fth_err *err);
/* Call before and after anything else that changes object or probe, which must not count as motion.
 */
fth_status pt_mpie_turn(pt_solver *s, fth_err *err);

#endif
