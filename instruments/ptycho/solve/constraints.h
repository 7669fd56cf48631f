/* constraints.h - prior knowledge about object and probe, imposed after each epoch.
 *
 * Constraints act on the host on copies in double precision, pixel by pixel or in rows, so threads
 * change no bit. Their memory is allocated with the solver: what does not fit is refused then.
 */
#ifndef PT_SOLVE_CONSTRAINTS_H
#define PT_SOLVE_CONSTRAINTS_H

#include "solver.h"

struct pt_constraints {
    fth_tensor *field;    /* [orow ocol] c128, the object; NULL: no constraint needs it */
    fth_tensor *spectrum; /* its transform, where peaks are removed */
    fth_c128 *room;       /* [orow ocol] a copy, or what total variation subtracts */
    fth_c128 *dual[2];    /* [orow ocol] total variation: along rows and columns */
    fth_tensor *mask;     /* [row col] f64 factor of the probe; NULL: none */
    fth_tensor *waves;    /* [mode row col] c128, the probe, where its transform is bounded */
    fth_tensor *filtered; /* the same after that */
    fth_tensor *aperture; /* [row col] c128 factor of its transform */
    fth_graph *graph[3];  /* object to spectrum and back, probe through its aperture */
    fth_plan *plan[3];
};

fth_status pt_constraints_create(pt_solver *s, fth_err *err);
void pt_constraints_destroy(pt_solver *s);
fth_status pt_constrain_object(pt_solver *s, fth_err *err);
fth_status pt_constrain_probe(pt_solver *s, fth_err *err); /* support.c */
fth_status pt_support_create(pt_solver *s, fth_err *err);

#endif
